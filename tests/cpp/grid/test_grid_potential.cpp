// Moments, potential and risk of masses on a grid: against plain sums, on any number of threads.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>

#include "mfcore/grid/potential.hpp"

using namespace mfcore;

namespace {

/// Numbers between -1 and 1 without a pattern that matters.
std::vector<double> numbers(Index n, double seed) {
    std::vector<double> values(n);
    for (Index i = 0; i < n; ++i) values[i] = std::sin(12.9898 * static_cast<double>(i) + seed * 78.233);
    return values;
}

struct Problem {
    std::vector<double> first, second, core, shift, decay, mass;
    GridFactors factors;
    std::vector<double> b;  // cells x rank
    Index cells, rank;
};

/// n2 = 0: one coordinate.
Problem problem(Index n1, Index a, Index n2, Index b, Index rank) {
    Problem p;
    p.rank = rank;
    p.cells = n1 * std::max<Index>(n2, 1);
    p.first = numbers(n1 * a, 1);
    p.second = numbers(n2 * b, 2);
    p.core = numbers(a * b * rank, 3);
    p.shift = numbers(rank, 4);
    p.decay = numbers(p.cells, 5);
    p.mass = numbers(p.cells, 6);
    p.b = p.first;
    if (n2 > 0) {
        p.b.assign(p.cells * rank, 0);
        for (Index i = 0; i < n1; ++i)
            for (Index j = 0; j < n2; ++j)
                for (Index s = 0; s < a; ++s)
                    for (Index t = 0; t < b; ++t)
                        for (Index k = 0; k < rank; ++k)
                            p.b[(i * n2 + j) * rank + k] +=
                                p.core[(s * b + t) * rank + k] * p.first[i * a + s] * p.second[j * b + t];
    }
    p.factors.first = {p.first.data(), n1, a};
    if (n2 > 0) {
        p.factors.second = {p.second.data(), n2, b};
        p.factors.core = {p.core.data(), a * b, rank};
    }
    p.factors.shift = p.shift.data();
    p.factors.floor = 0.25;
    p.factors.decay = p.decay.data();
    return p;
}

void check(const Problem& p, int threads) {
    GridPotential potential(p.factors, threads);
    std::vector<double> mass(potential.size()), psi(potential.size()), m(p.rank), got(p.cells);
    potential.spread(p.mass.data(), mass.data());
    potential.moments(mass.data(), m.data());
    potential.potential(m.data(), psi.data());
    potential.gather(psi.data(), got.data());
    double risk = 0.25, moments = 0, worst = 0;
    std::vector<double> weights(p.rank);
    for (Index k = 0; k < p.rank; ++k) {
        double sum = 0;
        for (Index i = 0; i < p.cells; ++i) sum += p.b[i * p.rank + k] * p.mass[i];
        moments = std::fmax(moments, std::abs(m[k] - sum));
        weights[k] = sum - p.shift[k];
        risk += weights[k] * weights[k];
    }
    for (Index i = 0; i < p.cells; ++i) {
        double sum = p.decay[i];
        for (Index k = 0; k < p.rank; ++k) sum += p.b[i * p.rank + k] * weights[k];
        worst = std::fmax(worst, std::abs(got[i] - sum));
    }
    // Sums of at most 10^4 terms of size 1 to 100: rounding far below this.
    CHECK(moments < 1e-10);
    CHECK(worst < 1e-9);
    CHECK(std::abs(potential.risk(m.data()) - risk) < 1e-9 * risk);
}

}  // namespace

TEST_CASE("moments, potential and risk of a grid are the plain sums, in one coordinate and in two") {
    for (const Index n : {1, 7, 16, 33, 400})
        for (const Index rank : {1, 5, 8, 18}) check(problem(n, rank, 0, 0, rank), 1);
    for (const auto& [n1, n2] : {std::pair<Index, Index>{1, 1}, {5, 17}, {33, 8}, {40, 61}})
        for (const auto& [a, b] : {std::pair<Index, Index>{1, 1}, {3, 5}, {6, 11}})
            check(problem(n1, a, n2, b, 7), 2);
}

TEST_CASE("the threads change no bit of the moments of a grid") {
    const Problem p = problem(150, 9, 130, 8, 20);
    std::vector<double> one(p.rank), two(p.rank);
    GridPotential first(p.factors, 1), second(p.factors, 2);
    std::vector<double> mass(first.size());
    first.spread(p.mass.data(), mass.data());
    first.moments(mass.data(), one.data());
    second.moments(mass.data(), two.data());
    CHECK(one == two);
}
