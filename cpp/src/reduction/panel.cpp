// One panel of a law on the line: orthonormal polynomials, Gauss nodes and projections onto them.
#include "mfcore/reduction/panel.hpp"

#include <Eigen/Core>
#include <cmath>

#include "base/jacobi.hpp"
#include "base/simd.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline reduction {
namespace {

using Packet = simd::Vec<double>;

}  // namespace

// The law of the panel is that of fine Legendre nodes, which integrate products of the polynomials with the
// density to rounding; the recurrence is Stieltjes's.
Panel::Panel(double from, double to, const std::function<double(double)>& log_density, Rule& rule)
    : low(from), high(to) {
    const double mid = (low + high) / 2, half = (high - low) / 2;
    const Rule fine = gauss_legendre(4 * kOrder);
    const auto n = static_cast<Index>(fine.nodes.size());
    const auto x = Eigen::Map<const Eigen::ArrayXd>(fine.nodes.data(), n);
    Eigen::ArrayXd w = x.unaryExpr([&](double t) { return log_density(mid + half * t); });
    const double largest = w.maxCoeff();
    w = (w - largest).exp() * Eigen::Map<const Eigen::ArrayXd>(fine.weights.data(), n);
    const double mass = w.sum();
    log_mass = largest + std::log(mass);
    w /= mass;

    Jacobi jacobi(kOrder);
    Eigen::ArrayXd before = Eigen::ArrayXd::Zero(n), p = Eigen::ArrayXd::Ones(n);
    double off = 0;
    for (Index k = 0; k < kOrder; ++k) {
        diagonal_[static_cast<std::size_t>(k)] = jacobi.diagonal[k] = (w * x * p * p).sum();
        Eigen::ArrayXd next = (x - jacobi.diagonal[k]) * p - off * before;
        off = std::sqrt((w * next * next).sum());
        off_[static_cast<std::size_t>(k)] = off;
        inverse_off_[static_cast<std::size_t>(k)] = 1 / off;
        if (k + 1 < kOrder) jacobi.squares[k + 1] = off * off;
        before = p;
        p = next / off;
    }
    const Rule gauss_rule = gauss(jacobi);
    for (std::size_t q = 0; q < kOrder; ++q) {
        double last = 0, value = 1;
        for (std::size_t k = 0; k < kOrder; ++k) {
            polynomials_[k][q] = value;
            const double next =
                (gauss_rule.nodes[q] - diagonal_[k]) * value - (k > 0 ? off_[k - 1] : 0) * last;
            last = value;
            value = next * inverse_off_[k];
        }
        rule.nodes.push_back(mid + half * gauss_rule.nodes[q]);
        rule.weights.push_back(gauss_rule.weights[q] * std::exp(log_mass) * half);
    }
}

// The recurrence runs over all points together.
void Panel::add(const Points& at, std::size_t functions, const std::array<double, kPoints>* values,
                Coefficients* moments) const {
    constexpr Index kLanes = simd::kLanes<double>, kPacks = kPoints / kLanes;
    const double mid = low + high, inverse = 1 / (high - low);
    Packet x[kPacks], before[kPacks] = {}, p[kPacks], weighted[kMost][kPacks];
    for (Index i = 0; i < kPacks; ++i) {
        x[i] = (2 * simd::load(at.x.data() + i * kLanes) - mid) * inverse;
        p[i] = simd::fill(1.0);
        for (std::size_t f = 0; f < functions; ++f)
            weighted[f][i] =
                simd::load(at.weights.data() + i * kLanes) * simd::load(values[f].data() + i * kLanes);
    }
    for (std::size_t k = 0; k < kOrder; ++k) {
        for (std::size_t f = 0; f < functions; ++f) {
            Packet sum{};
            for (Index i = 0; i < kPacks; ++i) sum += weighted[f][i] * p[i];
            moments[f][k] += simd::sum<double>(sum);
        }
        const double off = k > 0 ? off_[k - 1] : 0, diagonal = diagonal_[k];
        for (Index i = 0; i < kPacks; ++i) {
            const Packet next = ((x[i] - diagonal) * p[i] - off * before[i]) * inverse_off_[k];
            before[i] = p[i];
            p[i] = next;
        }
    }
}

void Panel::at_nodes(const Coefficients& moments, Coefficients& out) const {
    out.fill(0.0);
    for (std::size_t k = 0; k < kOrder; ++k)
        for (std::size_t q = 0; q < kOrder; ++q) out[q] += moments[k] * polynomials_[k][q];
}

std::vector<double> panel_ends(double low, double high, Index panels,
                               const std::function<double(double)>& density) {
    constexpr Index n = 4000;
    const double length = high - low;
    std::vector<double> sums(n + 1, 0.0);  // of panels up to here
    for (Index i = 0; i < n; ++i) {
        const auto k = static_cast<std::size_t>(i);
        sums[k + 1] = sums[k] + density(low + length * (static_cast<double>(i) + 0.5) / n) * length / n;
    }
    std::vector<double> out{low};
    std::size_t k = 0;
    for (Index p = 1; p < panels; ++p) {
        const double sum = sums.back() * static_cast<double>(p) / static_cast<double>(panels);
        while (sums[k + 1] < sum) ++k;
        const double within = (sum - sums[k]) / (sums[k + 1] - sums[k]);
        out.push_back(low + length * (static_cast<double>(k) + within) / n);
    }
    out.push_back(high);
    return out;
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline reduction
