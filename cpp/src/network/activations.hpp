#pragma once
// The activations on vectors of arguments, for loops that are compiled once per kind.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/simd_exp.hpp"
#include "mfcore/network/activation.hpp"

namespace mfcore::inline network::activations {

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

/// Put NaN back into results: comparisons with NaN are false, and constants do not see it.
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
    struct Piece {
        T knot, level, slope;
    };
    static constexpr std::size_t kTable = 8;  // pieces beyond are on the heap
    std::size_t count;                        // knots; piece 0 lies before the first
    Piece table[kTable];
    std::vector<Piece> more;

    explicit PiecewiseLinear(const Activation& sigma) : count(sigma.knots.size()) {
        if (count + 1 > kTable) more.resize(count + 1);
        Piece* const to = more.empty() ? table : more.data();
        double slope = sigma.left_slope, knot = count == 0 ? 0 : sigma.knots[0];
        double level = sigma.offset + slope * knot;
        to[0] = {T(knot), T(level), T(slope)};
        for (std::size_t k = 0; k < count; ++k) {
            level += slope * (sigma.knots[k] - knot);
            knot = sigma.knots[k];
            slope += sigma.jumps[k];
            to[k + 1] = {T(knot), T(level), T(slope)};
        }
    }

    MFCORE_INLINE Jet<T> operator()(Vec<T> t) const {
        const Piece* const piece = more.empty() ? table : more.data();
        Vec<T> slopes = fill(piece[0].slope), knots = fill(piece[0].knot), levels = fill(piece[0].level);
        for (std::size_t k = 1; k <= count; ++k) {
            const IntVec<T> beyond = t > piece[k].knot;
            slopes = select<T>(beyond, fill(piece[k].slope), slopes);
            knots = select<T>(beyond, fill(piece[k].knot), knots);
            levels = select<T>(beyond, fill(piece[k].level), levels);
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

/// Call body(kernel) with the kernel of sigma's kind.
template <class T, class Body>
decltype(auto) with_kernel(const Activation& sigma, Body&& body) {
    using Kind = Activation::Kind;
    switch (sigma.kind) {
        case Kind::relu:
            return body(Relu<T>{});
        case Kind::erf:
            return body(Erf<T>{});
        case Kind::tanh:
            return body(Tanh<T>{});
        case Kind::sigmoid:
            return body(Sigmoid<T>{});
        case Kind::softplus:
            return body(Softplus<T>{});
        case Kind::gelu:
            return body(Gelu<T>{});
        case Kind::polynomial:
            return body(Polynomial<T>{sigma});
        case Kind::hermite:
            return body(Hermite<T>{sigma});
        case Kind::linear:
        case Kind::piecewise_linear:
            break;
    }
    return body(PiecewiseLinear<T>{sigma});
}

}  // namespace mfcore::inline network::activations
