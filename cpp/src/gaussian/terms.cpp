// Sum the terms of Mehler's series for the pairs of a tile. A block of a few rows and two packs of columns
// stays in registers while they run: K11 = sum_k s_k s'_k rho^k, and for the sums the moments M_k = sum_j
// weight_j c'_k rho^k of the powers, which serve K00, K10 and K20 alike: sum_j weight_j K10 = sum_k s_k M_k
// (eq. (4.7)).
#include <type_traits>

#include "gaussian/tiles.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline gaussian {

void PairTiles::add_terms(PairBlock& block, Index terms, Index i, Index j, double* row_sums,
                          double* col_sums) const {
    const auto run = [&](auto product, auto of_rows, auto of_cols) {
        const bool matrix = want_ == Want::matrix;
        const double *x = matrix ? one_->means(i) : one_->slopes(i),
                     *y = matrix ? two_->means(j) : two_->slopes(j);
        const double *mean1 = one_->means(i), *mean2 = two_->means(j);
        double *const row = row_sums, *const col = col_sums;
        Pack rho[kRows][kPacks], power[kRows][kPacks], sum[kRows][kPacks] = {};
        for (Index r = 0; r < kRows; ++r)
            for (int v = 0; v < kPacks; ++v) {
                rho[r][v] = block.rho[r][v];
                power[r][v] = block.power[r][v];
            }
        for (Index k = 0; k < terms; ++k) {
            Pack right[kPacks], mean[kPacks], down[kPacks];
#pragma GCC unroll 2
            for (int v = 0; v < kPacks; ++v) {
                if (product) right[v] = simd::load(y + k * kWidth + v * kPack);
                if (of_rows) mean[v] = simd::load(mean2 + k * kWidth + v * kPack);
                if (of_cols) down[v] = simd::load(col + k * kWidth + v * kPack);
            }
#pragma GCC unroll 4
            for (Index r = 0; r < kRows; ++r) {
                if (product)
                    for (int v = 0; v < kPacks; ++v)
                        sum[r][v] += x[k * kWidth + r] * (power[r][v] * right[v]);
                if (of_rows) {
                    double* const to = row + (k * kRows + r) * kPack;
                    simd::store(to, simd::load(to) + power[r][0] * mean[0] + power[r][1] * mean[1]);
                }
                if (of_cols)
                    for (int v = 0; v < kPacks; ++v) down[v] += mean1[k * kWidth + r] * power[r][v];
                for (int v = 0; v < kPacks; ++v) power[r][v] *= rho[r][v];
            }
            if (of_cols)
                for (int v = 0; v < kPacks; ++v) simd::store(col + k * kWidth + v * kPack, down[v]);
        }
        for (Index r = 0; r < kRows; ++r)
            for (int v = 0; v < kPacks; ++v) block.product[r][v] = sum[r][v];
    };
    constexpr std::true_type yes;
    constexpr std::false_type no;
    if (!row_sums) return run(yes, no, no);
    if (want_ == Want::value) return col_sums ? run(no, yes, yes) : run(no, yes, no);
    return col_sums ? run(yes, yes, yes) : run(yes, yes, no);
}

void PairTiles::close_rows(Index i, Index count, Index terms, const double* sums, PairSums& to) const {
    for (Index r = 0; r < count; ++r) {
        const double *s = one_->slopes(i + r), R = first_.R[to_size(i + r)];
        Pack k00{}, k10{}, k20{};
        double c = one_->T(i + r);
        for (Index k = 0; k < terms; ++k) {
            const Pack moment = simd::load(sums + (k * kRows + r) * kPack);
            const double slope = s[k * kWidth];
            k00 += c * moment;
            k10 += slope * moment;
            k20 += (one_->root(k + 1) * s[(k + 1) * kWidth]) * moment;
            c = R * slope * one_->inverse_root(k + 1);
        }
        to.k00[to_size(i + r)] += simd::sum<double>(k00);
        to.k10[to_size(i + r)] += simd::sum<double>(k10);
        to.k20[to_size(i + r)] += simd::sum<double>(k20);
    }
}

void PairTiles::close_columns(Index j, Index terms, const double* sums, PairSums& to) const {
    for (Index v = 0; v < kWidth; v += kPack) {
        const Pack R = simd::load(&second_.R[to_size(j + v)]);
        const double* s = two_->slopes(j + v);
        Pack k00{}, k10{}, k20{}, c = simd::load(two_->T() + j + v);
        for (Index k = 0; k < terms; ++k) {
            const Pack moment = simd::load(sums + k * kWidth + v), slope = simd::load(s + k * kWidth);
            k00 += c * moment;
            k10 += slope * moment;
            k20 += two_->root(k + 1) * simd::load(s + (k + 1) * kWidth) * moment;
            c = R * slope * two_->inverse_root(k + 1);
        }
        const auto add = [&](FilledScratch<double>& all, Pack sum) {
            double* const at = &all[to_size(j + v)];
            simd::store(at, simd::load(at) + sum);
        };
        add(to.k00, k00);
        add(to.k10, k10);
        add(to.k20, k20);
    }
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline gaussian
