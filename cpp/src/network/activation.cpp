// Evaluation of activations and their derivatives on arrays.
#include "mfcore/network/activation.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <sstream>
#include <string>

#include "mfcore/base/errors.hpp"
#include "network/activations.hpp"

namespace mfcore::inline network {
namespace {

using namespace simd;
using activations::Jet;

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

// One body for whole vectors and for the padded last one: a number gives the same bits wherever it stands.
template <Want want, class T, class Kernel>
void loop(const Kernel& kernel, Index n, const T* z, T* value, T* slope, T* curvature) {
    for (Index i = 0; i < n; i += kLanes<T>) {
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

void require_finite(const std::vector<double>& values, const char* name) {
    for (double x : values) require(std::isfinite(x), name, "must be finite", x);
}

std::string list(const std::vector<double>& values) {
    std::ostringstream text;
    text.precision(17);
    for (double x : values) text << (text.tellp() == 0 ? "[" : ", ") << x;
    return values.empty() ? "[]" : text.str() + ']';
}

}  // namespace

void Activation::validate() const {
    if (is_piecewise()) {
        require(std::isfinite(offset), "offset", "must be finite", offset);
        require(std::isfinite(left_slope), "left_slope", "must be finite", left_slope);
        require_finite(knots, "knots");
        require_finite(jumps, "jumps");
        require(jumps.size() == knots.size(), "jumps", "must be as many as knots", list(jumps));
        const bool increasing = std::ranges::adjacent_find(knots, std::greater_equal{}) == knots.end();
        require(increasing, "knots", "must be strictly increasing", list(knots));
    }
    if (kind == Kind::linear) require(knots.empty(), "knots", "of linear must be empty", list(knots));
    if (kind == Kind::relu) {
        require(offset == 0, "offset", "of relu must be 0", offset);
        require(left_slope == 0, "left_slope", "of relu must be 0", left_slope);
        require(knots == std::vector{0.0}, "knots", "of relu must be [0]", list(knots));
        require(jumps == std::vector{1.0}, "jumps", "of relu must be [1]", list(jumps));
    }
    if (kind == Kind::piecewise_linear) require(!knots.empty(), "knots", "must not be empty", list(knots));
    if (kind == Kind::polynomial || kind == Kind::hermite) {
        require(!coefficients.empty(), "coefficients", "must not be empty", list(coefficients));
        require_finite(coefficients, "coefficients");
    }
}

template <class T>
void evaluate(const Activation& sigma, Index n, const T* z, T* value, T* slope, T* curvature) {
    activations::with_kernel<T>(sigma,
                                [&](const auto& kernel) { run<T>(kernel, n, z, value, slope, curvature); });
}

template void evaluate(const Activation&, Index, const double*, double*, double*, double*);
template void evaluate(const Activation&, Index, const float*, float*, float*, float*);

}  // namespace mfcore::inline network
