#pragma once
// Piecewise linear: a line and ramps, and the two of them with a name.
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "network/kinds/kind.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline network::kinds {

inline void validate_pieces(const Activation& sigma) {
    require(std::isfinite(sigma.offset), "offset", "must be finite", sigma.offset);
    require(std::isfinite(sigma.left_slope), "left_slope", "must be finite", sigma.left_slope);
    require_finite(sigma.knots, "knots");
    require_finite(sigma.jumps, "jumps");
    require(sigma.jumps.size() == sigma.knots.size(), "jumps", "must be as many as knots", list(sigma.jumps));
    const bool increasing =
        std::ranges::adjacent_find(sigma.knots, std::greater_equal{}) == sigma.knots.end();
    require(increasing, "knots", "must be strictly increasing", list(sigma.knots));
}

struct PiecewiseLinear {
    static constexpr const char* name = "piecewise_linear";
    static Facts facts(const Activation& sigma) {
        double right = sigma.left_slope;
        for (const double jump : sigma.jumps) right += jump;
        return {.form = Facts::Form::pieces, .degree = sigma.left_slope == 0 && right == 0 ? 0 : 1};
    }
    static void validate(const Activation& sigma) {
        validate_pieces(sigma);
        require(!sigma.knots.empty(), "knots", "must not be empty", list(sigma.knots));
    }

    /// Each piece from its own knot, level + slope (t - knot): the sum of ramps would cancel far from the
    /// knots.
    template <class T>
    struct Kernel {
        struct Piece {
            T knot, level, slope;
        };
        static constexpr std::size_t kTable = 8;  // pieces beyond are on the heap
        std::size_t count;                        // knots; piece 0 lies before the first
        Piece table[kTable];
        std::vector<Piece> more;

        explicit Kernel(const Activation& sigma) : count(sigma.knots.size()) {
            if (count + 1 > kTable) more.resize(count + 1);
            Piece* const to = more.empty() ? table : more.data();
            double slope = sigma.left_slope, knot = count == 0 ? 0 : sigma.knots[0];
            double level = sigma.offset + slope * knot;
            to[0] = {T(knot), T(level), T(slope)};
            for (std::size_t k = 0; k < count; ++k) {
                level += slope * (sigma.knots[k] - knot);
                knot = sigma.knots[k];
                slope += sigma.jumps[k];
                to[k + 1] = {T(knot), T(level), T(slope)};
            }
        }

        MFCORE_INLINE Jet<T> operator()(Vec<T> t) const {
            const Piece* const piece = more.empty() ? table : more.data();
            Vec<T> slopes = fill(piece[0].slope), knots = fill(piece[0].knot), levels = fill(piece[0].level);
            for (std::size_t k = 1; k <= count; ++k) {
                const IntVec<T> beyond = t > piece[k].knot;
                slopes = select<T>(beyond, fill(piece[k].slope), slopes);
                knots = select<T>(beyond, fill(piece[k].knot), knots);
                levels = select<T>(beyond, fill(piece[k].level), levels);
            }
            // A flat piece stays at its level also at infinity.
            const Vec<T> value = select<T>(slopes == 0, levels, slopes * (t - knots) + levels);
            return keep_nan<T>(t, {value, slopes, Vec<T>{}});
        }

        /// The same by more operations, of which fewer wait for each other: the lines of all pieces at t, and then
        /// the choice.
        MFCORE_INLINE Jet<T> soon(Vec<T> t) const {
            const Piece* const piece = more.empty() ? table : more.data();
            const auto line = [&](const Piece& p) {
                const Vec<T> slope = fill(p.slope), level = fill(p.level);
                return select<T>(slope == 0, level, slope * (t - p.knot) + level);
            };
            Jet<T> out = keep_nan<T>(t, {line(piece[0]), fill(piece[0].slope), Vec<T>{}});
            for (std::size_t k = 1; k <= count; ++k) {
                const IntVec<T> beyond = t > piece[k].knot;
                out.value = select<T>(beyond, line(piece[k]), out.value);
                out.slope = select<T>(beyond, fill(piece[k].slope), out.slope);
            }
            return out;
        }
    };
};

struct Linear {
    static constexpr const char* name = "linear";
    static Facts facts(const Activation&) {
        return {.form = Facts::Form::pieces, .parity = Parity::odd, .polynomial = true, .degree = 1};
    }
    static void complete(Activation& sigma) { sigma.left_slope = 1; }
    static void validate(const Activation& sigma) {
        validate_pieces(sigma);
        require(sigma.knots.empty(), "knots", "of linear must be empty", list(sigma.knots));
    }
    template <class T>
    using Kernel = PiecewiseLinear::Kernel<T>;
};

struct Relu {
    static constexpr const char* name = "relu";
    static Facts facts(const Activation&) { return {.form = Facts::Form::pieces, .degree = 1}; }
    static void complete(Activation& sigma) {
        sigma.knots = {0.0};
        sigma.jumps = {1.0};
    }
    static void validate(const Activation& sigma) {
        validate_pieces(sigma);
        require(sigma.offset == 0, "offset", "of relu must be 0", sigma.offset);
        require(sigma.left_slope == 0, "left_slope", "of relu must be 0", sigma.left_slope);
        require(sigma.knots == std::vector{0.0}, "knots", "of relu must be [0]", list(sigma.knots));
        require(sigma.jumps == std::vector{1.0}, "jumps", "of relu must be [1]", list(sigma.jumps));
    }

    template <class T>
    struct Kernel {
        MFCORE_INLINE Jet<T> operator()(Vec<T> t) const {
            const IntVec<T> on = t > 0;
            return keep_nan<T>(t,
                               {select<T>(on, t, Vec<T>{}), select<T>(on, fill(T(1)), Vec<T>{}), Vec<T>{}});
        }
    };
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline network::kinds
