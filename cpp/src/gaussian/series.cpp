// Coefficients of Mehler's series (eqs. (4.4), (4.6)).
#include "gaussian/series.hpp"

#include <algorithm>
#include <limits>

#include "base/parallel.hpp"
#include "mfcore/gaussian/expectations.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline gaussian {
Coefficients::Coefficients(const Side& side, Index terms, const double* weights, int threads)
    : terms_(terms),
      slopes_(to_size(side.padded * (terms + 1))),
      means_(to_size(side.padded * (terms + 1))),
      T_(to_size(side.padded)),
      roots_(to_size(terms + 1)),
      inverse_roots_(to_size(terms + 1)) {
    for (Index k = 1; k <= terms; ++k) {
        roots_[to_size(k)] = std::sqrt(static_cast<double>(k));
        inverse_roots_[to_size(k)] = 1 / roots_[to_size(k)];
    }
    const bool kinked = side.sigma->is_piecewise();
    const Index work = side.n * terms * (kinked ? 1 : 20);
    for_blocks(side.padded, kWidth, threads_for(work, threads), [&](Index, Index begin, Index end) {
        double *s = slopes_.data() + place(begin), *c = means_.data() + place(begin);
        if (end > side.n) std::fill_n(s, kWidth * (terms + 1), 0.0);  // also for lanes without a neuron
        for (Index j = begin; j < end; j += kinked ? kPack : 1) {
            if (kinked)
                piecewise_block(side, j);
            else if (j < side.n)
                smooth_neuron(side, j);
        }
        for (Index v = 0; v < kWidth; v += kPack) {
            Pack weight{};
            for (Index l = 0; l < kPack; ++l)
                if (begin + v + l < side.n) weight[l] = weights ? weights[begin + v + l] : 1.0;
            const Pack R = weight * simd::load(&side.R[to_size(begin + v)]);
            simd::store(c + v, weight * simd::load(&T_[to_size(begin + v)]));
            for (Index k = 1; k < terms; ++k)
                simd::store(c + k * kWidth + v, R * simd::load(s + (k - 1) * kWidth + v) * inverse_root(k));
            simd::store(c + terms * kWidth + v, Pack{});
        }
    });
}

/// Eq. (4.11). With tau = (t - m)/R: s_0 = left slope + sum jump P(u > tau), s_k = sum jump h_{k-1}(tau)
/// f(tau)/sqrt(k).
void Coefficients::piecewise_block(const Side& side, Index j) {
    using namespace special;
    const Activation& sigma = *side.sigma;
    const Pack m = simd::load(&side.m[to_size(j)]), R = simd::load(&side.R[to_size(j)]);
    double* const s = slopes_.data() + place(j);
    Pack mean = sigma.offset + sigma.left_slope * m, slope = pack(sigma.left_slope);
    for (Index k = 1; k <= terms_; ++k) simd::store(s + k * kWidth, Pack{});
    for (std::size_t knot = 0; knot < sigma.knots.size(); ++knot) {
        const double jump = sigma.jumps[knot];
        const Threshold at(sigma.knots[knot] - m, R);
        mean += jump * at.mean;
        slope += jump * at.normal.tail;
        Pack h = jump * at.normal.density, before{};
        for (Index k = 1; k <= terms_; ++k) {
            const double scale = inverse_root(k);  // h_k = (tau h_{k-1} - sqrt(k-1) h_{k-2})/sqrt k
            simd::store(s + k * kWidth, simd::load(s + k * kWidth) + scale * h);
            const Pack next = scale * at.h * h - (scale * root(k - 1)) * before;
            before = h;
            h = next;
        }
    }
    simd::store(s, slope);
    simd::store(&T_[to_size(j)], mean);
}

void Coefficients::smooth_neuron(const Side& side, Index j) {
    const double *m = &side.m[to_size(j)], *R = &side.R[to_size(j)];
    FilledScratch<double> row(to_size(terms_ + 1));
    smooth(*side.sigma, 1, m, R, &T_[to_size(j)], nullptr, nullptr);
    slope_coefficients(*side.sigma, 1, m, R, {row.data(), 1, terms_ + 1});
    double* const s = slopes_.data() + place(j);
    for (Index k = 0; k <= terms_; ++k) s[k * kWidth] = row[to_size(k)];
}

bool is_heavy(const Side& side, const Coefficients& of, Index j) {
    if (!facts(*side.sigma).may_grow()) return false;
    const double m = side.m[to_size(j)], R = side.R[to_size(j)];
    double at[5] = {m - R, m - R / 2, m, m + R / 2, m + R}, inside = 0, size = std::abs(of.T(j));
    evaluate(*side.sigma, 5, at, at);
    for (const double value : at) inside = std::max(inside, std::abs(value));
    for (Index k = 0; k < of.terms(); ++k)
        size = std::hypot(size, R * of.slopes(j)[k * Coefficients::kWidth] * of.inverse_root(k + 1));
    return !(size <= 100 * inside);
}

SeriesSums series_of_pair(const Side& first, const Coefficients& one, Index i, const Side& second,
                          const Coefficients& two, Index j, double rho, Index terms) {
    constexpr Index kStep = Coefficients::kWidth;
    const double *s1 = one.slopes(i), *s2 = two.slopes(j);
    const double R1 = first.R[to_size(i)], R2 = second.R[to_size(j)];
    const double inverse_R1 = first.inverse_R[to_size(i)], inverse_unit = 1 / first.unit[to_size(i)];
    SeriesSums sums;
    double c1 = one.T(i), c2 = two.T(j), power = 1;
    for (Index k = 0; k < terms; ++k, s1 += kStep, s2 += kStep) {
        const double root = std::sqrt(static_cast<double>(k + 1));
        sums.k00 += power * c1 * c2;
        sums.k10 += power * s1[0] * c2;
        sums.k20 += power * root * inverse_R1 * (inverse_unit * s1[kStep]) * c2;
        sums.k11 += power * s1[0] * s2[0];
        c1 = R1 * s1[0] / root;
        c2 = R2 * s2[0] / root;
        power *= rho;
    }
    return sums;
}

Terms::Terms(Index most, bool all, double left_out, double far_cost)
    : most_(most), all_(all), far_cost_(far_cost), log_left_out_(std::log(left_out)) {
    const auto reach = [&](Index terms) { return std::exp(log_left_out_ / static_cast<double>(terms)); };
    reach_ = all ? std::numeric_limits<double>::infinity() : reach(most);
    for (std::size_t choice = 0; choice < kTermCounts.size(); ++choice)
        reach_of_[choice] = reach(kTermCounts[choice]);
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline gaussian
