#pragma once
// The limit with noise: a density on a grid of cells under drift and diffusion (eq. (5.10)),
//   d rho/dt = sum_c rate_c d_c (rho d_c Psi_lambda + 1/beta (d_c rho - e_c rho / z_c)),
// by Scharfetter-Gummel fluxes (eq. (7.8)) and implicit Euler steps, extrapolated to second order.
#include <memory>
#include <vector>

#include "mfcore/flow/flow.hpp"
#include "mfcore/grid/potential.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline density {

/// Cells along one coordinate z.
struct DiffusionAxis {
    std::vector<double> edges;   ///< strictly increasing
    double rate = 1;             ///< of the drift, and of the diffusion
    double volume = 0;           ///< exponent e of the volume element z^e dz; edges >= 0 where it is not 0
    std::vector<Index> watched;  ///< cells where mass is worth a stop
};

/// log int z^e dz over the cell [low, high] (eq. (7.7)): in logarithms, because e reaches hundreds.
double log_cell_volume(double low, double high, double e);

/// One implicit Euler step dt of masses (C order) in the potential psi at the centres of the cells; next may
/// be mass.
void diffuse(const std::vector<DiffusionAxis>& axes, double temperature, const double* psi, double dt,
             const double* mass, double* next, int threads = 0);

/// Which potential an implicit Euler step of the masses takes (eq. (7.14)).
enum class Coupling {
    lagged,     ///< that of the masses before the step; the free energy falls if the step is small enough
    implicit,   ///< that of the masses after the step, a fixed point: the free energy falls for every step
    automatic,  ///< lagged where that makes the free energy fall, else implicit
};

/// Parameters of fokker_planck().
struct FokkerPlanckParams {
    double temperature = 0;  ///< 1/beta > 0
    double t = 0;            ///< time of the start
    double rtol = 0;         ///< > 0: tolerated error of a step: sum of the errors of all masses
    double first = 0;        ///< the first step tried; 0: one that is short enough for sure
    double step = 0;         ///< fixed steps; 0: adaptive ones
    int order = 2;           ///< in time: 1, the plain steps, or 2, extrapolated
    Coupling coupling = Coupling::automatic;
    double tolerance = 0;     ///< stationary when the root mean square velocity is smaller; 0: never
    double most_watched = 0;  ///< mass in watched cells beyond which to stop (End::open_end); 0: never
    int threads = 0;
};

/// A run in progress: states are the masses of the cells in C order. A step is compared with two of half its
/// size: their difference is the error estimate, and extrapolating it away gives order 2. The free energy
///   F = R/2 + lambda/2 int |z|^2 d rho + 1/beta sum_i M_i log(M_i / |C_i|)
/// may not rise beyond rounding: where the extrapolated masses would make it, the two steps stand, and where
/// these would, too, the coupling becomes implicit or the step smaller.
class FokkerPlanck : public Flow {
public:
    /// Risk, free energy and its dissipation at the present time.
    virtual double free_energy() const = 0;
    virtual double risk() const = 0;
    virtual double dissipation() const = 0;  ///< -dF/dt
    /// Largest rise of the free energy in one step so far; at rest rounding makes it > 0.
    virtual double largest_rise() const = 0;
};

/// Begin a run from the masses `start`, one for each cell in C order, on the cells of `axes`. The potential is that of
/// the masses of these cells.
std::unique_ptr<FokkerPlanck> fokker_planck(GridPotential potential, const std::vector<DiffusionAxis>& axes,
                                            const double* start, const FokkerPlanckParams& params);

}  // namespace mfcore::inline MFCORE_LEVEL::inline density
