// What Python cannot reach: which outputs are wanted, and the vector functions below the activations.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include "base/simd_exp.hpp"
#include "mfcore/network/activation.hpp"
#include "network/kinds.hpp"

namespace {

using namespace mfcore;
using Kind = Activation::Kind;

Activation plain(Kind kind) {
    Activation sigma;
    sigma.kind = kind;
    return sigma;
}

void sine(std::int64_t n, const double* z, double* value, double* slope, double* curvature, void*) {
    CHECK((n > 0 && n % 64 == 0 && value != z && slope != z));
    for (std::int64_t i = 0; i < n; ++i) {
        value[i] = std::sin(z[i]);
        if (slope) slope[i] = std::cos(z[i]);
        if (curvature) curvature[i] = -value[i];
    }
}

std::vector<Activation> every_kind() {
    return {
        plain("linear"),
        {"relu", 0, 0, {0.0}, {1.0}, {}},
        plain("erf"),
        plain("tanh"),
        plain("sigmoid"),
        plain("softplus"),
        plain("gelu"),
        plain("silu"),
        plain("sin"),
        plain("cos"),
        {"piecewise_linear", -2.5, 0.25, {0.5, 1.5}, {10, -10.25}, {}},
        {"polynomial", 0, 0, {}, {}, {1, -2, 0.5, 3}},
        {"hermite", 0, 0, {}, {}, {0.3, 1, -2, 0.5, 0.25}},
        Activation::custom({.function = sine, .strip = 4}),
    };
}

std::vector<double> grid(double from, double to, int count) {
    std::vector<double> x(count);
    for (int i = 0; i < count; ++i) x[i] = from + (to - from) * i / (count - 1);
    return x;
}

/// Largest |f(x) - reference(x)| in units of the last place of the reference.
template <class T, class Function, class Reference>
double worst_ulp(Function f, Reference reference, double from, double to) {
    double worst = 0;
    for (double point : grid(from, to, 20011)) {
        const T x = T(point), got = f(simd::fill(x))[0];
        const long double exact = reference(static_cast<long double>(x));
        // One unit beside 0 is the smallest subnormal.
        const int top = exact == 0 ? std::numeric_limits<T>::min_exponent : std::ilogb(exact) + 1;
        const int exponent = top - std::numeric_limits<T>::digits;
        worst = std::max(worst, static_cast<double>(std::abs(got - exact) / std::ldexp(1.0L, exponent)));
    }
    return worst;
}

template <class T>
void same_bits_sooner(const Activation& sigma) {
    namespace kinds = network::kinds;
    constexpr T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
    std::vector<T> points{0, T(-0.0), inf, -inf, nan, std::numeric_limits<T>::max()};
    for (int k = -40; k <= 40; ++k) points.push_back(T(k) / 8);
    kinds::with_kernel<T>(sigma, [&]<class Kernel>(const Kernel& kernel) {
        if constexpr (kinds::OfVectors<Kernel, T>) {
            for (const T t : points) {
                const kinds::Jet<T> one = kernel(simd::fill(t)),
                                    other = kinds::soon<Kernel, T>(kernel, simd::fill(t));
                CHECK(std::memcmp(&one.value, &other.value, sizeof one.value) == 0);
                CHECK(std::memcmp(&one.slope, &other.slope, sizeof one.slope) == 0);
            }
        }
    });
}

TEST_CASE("the shorter way of a kernel gives the same bits") {
    for (const Activation& sigma : every_kind()) {
        same_bits_sooner<double>(sigma);
        same_bits_sooner<float>(sigma);
    }
}

}  // namespace

TEST_CASE_TEMPLATE("every choice of outputs gives the same numbers", T, double, float) {
    const std::vector<double> points = grid(-7, 7, 61);
    const std::vector<T> z(points.begin(), points.end());
    const Index n = static_cast<Index>(z.size());
    for (const Activation& sigma : every_kind()) {
        CAPTURE(sigma.kind.name());
        std::vector<T> all[3] = {z, z, z};
        evaluate<T>(sigma, n, z.data(), all[0].data(), all[1].data(), all[2].data());
        for (int wanted = 0; wanted < 8; ++wanted) {
            std::vector<T> some[3] = {z, z, z};
            T* out[3] = {};
            for (int k = 0; k < 3; ++k) {
                if (wanted >> k & 1) out[k] = some[k].data();
            }
            evaluate<T>(sigma, n, z.data(), out[0], out[1], out[2]);
            for (int k = 0; k < 3; ++k) {
                T largest = 1;
                for (T x : all[k]) largest = std::max(largest, std::abs(x));
                for (Index i = 0; i < n; ++i) {
                    // The compiler may fuse differently: a few roundings of numbers as large as `largest`.
                    const T expected = out[k] ? all[k][i] : z[i];
                    REQUIRE(std::abs(some[k][i] - expected) <=
                            4 * std::numeric_limits<T>::epsilon() * largest);
                }
            }
        }
    }
}

TEST_CASE("any output may be the argument itself") {
    const std::vector<double> z = grid(-3, 3, 29);
    const Index n = static_cast<Index>(z.size());
    for (const Activation& sigma : every_kind()) {
        CAPTURE(sigma.kind.name());
        std::vector<double> expected[3] = {z, z, z};
        evaluate(sigma, n, z.data(), expected[0].data(), expected[1].data(), expected[2].data());
        for (int alias = 0; alias < 3; ++alias) {
            std::vector<double> got[3] = {z, z, z};
            evaluate(sigma, n, got[alias].data(), got[0].data(), got[1].data(), got[2].data());
            for (int k = 0; k < 3; ++k) CHECK(got[k] == expected[k]);
        }
    }
}

TEST_CASE("a function of the caller's is checked, and asked for no more than it gives") {
    CHECK_THROWS_AS(Activation::custom({}), std::invalid_argument);
    CHECK_THROWS_AS(Activation::custom({.function = sine, .strip = -1}), std::invalid_argument);
    CHECK_THROWS_AS(Activation::custom({.function = sine, .kinks = {1, 0}}), std::invalid_argument);
    const Activation sigma = Activation::custom({.function = sine, .curved = false});
    const double z = 1;
    double value = 0, slope = 0, curvature = 0;
    evaluate(sigma, 1, &z, &value, &slope);
    CHECK(slope == std::cos(1.0));
    CHECK_THROWS_AS(evaluate(sigma, 1, &z, &value, &slope, &curvature), std::invalid_argument);
    CHECK_THROWS_AS(require_analytic(sigma), std::invalid_argument);
}

TEST_CASE("nothing is written behind the last entry") {
    for (const Activation& sigma : every_kind()) {
        std::vector<double> z(40, 0.5), out(40, -77);
        for (Index n = 0; n < 20; ++n) {
            evaluate(sigma, n, z.data(), out.data(), out.data() + 20);
            CHECK(out[n] == -77);
            CHECK(out[20 + n] == -77);
        }
    }
}

TEST_CASE_TEMPLATE("exp, expm1, log1p and erf are within two units in the last place", T, double, float) {
    using simd::Vec;
    const double low = simd::ExpTable<T>::kLowest, high = -low;
    const auto exp = [](Vec<T> x) { return simd::exp<T>(x); };
    const auto expm1 = [](Vec<T> x) { return simd::expm1<T>(x); };
    const auto log1p = [](Vec<T> x) { return simd::log1p_unit<T>(x); };
    const auto erf = [](Vec<T> x) { return simd::erf<T>(x); };
    const auto long_exp = [](long double x) { return std::exp(x); };
    const auto long_expm1 = [](long double x) { return std::expm1(x); };
    const auto long_log1p = [](long double x) { return std::log1p(x); };
    const auto long_erf = [](long double x) { return std::erf(x); };
    CHECK(worst_ulp<T>(exp, long_exp, low, high) < 2);
    CHECK(worst_ulp<T>(exp, long_exp, -1, 1) < 2);
    CHECK(worst_ulp<T>(expm1, long_expm1, low, high) < 2);
    CHECK(worst_ulp<T>(expm1, long_expm1, -1.1, 1.1) < 2);
    CHECK(worst_ulp<T>(expm1, long_expm1, -1e-9, 2e-9) < 2);
    CHECK(worst_ulp<T>(log1p, long_log1p, 1e-3, 1) < 2);
    CHECK(worst_ulp<T>(log1p, long_log1p, 1e-12, 1e-3) < 2);
    CHECK(worst_ulp<T>(erf, long_erf, -6, 7) < 2);
    CHECK(worst_ulp<T>(erf, long_erf, -1e-3, 2e-3) < 2);
}

TEST_CASE_TEMPLATE("exp and expm1 saturate and keep NaN", T, double, float) {
    const T infinity = std::numeric_limits<T>::infinity();
    const auto exp = [](T x) { return simd::exp<T>(simd::fill(x))[0]; };
    const auto expm1 = [](T x) { return simd::expm1<T>(simd::fill(x))[0]; };
    for (T x : {T(1000), T(1e30), infinity}) {
        CHECK(exp(x) == infinity);
        CHECK(exp(-x) == 0);
        CHECK(expm1(x) == infinity);
        CHECK(expm1(-x) == -1);
    }
    CHECK(std::isnan(exp(std::nan(""))));
    CHECK(std::isnan(expm1(std::nan(""))));
    CHECK(exp(0) == 1);
    CHECK(exp(std::log(std::numeric_limits<T>::max()) * (1 - 4 * std::numeric_limits<T>::epsilon())) <
          infinity);
    CHECK(exp(std::log(std::numeric_limits<T>::max()) * (1 + 4 * std::numeric_limits<T>::epsilon())) ==
          infinity);
}
