#pragma once
// Groups of cells between which no mass flows: those with the same values of all coordinates at rest
// (labels).
#include <algorithm>
#include <vector>

#include "mfcore/density/fokker_planck.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline density {

/// The masses of all labels, which fluxes conserve one by one; results computed from several steps are scaled
/// back to them.
class LabelMasses {
public:
    LabelMasses(const std::vector<DiffusionAxis>& axes, const GridPotential& grid)
        : label_(static_cast<std::size_t>(grid.size()), 0) {
        Index count = 1;
        for (Index cell = 0; cell < grid.rows() * grid.cols(); ++cell) {
            Index label = 0, step = 1, rest = cell;
            for (std::size_t c = axes.size(); c-- > 0;) {
                const Index n = static_cast<Index>(axes[c].edges.size()) - 1;
                if (axes[c].rate == 0) {
                    label += rest % n * step;
                    step *= n;
                }
                rest /= n;
            }
            label_[static_cast<std::size_t>(cell / grid.cols() * grid.stride() + cell % grid.cols())] = label;
            count = std::max(count, label + 1);
        }
        totals_.resize(static_cast<std::size_t>(count));
    }

    const std::vector<double>& totals() const { return totals_; }
    void restore(const double* totals) { std::copy_n(totals, totals_.size(), totals_.data()); }
    void count(const std::vector<double>& mass) { totals_ = masses(mass); }

    /// Scale masses, whose sum is given, so that each label has its mass.
    void conserve(std::vector<double>& mass, double sum) const {
        if (totals_.size() == 1) {
            for (double& m : mass) m *= totals_[0] / sum;
            return;
        }
        std::vector<double> factors = masses(mass);
        for (std::size_t k = 0; k < factors.size(); ++k)
            factors[k] = factors[k] > 0 ? totals_[k] / factors[k] : 0;
        for (std::size_t i = 0; i < mass.size(); ++i) mass[i] *= factors[static_cast<std::size_t>(label_[i])];
    }

private:
    std::vector<double> masses(const std::vector<double>& mass) const {
        std::vector<double> sums(totals_.size(), 0.0);
        for (std::size_t i = 0; i < mass.size(); ++i) sums[static_cast<std::size_t>(label_[i])] += mass[i];
        return sums;
    }

    std::vector<Index>
        label_;  // of the entries of an array over the grid; 0 in the padding, where masses are
    std::vector<double> totals_;
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline density
