#pragma once
// Features as products of functions of one coordinate each, on a box (Tucker form, eqs. (2.8) to (2.10)):
// with p_q the weights,
//   sqrt(p_q) Phi_q(z) = sum_k b_k(z) C_kq,   b_k(z) = sum_ab.. L[ab.., k] A1_a(z_1) A2_b(z_2) ..,
// where C has orthonormal rows. Then the nodes q disappear from the dynamics: with the moments
// m_ab.. = int A1_a A2_b .. d rho and v = C (sqrt(p) y) the residual is e = L^T m - v,
//   R = |e|^2 + rest,   Psi(z) = sum_ab.. g_ab.. A1_a(z_1) A2_b(z_2) ..,   g = L e.
// So measures of moving atoms cost a few hundred multiply-adds per atom, however dear the features are.
#include <vector>

#include "mfcore/base/views.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline grid {

/// Functions of one coordinate: on each panel between two edges a Chebyshev series in t = -1 .. 1.
struct PanelBasis {
    std::vector<double> edges;   // increasing: panels + 1 of them
    Index terms = 0;             // of each series
    Index rank = 0;              // how many functions
    std::vector<double> series;  // [panel][term][function]
    bool clamped = false;        // a radius: negative values count as 0

    Index panels() const { return static_cast<Index>(edges.size()) - 1; }
    void validate() const;
};

/// Moments, residual and potential of features in Tucker form (eqs. (2.8), (2.9)). A point outside of the box
/// is never extrapolated to: it is counted, and what depends on it is NaN.
class SeparableFeatures {
public:
    /// core: L, a row for each product of basis functions (the last coordinate's index runs fastest), a
    /// column for each entry of `target`, which is v; all of them are copied.
    SeparableFeatures(std::vector<PanelBasis> axes, ConstMat core, std::vector<double> target, double rest);

    Index coordinates() const { return static_cast<Index>(axes_.size()); }
    Index rank(Index c) const { return axes_[static_cast<std::size_t>(c)].rank; }
    Index size() const { return size_; }                                  ///< number of products, K
    Index columns() const { return static_cast<Index>(target_.size()); }  ///< of L

    /// Evaluate the functions of coordinate c or their derivatives of this order (0, 1, 2); out: n x rank(c).
    Index basis(Index c, Index n, const double* z, int order, double* out) const;

    /// m = sum_i weights_i A1(z_i1) x A2(z_i2) x .., the same bits for any number of threads. Null weights:
    /// 1/n each.
    Index moments(ConstMat z, const double* weights, double* m, int threads = 0) const;

    /// g = L e with e = L^T m - v; returns the risk |e|^2 + rest.
    double residual(const double* m, double* g, int threads = 0) const;

    /// Evaluate Psi with coefficients g (K of them) at points, its gradient (n x k) and its second
    /// derivatives (n x k x k); null outputs are skipped. At a negative radius everything is as at 0.
    Index potential(const double* g, ConstMat z, double* value, double* gradient, double* hessian,
                    int threads = 0) const;

private:
    struct Axis : PanelBasis {
        Index padded = 0;           // rank in whole vectors
        Index across = 1;           // products of the coordinates after this one, the last one padded
        std::vector<double> table;  // the series, their functions padded with zeros
    };
    struct PointBasis;   // basis functions at a few points
    struct Derivatives;  // of Psi at one point

    template <class Body>
    Index for_points(ConstMat z, int order, Index task, Index scratch, int threads, const Body& body) const;

    std::vector<Axis> axes_;
    Index size_ = 1;  // K
    std::vector<double> core_, target_;
    double rest_ = 0;
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline grid
