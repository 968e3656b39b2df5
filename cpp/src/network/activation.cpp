// Evaluation of activations and their derivatives on arrays.
#include "mfcore/network/activation.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "mfcore/base/errors.hpp"
#include "network/kinds.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline network {
namespace {

using namespace simd;
using kinds::Jet;

enum class Want { value, slope, value_and_slope, all };

template <class T>
MFCORE_INLINE Vec<T> get(const T* in, Index count) {
    if (count == kLanes<T>) return load<T>(in);
    T padded[kLanes<T>] = {};
    std::copy_n(in, count, padded);
    return load<T>(padded);
}
template <class T>
MFCORE_INLINE void put(T* out, Vec<T> v, Index count) {
    if (count == kLanes<T>) return store<T>(out, v);
    T padded[kLanes<T>];
    store<T>(padded, v);
    std::copy_n(padded, count, out);
}

template <class Kernel>
constexpr int at_once() {
    if constexpr (requires { Kernel::kAtOnce; })
        return Kernel::kAtOnce;
    else
        return 8;
}

// One body for whole vectors and for the padded last one: a number gives the same bits wherever it stands.
// Several vectors at once, whose operations the compiler mixes (-fschedule-insns): each is a chain of a hundred
// cycles, longer than what a processor looks ahead. Of tanh and its slope that saves a third of the time.
template <Want want, class T, class Kernel>
void loop(const Kernel& kernel, Index n, const T* z, T* value, T* slope, T* curvature) {
    Index i = 0;
    if constexpr (want == Want::value || want == Want::value_and_slope) {
        constexpr int kAtOnce = at_once<Kernel>();
        for (; i + kAtOnce * kLanes<T> <= n; i += kAtOnce * kLanes<T>) {
            Vec<T> t[kAtOnce];
            Jet<T> out[kAtOnce];
            for (int k = 0; k < kAtOnce; ++k) t[k] = load<T>(z + i + k * kLanes<T>);
#pragma GCC unroll 8
            for (int k = 0; k < kAtOnce; ++k) out[k] = kernel(t[k]);
#pragma GCC unroll 8
            for (int k = 0; k < kAtOnce; ++k) {
                store<T>(value + i + k * kLanes<T>, out[k].value);
                if constexpr (want == Want::value_and_slope)
                    store<T>(slope + i + k * kLanes<T>, out[k].slope);
            }
        }
    }
    for (; i < n; i += kLanes<T>) {
        const Index count = std::min(kLanes<T>, n - i);
        const Vec<T> t = get<T>(z + i, count);
        const Jet<T> out = kernel(t);
        if constexpr (want == Want::all) {
            if (value) put<T>(value + i, out.value, count);
            if (slope) put<T>(slope + i, out.slope, count);
            put<T>(curvature + i, out.curvature, count);
        } else {
            if constexpr (want != Want::slope) put<T>(value + i, out.value, count);
            if constexpr (want != Want::value) put<T>(slope + i, out.slope, count);
        }
    }
}

template <class T, class Kernel>
void run(const Kernel& kernel, Index n, const T* z, T* value, T* slope, T* curvature) {
    if (curvature) {
        loop<Want::all>(kernel, n, z, value, slope, curvature);
    } else if (value && slope) {
        loop<Want::value_and_slope>(kernel, n, z, value, slope, curvature);
    } else if (slope) {
        loop<Want::slope>(kernel, n, z, value, slope, curvature);
    } else if (value) {
        loop<Want::value>(kernel, n, z, value, slope, curvature);
    }
}

}  // namespace

Activation::Kind::Kind(const char* name) : place_(-1) {
    for (int k = 0; k < kinds::All::kSize && place_ < 0; ++k)
        kinds::visit_at(
            k, [&]<class K>(K) { place_ = std::strcmp(K::name, name) == 0 ? k : -1; }, kinds::All{});
    require(place_ >= 0, "kind", "must name an activation", name);
}

const char* Activation::Kind::name() const {
    return kinds::visit(*this, []<class K>(K) { return K::name; });
}

bool Activation::is_piecewise() const {
    return kinds::visit(kind, [&]<class K>(K) { return K::facts(*this).form == Facts::Form::pieces; });
}

void Activation::validate() const {
    kinds::visit(kind, [&]<class K>(K) { K::validate(*this); });
}

std::vector<const char*> named_kinds() {
    std::vector<const char*> names;
    for (int k = 0; k < kinds::All::kSize; ++k)
        kinds::visit_at(
            k,
            [&]<class K>(K) {
                if constexpr (requires(Activation sigma) { K::complete(sigma); }) names.push_back(K::name);
            },
            kinds::All{});
    return names;
}

Activation named_activation(const char* name) {
    Activation sigma;
    sigma.kind = name;
    sigma.left_slope = 0;
    kinds::visit(sigma.kind, [&]<class K>(K) {
        if constexpr (requires { K::complete(sigma); })
            K::complete(sigma);
        else
            require(false, "kind", "must have no parameters", name);
    });
    return sigma;
}

Facts facts(const Activation& sigma) {
    return kinds::visit(sigma.kind, [&]<class K>(K) { return K::facts(sigma); });
}

void require_analytic(const Activation& sigma) {
    require(
        facts(sigma).strip > 0, "activation",
        "must be analytic near the real line (a custom one: strip > 0), for averages over a law; those over "
        "samples take any",
        sigma.kind.name());
}

template <class T>
void evaluate(const Activation& sigma, Index n, const T* z, T* value, T* slope, T* curvature) {
    kinds::with_kernel<T>(sigma, [&]<class Kernel>(const Kernel& kernel) {
        if constexpr (kinds::OfVectors<Kernel, T>)
            run<T>(kernel, n, z, value, slope, curvature);
        else
            kernel(n, z, value, slope, curvature);
    });
}

template void evaluate(const Activation&, Index, const double*, double*, double*, double*);
template void evaluate(const Activation&, Index, const float*, float*, float*, float*);

}  // namespace mfcore::inline MFCORE_LEVEL::inline network
