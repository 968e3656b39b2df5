// The samples of a run are those of the law, however they are cut and whoever draws them.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <vector>

#include "base/parallel.hpp"
#include "sgd/samples.hpp"

namespace {

using namespace mfcore;

template <class T>
void check_rows(const Sampler& law, std::uint64_t seed, Index first, MatView<const T> x, const T* y) {
    std::vector<double> expected(x.rows * x.cols), labels(x.rows);
    law.draw(seed, first, {expected.data(), x.rows, x.cols}, labels.data());
    for (Index k = 0; k < x.rows * x.cols; ++k) CHECK(x.data[k] == static_cast<T>(expected[k]));
    for (Index q = 0; q < x.rows; ++q) CHECK(y[q] == static_cast<T>(labels[q]));
}

template <class T>
void check_pieces(int threads) {
    const Index d = 3, first = 11, rows = 5003, block = 7;  // more pieces than are in memory
    const SamplerPtr law = isotropic_gaussians(d, 0.5);
    sgd::Samples<T> samples(law, 5);
    samples.open(first, rows, block, 100);
    CHECK(samples.piece_of(rows - 1) > 2);
    for (Index at = 0; at < rows; at += block) {
        const Index end = std::min(rows, at + block), piece = samples.piece_of(at);
        base::run_team(threads, [&](int, int) { samples.draw(piece); });
        base::run_team(threads, [&](int, int) { samples.draw(piece + 1); });
        check_rows<T>(*law, 5, first + at, samples.x(at, end), samples.y(at));
    }
}

TEST_CASE("pieces of a segment are its samples, in either precision, for any team") {
    for (const int threads : {1, 3}) {
        check_pieces<double>(threads);
        check_pieces<float>(threads);
    }
}

/// A law that only one thread may draw, and that counts how much of it was.
class Counted final : public Sampler {
public:
    Index dimension() const override { return 2; }
    bool concurrent() const override { return false; }
    void draw(std::uint64_t seed, Index first, Mat x, double* y) const override {
        if (refuses) throw std::runtime_error("not now");
        drawn += x.rows;
        isotropic_gaussians(2, 0)->draw(seed, first, x, y);
    }
    mutable Index drawn = 0;
    mutable bool refuses = false;
};

TEST_CASE("where one thread draws, a segment that grows or comes again is not drawn twice") {
    const auto law = std::make_shared<Counted>();
    sgd::Samples<double> samples(law, 1);
    for (const Index rows : {10, 30, 20}) {
        samples.open(40, rows, 5, 1);
        samples.draw(0);
        check_rows<double>(*isotropic_gaussians(2, 0), 1, 40, samples.x(0, rows), samples.y(0));
    }
    CHECK(law->drawn == 30);
    law->refuses = true;
    CHECK_THROWS(samples.open(90, 10, 5, 1));
    law->refuses = false;
    samples.open(90, 10, 5, 1);
    CHECK(law->drawn == 40);
    check_rows<double>(*isotropic_gaussians(2, 0), 1, 90, samples.x(0, 10), samples.y(0));
}

}  // namespace
