#pragma once
// Fixed points x = g(x) by Anderson's acceleration.
#include <algorithm>
#include <cmath>
#include <vector>

#include "mfcore/base/views.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline density {

/// From x and g(x) at the points so far, the next point: where the residual g(x) - x would vanish, as far as
/// a linear function through the last few of them can tell, plus the rest of the residual. Differences of
/// residuals are kept orthonormal, with the differences of points that belong to them, so that no system
/// needs to be solved.
class Anderson {
public:
    explicit Anderson(Index size) : size_(size), x_(size), residual_(size) {
        for (Pair& pair : pairs_) pair = {std::vector<double>(size), std::vector<double>(size)};
    }

    void restart() { known_ = points_ = 0; }

    /// Replace x by the next point; g is overwritten. Returns |g - x|.
    double advance(double* x, double* g) {
        for (Index k = 0; k < size_; ++k) g[k] -= x[k];
        const double size = std::sqrt(dot(g, g));
        if (points_++ > 0) add_difference(x, g);
        std::copy_n(x, size_, x_.begin());
        std::copy_n(g, size_, residual_.begin());
        for (Index j = 0; j < known_; ++j) {
            const double share = dot(pairs_[j].residual.data(), g);
            for (Index k = 0; k < size_; ++k) {
                x[k] -= share * pairs_[j].point[k];
                g[k] -= share * pairs_[j].residual[k];
            }
        }
        for (Index k = 0; k < size_; ++k) x[k] += g[k];
        return size;
    }

private:
    static constexpr Index kPairs = 12;
    struct Pair {
        std::vector<double> point, residual;
    };

    double dot(const double* a, const double* b) const {
        double sum = 0;
        for (Index k = 0; k < size_; ++k) sum += a[k] * b[k];
        return sum;
    }

    void add_difference(const double* x, const double* residual) {
        if (known_ == kPairs) {
            std::rotate(pairs_, pairs_ + 1, pairs_ + kPairs);
            --known_;
        }
        Pair& last = pairs_[known_];
        for (Index k = 0; k < size_; ++k) {
            last.point[k] = x[k] - x_[k];
            last.residual[k] = residual[k] - residual_[k];
        }
        const double before = dot(last.residual.data(), last.residual.data());
        for (int pass = 0; pass < 2; ++pass) {  // the second one removes what rounding left of the first
            for (Index j = 0; j < known_; ++j) {
                const double share = dot(pairs_[j].residual.data(), last.residual.data());
                for (Index k = 0; k < size_; ++k) {
                    last.point[k] -= share * pairs_[j].point[k];
                    last.residual[k] -= share * pairs_[j].residual[k];
                }
            }
        }
        const double left = dot(last.residual.data(), last.residual.data());
        if (!(left > 1e-20 * before)) return;  // nothing new in it
        const double scale = 1 / std::sqrt(left);
        for (Index k = 0; k < size_; ++k) {
            last.point[k] *= scale;
            last.residual[k] *= scale;
        }
        ++known_;
    }

    Index size_, known_ = 0, points_ = 0;
    std::vector<double> x_, residual_;  // of the last point
    Pair pairs_[kPairs];
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline density
