#pragma once
// Tiles of pairs: by Mehler's series where few terms suffice, in closed form where neurons are nearly parallel.
#include <memory>
#include <vector>

#include "gaussian_series.hpp"

namespace mfcore {

/// Sums over the partners j of a neuron, sum_j weight_j (K00, K10, K20): one entry per neuron, whole packs.
struct PairSums {
    AlignedVector k00, k10, k20;
    explicit PairSums(Index padded) : k00(to_size(padded)), k10(k00), k20(k00) {}
};

/// Pairs whose correlation is too large for the series, by row or column of a tile.
struct FarPairs {
    Index width;
    std::vector<Index> count, at;
    std::vector<double> q;
    FarPairs(Index lines, Index width_)
        : width(width_), count(to_size(lines)), at(to_size(lines * width_)), q(to_size(lines * width_)) {}
    void add(Index line, Index place, double value) {
        const std::size_t to = to_size(line * width + count[to_size(line)]++);
        at[to] = place;
        q[to] = value;
    }
};

class PairTiles {
public:
    enum class Want { matrix, value, gradient };

    /// `weights`: of the neurons of the second side in sums (their a included); null for a matrix.
    PairTiles(const Side& first, const Side& second, const double* weights, Want want, int threads);
    ~PairTiles();

    /// What one task needs for tiles of up to `rows` x `cols` pairs; `both`: sums of columns too.
    struct Buffers {
        Index rows, cols;
        AlignedVector row_sums, col_sums;
        std::vector<Index> col_terms;
        FarPairs far_rows, far_cols;
        std::vector<Index> list;
        std::vector<double> k00, k10, k20, k11;
        Buffers(const PairTiles& tiles, Index rows_, Index cols_, bool both);
    };

    /// Neurons i .. of the first side against j .. of the second; i, j and the sizes of the buffers are
    /// multiples of Coefficients::kWidth. The Gram matrix q, rows `step` apart, becomes K11 (gradient) or K00
    /// (matrix); sums of rows are added to. With of_cols the two sides are one, and the sums of the partners
    /// are added to as well.
    void tile(Index i, Index rows, Index j, Index cols, double* q, Index step, Buffers& work, PairSums* of_rows,
              PairSums* of_cols) const;

    /// Nanoseconds per pair, roughly.
    double cost() const;

private:
    struct Block;

    Index open(Block& block, Index i, Index r, Index j, Index c, Index rows, Index cols, const double* q,
               Index step, Buffers& work, bool both) const;
    void closed_rows(Index i, Index rows, Index j, Index cols, double* q, Index step, Buffers& work,
                     PairSums* to) const;
    void add_terms(Block& block, Index terms, Index i, Index j, double* row_sums, double* col_sums) const;
    void close_rows(Index i, Index count, Index terms, const double* sums, PairSums& to) const;
    void close_columns(Index j, Index terms, const double* sums, PairSums& to) const;
    void far_lines(Index i, Index lines, Index j, FarPairs& far, const double* weights, double* q, Index step,
                   Buffers& work, PairSums* to) const;

    const Side &first_, &second_;
    Want want_;
    std::vector<double> weights_;  // of the second side, whole packs
    std::unique_ptr<const Coefficients> own_one_, two_;
    const Coefficients* one_ = nullptr;
    PairKernelPtr kernel_;
    std::unique_ptr<const Terms> terms_;
    Index most_ = 0;
};

/// value_i and the gradient of neuron i from its sums and pull_i = sum_j c_j K11 w_j; null outputs are skipped.
void write_potential(const Network& network, const Side& side, Index i, const PairSums& sums, const double* pull,
                     double* value, Mat* grad);

/// pair_potential() of neurons for each other: every pair is visited once.
void own_potential(const Network& network, ConstMat theta, const double* weights, double* value, Mat* grad,
                   int threads);

}  // namespace mfcore
