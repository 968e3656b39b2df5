#pragma once
// The neurons of a run of SGD apart from its steps: their start, and their predictions meanwhile.
#include <utility>
#include <vector>

#include "mfcore/sgd/sgd.hpp"
#include "network/neurons.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline sgd {

/// The neurons at step 0: rows in the caller's memory, or a function that hands them out.
class Start {
public:
    Start() = default;
    explicit Start(ConstMat rows) : rows_(rows), count_(rows.rows) {}
    Start(Index count, StartRows get) : get_(std::move(get)), count_(count) {}

    /// True if a run can begin again here.
    bool there() const { return get_ || rows_.rows > 0; }
    /// Forget rows in the caller's memory.
    void forget_rows() { rows_ = {}; }

    template <class T, int R>
    NeuronTiles<T, R> tiles(const Network& network, Index d, int threads) const {
        bool finite = true;
        NeuronTiles<T, R> made = packed<T, R>(network, d, threads, finite);
        require(finite, "start", "must be finite in the precision of the run", "infinity");
        return made;
    }

private:
    template <class T, int R>
    NeuronTiles<T, R> packed(const Network& network, Index d, int threads, bool& finite) const {
        if (!get_) {
            NeuronTiles<T, R> made(network, rows_, threads);
            finite = made.finite(threads);
            return made;
        }
        const auto get = [&](Index first, Index count) {
            const ConstMat rows = get_(first, count);
            require(rows.rows == count, "start", "must hand out as many rows as asked for", rows.rows);
            require_rows(network, rows, d, "start");
            return rows;
        };
        return NeuronTiles<T, R>(network, count_, d, get, threads, finite);
    }

    ConstMat rows_;
    StartRows get_;
    Index count_ = 0;
};

/// f[q] = N^-1 sum_i a_i sigma(<w_i, x_q> + b_i), eq. (1.1), summed over blocks of tiles in their order.
template <class T, int R>
void predict_by_tiles(const Network& network, const NeuronTiles<T, R>& tiles, ConstMat x, double* f,
                      int threads) {
    constexpr Index kTiles = 64, kRows = 64, width = NeuronTiles<T, R>::kWidth, lanes = simd::kLanes<T>;
    std::vector<T> inputs(x.rows * x.cols);
    for (Index q = 0; q < x.rows; ++q) std::copy_n(x.row(q), x.cols, &inputs[q * x.cols]);
    const Index blocks = (tiles.tiles() + kTiles - 1) / kTiles;
    std::vector<double> partial(blocks * x.rows);
    const int team = threads_for(activation_cost(x.rows, tiles.count(), x.cols), threads);
    for_blocks(tiles.tiles(), kTiles, team, [&](Index block, Index begin, Index end) {
        Scratch<T> value(kRows * width);
        for (Index t = begin; t < end; ++t)
            for (Index q = 0; q < x.rows; q += kRows) {
                const Index rows = std::min(kRows, x.rows - q);
                tiles.activate(network.activation, t, {&inputs[q * x.cols], rows, x.cols}, value.data(),
                               static_cast<T*>(nullptr));
                for (Index k = 0; k < rows; ++k) {
                    simd::Vec<T> sum{};
                    for (Index i = 0; i < width; i += lanes)
                        sum += simd::load(tiles.a(t) + i) * simd::load(value.data() + k * width + i);
                    partial[block * x.rows + q + k] += static_cast<double>(simd::sum<T>(sum));
                }
            }
    });
    for (Index q = 0; q < x.rows; ++q) {
        double sum = 0;
        for (Index block = 0; block < blocks; ++block) sum += partial[block * x.rows + q];
        f[q] = sum / static_cast<double>(tiles.count());
    }
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline sgd
