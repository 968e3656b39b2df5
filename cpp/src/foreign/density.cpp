// Densities of mfcore.h, for one instruction-set level: masses of cells under explicit finite volumes or, with noise,
// implicit steps with Scharfetter-Gummel fluxes.
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "density/scharfetter_gummel.hpp"
#include "foreign/codes.hpp"
#include "mfcore/base/finite.hpp"
#include "mfcore/density/finite_volume.hpp"
#include "mfcore/grid/factors.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline foreign {
namespace {

constexpr double kCompressed = 1e-12;  // of the largest feature: what compression may leave out

/// The object behind an mfcore_density.
struct DensityHandle {
    double* mass;
    Index cells;
    GridPotential potential;
    std::optional<FiniteVolumeSteps> explicit_steps;  // without noise
    std::optional<ScharfetterGummel> implicit_steps;  // with noise

    /// The masses over the grid, and their moments.
    struct Present {
        std::vector<double> mass, moments;
    };
    Present present() {
        Present now{std::vector<double>(potential.size()), std::vector<double>(potential.rank())};
        potential.spread(mass, now.mass.data());
        potential.moments(now.mass.data(), now.moments.data());
        return now;
    }
};

DensityHandle& density_of(mfcore_density* density) {
    require_pointer(density, "density");
    return *reinterpret_cast<DensityHandle*>(density);
}

/// The cells of the caller.
std::vector<DiffusionAxis> axes_of(int count, const mfcore_axis* axis) {
    require(count == 1 || count == 2, "axes", "must be 1 or 2", count);
    require_pointer(axis, "axis");
    std::vector<DiffusionAxis> axes;
    for (int c = 0; c < count; ++c) {
        require_count(axis[c].cells, "cells");
        require_pointer(axis[c].edges, "edges");
        DiffusionAxis& made = axes.emplace_back();
        made.edges.assign(axis[c].edges, axis[c].edges + axis[c].cells + 1);
        made.rate = axis[c].rate;
        made.volume = axis[c].volume;
    }
    return axes;
}

/// The same cells for steps without noise.
std::vector<GridAxis> without_noise(const std::vector<DiffusionAxis>& axes) {
    std::vector<GridAxis> converted;
    for (const DiffusionAxis& axis : axes) {
        const std::vector<double>& z = axis.edges;
        GridAxis& made = converted.emplace_back();
        for (std::size_t i = 0; i + 1 < z.size(); ++i) made.width.push_back(z[i + 1] - z[i]);
        for (std::size_t i = 0; i + 2 < z.size(); ++i)  // centres are half of two widths apart
            made.conductance.push_back(2 * axis.rate / (z[i + 2] - z[i]));
    }
    return converted;
}

/// The table of sqrt(p_q) Phi_q on the cells, compressed (eqs. (2.6) to (2.8)).
GridPotential compressed(const std::vector<DiffusionAxis>& axes, Index cells, Index nodes,
                         const double* weights, const double* targets, const double* features,
                         const double* decay) {
    OwnMatrix table(cells, nodes);
    std::vector<double> label(nodes);
    double floor = 0;
    for (Index q = 0; q < nodes; ++q) {
        require(weights[q] > 0 && std::isfinite(weights[q]), "weights", "must be finite and > 0", weights[q]);
        const double root = std::sqrt(weights[q]);
        label[q] = root * targets[q];
        floor += label[q] * label[q];
        for (Index i = 0; i < cells; ++i) table.values[i * nodes + q] = root * features[i * nodes + q];
    }
    require(std::isfinite(floor), "targets", "must be finite", floor);
    require(all_finite(table.view()), "features", "must be finite", "infinity or NaN");
    // The functions b_k of the cells, and v_k: the labels along the orthonormal combinations of nodes.
    OwnMatrix first, second, core, combinations;
    if (axes.size() == 1) {
        LineFactors line = factors_of_line(table.view(), kCompressed);
        first = OwnMatrix(cells, line.turn.cols);
        for (Index i = 0; i < cells; ++i)
            for (Index l = 0; l < line.turn.rows; ++l)
                for (Index k = 0; k < line.turn.cols; ++k)
                    first.view()(i, k) += line.basis.view()(i, l) * line.turn.view()(l, k);
        combinations = std::move(line.nodes);
    } else {
        TableFactors found =
            factors_of_table(table.view(), static_cast<Index>(axes[1].edges.size()) - 1, kCompressed);
        first = std::move(found.first);
        second = std::move(found.second);
        core = std::move(found.core);
        combinations = std::move(found.nodes);
    }
    std::vector<double> shift(combinations.rows);
    for (Index k = 0; k < combinations.rows; ++k) {
        for (Index q = 0; q < nodes; ++q) shift[k] += combinations.view()(k, q) * label[q];
        floor -= shift[k] * shift[k];
    }
    GridFactors factors;
    factors.first = first.view();
    if (axes.size() == 2) {
        factors.second = second.view();
        factors.core = core.view();
    }
    factors.shift = shift.data();
    factors.floor = floor;
    factors.decay = decay;
    return GridPotential(factors, 1);
}

int implicit_step(DensityHandle& own, double h) {
    DensityHandle::Present now = own.present();
    std::vector<double> psi(own.potential.size()), moved(own.cells);
    own.potential.potential(now.moments.data(), psi.data());
    own.implicit_steps->set_potential(psi.data());
    own.implicit_steps->step(h, now.mass.data(), now.mass.data());
    own.potential.gather(now.mass.data(), moved.data());
    if (!all_finite({moved.data(), 1, own.cells}))
        return failure(MFCORE_NOT_FINITE, "the masses after the step are not finite");
    std::copy(moved.begin(), moved.end(), own.mass);
    return MFCORE_OK;
}

int explicit_step(DensityHandle& own, double h) {
    const auto done = own.explicit_steps->run(own.mass, h, 1, {});
    if (std::isnan(done.bound))
        return failure(MFCORE_NOT_FINITE, "the masses, or the potential of them, are not finite");
    require(done.steps == 1, "h",
            "must be at most mfcore_density_bound(): mass would leave cells that have less", h);
    return MFCORE_OK;
}

}  // namespace

int create_density(int axes, const mfcore_axis* axis, std::int64_t nodes, const double* weights,
                   const double* targets, const double* features, const double* decay, double temperature,
                   double* mass, mfcore_density** created) {
    return guarded([&] {
        require_pointer(created, "created");
        *created = nullptr;
        const std::vector<DiffusionAxis> grid = axes_of(axes, axis);
        require_count(nodes, "nodes");
        require_pointer(weights, "weights");
        require_pointer(targets, "targets");
        require_pointer(features, "features");
        require_pointer(mass, "mass");
        require(temperature >= 0 && std::isfinite(temperature), "temperature", "must be finite and >= 0",
                temperature);
        Index cells = 1;
        for (const DiffusionAxis& one : grid) cells *= static_cast<Index>(one.edges.size()) - 1;
        // Checks the axes, with noise or without; the temperature of a run without noise is not used.
        std::optional<ScharfetterGummel> fluxes;
        fluxes.emplace(grid, temperature > 0 ? temperature : 1.0, 1);
        for (Index i = 0; i < cells; ++i)
            require(mass[i] >= 0 && std::isfinite(mass[i]), "mass", "must be finite and >= 0", mass[i]);
        GridPotential potential =
            compressed(grid, cells, static_cast<Index>(nodes), weights, targets, features, decay);
        auto made = std::make_unique<DensityHandle>(DensityHandle{mass, cells, potential, {}, {}});
        if (temperature > 0)
            made->implicit_steps.emplace(grid, temperature, 1, potential.stride());
        else
            made->explicit_steps.emplace(
                FiniteVolume(std::move(potential), without_noise(grid), Reconstruction::muscl));
        *created = reinterpret_cast<mfcore_density*>(made.release());
        return MFCORE_OK;
    });
}

void free_density(mfcore_density* density) { delete reinterpret_cast<DensityHandle*>(density); }

int step_density(mfcore_density* density, double h) {
    return guarded([&] {
        DensityHandle& own = density_of(density);
        require(h >= 0 && std::isfinite(h), "h", "must be finite and >= 0", h);
        return own.implicit_steps ? implicit_step(own, h) : explicit_step(own, h);
    });
}

int bound_density(mfcore_density* density, double* bound) {
    return guarded([&] {
        DensityHandle& own = density_of(density);
        require_pointer(bound, "bound");
        *bound = own.explicit_steps ? own.explicit_steps->bound(own.mass) : INFINITY;
        return MFCORE_OK;
    });
}

int risk_of_density(mfcore_density* density, double* risk) {
    return guarded([&] {
        DensityHandle& own = density_of(density);
        require_pointer(risk, "risk");
        *risk = own.potential.risk(own.present().moments.data());
        return MFCORE_OK;
    });
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline foreign
