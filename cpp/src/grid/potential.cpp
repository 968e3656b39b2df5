// Moments, risk and potential of masses on a grid, from compressed features (eq. (2.7)).
#include "mfcore/grid/potential.hpp"

#include <algorithm>

#include "base/parallel.hpp"
#include "base/simd.hpp"
#include "grid/lines.hpp"
#include "mfcore/base/errors.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline grid {
namespace {

using Packet = simd::Vec<double>;
constexpr Index kWidth = simd::kLanes<double>;
constexpr Index kPad = 8;  // entries: a multiple of every vector width

Index padded(Index n, Index to) { return (n + to - 1) / to * to; }

/// out[p] (+)= sum_k x[k step] y_k[p] for the `Packets` packets at the start of the rows y_k = y + k stride,
/// for `Rows` rows of x and out at once: each packet of y is loaded once for all of them.
template <int Rows, int Packets>
void combine(const double* x, Index x_stride, const double* y, Index y_stride, Index terms, double* out,
             Index out_stride, bool add) {
    Packet sum[Rows][Packets];
    for (int r = 0; r < Rows; ++r)
        for (int p = 0; p < Packets; ++p)
            sum[r][p] = add ? simd::load(out + r * out_stride + p * kWidth) : Packet{};
    for (Index k = 0; k < terms; ++k) {
        Packet there[Packets];
        for (int p = 0; p < Packets; ++p) there[p] = simd::load(y + k * y_stride + p * kWidth);
        for (int r = 0; r < Rows; ++r)
            for (int p = 0; p < Packets; ++p) sum[r][p] = x[r * x_stride + k] * there[p] + sum[r][p];
    }
    for (int r = 0; r < Rows; ++r)
        for (int p = 0; p < Packets; ++p) simd::store(out + r * out_stride + p * kWidth, sum[r][p]);
}

/// out (+)= x y: rows x terms times terms x cols, cols a multiple of kPad.
void multiply(const double* x, Index x_stride, Index rows, const double* y, Index y_stride, Index terms,
              double* out, Index out_stride, Index cols, bool add) {
    constexpr int kRows = kWidth >= 8 ? 4 : 2, kPackets = kWidth >= 8 ? 3 : 4;
    const auto strip = [&](auto row_count, Index r) {
        Index at = 0;
        for (; at + kPackets * kWidth <= cols; at += kPackets * kWidth)
            combine<row_count(), kPackets>(x + r * x_stride, x_stride, y + at, y_stride, terms,
                                           out + r * out_stride + at, out_stride, add);
        for (; at < cols; at += kWidth)
            combine<row_count(), 1>(x + r * x_stride, x_stride, y + at, y_stride, terms,
                                    out + r * out_stride + at, out_stride, add);
    };
    Index r = 0;
    for (; r + kRows <= rows; r += kRows) strip(std::integral_constant<int, kRows>{}, r);
    for (; r < rows; ++r) strip(std::integral_constant<int, 1>{}, r);
}

double dot(const double* x, const double* y, Index n) {
    Packet sums[2] = {};
    Index i = 0;
    for (; i + 2 * kWidth <= n; i += 2 * kWidth)
        for (Index p = 0; p < 2; ++p)
            sums[p] = simd::load(x + i + p * kWidth) * simd::load(y + i + p * kWidth) + sums[p];
    double sum = simd::sum<double>(sums[0] + sums[1]);
    for (; i < n; ++i) sum += x[i] * y[i];
    return sum;
}

/// The factors, if there is something in them.
const GridFactors& valid(const GridFactors& f) {
    require(f.first.rows > 0, "first", "must have rows", f.first.rows);
    const Index rank = f.second.rows > 0 ? f.core.cols : f.first.cols;
    require(rank == 0 || (f.first.data && f.shift), "first, shift", "must not be null", "null");
    return f;
}

}  // namespace

GridPotential::GridPotential(const GridFactors& f, int threads)
    : rank_(valid(f).second.rows > 0 ? f.core.cols : f.first.cols),
      rows_(f.second.rows > 0 ? f.first.rows : 1),
      cols_(f.second.rows > 0 ? f.second.rows : f.first.rows),
      stride_(padded(cols_, f.second.rows > 0 ? kPad : kCells)),
      flat_(f.second.rows == 0),
      floor_(f.floor),
      requested_(threads),
      shift_(f.shift, f.shift + rank_),
      decay_(rows_ * stride_),
      residual_(rank_) {
    if (f.decay) spread(f.decay, decay_.data());
    if (flat_) {
        basis_.resize(stride_ * rank_);
        for (Index i = 0; i < cols_; ++i)
            for (Index k = 0; k < rank_; ++k)
                basis_[(i / kCells * rank_ + k) * kCells + i % kCells] = f.first(i, k);
        return;
    }
    a_ = f.first.cols;
    b_ = padded(f.second.cols, kPad);
    require_count(f.core.rows, a_ * f.second.cols, "core", "rows");
    first_.resize(rows_ * a_);
    second_.resize(stride_ * b_);
    across_.resize(b_ * stride_);
    core_.resize(rank_ * a_ * b_);
    for (Index i = 0; i < rows_; ++i) std::copy_n(f.first.row(i), a_, &first_[i * a_]);
    for (Index j = 0; j < cols_; ++j)
        for (Index b = 0; b < f.second.cols; ++b)
            second_[j * b_ + b] = across_[b * stride_ + j] = f.second(j, b);
    for (Index a = 0; a < a_; ++a)
        for (Index b = 0; b < f.second.cols; ++b)
            for (Index k = 0; k < rank_; ++k)
                core_[k * a_ * b_ + a * b_ + b] = f.core(a * f.second.cols + b, k);
    mixed_.resize(a_ * b_);
    lines_.resize(rows_ * b_);
    products_.resize(rows_ * b_);
    partial_.resize(padded(rows_, kRows) / kRows * a_ * b_);
    // About 16 multiply-adds take a nanosecond. Steps come one after the other, so that waking threads is
    // cheap.
    threads_ = threads_for(2 * rows_ * stride_ * b_ / 16, threads);
}

void GridPotential::spread(const double* cells, double* array) const {
    for (Index i = 0; i < rows_; ++i) {
        std::copy_n(cells + i * cols_, cols_, array + i * stride_);
        std::fill(array + i * stride_ + cols_, array + (i + 1) * stride_, 0.0);
    }
}

void GridPotential::gather(const double* array, double* cells) const {
    for (Index i = 0; i < rows_; ++i) std::copy_n(array + i * stride_, cols_, cells + i * cols_);
}

void GridPotential::prepare(const double* m) {
    for (Index k = 0; k < rank_; ++k) residual_[k] = m[k] - shift_[k];
    if (flat_) return;
    multiply(residual_.data(), rank_, 1, core_.data(), a_ * b_, rank_, mixed_.data(), a_ * b_, a_ * b_,
             false);
}

void GridPotential::psi_rows(Index first, Index count, double* psi) {
    multiply(&first_[first * a_], a_, count, mixed_.data(), b_, a_, &lines_[first * b_], b_, b_, false);
    std::copy_n(&decay_[first * stride_], count * stride_, psi);
    multiply(&lines_[first * b_], b_, count, across_.data(), stride_, b_, psi, stride_, stride_, true);
}

void GridPotential::add_rows(Index first, Index count, const double* mass) {
    double* products = &products_[first * b_];
    multiply(mass, stride_, count, second_.data(), b_, stride_, products, b_, b_, false);
    double* sum = &partial_[first / kRows * a_ * b_];
    std::fill_n(sum, a_ * b_, 0.0);
    for (Index i = 0; i < count; ++i)
        for (Index a = 0; a < a_; ++a) {
            const double here = first_[(first + i) * a_ + a];
            for (Index b = 0; b < b_; b += kWidth) {
                double* to = sum + a * b_ + b;
                simd::store(to, here * simd::load(products + i * b_ + b) + simd::load(to));
            }
        }
}

void GridPotential::end_moments(double* m) {
    const Index n = a_ * b_, blocks = static_cast<Index>(partial_.size()) / n;
    for (Index block = 1; block < blocks; ++block)
        for (Index i = 0; i < n; ++i) partial_[i] += partial_[block * n + i];
    for (Index k = 0; k < rank_; ++k) m[k] = dot(&core_[k * n], partial_.data(), n);
}

void GridPotential::moments(const double* mass, double* m) {
    if (!flat_) {
        for_blocks(rows_, kRows, threads_, [&](Index, Index begin, Index end) {
            add_rows(begin, end - begin, mass + begin * stride_);
        });
        end_moments(m);
        return;
    }
    sums_.assign(rank_ * lines::kWidth, 0.0);
    lines::add_line(*this, 0, stride_ / kCells, mass, sums_.data());
    lines::finish_line(*this, sums_.data(), m);
}

void GridPotential::potential(const double* m, double* psi) {
    prepare(m);
    if (!flat_) {
        for_blocks(rows_, kRows, threads_, [&](Index, Index begin, Index end) {
            psi_rows(begin, end - begin, psi + begin * stride_);
        });
        return;
    }
    lines::psi_line(*this, 0, stride_ / kCells, psi);
}

double GridPotential::risk(const double* m) const {
    double sum = floor_;
    for (Index k = 0; k < rank_; ++k) sum += (m[k] - shift_[k]) * (m[k] - shift_[k]);
    return sum;
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline grid
