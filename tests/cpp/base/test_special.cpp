// Elementary and normal-distribution functions on packets: accuracy, underflow, independence of lanes.
#include <doctest/doctest.h>

#include <cmath>

#include "base/bivariate.hpp"

using namespace mfcore;

namespace {

/// Largest |ours - theirs| over 4001 points of [from, to], ours on packets of one value.
template <class Ours, class Theirs>
double worst(double from, double to, Ours ours, Theirs theirs) {
    double error = 0;
    for (int i = 0; i <= 4000; ++i) {
        const double x = from + (to - from) * i / 4000;
        error = std::fmax(error, std::abs(ours(special::pack(x))[0] - theirs(x)));
    }
    return error;
}

}  // namespace

TEST_CASE("packet exp, arccos, density and tail have the accuracy they state") {
    const auto std_exp = [](double x) { return std::exp(x); };
    const auto std_acos = [](double x) { return std::acos(x); };
    const auto std_tail = [](double x) { return 0.5 * std::erfc(x * std::sqrt(0.5)); };
    const auto std_density = [](double x) { return special::kInvSqrt2Pi * std::exp(-0.5 * x * x); };
    CHECK(worst(-40, 0, [](Pack x) { return special::exp(x); }, std_exp) < 3e-16);
    CHECK(worst(-1, 1, [](Pack x) { return special::acos(x); }, std_acos) < 5e-16);
    CHECK(worst(-1, -1 + 1e-9, [](Pack x) { return special::acos(x); }, std_acos) < 5e-16);
    CHECK(worst(1 - 1e-9, 1, [](Pack x) { return special::acos(x); }, std_acos) < 5e-16);
    CHECK(worst(-9, 9, [](Pack x) { return special::normal(x).tail; }, std_tail) < 4e-16);
    CHECK(worst(-9, 9, [](Pack x) { return special::normal(x).density; }, std_density) < 2e-16);
}

TEST_CASE("far arguments underflow quietly") {
    CHECK(special::exp(special::pack(-1e300))[0] < 1e-300);
    CHECK(special::normal(special::pack(1e100)).tail[0] < 1e-300);
    CHECK(special::normal(special::pack(-1e100)).tail[0] == 1.0);
    CHECK(special::exp(special::pack(0.0))[0] == 1.0);
}

TEST_CASE("every lane of a packet is computed by itself") {
    Pack x;
    for (Index l = 0; l < kPack; ++l) x[l] = 0.3 * static_cast<double>(l) - 1;
    const Pack tail = special::normal(x).tail;
    for (Index l = 0; l < kPack; ++l)  // the compiler may contract the two calls differently
        CHECK(std::abs(tail[l] - special::normal(special::pack(x[l])).tail[0]) < 3e-16);
}
