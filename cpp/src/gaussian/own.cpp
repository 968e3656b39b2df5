// The potential of neurons in their own field: every pair is visited once, for the sums of both; and for
// inputs whose law is a mixture of Gaussians with diagonal roots (eq. (4.26)), every inner product once for
// all of its parts.
#include <algorithm>
#include <deque>

#include "base/parallel.hpp"
#include "gaussian/columns.hpp"
#include "gaussian/tiles.hpp"
#include "mfcore/base/errors.hpp"
#include "mfcore/gaussian/expectations.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline gaussian {
namespace {

constexpr Index kBlock = 144;  // a tile of pairs stays in the second cache
static_assert(kBlock % Columns::kWidth == 0 && kBlock % Coefficients::kWidth == 0,
              "blocks are whole tiles and blocks of neurons");

/// Units of the rows of theta (see Side).
FilledScratch<double> units_of(const Network& network, ConstMat theta) {
    FilledScratch<double> units(to_size(theta.rows));
    for (Index i = 0; i < theta.rows; ++i)
        units[to_size(i)] = unit_of(theta.cols - network.w_at(), theta.row(i) + network.w_at());
    return units;
}

/// Columns w[begin .. end) of the rows of theta, times `scale(k)` and in their units, behind their a and b.
template <class Scale>
FilledScratch<double> scaled_rows(const Network& network, ConstMat theta, const FilledScratch<double>& units,
                                  Index begin, Index end, Scale&& scale) {
    const Index w_at = network.w_at(), cols = w_at + end - begin;
    FilledScratch<double> rows(to_size(theta.rows * cols));
    for (Index i = 0; i < theta.rows; ++i) {
        if (i % 4096 == 0) check_stop();
        const double* from = theta.row(i);
        double* to = rows.data() + i * cols;
        std::copy_n(from, w_at, to);
        const double inverse = 1 / units[to_size(i)];
        for (Index k = begin; k < end; ++k) to[w_at + k - begin] = scale(k) * (inverse * from[w_at + k]);
    }
    return rows;
}

/// The coordinates of w that every part scales by one factor.
struct Segment {
    Index begin, end;
    FilledScratch<double> rows;
    Side side;
    Columns columns;
    FilledScratch<double> pull;  // sum_j c_j K w_j, K = sum of share scale^2 K11 over the parts

    Segment(const Network& network, ConstMat theta, const FilledScratch<double>& units, Index begin_,
            Index end_, const double* c)
        : begin(begin_),
          end(end_),
          rows(scaled_rows(network, theta, units, begin_, end_, [](Index) { return 1.0; })),
          side(network, {rows.data(), theta.rows, network.row(end_ - begin_)}, "theta", &units),
          columns(side, c),
          pull(to_size(theta.rows * columns.stride())) {}
};

/// One part of the mixture.
struct Part {
    double share;
    FilledScratch<double> squares;  // of the scales of the segments
    FilledScratch<double> rows;
    Side side;
    PairTiles tiles;
    PairSums sums;

    Part(const Network& network, ConstMat theta, const FilledScratch<double>& units, const Mixture& law,
         Index part, const double* c, PairTiles::Want want, int threads)
        : share(law.shares[to_size(part)]),
          rows(scaled_rows(network, theta, units, 0, law.ends.back(),
                           [&](Index k) { return law.scale(part, k); })),
          side(network, {rows.data(), theta.rows, theta.cols}, "theta", &units),
          tiles(side, side, c, want, threads),
          sums(side.padded) {
        for (const Index end : law.ends)
            squares.push_back(law.scale(part, end - 1) * law.scale(part, end - 1));
    }
};

class OwnMixture {
public:
    OwnMixture(const Network& network, ConstMat theta, const double* weights, const Mixture& law,
               bool gradient, int threads)
        : network_(network), gradient_(gradient), n_(theta.rows), c_(to_size(theta.rows)) {
        for (Index j = 0; j < n_; ++j) c_[to_size(j)] = weights[j] * (network.has_a() ? theta(j, 0) : 1.0);
        const auto want = gradient ? PairTiles::Want::gradient : PairTiles::Want::value;
        const FilledScratch<double> units = units_of(network, theta);
        Index begin = 0;
        for (const Index end : law.ends) {
            segments_.emplace_back(network, theta, units, begin, end, c_.data());
            begin = end;
        }
        for (Index part = 0; part < law.parts(); ++part)
            parts_.emplace_back(network, theta, units, law, part, c_.data(), want, threads);
    }

    void add_up(int threads) {
        double cost = static_cast<double>(segments_.back().end) / 8;
        for (const Part& part : parts_) cost += part.tiles.cost();
        const double work = static_cast<double>(n_ * n_) * cost * 2 / 3;
        BufferPool pool(parts_[0].tiles, kBlock, kBlock, true);  // parts differ in their weights alone
        for_block_pairs((n_ + kBlock - 1) / kBlock, threads_for(static_cast<Index>(work), threads),
                        [&](Index one, Index two) {
                            pool.lend([&](PairTiles::Buffers& buffers) {
                                block_pair(one * kBlock, two * kBlock, buffers);
                            });
                        });
    }

    void write(Index i, double* value, Mat* grad) const {
        const std::size_t at = to_size(i);
        const double a = segments_[0].side.a[at];
        double k00 = 0, k10 = 0;
        for (const Part& part : parts_) {
            k00 += part.share * part.sums.k00[at];
            k10 += part.share * part.sums.k10[at];
        }
        if (value) value[i] = a * k00;
        if (!grad) return;
        double* const out = grad->row(i);
        if (network_.has_a()) out[0] = k00;
        if (network_.has_b()) out[network_.b_at()] = a * k10;
        for (std::size_t s = 0; s < segments_.size(); ++s) {
            const Segment& segment = segments_[s];
            double along = 0;
            for (const Part& part : parts_)
                along += part.share * part.squares[s] * part.sums.k20[at] * part.side.inverse_R[at];
            const Index d = segment.end - segment.begin;
            const double* w = segment.side.w.data() + i * d;
            const double* pull = segment.pull.data() + i * segment.columns.stride();
            double* const to = out + network_.w_at() + segment.begin;
            for (Index k = 0; k < d; ++k) to[k] = a * (along * w[k] + pull[k]);
        }
    }

private:
    void block_pair(Index i, Index j, PairTiles::Buffers& buffers) {
        constexpr Index kTile = kBlock * kBlock;
        const Index rows = std::min(kBlock, n_ - i), cols = std::min(kBlock, n_ - j);
        const std::size_t count = segments_.size();
        buffers.extra.resize(to_size(2 * kTile) * count);
        double *const inner = buffers.extra.data(), *const product = inner + to_size(kTile) * count;
        for (std::size_t s = 0; s < count; ++s)
            segments_[s].columns.gram(segments_[s].side, i, rows, j, cols, inner + s * kTile, kBlock);
        std::fill_n(product, count * kTile, 0.0);
        for (Part& part : parts_) {
            double* const q = buffers.q.data();
            for (Index at = 0; at < rows * kBlock; at += kPack) {
                Pack sum{};
                for (std::size_t s = 0; s < count; ++s)
                    sum += part.squares[s] * simd::load(inner + to_size(at) + s * kTile);
                simd::store(q + at, sum);
            }
            part.tiles.tile(i, rows, j, cols, buffers, &part.sums, i != j ? &part.sums : nullptr);
            if (!gradient_) continue;
            for (std::size_t s = 0; s < count; ++s) {
                double* const to = product + s * kTile;
                for (Index at = 0; at < rows * kBlock; at += kPack)
                    simd::store(to + at,
                                simd::load(to + at) + (part.share * part.squares[s]) * simd::load(q + at));
            }
        }
        if (!gradient_) return;
        for (std::size_t s = 0; s < count; ++s) {
            const Columns& columns = segments_[s].columns;
            double *const k = product + s * kTile, *const pull = segments_[s].pull.data();
            columns.add_pull(rows, j, cols, k, 1, kBlock, pull + i * columns.stride());
            if (i != j) columns.add_pull(cols, i, rows, k, kBlock, 1, pull + j * columns.stride());
        }
    }

    const Network& network_;
    bool gradient_;
    Index n_;
    FilledScratch<double> c_;
    std::deque<Segment> segments_;  // they do not move: columns and tiles keep references
    std::deque<Part> parts_;
};

/// Homogeneous neurons have a cheaper way of their own, part by part.
void add_homogeneous_part(const Network& network, ConstMat theta, const double* weights, const Mixture& law,
                          Index part, double* value, Mat* grad, int threads) {
    const auto scale = [&](Index k) { return law.scale(part, k); };
    const FilledScratch<double> units = units_of(network, theta);
    const auto rows = scaled_rows(network, theta, units, 0, law.ends.back(), scale);
    const Side side(network, {rows.data(), theta.rows, theta.cols}, "theta", &units);
    FilledScratch<double> of_part(to_size(theta.rows)), slopes(to_size(grad ? theta.rows * theta.cols : 0));
    Mat by_row(slopes.data(), theta.rows, theta.cols);
    own_homogeneous_potential(network, side, weights, of_part.data(), grad ? &by_row : nullptr, threads);
    const double share = law.shares[to_size(part)];
    for (Index i = 0; i < theta.rows; ++i) {
        if (value) value[i] += share * of_part[to_size(i)];
        if (!grad) continue;
        for (Index k = 0; k < theta.cols; ++k) {
            const Index coordinate = k - network.w_at();
            grad->row(i)[k] += share * (coordinate < 0 ? 1.0 : scale(coordinate)) * by_row(i, k);
        }
    }
}

/// If all coordinates have one scale, U(s w, s w') = s^2 U(w, w'): one part stands for all.
void own_isotropic(const Network& network, ConstMat theta, const double* weights, const Mixture& law,
                   double* value, Mat* grad, int threads) {
    own_homogeneous_potential(network, Side(network, theta, "theta"), weights, value, grad, threads);
    double square = 0;
    for (Index part = 0; part < law.parts(); ++part)
        square += law.shares[to_size(part)] * law.scale(part, 0) * law.scale(part, 0);
    if (square == 1) return;
    for (Index i = 0; i < theta.rows; ++i) {
        if (value) value[i] *= square;
        for (Index k = 0; k < theta.cols && grad; ++k) grad->row(i)[k] *= square;
    }
}

}  // namespace

void Mixture::validate(Index d) const {
    require(!shares.empty(), "shares", "must have at least one part", 0);
    require(!ends.empty() && ends.back() == d, "ends", "must end with the dimension", d);
    for (std::size_t s = 0; s < ends.size(); ++s)
        require(ends[s] > (s > 0 ? ends[s - 1] : 0), "ends", "must increase, from more than 0", ends[s]);
    require(scales.size() == shares.size() * ends.size(), "scales", "must have parts x segments entries",
            static_cast<Index>(scales.size()));
}

void own_potential(const Network& network, ConstMat theta, const double* weights, const Mixture& law,
                   double* value, Mat* grad, int threads) {
    network.activation.validate();
    require_matrix(theta, "theta", 0);
    const FilledScratch<double> equal = masses_unless(weights, theta.rows);
    if (!weights) weights = equal.data();
    const Index d = theta.cols - network.row(0);
    require(d >= 1, "theta", "must have a column for each parameter of this network and an input",
            theta.cols);
    law.validate(d);
    const Side nobody(network, {theta.data, 0, theta.cols, theta.stride}, "theta");
    if (is_homogeneous(nobody)) {
        if (law.ends.size() == 1) return own_isotropic(network, theta, weights, law, value, grad, threads);
        if (value) std::fill_n(value, theta.rows, 0.0);
        for (Index i = 0; i < theta.rows && grad; ++i) std::fill_n(grad->row(i), theta.cols, 0.0);
        for (Index part = 0; part < law.parts(); ++part)
            add_homogeneous_part(network, theta, weights, law, part, value, grad, threads);
        return;
    }
    OwnMixture pairs(network, theta, weights, law, grad != nullptr, threads);
    pairs.add_up(threads);
    for (Index i = 0; i < theta.rows; ++i) pairs.write(i, value, grad);
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline gaussian
