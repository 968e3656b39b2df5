#pragma once
// K00 = E sigma(g1) sigma(g2) and K11 = E sigma'(g1) sigma'(g2) of neurons, where they have closed forms of few
// operations: homogeneous and erf neurons without bias, sin and cos.
#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>

#include "gaussian/pairs.hpp"
#include "gaussian/sine.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline gaussian {

/// Homogeneous neurons by their angle (eq. (4.15)); K00 = (2/pi) asin(2 q/sqrt(V1 V2)) and K11 =
/// (4/pi)/sqrt(V1 V2 - 4 q^2), V = 1 + 2 R^2, of erf; sin and cos by eq. (4.33).
class ClosedPairs {
public:
    ClosedPairs(const Side& first, const Side& second) : first_(first), second_(second) {
        if (SinePairs::serve(first, second)) {
            sine_.emplace(first, second);
            return;
        }
        if (is_homogeneous(first)) {
            form_.emplace(*first.sigma, *second.sigma);
            return;
        }
        widen(first, one_);
        widen(second, two_);
    }

    /// True if both sides are erf without bias.
    static bool are_erf(const Side& first, const Side& second) {
        const auto is_erf = [](const Side& side) {
            return facts(*side.sigma).form == Facts::Form::erf && !side.has_b;
        };
        return is_erf(first) && is_erf(second);
    }
    /// True if this serves pairs of neurons with the activations of both sides.
    static bool serve(const Side& first, const Side& second) {
        return are_erf(first, second) || (is_homogeneous(first) && is_homogeneous(second)) ||
               SinePairs::serve(first, second);
    }

    /// K00 and K11 of neuron i and neurons j, j + 1, ... from their inner products; null outputs are skipped, others may
    /// be q itself.
    void row(Index i, Index j, Index cols, const double* q, double* k00, double* k11) const {
        constexpr std::true_type yes;
        constexpr std::false_type no;
        if (k00 && k11) return packs(i, j, cols, q, k00, k11, yes, yes);
        if (k00) return packs(i, j, cols, q, k00, k11, yes, no);
        if (k11) packs(i, j, cols, q, k00, k11, no, yes);
    }

private:
    struct Products {
        Pack k00, k11;
    };

    template <class Values, class Slopes>
    void packs(Index i, Index j, Index cols, const double* q, double* k00, double* k11, Values values,
               Slopes slopes) const {
        const auto run = [&](auto&& product) {
            for (Index c = 0; c < cols; c += kPack) {
                const Products of = product(j + c, cols - c, simd::load(q + c));
                if constexpr (values) simd::store(k00 + c, of.k00);
                if constexpr (slopes) simd::store(k11 + c, of.k11);
            }
        };
        if (form_)
            return run([&](Index at, Index count, Pack inner) { return by_angle(i, at, count, inner); });
        if (!sine_)
            return run([&](Index at, Index count, Pack inner) { return of_erf(i, at, count, inner); });
        run([&](Index at, Index count, Pack inner) {
            const auto pair = sine_->at(i, at, count, inner);
            return Products{pair.k00, pair.k11};
        });
    }

    /// The correlation of neuron i with neurons j, j + 1, ... of which `count` are there, and the same with the angle of
    /// nearly parallel neurons, which their inner products do not give. `near`: there are such.
    struct Angles {
        Correlation plain, sharp;
        bool near;
    };
    Angles angles(Index i, Index j, Index count, Pack inner) const {
        const Correlation at(inner, special::pack(first_.inverse_R[to_size(i)]),
                             simd::load(&second_.inverse_R[to_size(j)]));
        const bool near = simd::sum_of_lanes(special::abs(at.rho) > special::pack(0.9)) != 0;
        return {at, near ? across(i, j, std::min(kPack, count), inner) : at, near};
    }

    static void widen(const Side& side, FilledScratch<double>& to) {
        to.resize(to_size(side.padded));
        for (std::size_t j = 0; j < to.size(); ++j) to[j] = 1 / std::hypot(1.0, std::sqrt(2.0) * side.R[j]);
    }
    /// The last pack repeats its last neuron.
    Correlation across(Index i, Index j, Index count, Pack inner) const {
        Index one[kPack], two[kPack];
        for (Index l = 0; l < kPack; ++l) {
            one[l] = i;
            two[l] = j + std::min(l, count - 1);
            inner[l] = inner[std::min(l, count - 1)];
        }
        return {first_, second_, Chosen{one}, Chosen{two}, inner};
    }
    Products by_angle(Index i, Index j, Index count, Pack inner) const {
        const auto [at, sharp, near] = angles(i, j, count, inner);
        const Pack angle = special::acos(at.rho), whole = inner * special::pack(first_.unit[to_size(i)]) *
                                                          simd::load(&second_.unit[to_size(j)]);
        const Pack lengths = (form_->kinked * first_.R[to_size(i)]) * simd::load(&second_.R[to_size(j)]);
        Pack turned = angle;
        for (Index l = 0; near && l < kPack; ++l) turned[l] = std::atan2(sharp.s[l], sharp.rho[l]);
        return {form_->linear * whole + lengths * (at.s + (special::kPi - angle) * at.rho),
                form_->linear + form_->kinked * (special::kPi - turned)};
    }
    Products of_erf(Index i, Index j, Index count, Pack inner) const {
        const Correlation at = angles(i, j, count, inner).sharp;
        const double one = one_[to_size(i)], square = one * one, stretch = 2 * first_.R[to_size(i)] * one;
        const Pack two = simd::load(&two_[to_size(j)]), R = simd::load(&second_.R[to_size(j)]);
        const Pack apart = stretch * (R * two) * at.s;  // of the widened variables, as in erf.cpp
        const Pack s = special::sqrt(apart * apart + square + two * two * (1.0 - square));
        return {2 / special::kPi * special::asin(stretch * (R * two) * at.rho),
                (4 / special::kPi * one) * two / s};
    }

    const Side &first_, &second_;
    std::optional<AngleForm> form_;
    std::optional<SinePairs> sine_;
    FilledScratch<double> one_, two_;  // 1/sqrt V
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline gaussian
