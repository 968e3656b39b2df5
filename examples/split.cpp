// One network on two threads that share no neurons: each predicts with its half, the halves exchange predictions, and each
// moves its own neurons. With processes in place of threads only `exchange` changes (MPI_Allreduce).
#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstdio>
#include <mfcore/base/random.hpp>
#include <mfcore/features/features.hpp>
#include <mfcore/sgd/step.hpp>
#include <thread>
#include <vector>

using namespace mfcore;

constexpr Index kNeurons = 100, kDimension = 8, kBatch = 16, kSteps = 200, kParts = 2;
constexpr double kStep = 0.1;
const Network kNetwork{Activation::tanh()};

void draw(Index step, std::vector<double>& x, std::vector<double>& y) {
    random::normals({.seed = 3, .purpose = random::Purpose::inputs}, step * kBatch * kDimension,
                    kBatch * kDimension, x.data());
    for (Index i = 0; i < kBatch; ++i) y[i] = std::tanh(x[i * kDimension]);
}

// Sums of vectors over the parts, at all of them.
class Exchange {
public:
    std::vector<double> operator()(Index part, const std::vector<double>& own) {
        given_[part] = own;
        meet_.arrive_and_wait();
        std::vector<double> sum(own.size());
        for (const auto& part_of : given_)
            for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part_of[i];
        meet_.arrive_and_wait();  // nobody gives anew before all have read
        return sum;
    }

private:
    std::vector<double> given_[kParts];
    std::barrier<> meet_{kParts};
};

void train(Index part, Mat own, Exchange& exchange) {
    std::vector<double> x(kBatch * kDimension), y(kBatch), f(kBatch), gradient(own.rows * own.cols);
    for (Index k = 0; k < kSteps; ++k) {
        draw(k, x, y);
        const ConstMat inputs{x.data(), kBatch, kDimension};
        predict(kNetwork, {own}, inputs, f.data(), 1);  // the mean over the own neurons
        for (double& mean : f) mean *= static_cast<double>(own.rows) / kNeurons;
        f = exchange(part, f);

        // Labels y - f and no measure: the gradient is -E (y - f) grad sigma* (eq. (1.6)).
        for (Index i = 0; i < kBatch; ++i) y[i] -= f[i];
        potential(kNetwork, own, nullptr, *finite_law(inputs, y.data()), 0, kBatch,
                  {.gradient = gradient.data()}, {.threads = 1, .wants_stop = {}});
        for (std::size_t i = 0; i < gradient.size(); ++i) own.data[i] -= kStep * gradient[i];
    }
}

int main() {
    std::vector<double> whole(kNeurons * kDimension);
    random::normals({.seed = 3, .purpose = random::Purpose::init}, 0, kNeurons * kDimension, whole.data());
    std::vector<double> split = whole;

    Exchange exchange;
    const Mat neurons{split.data(), kNeurons, kDimension};
    {
        constexpr Index first = 60;  // parts need not be equal
        std::jthread one([&] { train(0, neurons.middle_rows(0, first), exchange); });
        std::jthread other([&] { train(1, neurons.middle_rows(first, kNeurons - first), exchange); });
    }

    std::vector<double> x(kBatch * kDimension), y(kBatch);
    for (Index k = 0; k < kSteps; ++k) {
        draw(k, x, y);
        sgd_step(kNetwork, {whole.data(), kNeurons, kDimension}, {x.data(), kBatch, kDimension}, y.data(),
                 kStep, k, {});
    }
    double difference = 0;
    for (std::size_t i = 0; i < whole.size(); ++i)
        difference = std::max(difference, std::abs(whole[i] - split[i]));
    std::printf("largest difference from the whole network after %td steps: %.1e\n", kSteps, difference);
}
