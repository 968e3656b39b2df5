// Steps of SGD on neurons that the caller owns (eq. (6.1)).
#include "mfcore/sgd/step.hpp"

#include <algorithm>
#include <cmath>

#include "base/parallel.hpp"
#include "base/products.hpp"
#include "base/tiles.hpp"
#include "mfcore/base/errors.hpp"
#include "mfcore/base/random.hpp"
#include "mfcore/features/features.hpp"

namespace mfcore::inline sgd {
namespace {

constexpr Index kNeurons = 64;      // neurons per block of a parallel loop and of a partial sum
constexpr Index kFewRows = 32;      // samples whose activations of all neurons are kept
constexpr Index kBlockedRows = 96;  // samples that are worth packing the neurons for

/// A size that cannot make a finite number infinite when added: it is less than half of the last place of the
/// largest.
constexpr double kHarmless = 1e290;

/// Sum of |x_i|; it is not finite if some x_i is not.
double sum_of_sizes(const double* x, Index n) {
    constexpr Index lanes = simd::kLanes<double>;
    simd::Vec<double> sum{};
    Index i = 0;
    for (; i + lanes <= n; i += lanes) {
        const simd::Vec<double> at = simd::load(x + i);
        sum += simd::select<double>(at < 0, -at, at);
    }
    double total = simd::sum<double>(sum);
    for (; i < n; ++i) total += std::abs(x[i]);
    return total;
}

bool all_finite(Mat theta) {
    for (Index i = 0; i < theta.rows; ++i)
        for (Index j = 0; j < theta.cols; ++j)
            if (!std::isfinite(theta(i, j))) return false;
    return true;
}

double fastest(const Rates& rates) { return std::max({rates.a, rates.b, rates.w}); }

/// Whether weight decay and noise alone keep finite numbers finite.
bool harmless(double h, const StepParams& params) {
    const double rate = fastest(params.rates);
    return h * rate * params.ridge <= 2 && params.ridge <= 1e100 &&
           40 * std::sqrt(2 * h * params.temperature * rate) <= kHarmless;
}

/// One step (eq. (6.1)) in the caller's rows: nothing is packed, W is read once forward and once backward.
class Step {
public:
    Step(const Network& network, Mat theta, ConstMat x, const StepParams& params)
        : network_(network),
          theta_(theta),
          x_(x),
          params_(params),
          n_(theta.rows),
          d_(x.cols),
          blocks_((n_ + kNeurons - 1) / kNeurons),
          threads_(threads_for(x.rows * n_ * (d_ + 50) / 25, params.threads)),
          value_(x.rows * n_),
          slope_(x.rows * n_),
          partial_(blocks_ * x.rows),
          sizes_(3 * blocks_) {}

    bool predict(const double* y) {
        for_blocks(n_, kNeurons, threads_, [&](Index block, Index begin, Index end) {
            const Index width = end - begin;
            double *const sizes = sizes_.data() + 3 * block, *const of_a = sizes + 2;
            for (Index i = begin; i < end; ++i) *of_a += std::abs(a(i));
            const ConstMat w{theta_.row(begin) + network_.w_at(), width, d_, theta_.stride};
            row_products(x_, w, {value_.data() + begin, x_.rows, width, n_});
            for (Index q = 0; q < x_.rows; ++q) {
                double* z = value_.data() + q * n_ + begin;
                if (network_.has_b())
                    for (Index i = 0; i < width; ++i) z[i] += theta_(begin + i, network_.b_at());
                evaluate<double>(network_.activation, width, z, z, slope_.data() + q * n_ + begin);
                double sum = 0;
                for (Index i = 0; i < width; ++i) sum += a(begin + i) * z[i];
                partial_[block * x_.rows + q] = sum;
                sizes[0] += sum_of_sizes(z, width);
                sizes[1] += sum_of_sizes(slope_.data() + q * n_ + begin, width);
            }
        });
        bool finite = true;
        error_.resize(x_.rows);
        for (Index q = 0; q < x_.rows; ++q) {
            double f = 0;
            for (Index block = 0; block < blocks_; ++block) f += partial_[block * x_.rows + q];
            error_[q] = (y[q] - f / static_cast<double>(n_)) / static_cast<double>(x_.rows);
            finite = finite && std::isfinite(error_[q]);
        }
        return finite;
    }

    /// Whether no update of size h, after predict(), can leave the finite numbers. Sums stand for the largest
    /// of their terms, so that this costs two additions beside each activation.
    bool bounded(double h) const {
        double values = 0, slopes = 0, a = 0, inputs = 1;
        for (Index block = 0; block < blocks_; ++block) {
            values += sizes_[3 * block];
            slopes += sizes_[3 * block + 1];
            a += sizes_[3 * block + 2];
        }
        for (Index q = 0; q < x_.rows; ++q) inputs += sum_of_sizes(x_.row(q), d_);
        const double errors = sum_of_sizes(error_.data(), x_.rows),
                     speed = std::max(1.0, h) * std::max(1.0, fastest(params_.rates));
        return speed * errors * (values + a * (1 + slopes) * inputs) <= kHarmless;
    }

    /// theta += h [sum_q e_q grad sigma*(x_q; theta) - lambda theta].
    void move(double h) {
        const double keep = 1 - h * params_.rates.w * params_.ridge;
        for_blocks(n_, kNeurons, threads_, [&](Index, Index begin, Index end) {
            for (Index i = begin; i < end; ++i) {
                double sum_a = 0, sum_b = 0;
                const double factor = a(i);
                for (Index q = 0; q < x_.rows; ++q) {
                    const double slope = error_[q] * factor * slope_[q * n_ + i];
                    sum_a += error_[q] * value_[q * n_ + i];
                    sum_b += slope;
                    slope_[q * n_ + i] = h * params_.rates.w * slope;
                }
                if (network_.output == Output::trained) pull(theta_(i, 0), h * params_.rates.a, sum_a);
                if (network_.trains_b()) pull(theta_(i, network_.b_at()), h * params_.rates.b, sum_b);
            }
            for (Index i = begin; i < end; i += 4) {
                if (i + 4 <= end)
                    add_samples<4>(i, keep);
                else
                    for (Index last = i; last < end; ++last) add_samples<1>(last, keep);
            }
        });
    }

private:
    double a(Index i) const { return network_.has_a() ? theta_(i, 0) : 1.0; }
    void pull(double& entry, double h, double slope) const {
        entry = (1 - h * params_.ridge) * entry + h * slope;
    }

    /// w_i <- keep w_i + sum_q slope_qi x_q for C neurons, vectors of coordinates at a time.
    template <int C>
    void add_samples(Index i, double keep) {
        constexpr int R = 3;
        constexpr Index lanes = simd::kLanes<double>;
        double* w[C];
        for (int c = 0; c < C; ++c) w[c] = theta_.row(i + c) + network_.w_at();
        const auto vectors = [&]<int V>(Index j, std::integral_constant<int, V>) {
            simd::Vec<double> acc[C][V] = {};
            tiles::accumulate<double, V, C, true>(x_.rows, x_.data + j, x_.stride, slope_.data() + i, n_, 1,
                                                  acc);
            for (int c = 0; c < C; ++c)
                for (int v = 0; v < V; ++v) {
                    double* at = w[c] + j + v * lanes;
                    simd::store(at, keep * simd::load(at) + acc[c][v]);
                }
        };
        Index j = 0;
        for (; j + R * lanes <= d_; j += R * lanes) vectors(j, std::integral_constant<int, R>{});
        for (; j + lanes <= d_; j += lanes) vectors(j, std::integral_constant<int, 1>{});
        for (; j < d_; ++j) {
            for (int c = 0; c < C; ++c) {
                double sum = 0;
                for (Index q = 0; q < x_.rows; ++q) sum += slope_[q * n_ + i + c] * x_(q, j);
                w[c][j] = keep * w[c][j] + sum;
            }
        }
    }

    const Network& network_;
    Mat theta_;
    ConstMat x_;
    const StepParams& params_;
    Index n_, d_, blocks_;
    int threads_;
    std::vector<double> value_, slope_;  // samples x neurons
    std::vector<double> partial_, error_;
    std::vector<double> sizes_;  // of values, slopes and a, by blocks
};

/// A step with many samples: the kernel of population gradients, then one move.
class LongStep {
public:
    LongStep(const Network& network, Mat theta, ConstMat x, const StepParams& params)
        : network_(network), theta_(theta), x_(x), params_(params), gradient_(theta.rows * theta.cols) {}

    bool predict(const double* y) {
        const Measure rho{theta_};
        double risk = 0;
        PotentialOut out;
        out.gradient = gradient_.data();
        out.risk = &risk;
        potential(network_, theta_, &rho, *finite_law(x_, y), 0, x_.rows, out, {params_.threads, {}});
        return std::isfinite(risk);
    }

    bool bounded(double h) const {
        const double sum = sum_of_sizes(gradient_.data(), static_cast<Index>(gradient_.size()));
        return std::max(1.0, h) * std::max(1.0, fastest(params_.rates)) * sum <= kHarmless &&
               params_.ridge <= 1;  // ridge theta is formed before it is multiplied by h
    }

    void move(double h) {
        const Rates& rates = params_.rates;
        for_blocks(theta_.rows, kNeurons, threads_for(theta_.rows * theta_.cols, params_.threads),
                   [&](Index, Index begin, Index end) {
                       for (Index i = begin; i < end; ++i) {
                           const double* g = gradient_.data() + i * theta_.cols;
                           const auto pull = [&](Index j, double speed) {
                               theta_(i, j) -= h * speed * (g[j] + params_.ridge * theta_(i, j));
                           };
                           if (network_.output == Output::trained) pull(0, rates.a);
                           if (network_.trains_b()) pull(network_.b_at(), rates.b);
                           for (Index j = network_.w_at(); j < theta_.cols; ++j) pull(j, rates.w);
                       }
                   });
    }

private:
    const Network& network_;
    Mat theta_;
    ConstMat x_;
    const StepParams& params_;
    std::vector<double> gradient_;
};

/// Add the noise of a step, with the same numbers as in every other rung: entry j of neuron i has number i D
/// + j of its step.
void add_noise(const Network& network, Mat theta, double h, Index step, const StepParams& params) {
    const auto amplitude = [&](double rate) { return std::sqrt(2 * h * params.temperature * rate); };
    const double a = network.output == Output::trained ? amplitude(params.rates.a) : 0;
    const double b = network.trains_b() ? amplitude(params.rates.b) : 0, w = amplitude(params.rates.w);
    const random::Stream stream{params.seed, random::Purpose::langevin, static_cast<std::uint64_t>(step)};
    for_blocks(theta.rows, kNeurons, threads_for(4 * theta.rows * theta.cols, params.threads),
               [&](Index, Index begin, Index end) {
                   std::vector<double> g((end - begin) * theta.cols);
                   random::normals(stream, static_cast<std::uint64_t>(begin * theta.cols),
                                   static_cast<Index>(g.size()), g.data());
                   const double* next = g.data();
                   for (Index i = begin; i < end; ++i) {
                       for (Index j = 0; j < theta.cols; ++j) {
                           const bool is_a = network.has_a() && j == 0;
                           theta(i, j) += (is_a ? a : j < network.w_at() ? b : w) * *next++;
                       }
                   }
               });
}

/// Project w to the unit sphere, w/|w|; a neuron with w = 0 has no direction, and stays.
void normalise(const Network& network, Mat theta) {
    const Index at = network.w_at(), d = theta.cols - at;
    for (Index i = 0; i < theta.rows; ++i) {
        double* w = theta.row(i) + at;
        double square = dot(w, w, d);
        if (!std::isnormal(square)) {  // |w| is beyond 1e154, or below 1e-154
            const double size = sum_of_sizes(w, d) / static_cast<double>(d);
            if (!(size > 0 && std::isfinite(size))) continue;
            for (Index j = 0; j < d; ++j) w[j] /= size;
            square = dot(w, w, d);
        }
        const double inverse = 1 / std::sqrt(square);
        for (Index j = 0; j < d; ++j) w[j] *= inverse;
    }
}

/// Do a step by one of the two classes above, checking it: a step that could leave the finite numbers is
/// looked at afterwards, and taken back.
template <class Kind>
bool do_step(Kind now, const Network& network, Mat theta, const double* y, double h, Index step,
             const StepParams& params) {
    if (!now.predict(y)) return false;
    const bool doubtful = !(now.bounded(h) && harmless(h, params));
    std::vector<double> before;
    if (doubtful)
        for (Index i = 0; i < theta.rows; ++i)
            before.insert(before.end(), theta.row(i), theta.row(i) + theta.cols);
    now.move(h);
    if (params.temperature > 0) add_noise(network, theta, h, step, params);
    if (network.sphere) normalise(network, theta);
    if (!doubtful || all_finite(theta)) return true;
    for (Index i = 0; i < theta.rows; ++i)
        std::copy_n(before.data() + i * theta.cols, theta.cols, theta.row(i));
    return false;
}

}  // namespace

bool sgd_step(const Network& network, Mat theta, ConstMat x, const double* y, double h, Index step,
              const StepParams& params) {
    require(x.rows > 0, "x", "must have at least one row", x.rows);
    require(theta.cols == network.row(x.cols), "theta", "has the wrong number of columns", theta.cols);
    if (x.rows > kFewRows)
        return do_step(LongStep(network, theta, x, params), network, theta, y, h, step, params);
    return do_step(Step(network, theta, x, params), network, theta, y, h, step, params);
}

StepsDone sgd_run(const Network& network, Mat theta, ConstMat x, const double* y, const double* h,
                  Index first, const StepParams& params, const StopPredicate& wants_stop) {
    Index done = 0;
    bool finite = true;
    if (x.rows >= kBlockedRows && params.temperature == 0 && !network.sphere) {
        SgdParams sgd;
        sgd.steps = [&](Index begin, Index count, double* out) { std::copy_n(h + begin, count, out); };
        sgd.ridge = params.ridge;
        sgd.rates = params.rates;
        const auto run = make_sgd<double>(network, theta, finite_law(x, y), 0, std::move(sgd));
        const Index whole = x.rows / run->block_steps() * run->block_steps();
        run->run(whole, params.threads, wants_stop);
        done = run->step();
        run->theta(theta);
        if (done < whole && run->diverged_at() < 0) return {done, true};
    }
    StopPoll stop(wants_stop);
    for (; done < x.rows && !stop(); ++done) {
        finite = sgd_step(network, theta, x.middle_rows(done, 1), y + done, h[done], first + done, params);
        if (!finite) break;
    }
    return {done, finite};
}

}  // namespace mfcore::inline sgd
