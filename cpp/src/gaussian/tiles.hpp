#pragma once
// Expectations of tiles of pairs: by Mehler's series where few terms suffice, in closed form where neurons
// are nearly parallel.
#include <memory>
#include <mutex>
#include <vector>

#include "gaussian/closed.hpp"
#include "gaussian/series.hpp"
#include "gaussian/sine.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline gaussian {

/// Sums over the partners j of a neuron, sum_j weight_j (K00, K10, K20): one entry per neuron, whole packs.
struct PairSums {
    FilledScratch<double> k00, k10, k20;
    explicit PairSums(Index padded) : k00(to_size(padded)), k10(k00), k20(k00) {}
};

/// Pairs whose correlation is too large for the series.
struct FarPairs {
    std::vector<Index> i, j;
    FilledScratch<double> q;
    Index count = 0;
    explicit FarPairs(Index most) : i(to_size(most)), j(to_size(most)), q(to_size(most)) {}
    void add(Index first, Index second, double inner) {
        const std::size_t at = to_size(count++);
        i[at] = first;
        j[at] = second;
        q[at] = inner;
    }
    void set(Index to, Index from) {
        i[to_size(to)] = i[to_size(from)];
        j[to_size(to)] = j[to_size(from)];
        q[to_size(to)] = q[to_size(from)];
    }
};

class PairTiles {
public:
    /// The result of a tile, or the sums it is added to: K00, sums of K00, K11 with all sums, K11.
    enum class Want { matrix, value, gradient, slopes };

    static constexpr Index kRows = simd::kBytes == 64 ? 4 : 2;  ///< of a block: as many as registers hold
    static constexpr Index kWidth = Coefficients::kWidth;
    static constexpr int kPacks = kWidth / kPack;  ///< of its columns

    /// `weights`: of the neurons of the second side in sums (their a included); null for a matrix.
    PairTiles(const Side& first, const Side& second, const double* weights, Want want, int threads);
    ~PairTiles();

    /// Memory of one task for tiles of up to `rows` x `cols` pairs, multiples of Coefficients::kWidth;
    /// `both`: sums of columns too.
    struct Buffers {
        FilledScratch<double> q;  ///< the tile, rows `cols` apart
        FilledScratch<double> row_sums, col_sums;
        std::vector<Index> col_terms;
        FarPairs far;
        FilledScratch<double> k00, k10, k20, k11, k01, k02;  // of a chunk of the far pairs, or a row
        Index step;
        FilledScratch<double> extra;  // for whoever uses the tile
        Buffers(const PairTiles& tiles, Index rows, Index cols, bool both);
    };

    /// Evaluate the pairs of neurons i .. of the first side and j .. of the second, multiples of
    /// Coefficients::kWidth. The Gram matrix work.q becomes K11 (gradient, slopes) or K00 (matrix); sums of rows are
    /// added to. With of_cols the two sides are one, and the sums of the partners are added to as well.
    void tile(Index i, Index rows, Index j, Index cols, Buffers& work, PairSums* of_rows,
              PairSums* of_cols) const;

    /// Cost of one pair in nanoseconds, roughly.
    double cost() const;

private:
    struct PairBlock {
        Pack rho[kRows][kPacks], power[kRows][kPacks], product[kRows][kPacks];
    };

    Index open(PairBlock& block, Index i, Index r, Index j, Index c, Index rows, Index cols,
               Buffers& work) const;
    void homogeneous_row(Index i, Index j, Index n, double* q, double* k00, double* k20, bool gradient) const;
    void closed_rows(Index i, Index rows, Index j, Index cols, Buffers& work, PairSums* to) const;
    void sine_rows(Index i, Index rows, Index j, Index cols, Buffers& work, PairSums* of_rows,
                   PairSums* of_cols) const;
    void add_terms(PairBlock& block, Index terms, Index i, Index j, double* row_sums, double* col_sums) const;
    void close_rows(Index i, Index count, Index terms, const double* sums, PairSums& to) const;
    void close_columns(Index j, Index terms, const double* sums, PairSums& to) const;
    void close_far(Index i, Index j, Buffers& work, PairSums* of_rows, PairSums* of_cols) const;

    const Side &first_, &second_;
    Want want_;
    FilledScratch<double> weights_;  // of the second side, whole packs
    std::unique_ptr<const Coefficients> own_one_, two_;
    const Coefficients* one_ = nullptr;
    PairKernelPtr kernel_;                       // null: the series ends, or
    std::unique_ptr<const AngleForm> angles_;    // the neurons are homogeneous, or
    std::unique_ptr<const ClosedPairs> closed_;  // one product of each pair is wanted, in closed form, or
    std::unique_ptr<const SinePairs> sine_;      // both sides are sin or cos
    std::unique_ptr<const Terms> terms_;
    Index most_ = 0;
};

/// Buffers handed from task to task: allocating them anew would cost more than some tiles.
class BufferPool {
public:
    BufferPool(const PairTiles& tiles, Index rows, Index cols, bool both)
        : tiles_(tiles), rows_(rows), cols_(cols), both_(both) {}

    /// Call body(buffers) with some that no other task is using.
    template <class Body>
    void lend(Body&& body) {
        auto buffers = take();
        body(*buffers);
        const std::lock_guard lock(mutex_);
        free_.push_back(std::move(buffers));
    }

private:
    std::unique_ptr<PairTiles::Buffers> take() {
        {
            const std::lock_guard lock(mutex_);
            if (!free_.empty()) {
                auto last = std::move(free_.back());
                free_.pop_back();
                return last;
            }
        }
        return std::make_unique<PairTiles::Buffers>(tiles_, rows_, cols_, both_);
    }

    const PairTiles& tiles_;
    Index rows_, cols_;
    bool both_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<PairTiles::Buffers>> free_;
};

/// value_i and the gradient of neuron i from its sums and pull_i = sum_j c_j K11 w_j; null outputs are
/// skipped.
void write_potential(const Network& network, const Side& side, Index i, const PairSums& sums,
                     const double* pull, double* value, Mat* grad);

}  // namespace mfcore::inline MFCORE_LEVEL::inline gaussian
