#pragma once
// A direction z ~ N(0, 1) cut into panels, for features with kinks beside it: E (b + s z + R u - t)_+ as a
// function of z is 0 left of z = (t - b)/s, linear right of it, and goes over from one to the other within
// R/s. For small R no fixed nodes average it. Here the feature at a node is a value of its projection onto
// polynomials of degree kOrder - 1 in the node's panel, with integrals split at both ends of that range: sums
// over nodes are then exact for averages of one feature with a polynomial, such as V, and of products they
// lose what both projections leave out.
#include <array>
#include <vector>

#include "mfcore/reduction/panel.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline reduction {

/// Panels of the law N(0, 1), with their nodes and projections onto them.
class NormalPanels {
public:
    static constexpr Index kOrder = Panel::kOrder, kPoints = Panel::kPoints;
    static constexpr std::size_t kFunctions = 4;
    using Values = std::array<std::array<double, kPoints>, kFunctions>;
    using Projections = std::array<Panel::Coefficients, kFunctions>;

    /// The range in z over which a function changes from one linear function to another.
    struct Bend {
        double centre, half;  // half = 0: a kink
        double deviation;     // standard deviation of what the kink is averaged over
        bool kinked;          // whether the function has kinks at the ends of the range
    };

    /// Panels of [-end, end]; 1e-16 of the mass is beyond the default.
    explicit NormalPanels(Index panels, double end = 8.3);

    Index panels() const { return static_cast<Index>(panels_.size()); }
    double end() const { return panels_.back().high; }
    Index size() const { return panels() * kOrder; }
    const Rule& rule() const { return rule_; }  ///< kOrder nodes of each panel, and their probabilities

    /// True if values at the nodes are the projection of a function with this bend.
    bool resolves(Index panel, const Bend& bend) const;

    /// Projections, at the nodes of a panel, of `functions` <= kFunctions functions with this bend that are 0
    /// left of it (`rising`) or right of it; f(z, values) puts their values at the kPoints points z.
    template <class Function>
    void project(Index panel, const Bend& bend, bool rising, std::size_t functions, Function&& f,
                 Projections& out) const {
        const Panel& here = panels_[static_cast<std::size_t>(panel)];
        Projections moments{};
        const Pieces pieces = cut(here, bend, rising);
        for (std::size_t piece = 0; piece + 1 < pieces.count; ++piece) {
            Panel::Points at;
            points(here, bend, pieces.ends[piece], pieces.ends[piece + 1], at);
            Values values;
            f(at.x, values);
            here.add(at, functions, values.data(), moments.data());
        }
        for (std::size_t k = 0; k < functions; ++k) here.at_nodes(moments[k], out[k]);
    }

private:
    static constexpr int kParts = 4;  // of a bend without kinks at its ends; 2 of one with them
    struct Pieces {
        std::array<double, kParts + 3> ends;
        std::size_t count;
    };
    Pieces cut(const Panel& panel, const Bend& bend, bool rising) const;
    void points(const Panel& panel, const Bend& bend, double from, double to, Panel::Points& out) const;

    Rule rule_, legendre_;
    std::vector<Panel> panels_;
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline reduction
