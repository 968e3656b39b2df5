// Known answers of the cipher, and accuracy of the packet functions under Box-Muller; the distributions are
// tested from Python.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "base/simd_log.hpp"
#include "mfcore/base/random.hpp"

using namespace mfcore;
using random::PhiloxBlock;
using random::Purpose;
using random::Stream;

namespace {

// Largest error of log_positive over x, in units of the last place of the true value (computed in long
// double).
template <class T>
double worst_log_error(const std::vector<T>& x) {
    double worst = 0;
    for (const T each : x) {
        const T got = simd::log_positive<T>(simd::fill<T>(each))[0];
        const long double want = std::log(static_cast<long double>(each));
        const T near = std::abs(static_cast<T>(want));
        const T ulp = std::nextafter(near, std::numeric_limits<T>::infinity()) - near;
        worst = std::max(worst, static_cast<double>(std::abs(got - want) / ulp));
    }
    return worst;
}

// Arguments spread over (0, 1]: everywhere, towards 0 and towards 1, with the places where exponents change.
template <class T>
std::vector<T> arguments() {
    std::vector<T> x = {T{1}, std::sqrt(T{0.5}), std::nextafter(std::sqrt(T{0.5}), T{0}),
                        std::numeric_limits<T>::min()};
    for (int k = 1; k < 20000; ++k) x.push_back(static_cast<T>(k) / T{20000});
    for (int k = 1; k < 2000; ++k) {
        x.push_back(T{1} - static_cast<T>(k) * std::numeric_limits<T>::epsilon() / 2);
        x.push_back(static_cast<T>(k) * std::numeric_limits<T>::epsilon() / 2);
    }
    return x;
}

template <class T>
double worst_circle_error() {
    double worst = 0;
    for (int k = -5000; k <= 5000; ++k) {
        const T f = static_cast<T>(k) / T{10000};
        const simd::CosSin<T> got = simd::cos_sin_quarter<T>(simd::fill<T>(f));
        const long double angle = std::acos(-1.0L) / 2 * f;
        const long double s = std::sin(angle), c = std::cos(angle);
        const long double in_sin = k == 0 ? std::abs(got.sin[0]) : std::abs(got.sin[0] / s - 1);
        worst =
            std::max({worst, static_cast<double>(in_sin), static_cast<double>(std::abs(got.cos[0] / c - 1))});
    }
    return worst / static_cast<double>(std::numeric_limits<T>::epsilon());
}

}  // namespace

TEST_CASE("philox reproduces the published known answers") {
    constexpr std::uint32_t ones = 0xffffffff;
    CHECK(random::philox4x32({0, 0, 0, 0}, {0, 0}) ==
          PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    CHECK(random::philox4x32({ones, ones, ones, ones}, {ones, ones}) ==
          PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    CHECK(random::philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
          PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("the packet logarithm is good to a few units in the last place, also near 1") {
    // s loses up to 1 ulp to its sum and its quotient, the two last sums half a unit each; the sum may halve
    // the exponent.
    CHECK(worst_log_error(arguments<double>()) < 3);
    CHECK(worst_log_error(arguments<float>()) < 3);
}

TEST_CASE("packet sine and cosine of a quarter turn are good to a few units in the last place") {
    CHECK(worst_circle_error<double>() < 2);  // in epsilons: the polynomial, its leading term and one product
    CHECK(worst_circle_error<float>() < 2);
}

TEST_CASE("numbers beyond 2^36 items and 2^32 steps have addresses of their own") {
    const auto first_of = [](std::uint64_t first, std::uint64_t step) {
        double u = 0;
        random::uniforms({1, Purpose::probe, step}, first, 1, &u);
        return u;
    };
    const std::vector<double> u = {first_of(0, 0), first_of(std::uint64_t{1} << 36, 0),
                                   first_of(~std::uint64_t{0}, 0), first_of(0, std::uint64_t{1} << 32),
                                   first_of(0, (std::uint64_t{1} << 56) - 1)};
    for (std::size_t i = 0; i < u.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) CHECK(u[i] != u[j]);
    }
}

TEST_CASE("a step that has no address is refused, and nothing is written when nothing is asked for") {
    double untouched = 5;
    CHECK_THROWS_AS(random::normals({1, Purpose::probe, std::uint64_t{1} << 56}, 0, 1, &untouched),
                    std::invalid_argument);
    random::normals({1, Purpose::probe, 0}, 7, 0, &untouched);
    random::signs({1, Purpose::probe, 0}, 7, 0, &untouched);
    random::permutation({1, Purpose::probe, 0}, 0, nullptr);
    CHECK(untouched == 5);
}
