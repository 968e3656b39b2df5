#pragma once
// The potential of masses in the cells of a tensor grid, from compressed features (eq. (2.7)).
//
// The nodes q are summed away beforehand: with sqrt(p_q) Phi_q(cell) = sum_k b_k(cell) O_kq, the rows of O
// orthonormal, v = O sqrt(p) y and m_k = sum_cells b_k mass,
//   Psi_lambda = sum_k b_k (m_k - v_k) + decay,   R = |m - v|^2 + floor,
//   floor = |sqrt(p) y|^2 - |v|^2 + tau^2.
#include "mfcore/base/aligned.hpp"
#include "mfcore/base/views.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline grid {

/// The functions b_k of eq. (2.7). One coordinate: `first` is b itself, cells x rank. Two coordinates:
/// b_k(i, j) = sum_ab core[a n + b, k] first[i, a] second[j, b], n the columns of `second`.
struct GridFactors {
    ConstMat first, second, core;
    const double* shift = nullptr;  ///< v, rank entries
    double floor = 0;
    const double* decay =
        nullptr;  ///< potential that does not depend on the masses, one entry per cell in C order
};

/// Computes moments, risk and potential of masses on a grid, from copies of the factors in the layouts that
/// its loops want; one owner at a time.
/// An array over the grid has rows() rows of stride() entries, of which cols() are cells and the rest is
/// padding that must be 0 in masses. One coordinate is one row.
class GridPotential {
public:
    explicit GridPotential(const GridFactors& factors, int threads = 0);

    Index rank() const { return rank_; }
    Index rows() const { return rows_; }
    Index cols() const { return cols_; }
    Index stride() const { return stride_; }
    Index size() const { return rows_ * stride_; }  ///< entries of an array over the grid
    bool flat() const { return flat_; }             ///< one coordinate
    int requested() const { return requested_; }    ///< threads asked for; 0: the default
    int threads() const { return threads_; }        ///< threads that are worth it for one evaluation

    /// Copy cells in C order to an array over the grid, and back.
    void spread(const double* cells, double* array) const;
    void gather(const double* array, double* cells) const;

    void moments(const double* mass, double* m);
    void potential(const double* m, double* psi);
    double risk(const double* m) const;

    /// The same in pieces, for steppers that touch every cell once: prepare(m), then any rows' potential;
    /// begin_moments(), then the moments of all blocks of kRows rows, then end_moments(m).
    static constexpr Index kCells = 16;  ///< one coordinate: a block of cells
    static constexpr Index kRows = 16;   ///< two coordinates: a block of rows
    void prepare(const double* m);
    void psi_rows(Index first, Index count, double* psi);         ///< psi: count x stride()
    void add_rows(Index first, Index count, const double* mass);  ///< first a multiple of kRows
    void end_moments(double* m);

    // One coordinate: entry (block, k, cell of the block) of b, the residual m - v that prepare() left, and
    // the decay.
    const double* basis() const { return basis_.data(); }
    const double* residual() const { return residual_.data(); }
    const double* decay() const { return decay_.data(); }
    const double* shift() const { return shift_.data(); }

private:
    Index rank_, rows_, cols_, stride_;
    bool flat_;
    double floor_;
    int requested_, threads_ = 1;
    AlignedVector shift_, decay_, residual_;
    AlignedVector sums_;
    AlignedVector basis_;               // one coordinate
    Index a_ = 0, b_ = 0;               // two: columns of the factors, the second padded
    AlignedVector first_;               // rows x a
    AlignedVector second_, across_;     // stride x b, and its transpose
    AlignedVector core_;                // rank x (a b)
    AlignedVector mixed_;               // a x b: core (m - v)
    AlignedVector lines_;               // rows x b: first * mixed
    AlignedVector partial_, products_;  // blocks x (a b): first^T mass second; rows x b
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline grid
