// Chi-squared random numbers at addresses (seed, purpose, step, item), by Marsaglia and Tsang.
#include <algorithm>
#include <cmath>

#include "mfcore/base/errors.hpp"
#include "mfcore/base/random.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base::random {
namespace {

constexpr int kAttempts = 24;
constexpr std::uint64_t kApart = std::uint64_t{1} << 40;  // items between attempts

/// Whether Marsaglia and Tsang's test accepts the cube of 1 + c x, made of a normal x; u is uniform.
bool accepted(double x, double cube, double d, double u) {
    if (cube <= 0) return false;
    const double square = x * x;
    return u < 1 - 0.0331 * square * square || std::log(u) < square / 2 + d * (1 - cube + std::log(cube));
}

}  // namespace

void chi_squares(const Stream& normal, const Stream& uniform, double degrees, std::uint64_t first,
                 Index count, double* out) {
    require(degrees > 0 && std::isfinite(degrees), "degrees", "must be finite and > 0", degrees);
    require(count >= 0, "count", "must be >= 0", count);
    require(first + static_cast<std::uint64_t>(count) <= kApart, "first", "must be < 2^40", first);
    // Half of it is Gamma(a); Gamma(a) = Gamma(a + 1) U^{1/a}.
    const double a = degrees / 2;
    const bool low = a < 1;
    const double d = (low ? a + 1 : a) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
    constexpr Index kChunk = 256;
    double x[kChunk], u[kChunk];
    for (Index begin = 0; begin < count; begin += kChunk, first += kChunk) {
        const Index n = std::min(kChunk, count - begin);
        normals(normal, first, n, x);
        uniforms(uniform, first, n, u);
        for (Index k = 0; k < n; ++k) {
            const auto cube = [&] { return (1 + c * x[k]) * (1 + c * x[k]) * (1 + c * x[k]); };
            double v = cube();
            for (int attempt = 1; attempt < kAttempts && !accepted(x[k], v, d, u[k]); ++attempt) {
                const std::uint64_t item =
                    static_cast<std::uint64_t>(attempt) * kApart + first + static_cast<std::uint64_t>(k);
                normals(normal, item, 1, x + k);
                uniforms(uniform, item, 1, u + k);
                v = cube();
            }
            out[begin + k] = 2 * d * std::abs(v);
        }
        if (!low) continue;
        uniforms(uniform, kAttempts * kApart + first, n, u);
        for (Index k = 0; k < n; ++k) out[begin + k] *= std::pow(u[k], 1 / a);
    }
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline base::random
