// Predictions, potentials and their gradients as sums over samples (eqs. (2.1) to (2.4)), tile by tile.
#include "mfcore/features/features.hpp"

#include <memory>

#include "base/parallel.hpp"
#include "base/scratch.hpp"
#include "base/shares.hpp"
#include "data/chunks.hpp"
#include "features/weighed.hpp"
#include "network/neurons.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline features {
namespace {

/// Number of samples that pass through all tiles together: enough for the backward product to amortise its
/// loads and stores and for threads to be worth waking, few enough for a core's share of activations and
/// inputs to stay near it.
Index chunk_size(Index neurons, Index d) {
    return std::clamp<Index>((1 << 18) / std::max(neurons, d) / 64 * 64, 64, 4096);
}

/// Values and, if wanted, slopes of every neuron on a chunk of samples, tile after tile.
template <int R>
class Activations {
public:
    using Tiles = NeuronTiles<double, R>;
    static constexpr Index kWidth = Tiles::kWidth;

    Activations(const Tiles& tiles, Index chunk, bool slopes)
        : tiles_(tiles),
          chunk_(chunk),
          values_(tiles.tiles() * chunk * kWidth),
          slopes_(slopes ? values_.size() : 0) {}

    /// Values of tile t, from sample q on.
    double* value(Index t, Index q = 0) { return values_.data() + (t * chunk_ + q) * kWidth; }
    double* slope(Index t, Index q = 0) {
        return slopes_.empty() ? nullptr : slopes_.data() + (t * chunk_ + q) * kWidth;
    }
    /// Fill tile t on the rows of x, and call use(first row, rows) for blocks of them while they are near.
    template <class Use>
    void compute(const Activation& sigma, Index t, ConstMat x, Use&& use) {
        for (Index q = 0; q < x.rows; q += Tiles::kNear) {
            const ConstMat rows = x.middle_rows(q, std::min(Tiles::kNear, x.rows - q));
            tiles_.activate(sigma, t, rows, value(t, q), slope(t, q));
            use(q, rows.rows);
        }
    }

private:
    const Tiles& tiles_;
    Index chunk_;
    Scratch<double> values_, slopes_;
};

/// Masses m_i a_i of a measure in tile order: f_q = sum_i masses[i] sigma(z_qi).
template <int R>
Scratch<double> masses_of(const NeuronTiles<double, R>& tiles, const double* weights) {
    Scratch<double> masses(tiles.tiles() * tiles.kWidth, 0.0);
    for (Index i = 0; i < tiles.count(); ++i) {
        const double mass = weights ? weights[i] : 1.0 / static_cast<double>(tiles.count());
        masses[i] = mass * tiles.a(0)[i];
    }
    return masses;
}

/// partial[q] = sum over the neurons of one tile of masses[i] value[q * width + i].
template <int R>
void weigh(Index rows, const double* value, const double* masses, double* partial) {
    constexpr Index lanes = simd::kLanes<double>;
    simd::Vec<double> m[R];
    for (int r = 0; r < R; ++r) m[r] = simd::load(masses + r * lanes);
    const auto products = [&](Index q) {
        simd::Vec<double> sum{};
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) sum += m[r] * simd::load(value + (q * R + r) * lanes);
        return sum;
    };
    Index q = 0;
    for (; q + lanes <= rows; q += lanes) {
        simd::Vec<double> sum[lanes];
#pragma GCC unroll 8
        for (Index k = 0; k < lanes; ++k) sum[k] = products(q + k);
        simd::store(partial + q, simd::sums<double>(sum));
    }
    for (; q < rows; ++q) partial[q] = simd::sum<double>(products(q));
}

/// The sums of a measure on samples, f_q = sum_i m_i a_i sigma(z_qi), tile by tile.
class Field {
public:
    virtual ~Field() = default;
    virtual Index tiles() const = 0;
    /// share[q] = the sum over the neurons of tile t, for the rows q of x.
    virtual void share_of(Index t, ConstMat x, double* share) const = 0;
};

template <int R>
class FieldOf final : public Field {
public:
    FieldOf(const Network& network, const Measure& rho, int threads)
        : sigma_(network.activation),
          tiles_(network, rho.points, threads),
          masses_(masses_of(tiles_, rho.weights)) {}

    Index tiles() const override { return tiles_.tiles(); }
    void share_of(Index t, ConstMat x, double* share) const override {
        using Tiles = NeuronTiles<double, R>;
        alignas(64) double value[Tiles::kNear * Tiles::kWidth];
        for (Index q = 0; q < x.rows; q += Tiles::kNear) {
            const Index rows = std::min(Tiles::kNear, x.rows - q);
            tiles_.activate(sigma_, t, x.middle_rows(q, rows), value, nullptr);
            weigh<R>(rows, value, &masses_[t * Tiles::kWidth], share + q);
        }
    }

private:
    const Activation& sigma_;
    NeuronTiles<double, R> tiles_;
    Scratch<double> masses_;
};

std::unique_ptr<Field> field_of(const Network& network, const Measure& rho, int threads) {
    return with_tile_width<double>(rho.points.rows, [&](auto width) -> std::unique_ptr<Field> {
        return std::make_unique<FieldOf<width()>>(network, rho, threads);
    });
}

/// f[q] = sum over tiles, in tile order, of their partial sums: the same bits for any number of threads.
void add_partials(Index tiles, Index rows, Index stride, const double* partial, double* f) {
    std::fill(f, f + rows, 0.0);
    for (Index t = 0; t < tiles; ++t)
        for (Index q = 0; q < rows; ++q) f[q] += partial[t * stride + q];
}

/// Sums over samples for one set of neurons: sum_q e_q s_qi, sum_q e_q s'_qi and sum_q e_q s'_qi x_q.
template <int R>
class Projection {
public:
    static constexpr Index kWidth = NeuronTiles<double, R>::kWidth;

    Projection(const NeuronTiles<double, R>& tiles, bool gradient)
        : tiles_(tiles),
          sum_s_(tiles.tiles() * kWidth),
          sum_slope_(gradient && tiles.b(0) ? sum_s_.size() : 0),
          sum_x_(gradient ? sum_s_.size() * tiles.dimension() : 0) {}

    /// Set the sums of tile t to zero: the first call for it, by the thread that will add to them.
    void clear(Index t) {
        const auto zero = [&](Scratch<double>& sums) {
            const Index n = sums.size() / tiles_.tiles();
            std::fill_n(sums.data() + t * n, n, 0.0);
        };
        zero(sum_s_);
        zero(sum_slope_);
        zero(sum_x_);
    }

    /// Add a chunk of samples for tile t; the slopes are overwritten by e_q s'_qi.
    void add(Index t, ConstMat x, const double* e, const double* value, double* slope) {
        const Index first = t * kWidth;
        add_weighed<R>(tiles_.filled(t), x, e, value, slope,
                       {.value = &sum_s_[first],
                        .slope = sum_slope_.empty() ? nullptr : &sum_slope_[first],
                        .x = sum_x_.empty() ? nullptr : &sum_x_[first * tiles_.dimension()]});
    }

    void write(const Network& network, double scale, const PotentialOut& out, int threads) const {
        const Index d = tiles_.dimension(), n = tiles_.count();
        for_shares(tiles_.tiles(), threads_for(n * (d + 1), threads), [&](Index t) {
            const Index begin = t * kWidth;
            for (Index i = begin; i < begin + tiles_.filled(t); ++i) {
                const double a = tiles_.a(0)[i];
                if (out.value) out.value[i] = scale * a * sum_s_[i];
                if (!out.gradient) continue;
                double* row = out.gradient + i * network.row(d);
                if (network.has_a()) row[0] = scale * sum_s_[i];
                if (network.has_b()) row[network.b_at()] = scale * a * sum_slope_[i];
                const double* x = &sum_x_[begin * d + i - begin];
                for (Index j = 0; j < d; ++j) row[network.w_at() + j] = scale * a * x[j * kWidth];
            }
        });
    }

private:
    const NeuronTiles<double, R>& tiles_;
    Scratch<double> sum_s_, sum_slope_, sum_x_;
};

template <int R>
Index potential_of(const Network& network, ConstMat theta, const Measure* rho, const Sampler& sampler,
                   std::uint64_t seed, Index samples, const PotentialOut& out, const RunOptions& options) {
    const Index d = sampler.dimension();
    const bool gradient = out.gradient != nullptr;
    const bool wanted = out.value || gradient;
    // Neurons in their own field, the usual case: their activations serve both passes.
    const bool shared = rho && rho->points.data == theta.data && rho->points.rows == theta.rows &&
                        rho->points.stride == theta.stride;
    const NeuronTiles<double, R> tiles(network, theta, options.threads);
    const auto field = rho && !shared ? field_of(network, *rho, options.threads) : nullptr;
    const Index sources = field ? rho->points.rows : 0;
    const Index chunk = std::min(samples, chunk_size(std::max(tiles.count(), sources), d));
    const int threads = threads_for(activation_cost(chunk, tiles.count() + sources, d), options.threads);

    Activations<R> own(tiles, wanted || shared ? chunk : 0, gradient);
    Projection<R> projection(tiles, gradient);
    const auto masses = shared ? masses_of(tiles, rho->weights) : Scratch<double>{};
    const Index parts = shared ? tiles.tiles() : field ? field->tiles() : 0;
    Scratch<double> f(chunk), e(chunk), partial(parts * chunk);

    double squares = 0;
    ConstMat before;  // the chunk whose activations are there
    const auto project = [&](Index t) {
        if (!wanted) return;
        if (before.rows == 0) return projection.clear(t);
        projection.add(t, before, e.data(), own.value(t), own.slope(t));
    };
    Chunks chunks(sampler, seed, samples, chunk, true, threads, options.wants_stop);
    while (chunks.next()) {
        const ConstMat batch = chunks.x();
        const double* const y = chunks.y();
        const Index rows = batch.rows;
        // The contribution of the previous chunk to the sums waits until here: a tile is fetched once for both, its
        // activations take the place of those just read, and threads meet once a chunk.
        if (wanted || shared) {
            for_shares(tiles.tiles(), threads, [&](Index t) {
                project(t);
                own.compute(network.activation, t, batch, [&](Index q, Index near) {
                    if (shared)
                        weigh<R>(near, own.value(t, q), &masses[t * tiles.kWidth], &partial[t * chunk + q]);
                });
            });
        }
        if (field)
            for_shares(parts, threads, [&](Index t) { field->share_of(t, batch, &partial[t * chunk]); });
        add_partials(parts, rows, chunk, partial.data(), f.data());
        for (Index q = 0; q < rows; ++q) {
            e[q] = f[q] - y[q];
            squares += e[q] * e[q];
        }
        before = batch;
    }
    if (wanted) for_shares(tiles.tiles(), threads, project);
    const Index done = chunks.done();
    const double scale = 1.0 / static_cast<double>(std::max<Index>(done, 1));
    projection.write(network, scale, out, options.threads);
    if (out.risk) *out.risk = scale * squares;
    return done;
}

}  // namespace

void predict(const Network& network, const Measure& rho, ConstMat x, double* f, int threads) {
    require_matrix(x, "x", 0);
    require(f != nullptr || x.rows == 0, "f", "must not be null", "null");
    require_rows(network, rho.points, x.cols, "measure");
    require(rho.points.rows > 0, "measure", "must not be empty", rho.points.rows);
    const auto field = field_of(network, rho, threads);
    constexpr Index kRows = 64;
    const int team = threads_for(activation_cost(x.rows, rho.points.rows, x.cols), threads);
    for_blocks(x.rows, kRows, team, [&](Index, Index begin, Index end) {
        double share[kRows];
        std::fill(f + begin, f + end, 0.0);
        for (Index t = 0; t < field->tiles(); ++t) {
            if (t % 64 == 0) check_stop();
            field->share_of(t, x.middle_rows(begin, end - begin), share);
            for (Index q = begin; q < end; ++q) f[q] += share[q - begin];
        }
    });
}

Index potential(const Network& network, ConstMat theta, const Measure* rho, const Sampler& sampler,
                std::uint64_t seed, Index samples, const PotentialOut& out, const RunOptions& options) {
    require(samples > 0, "samples", "must be > 0", samples);
    require_rows(network, theta, sampler.dimension(), "theta");
    if (rho) require_rows(network, rho->points, sampler.dimension(), "measure");
    require(!rho || rho->points.rows > 0, "measure", "must not be empty", 0);
    return with_tile_width<double>(theta.rows, [&](auto width) {
        return potential_of<width()>(network, theta, rho, sampler, seed, samples, out, options);
    });
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline features
