#pragma once
// K00 = E sigma(g1) sigma(g2) and K11 = E sigma'(g1) sigma'(g2) of neurons without bias, where they have closed
// forms of few operations.
#include <algorithm>
#include <cmath>
#include <optional>

#include "gaussian/pairs.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline gaussian {

/// K11 of homogeneous neurons by their angle (eq. (4.15)); K00 = (2/pi) asin(2 q/sqrt(V1 V2)) and K11 =
/// (4/pi)/sqrt(V1 V2 - 4 q^2), V = 1 + 2 R^2, of erf.
class ClosedPairs {
public:
    ClosedPairs(const Side& first, const Side& second, bool slopes)
        : first_(first), second_(second), slopes_(slopes) {
        if (is_homogeneous(first)) {
            form_.emplace(*first.sigma, *second.sigma);
            return;
        }
        for (const Side* side : {&first, &second}) {
            FilledScratch<double>& root = side == &first ? one_ : two_;
            root.resize(to_size(side->padded));
            for (std::size_t j = 0; j < root.size(); ++j)
                root[j] = 1 / std::hypot(1.0, std::sqrt(2.0) * side->R[j]);
        }
    }

    /// True if this serves pairs of neurons with the activations of both sides.
    static bool serve(const Side& first, const Side& second, bool slopes) {
        const auto is_erf = [](const Side& side) {
            return facts(*side.sigma).form == Facts::Form::erf && !side.has_b;
        };
        return (is_erf(first) && is_erf(second)) ||
               (slopes && is_homogeneous(first) && is_homogeneous(second));
    }

    /// Replace the inner products of neuron i and neurons j, j + 1, ... by K11 or K00.
    void row(Index i, Index j, Index cols, double* q) const {
        using namespace special;
        const Pack inverse = special::pack(first_.inverse_R[to_size(i)]);
        for (Index c = 0; c < cols; c += kPack) {
            const Pack inner = simd::load(q + c);
            Correlation at(inner, inverse, simd::load(&second_.inverse_R[to_size(j + c)]));
            // The angle of nearly parallel neurons, which q alone does not give, and those in the last pack.
            const bool near = simd::sum_of_lanes(abs(at.rho) > special::pack(0.9)) != 0;
            if (near) at = across(i, j + c, std::min(kPack, cols - c), inner);
            simd::store(q + c, form_ ? by_angle(at, near) : of_erf(i, j + c, at));
        }
    }

private:
    Correlation across(Index i, Index j, Index count, Pack inner) const {
        Index one[kPack], two[kPack];
        for (Index l = 0; l < kPack; ++l) {
            one[l] = i;
            two[l] = j + std::min(l, count - 1);
            inner[l] = inner[std::min(l, count - 1)];
        }
        return {first_, second_, Chosen{one}, Chosen{two}, inner};
    }
    Pack by_angle(const Correlation& at, bool near) const {
        Pack angle = special::acos(at.rho);
        for (Index l = 0; near && l < kPack; ++l) angle[l] = std::atan2(at.s[l], at.rho[l]);
        return form_->linear + form_->kinked * (special::kPi - angle);
    }
    Pack of_erf(Index i, Index j, const Correlation& at) const {
        const double one = one_[to_size(i)], square = one * one, stretch = 2 * first_.R[to_size(i)] * one;
        const Pack two = simd::load(&two_[to_size(j)]), R = simd::load(&second_.R[to_size(j)]);
        const Pack apart = stretch * (R * two) * at.s;  // of the widened variables, as in erf.cpp
        if (!slopes_) return 2 / special::kPi * special::asin(stretch * (R * two) * at.rho);
        const Pack s = special::sqrt(apart * apart + square + two * two * (1.0 - square));
        return (4 / special::kPi * one) * two / s;
    }

    const Side &first_, &second_;
    bool slopes_;  // K11, not K00
    std::optional<AngleForm> form_;
    FilledScratch<double> one_, two_;  // 1/sqrt V
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline gaussian
