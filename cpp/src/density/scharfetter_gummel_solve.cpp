// Scharfetter-Gummel fluxes: tridiagonal solves (eqs. (7.10), (7.11)) and the dissipation.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/parallel.hpp"
#include "base/simd_exp.hpp"
#include "density/scharfetter_gummel.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline density {
namespace {

using Lane = simd::Vec<double>;
using Pair = simd::VecType<double, 16>::type;

template <class V>
V get(const double* p) {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
template <class V>
void put(double* p, V v) {
    std::memcpy(p, &v, sizeof v);
}

struct Transfer {
    Lane up, down;
};

/// B(delta) and B(-delta), B(x) = x / (e^x - 1). The smaller one has full relative accuracy, so that their
/// ratio is e^-delta to rounding; the larger one is the smaller plus |delta|: eq. (7.8).
MFCORE_INLINE Transfer bernoulli(Lane delta) {
    const Lane size = simd::abs<double>(delta);
    const Lane safe = simd::select<double>(size < 1e-200, simd::fill(1e-200), size);  // 0/0 otherwise
    const Lane small = safe / simd::expm1<double>(safe), large = small + size;
    return {simd::select<double>(delta > 0.0, small, large), simd::select<double>(delta > 0.0, large, small)};
}

// The matrix I + dt L has the column sums 1 and off-diagonal entries <= 0. Elimination from both ends towards
// the middle therefore needs no subtraction (as in Grassmann, Taksar, Heyman): every mass has full relative
// accuracy and is positive for every dt. With out and back the rates of a cell to and from its next one,
//   d = 1 + s + dt out,  y_next += dt out y / d,  s_next = dt back (1 + s) / d,
//   x = (y + dt back x_next) / d
// by eq. (7.11). The two halves are independent chains of operations, which hides part of their latency.

/// Solve for n cells in place: y[n] (any number of lanes each), given the rates of its faces.
template <class V, class Rates>
MFCORE_INLINE void solve(Index n, V dt, const Rates& up, const Rates& down, double* y, double* inverse) {
    constexpr Index w = sizeof(V) / sizeof(double);
    const V one = V{} + 1.0;
    const Index middle = n / 2, right = n - 1 - middle;  // cells left of the middle: as many or one more
    V low = V{}, high = V{};                             // s of both chains
    V y_low = get<V>(y), y_high = get<V>(y + (n - 1) * w);
    const auto from_low = [&](Index i) {
        const V out = dt * up(i), back = dt * down(i), inv = one / (one + low + out);
        put(y + i * w, y_low);
        put(inverse + i * w, inv);
        y_low = get<V>(y + (i + 1) * w) + (out * y_low) * inv;
        low = back * ((one + low) * inv);
    };
    for (Index k = 0; k < right; ++k) {
        from_low(k);
        const Index j = n - 1 - k;
        const V out = dt * down(j - 1), back = dt * up(j - 1), inv = one / (one + high + out);
        put(y + j * w, y_high);
        put(inverse + j * w, inv);
        y_high = get<V>(y + (j - 1) * w) + (out * y_high) * inv;
        high = back * ((one + high) * inv);
    }
    if (right < middle) from_low(right);
    // Both chains have reached the middle; each has added what it brings to the cell's own mass.
    V x_low = n == 1 ? y_low : (y_low + (y_high - get<V>(y + middle * w))) / (one + low + high);
    V x_high = x_low;
    put(y + middle * w, x_low);
    if (right < middle) {
        const Index i = middle - 1;
        x_low = (get<V>(y + i * w) + dt * down(i) * x_low) * get<V>(inverse + i * w);
        put(y + i * w, x_low);
    }
    for (Index k = right - 1; k >= 0; --k) {
        const Index j = n - 1 - k;
        x_low = (get<V>(y + k * w) + dt * down(k) * x_low) * get<V>(inverse + k * w);
        x_high = (get<V>(y + j * w) + dt * up(j - 1) * x_high) * get<V>(inverse + j * w);
        put(y + k * w, x_low);
        put(y + j * w, x_high);
    }
}

/// Rates that differ from lane to lane, or are the same for all of them.
struct LaneRates {
    const double* at;
    MFCORE_INLINE Lane operator()(Index i) const { return get<Lane>(at + i * kPackLines); }
};
struct SharedRates {
    const double* at;
    MFCORE_INLINE double operator()(Index i) const { return at[i]; }
};

}  // namespace

/// body(pack, where its numbers begin) for all packs, on several threads where it pays.
template <class Body>
void ScharfetterGummel::for_packs(const Lines& lines, Index nanoseconds, Body&& body) const {
    const int threads = lines.single() ? 1 : threads_for(cells_ * nanoseconds, threads_);
    const Index size = lines.pack_size();
    for_blocks(lines.packs(), 1, threads, [&](Index pack, Index, Index) { body(pack, pack * size); });
}

void ScharfetterGummel::set_potential(const double* psi) {
    for (Lines& lines : lines_) {
        const Index faces = lines.length - 1;
        if (lines.single()) {
            // Lanes are consecutive faces.
            lines.gather(0, psi, first_.data());
            const double* line = first_.data();
            const auto block = [&](const double* here, const double* log_ratio, Index i, Index n, double* up,
                                   double* down) {
                const Lane delta = beta_ * (get<Lane>(here + 1) - get<Lane>(here)) - get<Lane>(log_ratio);
                const Transfer b = bernoulli(delta);
                for (Index k = 0; k < n; ++k) {
                    up[k] = lines.scale_up[i + k] * b.up[k];
                    down[k] = lines.scale_down[i + k] * b.down[k];
                }
            };
            Index i = 0;
            for (; i + kPackLines <= faces; i += kPackLines)
                block(line + i, &lines.log_ratio[i], i, kPackLines, &lines.up[i], &lines.down[i]);
            if (i < faces) {
                double here[kPackLines + 1] = {}, log_ratio[kPackLines] = {};
                std::copy(line + i, line + faces + 1, here);
                std::copy_n(&lines.log_ratio[i], faces - i, log_ratio);
                block(here, log_ratio, i, faces - i, &lines.up[i], &lines.down[i]);
            }
            continue;
        }
        for_packs(lines, 3, [&](Index pack, Index at) {
            double* here = &first_[at];
            lines.gather(pack, psi, here);
            for (Index i = 0; i < faces; ++i) {
                const Lane rise = get<Lane>(here + (i + 1) * kPackLines) - get<Lane>(here + i * kPackLines);
                const Transfer b = bernoulli(beta_ * rise - lines.log_ratio[i]);
                put(&lines.up[at + i * kPackLines], lines.scale_up[i] * b.up);
                put(&lines.down[at + i * kPackLines], lines.scale_down[i] * b.down);
            }
        });
    }
}

double ScharfetterGummel::fastest() const {
    double largest = 0;
    for (const Lines& lines : lines_)
        for (const std::vector<double>* rates : {&lines.up, &lines.down})
            for (const double rate : *rates) largest = std::max(largest, rate);
    return largest;
}

void ScharfetterGummel::step(double dt, const double* mass, double* next) {
    if (lines_.empty() && next != mass) std::copy_n(mass, size(), next);
    const double* from = mass;
    for (Lines& lines : lines_) {
        for_packs(lines, 5, [&](Index pack, Index at) {
            double* y = &first_[at];
            lines.gather(pack, from, y);
            if (lines.single())
                solve(lines.length, dt, SharedRates{&lines.up[at]}, SharedRates{&lines.down[at]}, y,
                      &second_[at]);
            else
                solve(lines.length, simd::fill(dt), LaneRates{&lines.up[at]}, LaneRates{&lines.down[at]}, y,
                      &second_[at]);
            lines.scatter(pack, y, next);
        });
        from = next;
    }
}

void ScharfetterGummel::two_steps(const double* mass, double dt, double* next, double other_dt,
                                  double* other_next) {
    if (lines_.size() != 1 || !lines_[0].single()) {
        step(dt, mass, next);
        step(other_dt, mass, other_next);
        return;
    }
    const Lines& line = lines_[0];
    const Index n = line.length;
    for (Index i = 0; i < n; ++i) first_[2 * i] = first_[2 * i + 1] = mass[i * line.stride];
    solve(n, Pair{dt, other_dt}, SharedRates{line.up.data()}, SharedRates{line.down.data()}, first_.data(),
          second_.data());
    for (Index i = 0; i < n; ++i) {
        next[i * line.stride] = first_[2 * i];
        other_next[i * line.stride] = first_[2 * i + 1];
    }
}

double ScharfetterGummel::dissipation(const double* mass, const double* mu) {
    double sum = 0;
    for (const Lines& lines : lines_) {
        const Index lanes = lines.single() ? 1 : kPackLines;
        for_packs(lines, 3, [&](Index pack, Index at) {
            double *m = &first_[at], *height = &second_[at];
            lines.gather(pack, mass, m);
            lines.gather(pack, mu, height);
            const Index used = std::min(lanes, lines.count() - pack * lanes);
            double total = 0;
            for (Index i = 0; i + 1 < lines.length; ++i) {
                for (Index k = 0; k < used; ++k) {
                    const Index here = i * lanes + k, next = here + lanes;
                    const double flux = lines.up[at + here] * m[here] - lines.down[at + here] * m[next];
                    total += flux * (height[here] - height[next]);
                }
            }
            partial_[pack] = total;
        });
        sum += std::accumulate(partial_.begin(), partial_.begin() + lines.packs(), 0.0);
    }
    return sum;
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline density
