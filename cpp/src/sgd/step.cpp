// Steps of SGD on neurons that the caller owns (eq. (6.1)).
#include "mfcore/sgd/step.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/parallel.hpp"
#include "base/products.hpp"
#include "mfcore/base/errors.hpp"
#include "mfcore/base/finite.hpp"
#include "mfcore/base/random.hpp"
#include "sgd/few_rows.hpp"
#include "sgd/in_place.hpp"
#include "sgd/long_step.hpp"
#include "sgd/many_rows.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline sgd {
namespace {

constexpr Index kBlockedRows = 96;       // samples that are worth packing the neurons for
constexpr Index kBlockedRowsOfMany = 8;  // and where each would be a pass through memory
constexpr Index kMany = Index{1} << 18;  // numbers in theta from which that is so
// Rows are packed at each block of a run in place, once in all of others. Measured: with 32 steps a block it is
// 1.05 times as fast to pack each time, with 8 slower from six blocks on.
constexpr Index kLongBlock = 32, kFewBlocks = 4;
constexpr Index kNarrow = 256;  // neurons that are too few to be shared out
constexpr Index kLong = 4096;   // samples that are many even for them

/// True if weight decay and noise alone keep finite numbers finite.
bool harmless(double h, const StepParams& params) {
    const double rate = fastest(params.rates);
    return h * rate * params.ridge <= 2 && params.ridge <= 1e100 &&
           40 * std::sqrt(2 * h * params.temperature * rate) <= kHarmless;
}

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
                   random::normals(stream,
                                   static_cast<std::uint64_t>((params.first_neuron + begin) * theta.cols),
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

/// The second half of a step by FewRows, ManyRows or LongStep, which has its errors: a step that could leave the
/// finite numbers is looked at afterwards, and taken back.
template <class Kind>
bool finish(Kind& now, const Network& network, Mat theta, double h, Index step, const StepParams& params) {
    const bool doubtful = !(now.bounded(h) && harmless(h, params));
    std::vector<double> before;
    if (doubtful)
        for (Index i = 0; i < theta.rows; ++i)
            before.insert(before.end(), theta.row(i), theta.row(i) + theta.cols);
    now.move(h);
    if (params.temperature > 0) add_noise(network, theta, h, step, params);
    if (network.sphere) normalise(network, theta);
    if (!doubtful || all_finite(theta, params.threads)) return true;
    for (Index i = 0; i < theta.rows; ++i)
        std::copy_n(before.data() + i * theta.cols, theta.cols, theta.row(i));
    return false;
}

template <class Kind>
bool do_step(Kind&& now, const Network& network, Mat theta, const double* y, double h, Index step,
             const StepParams& params) {
    return now.predict(y) && finish(now, network, theta, h, step, params);
}

/// Throw std::invalid_argument unless steps of these sizes can be done.
void check(const Network& network, Mat theta, ConstMat x, const double* h, Index sizes, Index step,
           const StepParams& params) {
    require_matrix(x, "x", 0);
    require_rows(network, theta, x.cols, "theta");
    require_matrix(theta, "theta");
    require(h != nullptr || sizes == 0, "h", "must not be null", "null");
    for (Index k = 0; k < sizes; ++k)
        require(h[k] >= 0 && std::isfinite(h[k]), "h", "must be finite and >= 0", h[k]);
    require(step >= 0, "step", "must be >= 0", step);
    require(params.threads >= 0, "threads", "must be >= 0", params.threads);
    require(params.ridge >= 0, "ridge", "must be >= 0", params.ridge);
    require(params.temperature >= 0, "temperature", "must be >= 0", params.temperature);
    require(params.first_neuron >= 0, "first_neuron", "must be >= 0", params.first_neuron);
    const Rates& rates = params.rates;
    for (const double rate : {rates.a, rates.b, rates.w}) require(rate >= 0, "rates", "must be >= 0", rate);
}

bool checked_step(const Network& network, Mat theta, ConstMat x, const double* y, double h, Index step,
                  const StepParams& params) {
    const auto with = [&](auto now) { return do_step(std::move(now), network, theta, y, h, step, params); };
    if (FewRows::suits(x.rows, theta.rows)) return with(FewRows(network, theta, x, params));
    if (theta.rows <= kNarrow && x.rows >= kLong) return with(LongStep(network, theta, x, params));
    return with_tile_width<double>(
        theta.rows, [&](auto width) { return with(ManyRows<width()>(network, theta, x, params)); });
}

/// True if the blocks of a run are done in the caller's rows: they are long or few, and no function of the user's,
/// which may throw, would leave some of them done.
bool suits_in_place(const Network& network, Mat theta, ConstMat x, const double* h, const SgdParams& sgd,
                    const StepParams& params) {
    const Index block = choose_steps(network, sgd, x.cols);
    return (block >= kLongBlock || x.rows <= kFewBlocks * block) && !is_of_long_rows(theta.rows, x.cols) &&
           !network.activation.span.function && harmless(*std::max_element(h, h + x.rows), params);
}

/// The steps from number `done` on. Returns how many are done then.
StepsDone one_by_one(const Network& network, Mat theta, ConstMat x, const double* y, const double* h,
                     Index first, const StepParams& params, Index done, const StopPredicate& wants_stop) {
    StopPoll stop(wants_stop);
    for (; done < x.rows && !stop(); ++done)
        if (!checked_step(network, theta, x.middle_rows(done, 1), y + done, h[done], first + done, params))
            return {done, false};
    return {done, true};
}

}  // namespace

bool sgd_step(const Network& network, Mat theta, ConstMat x, const double* y, double h, Index step,
              const StepParams& params) {
    require_matrix(x, "x");
    check(network, theta, x, &h, 1, step, params);
    require(y != nullptr, "y", "must not be null", "null");
    return checked_step(network, theta, x, y, h, step, params);
}

struct SplitStep::Halves {
    virtual ~Halves() = default;
    virtual void forward(double* f) = 0;
    virtual bool backward(const double* residual, double h, Index step) = 0;
};

template <class Kind>
struct SplitStep::HalvesOf final : Halves {
    HalvesOf(const Network& of, Mat theta, ConstMat x, Index total, const StepParams& with)
        : network(of),
          rows(theta),
          inputs(x),
          whole(total),
          params(with),
          kind(network, rows, inputs, params) {}

    void forward(double* f) override {
        sums = kind.sum();
        for (Index q = 0; q < inputs.rows; ++q) f[q] = sums[q] / static_cast<double>(whole);
    }

    bool backward(const double* residual, double h, Index step) override {
        check(network, rows, inputs, &h, 1, step, params);
        require(sums != nullptr, "backward", "must come after forward, and once", "no forward");
        double* const errors = std::exchange(sums, nullptr);
        std::fill_n(errors, inputs.rows, 0.0);
        return to_errors(residual, whole, inputs.rows, errors) &&
               finish(kind, network, rows, h, step, params);
    }

    Network network;
    Mat rows;
    ConstMat inputs;
    Index whole;
    StepParams params;
    Kind kind;
    double* sums = nullptr;
};

SplitStep::SplitStep(const Network& network, Mat theta, ConstMat x, Index total, const StepParams& params) {
    require_matrix(x, "x");
    check(network, theta, x, nullptr, 0, 0, params);
    require(total >= params.first_neuron + theta.rows, "total",
            "must count these neurons and those before them", total);
    if (FewRows::suits(x.rows, theta.rows))
        halves_ = std::make_unique<HalvesOf<FewRows>>(network, theta, x, total, params);
    else
        with_tile_width<double>(theta.rows, [&](auto width) {
            halves_ = std::make_unique<HalvesOf<ManyRows<width()>>>(network, theta, x, total, params);
        });
}

SplitStep::~SplitStep() = default;
SplitStep::SplitStep(SplitStep&&) noexcept = default;
SplitStep& SplitStep::operator=(SplitStep&&) noexcept = default;

void SplitStep::forward(double* f) {
    require(f != nullptr, "f", "must not be null", "null");
    halves_->forward(f);
}

bool SplitStep::backward(const double* residual, double h, Index step) {
    require(residual != nullptr, "residual", "must not be null", "null");
    return halves_->backward(residual, h, step);
}

StepsDone sgd_run(const Network& network, Mat theta, ConstMat x, const double* y, const double* h,
                  Index first, const StepParams& params, const StopPredicate& wants_stop) {
    check(network, theta, x, h, x.rows, first, params);
    require(y != nullptr || x.rows == 0, "y", "must not be null", "null");
    Index done = 0;
    const bool many = theta.rows * theta.cols >= kMany;
    const bool long_enough = x.rows >= (many ? kBlockedRowsOfMany : kBlockedRows);
    if (long_enough && params.temperature == 0 && !network.sphere) {
        SgdParams sgd;
        sgd.steps = [&](Index begin, Index count, double* out) { std::copy_n(h + begin, count, out); };
        sgd.ridge = params.ridge;
        sgd.rates = params.rates;
        sgd.total = x.rows;
        sgd.start_stays = true;
        sgd.threads = params.threads;
        if (many && suits_in_place(network, theta, x, h, sgd, params)) {
            require(all_finite(theta, params.threads), "theta", "must be finite", "infinity or NaN");
            const StepsInPlace made = run_in_place(network, theta, x, y, h, sgd, wants_stop);
            if (made.stopped || made.steps == x.rows) return {made.steps, true};
            return one_by_one(network, theta, x, y, h, first, params, made.steps, wants_stop);
        }
        const auto run = make_sgd<double>(network, theta, finite_law(x, y), 0, std::move(sgd));
        run->run(x.rows, params.threads, wants_stop);
        done = run->step();
        if (done > 0) run->theta(theta);
        if (run->diverged_at() < 0) return {done, true};
    }
    return one_by_one(network, theta, x, y, h, first, params, done, wants_stop);
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline sgd
