#include "mfcore/activation.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <sstream>
#include <string>

#include "base/simd_exp.hpp"
#include "mfcore/errors.hpp"

namespace mfcore {
namespace {

using namespace simd;

template <class T>
struct Jet {
    Vec<T> value, slope, curvature;
};

// One struct per kind: a vector of arguments gives value, slope and curvature. The loop below uses some of
// the three, and the compiler drops the work for the others.

/// e / (1 + e)^2 forms, e = exp(-2|t|) <= 1, keep the relative accuracy of slope and curvature in the tails.
template <class T>
struct Tanh {
    MFCORE_INLINE Jet<T> operator()(Vec<T> t) const {
        const Decay<T> e = decay<T>(T(-2) * abs<T>(t));
        const Vec<T> r = T(1) / (e.expm1 + T(2));
        const Vec<T> value = with_sign<T>(e.expm1 * r, t), slope = T(4) * e.exp * (r * r);
        return {value, slope, T(-2) * value * slope};
    }
};

template <class T>
struct Sigmoid {
    MFCORE_INLINE Jet<T> operator()(Vec<T> t) const {
        const Decay<T> e = decay<T>(-abs<T>(t));
        const Vec<T> r = T(1) / (e.exp + T(1));
        const Vec<T> slope = e.exp * (r * r);
        // sigma'' = sigma' (1 - 2 sigma), and 1 - 2 sigma = -tanh(t/2) = (e^-|t| - 1)/(e^-|t| + 1) sign t
        return {select<T>(t < 0, e.exp * r, r), slope, -slope * with_sign<T>(e.expm1 * r, t)};
    }
};

template <class T>
struct Softplus {
    MFCORE_INLINE Jet<T> operator()(Vec<T> t) const {
        const Vec<T> e = decay<T>(-abs<T>(t)).exp, r = T(1) / (e + T(1));
        const Vec<T> value = select<T>(t > 0, t, Vec<T>{}) + log1p_unit<T>(e);
        return {value, select<T>(t < 0, e * r, r), e * (r * r)};
    }
};

template <class T>
struct Erf {
    MFCORE_INLINE Jet<T> operator()(Vec<T> t) const {
        const Vec<T> g = gauss<T>(abs<T>(t), T(1)), slope = T(1.1283791670955126) * g;
        const Vec<T> bounded = select<T>(g == 0, Vec<T>{}, t);  // 0 times infinity would be NaN
        return {erf<T>(t, g), slope, T(-2) * bounded * slope};
    }
};

/// t Phi(t) = max(t, 0) - |t| Phi(-|t|): no cancellation on either side.
template <class T>
struct Gelu {
    MFCORE_INLINE Jet<T> operator()(Vec<T> t) const {
        const Vec<T> a = select<T>(abs<T>(t) > T(40), fill(T(40)), abs<T>(t));  // Phi(-40) is 0 here
        const Vec<T> g = gauss<T>(a, T(0.5)), m = mills<T>(a), density = T(0.3989422804014327) * g;
        const Vec<T> tail = m * g, below = select<T>(t < 0, tail, T(1) - tail);  // Phi(-a), Phi(t)
        return {select<T>(t > 0, t, Vec<T>{}) - (a * m) * g, below + with_sign<T>(a, t) * density,
                density * (T(2) - a * a)};
    }
};

/// Comparisons with NaN are false and constants do not see it, so it is put back.
template <class T>
MFCORE_INLINE Jet<T> keep_nan(Vec<T> t, Jet<T> out) {
    const IntVec<T> number = t == t;
    return {select<T>(number, out.value, t), select<T>(number, out.slope, t),
            select<T>(number, out.curvature, t)};
}

template <class T>
struct Relu {
    MFCORE_INLINE Jet<T> operator()(Vec<T> t) const {
        const IntVec<T> on = t > 0;
        return keep_nan<T>(t, {select<T>(on, t, Vec<T>{}), select<T>(on, fill(T(1)), Vec<T>{}), Vec<T>{}});
    }
};

/// Each piece from its own knot, level + slope (t - knot): the sum of ramps would cancel far from the knots.
template <class T>
struct PiecewiseLinear {
    const Activation& sigma;

    MFCORE_INLINE Jet<T> operator()(Vec<T> t) const {
        double slope = sigma.left_slope, knot = sigma.knots.empty() ? 0 : sigma.knots[0];
        double level = sigma.offset + slope * knot;
        Vec<T> slopes = fill(T(slope)), knots = fill(T(knot)), levels = fill(T(level));
        for (std::size_t k = 0; k < sigma.knots.size(); ++k) {
            level += slope * (sigma.knots[k] - knot);
            knot = sigma.knots[k];
            slope += sigma.jumps[k];
            const IntVec<T> beyond = t > T(knot);
            slopes = select<T>(beyond, fill(T(slope)), slopes);
            knots = select<T>(beyond, fill(T(knot)), knots);
            levels = select<T>(beyond, fill(T(level)), levels);
        }
        // A flat piece stays at its level also at infinity.
        const Vec<T> value = select<T>(slopes == 0, levels, slopes * (t - knots) + levels);
        return keep_nan<T>(t, {value, slopes, Vec<T>{}});
    }
};

/// Horner's rule for p, p' and p''/2 at once.
template <class T>
struct Polynomial {
    const Activation& sigma;

    MFCORE_INLINE Jet<T> operator()(Vec<T> t) const {
        Vec<T> p = fill(T(sigma.coefficients.back())), slope{}, half_curvature{};
        for (std::size_t k = sigma.coefficients.size() - 1; k-- > 0;) {
            half_curvature = half_curvature * t + slope;
            slope = slope * t + p;
            p = p * t + T(sigma.coefficients[k]);
        }
        return keep_nan<T>(t, {p, slope, half_curvature + half_curvature});
    }
};

/// h_{k+1} = (t h_k - sqrt(k) h_{k-1}) / sqrt(k+1), h_k' = sqrt(k) h_{k-1}, h_k'' = sqrt(k (k-1)) h_{k-2}.
template <class T>
struct Hermite {
    static constexpr Index kTable = 64;  // roots beyond are computed as they are met
    const Activation& sigma;
    T roots[kTable + 1], inverses[kTable + 1];

    explicit Hermite(const Activation& s) : sigma(s) {
        const Index last = std::min<Index>(kTable, static_cast<Index>(s.coefficients.size()));
        for (Index k = 0; k <= last; ++k) {
            roots[k] = T(std::sqrt(double(k)));
            inverses[k] = T(1 / std::sqrt(double(k)));
        }
    }
    T root(Index k) const { return k <= kTable ? roots[k] : T(std::sqrt(double(k))); }
    T inverse(Index k) const { return k <= kTable ? inverses[k] : T(1 / std::sqrt(double(k))); }

    MFCORE_INLINE Jet<T> operator()(Vec<T> t) const {
        Vec<T> before{}, previous{}, h = fill(T(1));  // h_{k-2}, h_{k-1}, h_k
        Jet<T> sum{fill(T(sigma.coefficients[0])), {}, {}};
        for (Index k = 1; k < static_cast<Index>(sigma.coefficients.size()); ++k) {
            before = previous;
            previous = h;
            h = (t * previous - root(k - 1) * before) * inverse(k);
            const T c = T(sigma.coefficients[k]);
            sum.value = c * h + sum.value;
            sum.slope = c * root(k) * previous + sum.slope;
            sum.curvature = c * root(k) * root(k - 1) * before + sum.curvature;
        }
        return keep_nan<T>(t, sum);
    }
};

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
    const auto with = [&](const auto& kernel) { run<T>(kernel, n, z, value, slope, curvature); };
    switch (sigma.kind) {
        case Activation::Kind::linear:
        case Activation::Kind::piecewise_linear:
            return with(PiecewiseLinear<T>{sigma});
        case Activation::Kind::relu:
            return with(Relu<T>{});
        case Activation::Kind::erf:
            return with(Erf<T>{});
        case Activation::Kind::tanh:
            return with(Tanh<T>{});
        case Activation::Kind::sigmoid:
            return with(Sigmoid<T>{});
        case Activation::Kind::softplus:
            return with(Softplus<T>{});
        case Activation::Kind::gelu:
            return with(Gelu<T>{});
        case Activation::Kind::polynomial:
            return with(Polynomial<T>{sigma});
        case Activation::Kind::hermite:
            return with(Hermite<T>{sigma});
    }
}

template void evaluate(const Activation&, Index, const double*, double*, double*, double*);
template void evaluate(const Activation&, Index, const float*, float*, float*, float*);

}  // namespace mfcore
