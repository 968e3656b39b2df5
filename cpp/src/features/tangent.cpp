// Tangent kernels of neurons (eq. (11.2)): values and slopes of a block of neurons on all inputs, then the
// products of these rows, tile by tile of the kernel. No Jacobian is ever stored.
#include "mfcore/features/tangent.hpp"

#include <cmath>

#include "base/parallel.hpp"
#include "base/products.hpp"
#include "base/scratch.hpp"
#include "network/neurons.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline features {
namespace {

constexpr Index kBlock = 240;              // neurons whose rows are in memory: whole tiles of any width
constexpr Index kInputs = 48, kTile = 48;  // inputs, and rows and columns of the kernel, of a task

/// Rows of one set of inputs for one block of neurons, such that entries of the kernel are inner products:
/// sqrt(m) sigma, sqrt(m) a sigma', and on the sphere the last times <w, x>/|w|.
class BlockRows {
public:
    BlockRows(Index inputs, bool value, bool normal)
        : inputs_(inputs), value_(size(value)), slope_(size(true)), normal_(size(normal)) {}

    ConstMat value() const { return view(value_); }
    ConstMat slope() const { return view(slope_); }
    ConstMat normal() const { return view(normal_); }

    /// Fill in neurons begin .. end - 1, a block, with masses m; what is beyond the last one is 0.
    void compute(const Network& network, const Measure& rho, ConstMat x, Index begin, Index end,
                 int threads) {
        const ConstMat rows = rho.points.middle_rows(begin, end - begin);
        with_tile_width<double>(kBlock, [&](auto width) {
            constexpr int R = width();
            const NeuronTiles<double, R> tiles(network, rows);
            static_assert(kBlock % NeuronTiles<double, R>::kWidth == 0, "a block is whole tiles");
            const auto roots = roots_of(rho, begin, end);
            const auto inverse = normal_.empty() ? FilledScratch<double>{} : inverse_norms(network, rows);
            const int team = threads_for(activation_cost(x.rows, kBlock, x.cols), threads);
            for_blocks(x.rows, kInputs, team, [&](Index, Index first, Index last) {
                fill<R>(network, tiles, rows, roots, inverse, x, first, last);
            });
        });
    }

private:
    std::size_t size(bool wanted) const { return wanted ? static_cast<std::size_t>(inputs_ * kBlock) : 0; }
    ConstMat view(const FilledScratch<double>& of) const { return {of.data(), inputs_, kBlock}; }

    static FilledScratch<double> roots_of(const Measure& rho, Index begin, Index end) {
        FilledScratch<double> roots(end - begin);
        const double equal = 1.0 / static_cast<double>(rho.points.rows);
        for (Index i = begin; i < end; ++i)
            roots[i - begin] = std::sqrt(rho.weights ? rho.weights[i] : equal);
        return roots;
    }

    static FilledScratch<double> inverse_norms(const Network& network, ConstMat rows) {
        FilledScratch<double> inverse(rows.rows);
        for (Index i = 0; i < rows.rows; ++i) {
            const double* w = rows.row(i) + network.w_at();
            const double square = dot(w, w, rows.cols - network.w_at());
            inverse[i] = square > 0 ? 1 / std::sqrt(square) : 0.0;
        }
        return inverse;
    }

    template <int R>
    void fill(const Network& network, const NeuronTiles<double, R>& tiles, ConstMat rows,
              const FilledScratch<double>& roots, const FilledScratch<double>& inverse, ConstMat x,
              Index first, Index last) {
        constexpr Index width = NeuronTiles<double, R>::kWidth;
        double value[kInputs * width], slope[kInputs * width];
        const Index d = tiles.dimension();
        for (Index q = first; q < last; ++q) {  // also what a shorter block leaves over
            if (!value_.empty()) std::fill_n(&value_[q * kBlock], kBlock, 0.0);
            std::fill_n(&slope_[q * kBlock], kBlock, 0.0);
            if (!normal_.empty()) std::fill_n(&normal_[q * kBlock], kBlock, 0.0);
        }
        for (Index t = 0; t < tiles.tiles(); ++t) {
            tiles.activate(network.activation, t, x.middle_rows(first, last - first), value, slope);
            for (Index q = first; q < last; ++q) {
                const double* s = value + (q - first) * width;
                const double* ds = slope + (q - first) * width;
                for (Index l = 0; l < tiles.filled(t); ++l) {
                    const Index i = t * width + l, at = q * kBlock + i;
                    const double gain = roots[i] * tiles.a(t)[l] * ds[l];
                    if (!value_.empty()) value_[at] = roots[i] * s[l];
                    slope_[at] = gain;
                    if (!normal_.empty())
                        normal_[at] = gain * inverse[i] * dot(rows.row(i) + network.w_at(), x.row(q), d);
                }
            }
        }
    }

    Index inputs_;
    FilledScratch<double> value_, slope_, normal_;
};

/// to(r, c) += factor <x_r, y_c> for rows of x and y: an entry is the same wherever its tile begins.
void add_products(ConstMat x, ConstMat y, double factor, Mat to) {
    each_product<4, 3>(x, y, [&](Index r, Index c, double product) { to(r, c) += factor * product; });
}

Mat part(Mat of, Index i, Index rows, Index j, Index cols) {
    return {of.data + i * of.stride + j, rows, cols, of.stride};
}

}  // namespace

void tangent_kernel(const Network& network, const Measure& rho, const Rates& rates, ConstMat x,
                    const ConstMat* other, Mat K, int threads) {
    const ConstMat y = other ? *other : x;
    require_matrix(x, "x", 0);
    require_matrix(y, "other", 0);
    require_matrix(K, "K", 0);
    require(x.cols == y.cols, "other", "must have as many columns as x", y.cols);
    require(K.rows == x.rows, "K", "must have a row for each of x", K.rows);
    require(K.cols == y.rows, "K", "must have a column for each row of other", K.cols);
    require_rows(network, rho.points, x.cols, "measure");
    require(rho.points.rows > 0, "measure", "must not be empty", rho.points.rows);
    for (Index i = 0; rho.weights && i < rho.points.rows; ++i)
        require(rho.weights[i] >= 0, "weights", "must be >= 0", rho.weights[i]);
    const bool value = network.output == Output::trained, sphere = network.sphere;
    const double of_b = network.trains_b() ? rates.b : 0.0;
    BlockRows left(x.rows, value, sphere), right(other ? y.rows : 0, value, sphere);
    // The factor of r_b + r_w <x, x'>.
    FilledScratch<double> slopes(x.rows * y.rows);
    const Mat B(slopes.data(), x.rows, y.rows);
    const Index rows = (x.rows + kTile - 1) / kTile, cols = (y.rows + kTile - 1) / kTile;
    const auto for_tiles = [&](Index work,
                               auto&& body) {  // of one set of inputs those on and above the diagonal
        for_blocks(rows * cols, 1, threads_for(x.rows * y.rows * work / 8, threads),
                   [&](Index k, Index, Index) {
                       const Index i = k / cols * kTile, j = k % cols * kTile;
                       if (other || j >= i)
                           body(i, std::min(kTile, x.rows - i), j, std::min(kTile, y.rows - j));
                   });
    };
    for (Index i = 0; i < x.rows; ++i) std::fill_n(K.row(i), y.rows, 0.0);
    for (Index begin = 0; begin < rho.points.rows; begin += kBlock) {
        const Index end = std::min(begin + kBlock, rho.points.rows);
        left.compute(network, rho, x, begin, end, threads);
        if (other) right.compute(network, rho, y, begin, end, threads);
        const BlockRows& partner = other ? right : left;
        for_tiles(kBlock, [&](Index i, Index n, Index j, Index m) {
            const Mat k = part(K, i, n, j, m);
            if (value)
                add_products(left.value().middle_rows(i, n), partner.value().middle_rows(j, m), rates.a, k);
            if (sphere)
                add_products(left.normal().middle_rows(i, n), partner.normal().middle_rows(j, m), -rates.w,
                             k);
            add_products(left.slope().middle_rows(i, n), partner.slope().middle_rows(j, m), 1.0,
                         part(B, i, n, j, m));
        });
    }
    for_tiles(x.cols, [&](Index i, Index n, Index j, Index m) {
        double products[kTile * kTile];
        const Mat inner(products, n, m);
        row_products(x.middle_rows(i, n), y.middle_rows(j, m), inner);
        for (Index r = 0; r < n; ++r)
            for (Index c = 0; c < m; ++c) K(i + r, j + c) += (of_b + rates.w * inner(r, c)) * B(i + r, j + c);
    });
    if (other) return;
    for (Index i = 0; i < x.rows; ++i)
        for (Index j = 0; j < i; ++j) K(i, j) = K(j, i);
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline features
