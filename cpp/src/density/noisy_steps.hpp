#pragma once
// Implicit Euler steps of masses in their own potential, lagged or not (eqs. (7.10), (7.14)), alone and in
// the pairs that error estimates and extrapolation take.
#include <vector>

#include "density/anderson.hpp"
#include "density/mass_sums.hpp"
#include "density/scharfetter_gummel.hpp"
#include "mfcore/grid/potential.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline density {

/// Rounding error of the free energy, relative to the sum of the absolute values of its terms.
inline constexpr double kEnergyRounding = 1e-14;

/// Masses as an array over the grid, with their moments, potential, risk and free energy.
struct NoisyState {
    NoisyState(Index size, Index rank) : mass(size), psi(size), log_density(size), moments(rank) {}
    std::vector<double> mass, psi, log_density, moments;
    double risk = 0, free_energy = 0, scale = 0;  // scale: of the terms of the free energy
};

class NoisySteps {
public:
    using Vector = std::vector<double>;

    NoisySteps(GridPotential potential, const std::vector<DiffusionAxis>& axes, double temperature,
               int threads);

    const GridPotential& potential() const { return potential_; }
    BlockSums& sums() { return sums_; }
    Index evaluations = 0;  ///< of the potential

    /// Compute moments, risk, potential and free energy of the masses of a state.
    void evaluate(NoisyState& state);
    double dissipation(const NoisyState& state);
    /// The largest rate of transfer between two cells.
    double fastest(const NoisyState& state);

    /// Do a step h from `now` in the potential of its masses.
    void lagged(const NoisyState& now, double h, Vector& to);
    /// Do one such step (`full`) and two of half its size (`half`).
    void lagged_pair(const NoisyState& now, double h, Vector& full, Vector& half);
    /// Do the same in the potential of the results (implicit). False: no fixed point was found. `thorough`:
    /// also by Newton's method, with derivatives by all moments.
    bool implicit(const NoisyState& now, double h, bool thorough, Vector& to);
    bool implicit_pair(const NoisyState& now, double h, bool thorough, Vector& full, Vector& half);

private:
    void set_potential(const Vector& psi);
    void set_potential_of(const Vector& moments);
    void image_step(const Vector& from, double h, Vector& to);
    bool fixed_step(const NoisyState& now, const Vector& from, double h, bool thorough, Vector& to);
    bool accelerated_step(const NoisyState& now, const Vector& from, double h, double enough, Vector& to);

    GridPotential potential_;
    ScharfetterGummel fluxes_;
    double temperature_;
    BlockSums sums_;
    Anderson anderson_;
    // Psi_lambda of a model without features (rank 0) is already set: it never changes
    bool constant_set_ = false;
    Vector psi_, mu_, middle_;
    Vector fixed_, image_;  // moments whose potential an implicit step takes, and moments of its result
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline density
