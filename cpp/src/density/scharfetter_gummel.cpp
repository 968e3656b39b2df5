// Scharfetter-Gummel fluxes: volumes of cells and rates of transfer between cells (eqs. (7.7), (7.8)).
#include "density/scharfetter_gummel.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/simd.hpp"
#include "mfcore/base/errors.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline density {
namespace {

void validate(const DiffusionAxis& axis) {
    const std::vector<double>& z = axis.edges;
    require(z.size() >= 2, "edges", "must have at least 2 entries", z.size());
    for (std::size_t i = 1; i < z.size(); ++i)
        require(z[i] > z[i - 1] && std::isfinite(z[i] - z[i - 1]), "edges",
                "must be finite and increase strictly", z[i]);
    require(axis.rate >= 0 && std::isfinite(axis.rate), "rate", "must be finite and >= 0", axis.rate);
    require(axis.volume > -1 && std::isfinite(axis.volume), "volume", "must be finite and > -1", axis.volume);
    require(axis.volume == 0 || z[0] >= 0, "edges", "must be >= 0 where there is a volume factor", z[0]);
}

}  // namespace

double log_cell_volume(double low, double high, double e) {
    if (e == 0) return std::log(high - low);
    // int z^e dz = high^(e+1) (1 - (low/high)^(e+1)) / (e+1)
    const double minus_rest = low > 0 ? std::expm1((e + 1) * std::log1p((low - high) / high)) : -1.0;
    return (e + 1) * std::log(high) + std::log(-minus_rest) - std::log(e + 1);
}

ScharfetterGummel::ScharfetterGummel(const std::vector<DiffusionAxis>& axes, double temperature, int threads,
                                     Index pitch)
    : beta_(1 / temperature), threads_(threads) {
    require(temperature > 0 && std::isfinite(temperature), "temperature", "must be finite and > 0",
            temperature);
    require(!axes.empty(), "axes", "must not be empty", axes.size());
    std::vector<Index> length, stride(axes.size(), 1);
    for (const DiffusionAxis& axis : axes) {
        validate(axis);
        length.push_back(static_cast<Index>(axis.edges.size()) - 1);
        cells_ *= length.back();
    }
    Index size = std::max(pitch, length.back());
    for (std::size_t c = axes.size() - 1; c-- > 0;) {
        stride[c] = size;
        size *= length[c];
    }
    log_volume_.assign(static_cast<std::size_t>(size), 0.0);
    for (std::size_t c = 0; c < axes.size(); ++c) add_axis(axes[c], temperature, c, length, stride);
}

void ScharfetterGummel::add_axis(const DiffusionAxis& axis, double temperature, std::size_t c,
                                 const std::vector<Index>& length, const std::vector<Index>& stride) {
    const std::vector<double>& z = axis.edges;
    const Index n = length[c];
    std::vector<double> log_volume(n), width(n), centre(n);
    for (Index i = 0; i < n; ++i) {
        log_volume[i] = log_cell_volume(z[i], z[i + 1], axis.volume);
        width[i] = z[i + 1] - z[i];
        centre[i] = (z[i] + z[i + 1]) / 2;
    }
    Lines lines;
    lines.length = n;
    lines.stride = stride[c];
    for (Index cell = 0; cell < cells_; ++cell) {
        Index at = 0, rest = cell, along = 0;
        for (std::size_t k = length.size(); k-- > 0; rest /= length[k]) {
            at += rest % length[k] * stride[k];
            if (k == c) along = rest % n;
        }
        log_volume_[at] += log_volume[along];
        if (along == 0) lines.begin.push_back(at);
    }
    if (axis.rate == 0) return;
    for (Index i = 0; i + 1 < n; ++i) {
        lines.log_ratio.push_back(log_volume[i + 1] - log_volume[i] - std::log(width[i + 1] / width[i]));
        const double scale = axis.rate * temperature / (centre[i + 1] - centre[i]);
        lines.scale_up.push_back(scale / width[i]);
        lines.scale_down.push_back(scale / width[i + 1]);
    }
    const auto entries = static_cast<std::size_t>(lines.packs() * lines.pack_size());
    lines.up.resize(entries);
    lines.down.resize(entries);
    // Two steps at once need two numbers for every cell of a single line.
    const std::size_t scratch = std::max(first_.size(), lines.single() ? 2 * entries : entries);
    first_.resize(scratch);
    second_.resize(scratch);
    partial_.resize(std::max(partial_.size(), static_cast<std::size_t>(lines.packs())));
    lines_.push_back(std::move(lines));
}

Index ScharfetterGummel::Lines::packs() const {
    return single() ? 1 : (count() + kPackLines - 1) / kPackLines;
}
Index ScharfetterGummel::Lines::pack_size() const { return single() ? length : length * kPackLines; }

/// Lines are numbered in C order of the other coordinates: consecutive ones are neighbours in memory, except
/// where they run along the last coordinate. Lanes without a line of their own repeat the last one.
template <class Near, class Far>
void ScharfetterGummel::Lines::visit(Index pack, const Near& vectors, const Far& numbers) const {
    const Index first = pack * kPackLines;
    if (first + kPackLines <= count() && begin[first + kPackLines - 1] - begin[first] == kPackLines - 1) {
        for (Index i = 0; i < length; ++i) vectors(begin[first] + i * stride, i * kPackLines);
        return;
    }
    for (Index k = 0; k < kPackLines; ++k) {
        const Index from = begin[std::min(first + k, count() - 1)];
        for (Index i = 0; i < length; ++i) numbers(from + i * stride, i * kPackLines + k);
    }
}

void ScharfetterGummel::Lines::gather(Index pack, const double* from, double* to) const {
    if (single()) {
        for (Index i = 0; i < length; ++i) to[i] = from[i * stride];
        return;
    }
    visit(
        pack, [&](Index grid, Index at) { simd::store(to + at, simd::load(from + grid)); },
        [&](Index grid, Index at) { to[at] = from[grid]; });
}

void ScharfetterGummel::Lines::scatter(Index pack, const double* from, double* to) const {
    if (single()) {
        for (Index i = 0; i < length; ++i) to[i * stride] = from[i];
        return;
    }
    visit(
        pack, [&](Index grid, Index at) { simd::store(to + grid, simd::load(from + at)); },
        [&](Index grid, Index at) { to[grid] = from[at]; });
}

void diffuse(const std::vector<DiffusionAxis>& axes, double temperature, const double* psi, double dt,
             const double* mass, double* next, int threads) {
    ScharfetterGummel fluxes(axes, temperature, threads);
    fluxes.set_potential(psi);
    fluxes.step(dt, mass, next);
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline density
