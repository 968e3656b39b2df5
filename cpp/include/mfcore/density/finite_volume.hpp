#pragma once
// The continuity equation d rho/dt = div(rho rate grad Psi_lambda[rho]) without noise, in one or two
// coordinates, by finite volumes (eqs. (7.1) to (7.5)): upwind with Euler steps, order 1, or van Leer's MUSCL
// with the strong-stability-preserving Runge-Kutta scheme of two stages, order 2. Zero flux at the ends.
//
// Mass moves between neighbours in transfers that leave one cell and enter another: it is conserved to
// rounding. What leaves a cell in one step is cut to what is there, so no step can make a mass negative. The
// automatic step is such that no cell with more than kNegligible mass is cut: velocities where there is no
// mass do not slow the run.
#include <memory>
#include <vector>

#include "mfcore/flow/flow.hpp"
#include "mfcore/grid/potential.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline density {

/// Cells along one coordinate.
struct GridAxis {
    std::vector<double> width;        ///< of the cells, > 0
    std::vector<double> conductance;  ///< cell i to i + 1: rate / distance of the centres; 0: no flux
    std::vector<Index> watched;       ///< cells where mass is worth a stop
};

/// How masses of cells become a density at their faces.
enum class Reconstruction {
    upwind,  ///< constant in each cell
    muscl,   ///< linear, limited; on graded grids second order as far as widths vary smoothly
};

/// Cells with less mass than this do not restrict the step; what leaves them is cut to what they hold.
inline constexpr double kNegligible = 1e-14;

/// One explicit finite-volume step (eqs. (7.2), (7.4)), on arrays as GridPotential lays them out.
class FiniteVolume {
public:
    FiniteVolume(GridPotential potential, std::vector<GridAxis> axes, Reconstruction reconstruction);

    /// Masses over the grid with room around them, so that cells at its ends have neighbours in memory.
    class PaddedMasses {
    public:
        explicit PaddedMasses(const FiniteVolume& owner) : front_(owner.front_), memory_(owner.room_) {}
        double* data() { return memory_.data() + front_; }
        const double* data() const { return memory_.data() + front_; }

    private:
        Index front_;
        AlignedVector memory_;
    };

    struct Report {
        double outflow = 0;  ///< largest share per unit of time that leaves a cell with mass
        double descent = 0;  ///< sum of rate |grad Psi_lambda|^2 mass: how fast R/2 + decay falls
    };

    /// Do a step of size dt from `mass`, whose moments are `m`; `next` must be another object. The report is
    /// about the velocities at the start.
    Report step(const PaddedMasses& mass, const double* m, double dt, PaddedMasses& next, double* next_m);

    /// Moments after the first, explicit stage of the step just done, whose last ones are `next_m`.
    const double* first_stage(const double* next_m) const {
        return reconstruction_ == Reconstruction::muscl ? half_m_.data() : next_m;
    }

    /// The Courant number of the scheme: dt times the largest outflow of a cell, per mass, may reach 1, or
    /// 1/2 for MUSCL, whose face values reach twice the mean of the cell (eq. (7.5)).
    double courant() const { return reconstruction_ == Reconstruction::muscl ? 0.5 : 1.0; }
    GridPotential& potential() { return potential_; }
    const GridPotential& potential() const { return potential_; }
    const std::vector<GridAxis>& axes() const { return axes_; }

private:
    /// Arguments of one stage: next = mass + dt * transport, or its mean with `base` (eq. (7.4)).
    struct Stage {
        const double *mass, *base;
        double dt;
        double* next;
    };
    struct Sums;
    Report stage(const Stage& s, const double* m, double* next_m);
    template <bool Muscl>
    Report line(const Stage& s, double* next_m);
    template <bool Muscl>
    Report plane(const Stage& s, double* next_m);
    template <bool Muscl>
    void rows(const Stage& s, Index first, Index count, double* scratch, Sums& sums);

    GridPotential potential_;
    std::vector<GridAxis> axes_;
    Reconstruction reconstruction_;
    Index front_, room_;
    int threads_ = 1;
    // Per axis, with a margin on both sides: conductances (entry i: cell i to i + 1) and 1 / width.
    AlignedVector conductance_[2], inverse_[2];
    AlignedVector psi_, transfers_, sums_, half_m_;
    std::unique_ptr<PaddedMasses> half_;  // the first stage of MUSCL
};

/// Takes steps of one size on the caller's masses, C order, for loops outside of this library.
class FiniteVolumeSteps {
public:
    explicit FiniteVolumeSteps(FiniteVolume scheme);

    struct Done {
        Index steps = 0;
        double bound = 0;  ///< the largest stable step at the last velocities; NaN: something is not finite
    };
    /// Up to `steps` steps dt from the masses `cells`, which they replace. Ends before a step that is larger
    /// than the bound or leads to numbers that are not finite, and when the predicate says so.
    Done run(double* cells, double dt, Index steps, const StopPredicate& wants_stop);
    /// The largest stable step of these masses.
    double bound(const double* cells);
    Index cells() const { return scheme_.potential().rows() * scheme_.potential().cols(); }

private:
    FiniteVolume scheme_;
    FiniteVolume::PaddedMasses mass_, next_;
    std::vector<double> m_, next_m_;
};

/// Parameters of finite_volume().
struct FiniteVolumeParams {
    double t = 0;             ///< time of the start
    double first = 0;         ///< first step; 0: the stability bound
    double step = 0;          ///< largest step; 0: as large as the bounds allow
    double accuracy = 0;      ///< largest stiffness of a step, eq. (7.6); 0: any
    double tolerance = 0;     ///< stop where the root mean square of the gradient is smaller; 0: never
    double most_watched = 0;  ///< mass in watched cells beyond which to stop (End::open_end); 0: never
};

/// A flow by such steps; its states are the masses of the cells in C order.
std::unique_ptr<Flow> finite_volume(FiniteVolume scheme, const double* start,
                                    const FiniteVolumeParams& params);

}  // namespace mfcore::inline MFCORE_LEVEL::inline density
