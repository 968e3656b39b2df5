// One network on two threads that share no neurons: each gives the share of its neurons in the predictions, the shares
// are added up, and each moves its own neurons. With processes in place of threads only `exchange` changes (MPI_Allreduce).
#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstdio>
#include <mfcore/base/random.hpp>
#include <mfcore/sgd/step.hpp>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace mfcore;

constexpr Index kNeurons = 100, kDimension = 8, kBatch = 16, kSteps = 200, kParts = 2;
constexpr double kStep = 0.1, kTemperature = 1e-3;
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

void train(Index first, Mat own, Exchange& exchange) {
    StepParams params{.temperature = kTemperature, .threads = 1};
    params.first_neuron = first;  // so that noise has the address of its neuron in the whole network
    std::vector<double> x(kBatch * kDimension), y(kBatch), f(kBatch);
    for (Index k = 0; k < kSteps; ++k) {
        draw(k, x, y);
        SplitStep step(kNetwork, own, {x.data(), kBatch, kDimension}, kNeurons, params);
        step.forward(f.data());
        f = exchange(first > 0, f);
        for (Index i = 0; i < kBatch; ++i) y[i] -= f[i];
        if (!step.backward(y.data(), kStep, k)) throw std::runtime_error("the network is no longer finite");
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
        std::jthread other([&] { train(first, neurons.middle_rows(first, kNeurons - first), exchange); });
    }

    std::vector<double> x(kBatch * kDimension), y(kBatch);
    for (Index k = 0; k < kSteps; ++k) {
        draw(k, x, y);
        sgd_step(kNetwork, {whole.data(), kNeurons, kDimension}, {x.data(), kBatch, kDimension}, y.data(),
                 kStep, k, {.temperature = kTemperature});
    }
    double difference = 0;
    for (std::size_t i = 0; i < whole.size(); ++i)
        difference = std::max(difference, std::abs(whole[i] - split[i]));
    std::printf("largest difference from the whole network after %td steps: %.1e\n", kSteps, difference);
}
