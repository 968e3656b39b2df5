#pragma once
// Integrals over an interval that is cut where the integrand is not analytic, by Gauss rules on panels between
// the cuts (eq. (3.18)).
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "mfcore/base/quadrature.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base {

class Pieces {
public:
    static constexpr Index kOrder = 16;  ///< nodes of a panel

    /// The widest panels for 1e-15 of a function analytic at distances below `strip` of sigma(m + R u).
    static double width(double strip, double R) { return strip / (0.65 * R); }

    /// Call body(x, weight) with nodes and weights of the integral from `from` to `to`, kChunk at a time, the
    /// last ones padded with weight 0. cut(k), k < cuts, increase; those outside do nothing.
    template <Index kChunk, class Cut, class Body>
    void for_nodes(double from, double to, double width, std::size_t cuts, Cut&& cut, Body&& body) const {
        static_assert(kChunk % kOrder == 0);
        std::array<double, kChunk> x, weight;
        std::size_t count = 0;
        const auto flush = [&] {
            std::fill(x.begin() + static_cast<Index>(count), x.end(), x[count - 1]);
            std::fill(weight.begin() + static_cast<Index>(count), weight.end(), 0.0);
            body(x, weight);
            count = 0;
        };
        double left = from;
        for (std::size_t k = 0; k <= cuts; ++k) {
            const double right = k < cuts ? cut(k) : to;
            if (!(right > left && right <= to)) continue;
            const double panels = std::ceil((right - left) / width), step = (right - left) / panels;
            for (double p = 0; p < panels; p += 1)
                for (std::size_t i = 0; i < legendre_.nodes.size(); ++i) {
                    if (count == kChunk) flush();
                    x[count] = left + step * (p + 0.5 * (1 + legendre_.nodes[i]));
                    weight[count++] = step * legendre_.weights[i];
                }
            left = right;
        }
        flush();
    }

private:
    Rule legendre_ = gauss_legendre(kOrder);
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
