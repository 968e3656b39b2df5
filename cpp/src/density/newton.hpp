#pragma once
// Fixed points x = g(x) of few numbers by Newton's method, used where Anderson's acceleration finds none.
#include <cmath>

#include "base/dense.hpp"
#include "mfcore/base/views.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline density {

/// Find x with |residual(x)| <= enough, or as near as rounding allows, for residual(x) = g(x) - x with a
/// decreasing g: differences give the matrix of derivatives, and steps are halved until the residual falls.
/// `residual` takes x and writes there. False: none found.
template <class Residual>
bool newton(Eigen::VectorXd& x, double enough, Residual&& residual) {
    constexpr int kSteps = 60, kHalvings = 30;
    constexpr double kDifference = 1e-7;  // the root of rounding, about
    const Index n = x.size();
    Eigen::VectorXd f(n), moved(n), next(n);
    Eigen::MatrixXd slope(n, n);
    residual(x, f);
    for (int step = 0; step < kSteps; ++step) {
        const double size = f.norm();
        if (!std::isfinite(size)) return false;
        if (size == 0) return true;
        for (Index k = 0; k < n; ++k) {
            next = x;
            next[k] += kDifference;
            residual(next, moved);
            slope.col(k) = (moved - f) / (next[k] - x[k]);
        }
        const Eigen::VectorXd way = -dense::solve(slope, f);
        double part = 1;
        int halvings = 0;
        for (; halvings < kHalvings; ++halvings, part /= 2) {
            next = x + part * way;
            residual(next, moved);
            if (moved.norm() < (1 - 1e-4 * part) * size) break;
        }
        if (halvings == kHalvings) return size <= enough;
        x = next;
        f = moved;
        if (f.norm() <= 1e-3 * enough) return true;
    }
    return f.norm() <= enough;
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline density
