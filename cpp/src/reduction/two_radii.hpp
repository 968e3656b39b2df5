#pragma once
// Averages over two independent directions at all nodes (s1, s2) at once,
//   S_q = E sigma(m + r1 s1_q u1 + r2 s2_q u2),
// in high dimension. One direction is averaged exactly, u |-> S_d(m + y, R), the other one by quadrature in
// y; the values at the points y serve all nodes whose s spreads about as wide (eqs. (3.16), (3.17)).
#include <array>
#include <utility>
#include <vector>

#include "mfcore/base/quadrature.hpp"
#include "mfcore/network/activation.hpp"
#include "mfcore/reduction/smoothing.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline reduction {

class TwoRadii {
public:
    /// Nodes of a tensor grid, some of which may be missing, and dimensions of at least 50: below, the
    /// quadrature would have to see kinks. The smoothers average over the two directions.
    static bool applies(const Activation& sigma, const std::vector<double>& dims, Index nodes,
                        const double* s1, const double* s2);
    TwoRadii(const std::vector<double>& dims, Index nodes, const double* s1, const double* s2);

    /// S_q at every node; with `slopes` also its derivatives with respect to m and to r_i s_{q,i}. One of the
    /// radii must be > 0.
    struct Averages {
        std::vector<double> S, S_m;
        std::array<std::vector<double>, 2> S_r;
        explicit Averages(Index nodes);
    };
    void average(double m, const std::array<double, 2>& r, const std::vector<Smoother>& smoothers,
                 Averages& out, bool slopes) const;

    /// Cost of one point: about how many averages over one direction it takes.
    Index cost() const;

private:
    static constexpr Index kMost = 64;  // points y
    // Ratios of the spread of y to that of the exact average, for each of which a number of points y gives
    // 2e-13.
    static constexpr std::array<double, 6> kRatios = {0.2, 0.4, 0.7, 1.0, 1.2, 1.7};
    static constexpr std::array<Index, 6> kSizes = {16, 24, 32, 40, 48, kMost};

    struct Group {
        Index begin, end;  // among the values
        double base;       // the largest of them
    };
    struct Side {
        double d;
        std::vector<double> values;  // of s, increasing
        std::vector<Group> groups;
        std::array<Rule, kSizes.size()> rules;                   // for u
        std::array<std::vector<double>, kSizes.size()> weights;  // [value][point]: of y = r base u
    };
    static Side side(double d, Index nodes, const double* s);
    void row(double m, std::size_t wide, Index a, const Group& across, const std::array<double, 2>& r,
             const Smoother& exact, Averages& out, bool slopes) const;
    Index node(Index first, Index second) const {
        return at_[static_cast<std::size_t>(first) * sides_[1].values.size() +
                   static_cast<std::size_t>(second)];
    }

    std::array<Side, 2> sides_;
    std::vector<Index> at_;  // number of the node with these two values, -1 if there is none
    std::vector<std::pair<Index, Index>> copies_;  // (node, another node with the same values)
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline reduction
