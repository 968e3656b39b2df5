#pragma once
// The norm s ~ chi_d cut into panels, for features with kinks in low dimension. At fixed s such a feature is
// like (s - k)_+^{(d+1)/2}, its kink k = |t - m|/r moves with the parameter, and no fixed nodes average it to
// 1e-12. Here the feature at a node is a value of its projection onto polynomials of degree kOrder - 1 in the
// node's panel, orthogonal in the law of s and integrated exactly on both sides of the kink. Sums over nodes
// are then exact for averages of one feature, and of products they lose only what both projections leave out.
#include <array>
#include <vector>

#include "mfcore/reduction/panel.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline reduction {

/// Panels of the law chi_d, with their nodes and projections onto them.
class ChiPanels {
public:
    static constexpr Index kOrder = Panel::kOrder, kPoints = Panel::kPoints;
    static constexpr std::size_t kFunctions = 3;
    using Values = std::array<std::array<double, kPoints>, kFunctions>;
    using Projections = std::array<Panel::Coefficients, kFunctions>;

    /// `panels` = 0: as many as 1e-12 in products of features and of their gradients needs for 3 <= d <= 20.
    /// Below, gradients are less smooth: 1e-9 for d = 2, and 1e-6 for d = 1.
    explicit ChiPanels(double d, Index panels = 0);

    Index panels() const { return static_cast<Index>(panels_.size()); }
    Index size() const { return panels() * kOrder; }
    /// the nodes of all panels (kOrder each), and their probabilities
    const Rule& rule() const { return rule_; }

    /// True if values at the nodes are the projection of a function that is 0 left of the kink.
    bool resolves(Index panel, double kink) const;

    /// Projections, at the nodes of a panel, of kFunctions functions that are 0 left of the kink > 0 and
    /// analytic in sqrt(s - kink) right of it; f(s, values) puts their values at the kPoints points s.
    template <class Function>
    void project(Index panel, double kink, Function&& f, Projections& out) const {
        const Panel& here = panels_[static_cast<std::size_t>(panel)];
        Projections moments{};
        const Pieces pieces = cut(here, kink);
        for (Index piece = 0; piece < pieces.count; ++piece) {
            Panel::Points at;
            points(here, kink, pieces.from + static_cast<double>(piece) * pieces.width, pieces.width, at);
            Values values;
            f(at.x, values);
            here.add(at, kFunctions, values.data(), moments.data());
        }
        for (std::size_t k = 0; k < kFunctions; ++k) here.at_nodes(moments[k], out[k]);
    }

private:
    struct Pieces {  // of theta, s = kink cosh(theta)
        double from, width;
        Index count;
    };
    Pieces cut(const Panel& panel, double kink) const;
    void points(const Panel& panel, double kink, double from, double width, Panel::Points& out) const;

    double d_;
    Rule rule_, legendre_;
    std::vector<Panel> panels_;
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline reduction
