// One tile of pairs: choose those for Mehler's series and the number of its terms, and closed forms for the
// others.
#include "gaussian/tiles.hpp"

#include <algorithm>
#include <cmath>

#include "mfcore/base/errors.hpp"
#include "mfcore/gaussian/expectations.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline gaussian {
namespace {

using namespace special;
using Form = Facts::Form;
using Mask = simd::IntVec<double>;

constexpr Index kInfinite = Index{1} << 30;
constexpr Index kMostKinked = 192, kMostSmooth = 128;  // terms: more cost as much as a closed form
constexpr Index kFarPairs = 256;                       // far pairs at a time
constexpr double kOfHeavy = 1e-300;                    // in place of Terms::kSmooth and kKinked
constexpr double kTermCost = 2.0 * PairTiles::kRows;   // nanoseconds, roughly, of one term of a block

/// Degree of a polynomial activation, kInfinite for the others.
Index degree(const Activation& s) {
    const Facts known = facts(s);
    return known.polynomial ? known.degree : kInfinite;
}

bool is_smooth(const Activation& s) { return !has_kinks(s) && facts(s).curved; }

PairKernelPtr closed_form(const Side& first, const Side& second, const Coefficients& one,
                          const Coefficients& two) {
    const Facts known = facts(*first.sigma), other = facts(*second.sigma);
    const bool same = known.form == other.form;
    if (same && known.form == Form::pieces) return piecewise_kernel(first, second);
    if (same && known.form == Form::erf) return erf_kernel(first, second, one, two);
    if (same && known.form == Form::gelu) return gelu_kernel(first, second, one, two);
    if (!is_smooth(*first.sigma) || !is_smooth(*second.sigma)) return panel_kernel(first, second);
    return quadrature_kernel(first, second, one, two);
}

bool has_heavy(const Side& side, const Coefficients& of) {
    for (Index j = 0; j < side.n; ++j)
        if (is_heavy(side, of, j)) return true;
    return false;
}

}  // namespace

double pair_nanoseconds(const Network& network) {
    constexpr double kAngle = 3, kClosed = 30, kQuadrature = 5e4, kPanels = 3e5;
    const Activation& sigma = network.activation;
    const Facts known = facts(sigma);
    if (is_homogeneous(sigma, network.has_b())) return kAngle;
    if (known.form == Form::erf && !network.has_b()) return kAngle;
    if (known.form != Form::other) return kClosed;
    return is_smooth(sigma) ? kQuadrature : kPanels;
}

PairTiles::PairTiles(const Side& first, const Side& second, const double* weights, Want want, int threads)
    : first_(first), second_(second), want_(want), weights_(to_size(second.padded)) {
    if (!has_exact_pairs(*first.sigma, *second.sigma))
        throw std::invalid_argument(
            "other_network must have an activation whose pairs with the first have an exact expectation; "
            "use expectation=MonteCarlo(...)");
    for (Index j = 0; j < second.n; ++j) weights_[to_size(j)] = weights ? weights[j] : 1.0;
    const bool alone = want == Want::matrix || want == Want::slopes;
    const bool angles = want == Want::slopes && is_homogeneous(first) && is_homogeneous(second);
    if (alone && (angles || ClosedPairs::are_erf(first, second))) {
        closed_ = std::make_unique<const ClosedPairs>(first, second);
        return;
    }
    if (SinePairs::serve(first, second)) {
        sine_ = std::make_unique<const SinePairs>(first, second);
        return;
    }
    if (is_homogeneous(first) && is_homogeneous(second)) {
        angles_ = std::make_unique<const AngleForm>(*first.sigma, *second.sigma);
        return;
    }
    const Index last = std::min(degree(*first.sigma), degree(*second.sigma)) + 1;
    const bool kinked = has_kinks(*first.sigma) || has_kinks(*second.sigma), finite = last < kInfinite;
    most_ = finite ? last : (kinked ? kMostKinked : kMostSmooth);
    two_ = std::make_unique<Coefficients>(second, most_, weights, threads);
    if (&first != &second) own_one_ = std::make_unique<Coefficients>(first, most_, nullptr, threads);
    one_ = own_one_ ? own_one_.get() : two_.get();
    if (!finite) kernel_ = closed_form(first, second, *one_, *two_);
    const bool heavy = !finite && (has_heavy(first, *one_) || has_heavy(second, *two_));
    terms_ = std::make_unique<Terms>(most_, finite,
                                     heavy    ? kOfHeavy
                                     : kinked ? Terms::kKinked
                                              : Terms::kSmooth,
                                     finite ? 0 : kernel_->cost() / (kPack * kTermCost));
}

PairTiles::~PairTiles() = default;

double PairTiles::cost() const {
    if (angles_ || closed_) return 2;
    if (sine_) return 8;
    return 0.2 * static_cast<double>(std::min<Index>(most_, 60));  // of a typical series
}

PairTiles::Buffers::Buffers(const PairTiles& tiles, Index rows, Index cols, bool both)
    : q(to_size(rows * cols)),
      row_sums(to_size(tiles.most_ * kRows * kPack)),
      col_sums(to_size(both ? tiles.most_ * cols : 0)),
      col_terms(to_size(both ? cols / kWidth : 0)),
      far(tiles.kernel_ ? rows * cols : 0),
      k00(to_size(std::max(cols, kFarPairs))),
      k10(k00),
      k20(k00),
      k11(k00),
      k01(k00),
      k02(k00),
      step(cols) {}

void PairTiles::tile(Index i, Index rows, Index j, Index cols, Buffers& work, PairSums* of_rows,
                     PairSums* of_cols) const {
    const Index step = work.step;
    double* const q = work.q.data();
    std::fill(work.col_terms.begin(), work.col_terms.end(), Index{0});
    work.far.count = 0;
    for (Index r = 0; closed_ && r < rows; ++r) {
        double *const line = q + r * step, *const none = nullptr;
        const bool slopes = want_ == Want::slopes;
        closed_->row(i + r, j, cols, line, slopes ? none : line, slopes ? line : none);
    }
    if (closed_) return;
    if (angles_) return closed_rows(i, rows, j, cols, work, of_rows);
    if (sine_) return sine_rows(i, rows, j, cols, work, of_rows, of_cols);
    for (Index r = 0; r < rows; r += kRows) {
        Index row_terms = 0;
        const auto grow = [](FilledScratch<double>& sums, Index width, Index at, Index& from, Index to) {
            if (to <= from) return;
            std::fill_n(sums.begin() + at + from * width, (to - from) * width, 0.0);
            from = to;
        };
        for (Index c = 0; c < cols; c += kWidth) {
            PairBlock block;
            const Index terms = open(block, i, r, j, c, rows, cols, work);
            double *row_sums = nullptr, *col_sums = nullptr;
            if (of_rows) {
                grow(work.row_sums, kRows * kPack, 0, row_terms, terms);
                row_sums = work.row_sums.data();
            }
            if (of_cols) {
                grow(work.col_sums, kWidth, c * most_, work.col_terms[to_size(c / kWidth)], terms);
                col_sums = work.col_sums.data() + c * most_;
            }
            add_terms(block, terms, i + r, j + c, row_sums, col_sums);
            if (want_ == Want::value) continue;
            for (Index row = 0; row < kRows; ++row)
                for (int v = 0; v < kPacks; ++v)
                    simd::store(q + (r + row) * step + c + v * kPack, block.product[row][v]);
        }
        const Index lines = std::min(kRows, rows - r);
        if (of_rows) close_rows(i + r, lines, row_terms, work.row_sums.data(), *of_rows);
    }
    close_far(i, j, work, of_rows, of_cols);
    if (!of_cols) return;
    for (Index c = 0; c < cols; c += kWidth)
        close_columns(j + c, work.col_terms[to_size(c / kWidth)], work.col_sums.data() + c * most_, *of_cols);
}

/// K00, K20 and (in place of q) K11 of homogeneous neurons.
void PairTiles::homogeneous_row(Index i, Index j, Index n, double* q, double* k00, double* k20,
                                bool gradient) const {
    const AngleForm& form = *angles_;
    const double R1 = first_.R[to_size(i)];
    const Pack inverse_R1 = pack(first_.inverse_R[to_size(i)]), unit = pack(first_.unit[to_size(i)]);
    for (Index c = 0; c < n; c += kPack) {
        const Pack R2 = simd::load(&second_.R[to_size(j + c)]), inner = simd::load(q + c);
        const Correlation at(inner, inverse_R1, simd::load(&second_.inverse_R[to_size(j + c)]));
        const Pack angle = kPi - acos(at.rho);
        const Pack whole = inner * unit * simd::load(&second_.unit[to_size(j + c)]);
        simd::store(k00 + c, form.linear * whole + (form.kinked * R1) * R2 * (at.s + angle * at.rho));
        if (!gradient) continue;
        simd::store(k20 + c, form.kinked * R2 * at.s);
        simd::store(q + c, form.linear + form.kinked * angle);
    }
}

/// Homogeneous neurons: nothing but closed forms.
void PairTiles::closed_rows(Index i, Index rows, Index j, Index cols, Buffers& work, PairSums* to) const {
    const Index step = work.step;
    double* const q = work.q.data();
    const Index padded = (cols + kPack - 1) / kPack * kPack;
    const bool gradient = want_ == Want::gradient;
    for (Index r = 0; r < rows; ++r) {
        double* const line = q + r * step;
        double* const k00 = want_ == Want::matrix ? line : work.k00.data();
        homogeneous_row(i + r, j, padded, line, k00, work.k20.data(), gradient);
        if (!to) continue;
        const auto sum = [&](const double* of) {
            Pack total{};
            for (Index c = 0; c < padded; c += kPack)
                total += simd::load(&weights_[to_size(j + c)]) * simd::load(of + c);
            return simd::sum<double>(total);
        };
        to->k00[to_size(i + r)] += sum(k00);
        if (gradient) to->k20[to_size(i + r)] += sum(work.k20.data());
    }
}

/// Neurons with sin or cos: closed forms for all pairs.
void PairTiles::sine_rows(Index i, Index rows, Index j, Index cols, Buffers& work, PairSums* of_rows,
                          PairSums* of_cols) const {
    for (Index r = 0; r < rows; ++r) {
        double* const line = work.q.data() + r * work.step;
        const double R1 = first_.R[to_size(i + r)];
        Pack k00{}, k10{};
        for (Index c = 0; c < cols; c += kPack) {
            const std::size_t at = to_size(j + c);
            const auto pair = sine_->at(i + r, j + c, cols - c, simd::load(line + c));
            simd::store(line + c, want_ == Want::matrix ? pair.k00 : pair.k11);
            if (of_rows) {
                const Pack weight = simd::load(&weights_[at]);
                k00 += weight * pair.k00;
                k10 += weight * pair.k10;
            }
            if (!of_cols) continue;
            const double weight = weights_[to_size(i + r)];
            const auto add = [&](FilledScratch<double>& sums, Pack terms) {
                simd::store(&sums[at], simd::load(&sums[at]) + weight * terms);
            };
            add(of_cols->k00, pair.k00);
            add(of_cols->k10, pair.k01);
            add(of_cols->k20, -simd::load(&second_.R[at]) * pair.k00);
        }
        if (!of_rows) continue;
        const double sum = simd::sum<double>(k00);
        of_rows->k00[to_size(i + r)] += sum;
        of_rows->k10[to_size(i + r)] += simd::sum<double>(k10);
        of_rows->k20[to_size(i + r)] -= R1 * sum;
    }
}

/// Compute the correlations of a block; pairs that the series is not for get power 0 and are listed. Returns
/// the terms that the others need.
Index PairTiles::open(PairBlock& block, Index i, Index r, Index j, Index c, Index rows, Index cols,
                      Buffers& work) const {
    const Index step = work.step;
    const double* const q = work.q.data();
    const Terms& terms = *terms_;
    const Pack reach = pack(terms.reach()), zero{};
    Pack largest{};
    Mask beyond{};
    for (Index row = 0; row < kRows; ++row) {
        const double inverse_R = first_.inverse_R[to_size(i + r + row)];
        for (int v = 0; v < kPacks; ++v) {
            const Pack inverse = inverse_R * simd::load(&second_.inverse_R[to_size(j + c + v * kPack)]);
            const Pack rho = simd::load(q + (r + row) * step + c + v * kPack) * inverse;
            const Mask far = abs(rho) > reach;
            beyond |= far;
            block.rho[row][v] = select(far, zero, rho);
            block.power[row][v] = select(far, zero, pack(1.0));
            largest = max(abs(block.rho[row][v]), largest);
        }
    }
    double most = 0;
    for (Index l = 0; l < kPack; ++l) most = std::max(most, largest[l]);
    Index needed = terms.needed(most);
    // A few pairs with large correlations may cost less one by one than as many terms for all.
    if (kernel_ && needed > 2 * Terms::kTermCounts[0]) {
        double least = static_cast<double>(needed);
        std::size_t best = Terms::kTermCounts.size();
        for (std::size_t choice = 0;
             choice < Terms::kTermCounts.size() && Terms::kTermCounts[choice] < needed; ++choice) {
            Mask above{};
            for (auto& row : block.rho)
                for (const Pack& rho : row) above -= abs(rho) > pack(terms.reach_of(choice));
            const double cost = static_cast<double>(Terms::kTermCounts[choice]) +
                                terms.far_cost() * static_cast<double>(simd::sum_of_lanes(above));
            if (cost < least) {
                least = cost;
                best = choice;
            }
        }
        if (best < Terms::kTermCounts.size()) {
            needed = Terms::kTermCounts[best];
            for (Index row = 0; row < kRows; ++row)
                for (int v = 0; v < kPacks; ++v) {
                    const Mask far = abs(block.rho[row][v]) > pack(terms.reach_of(best));
                    beyond |= far;
                    block.rho[row][v] = select(far, zero, block.rho[row][v]);
                    block.power[row][v] = select(far, zero, block.power[row][v]);
                }
        }
    }
    if (simd::sum_of_lanes(beyond) == 0) return needed;
    for (Index row = 0; row < std::min(kRows, rows - r); ++row)
        for (Index l = 0; l < std::min(kWidth, cols - c); ++l) {
            if (block.power[row][l / kPack][l % kPack] != 0) continue;
            work.far.add(i + r + row, j + c + l, q[(r + row) * step + c + l]);
        }
    return needed;
}

void PairTiles::close_far(Index i, Index j, Buffers& work, PairSums* of_rows, PairSums* of_cols) const {
    FarPairs& far = work.far;
    const bool gradient = want_ == Want::gradient, back = gradient && of_cols;
    const PairExpectations out{work.k00.data(),
                               gradient ? work.k10.data() : nullptr,
                               gradient ? work.k20.data() : nullptr,
                               gradient || want_ == Want::slopes ? work.k11.data() : nullptr,
                               back ? work.k01.data() : nullptr,
                               back ? work.k02.data() : nullptr};
    for (Index first = 0; first < far.count; first += kFarPairs) {
        const Index last = std::min(first + kFarPairs, far.count);
        const Index padded = (last - first + kPack - 1) / kPack * kPack;
        for (Index n = last; n < first + padded; ++n) far.set(n, first);
        const Index *one = far.i.data() + first, *two = far.j.data() + first;
        const auto add_up = [&](const Index* to, const Index* from, const double* k10, const double* k20,
                                PairSums& sums) {
            for (Index n = 0; n < last - first; ++n) {
                const std::size_t at = to_size(to[n]);
                const double weight = weights_[to_size(from[n])];
                sums.k00[at] += weight * out.k00[n];
                if (!gradient) continue;
                sums.k10[at] += weight * k10[n];
                sums.k20[at] += weight * k20[n];
            }
        };
        kernel_->pairs(padded, one, two, far.q.data() + first, out);
        if (of_rows) add_up(one, two, out.k10, out.k20, *of_rows);
        if (of_cols) add_up(two, one, out.k01, out.k02, *of_cols);
        if (want_ == Want::value) continue;
        const double* const product = want_ == Want::matrix ? out.k00 : out.k11;
        for (Index n = 0; n < last - first; ++n)
            work.q[to_size((one[n] - i) * work.step + two[n] - j)] = product[n];
    }
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline gaussian
