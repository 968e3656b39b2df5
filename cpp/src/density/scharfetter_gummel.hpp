#pragma once
// Diffusion in a given potential by Scharfetter-Gummel fluxes and implicit Euler (eqs. (7.8) to (7.11)):
// positive and conservative for every time step, with the discrete Gibbs law M_i ~ |C_i| exp(-beta Psi_i)
// exactly stationary.
#include <vector>

#include "base/simd.hpp"
#include "mfcore/density/fokker_planck.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline density {

inline constexpr Index kPackLines = simd::kLanes<double>;  ///< lines that are solved at once

/// Steps of masses in C order, the last coordinate fastest, on a tensor grid; rows of the last coordinate may
/// be padded with zeros, which stay. In one dimension a step is one tridiagonal solve; in more, one solve
/// along each coordinate after the other, which keeps all that is said above because the Gibbs law is
/// stationary along every line of cells.
class ScharfetterGummel {
public:
    /// temperature = 1/beta > 0; pitch: entries of a padded row, 0 where there is no padding.
    ScharfetterGummel(const std::vector<DiffusionAxis>& axes, double temperature, int threads,
                      Index pitch = 0);

    Index size() const { return static_cast<Index>(log_volume_.size()); }
    /// log |C_i|; 0 in the padding
    const std::vector<double>& log_volume() const { return log_volume_; }
    /// Compute the rates of transfer between cells from Psi at their centres (eq. (7.8)); they stay until the
    /// next call.
    void set_potential(const double* psi);
    /// The largest of these rates.
    double fastest() const;
    /// next = mass after one implicit step dt; next may be mass.
    void step(double dt, const double* mass, double* next);
    /// Do two such steps from the same masses: in one dimension they cost little more than one. Results must
    /// not be `mass`.
    void two_steps(const double* mass, double dt, double* next, double other_dt, double* other_next);
    /// Sum over faces of flux times fall of mu: the rate at which the free energy falls if
    /// mu_i = Psi_i + log(M_i / |C_i|) / beta.
    double dissipation(const double* mass, const double* mu);

private:
    /// All lines of cells along one coordinate, in packs of kPackLines. `up` and `down`
    /// hold the rates cell -> next cell and back, [pack][cell][lane]; a single line has one lane.
    struct Lines {
        Index length = 0, stride = 1;              // cells of a line, distance of neighbours in memory
        std::vector<Index> begin;                  // where lines begin
        std::vector<double> log_ratio;             // of densities |C|/width of the cells at each face
        std::vector<double> scale_up, scale_down;  // rate / (beta h width) with the width of either cell
        std::vector<double> up, down;

        Index count() const { return static_cast<Index>(begin.size()); }
        bool single() const { return begin.size() == 1; }
        Index packs() const;
        Index pack_size() const;
        void gather(Index pack, const double* from, double* to) const;
        void scatter(Index pack, const double* from, double* to) const;
        template <class Near, class Far>
        void visit(Index pack, const Near& vectors, const Far& numbers) const;
    };

    void add_axis(const DiffusionAxis& axis, double temperature, std::size_t c,
                  const std::vector<Index>& length, const std::vector<Index>& stride);
    template <class Body>
    void for_packs(const Lines& lines, Index nanoseconds, Body&& body) const;

    Index cells_ = 1;  // without padding
    double beta_;
    int threads_;
    std::vector<double> log_volume_;
    std::vector<Lines> lines_;            // of the coordinates that move
    std::vector<double> first_, second_;  // scratch, in packs
    std::vector<double> partial_;         // sums of packs
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline density
