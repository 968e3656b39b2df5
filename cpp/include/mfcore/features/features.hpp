#pragma once
// Predictions, potentials and risks as averages over the data (eqs. (2.1) to (2.4)). With nodes x_q, weights p_q,
// targets y_q they are sums over nodes,
//   f_q = int sigma*(x_q; .) d rho,     Psi(theta) = sum_q p_q (f_q - y_q) sigma*(x_q; theta),
// so a potential costs O(N Q), never O(N^2). Nodes come from a Sampler: those of a finite law, or fresh
// samples.
#include <cstdint>

#include "mfcore/base/run.hpp"
#include "mfcore/data/data.hpp"
#include "mfcore/network/network.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline features {

/// How much of the machine an average may take, and when it stops early.
struct RunOptions {
    int threads = 0;           ///< 0: OMP_NUM_THREADS, else the cores
    StopPredicate wants_stop;  ///< asked between chunks of samples; may be empty
};

/// rho = sum_i weights[i] delta(points[i]) of one point or more; null weights mean equal masses.
struct Measure {
    ConstMat points;
    const double* weights = nullptr;
};

/// f[q] = int sigma*(x_q; .) d rho for the rows of x.
void predict(const Network& network, const Measure& rho, ConstMat x, double* f, int threads = 0);

/// Output arrays of potential(); null pointers are skipped.
struct PotentialOut {
    double* value = nullptr;     ///< Psi(theta_i; rho), or V(theta_i) when there is no measure
    double* gradient = nullptr;  ///< its gradient, row-major, one row of the network's length per neuron
    double* risk = nullptr;      ///< E (y - f_rho)^2, or E y^2 when there is no measure
};

/// Compute Psi, its gradient and the risk by averages over samples 0 .. samples-1 (of a finite law: over its
/// nodes). Without `rho`, f = 0. Returns the
/// number of samples used: fewer than asked for when the stop predicate said so.
Index potential(const Network& network, ConstMat theta, const Measure* rho, const Sampler& sampler,
                std::uint64_t seed, Index samples, const PotentialOut& out, const RunOptions& options = {});

/// Output arrays of estimate(); null pointers are skipped. *_error are standard errors of the mean (inf of one sample).
struct EstimateOut {
    double* V = nullptr;
    double* V_error = nullptr;
    double* U = nullptr;  ///< N x N, symmetric
    double* U_error = nullptr;
    double* grad_V = nullptr;  ///< N x D
    double* grad_V_error = nullptr;
};

/// Estimate V, U and grad V by averages over a stream of samples, with standard errors from the means of
/// blocks of samples. The blocks depend on `samples` alone; `chunk` samples are in memory at a time (0:
/// chosen; it changes no bit).
Index estimate(const Network& network, ConstMat theta, const Sampler& sampler, std::uint64_t seed,
               Index samples, Index chunk, const EstimateOut& out, const RunOptions& options = {});

/// Estimate U(theta_i, other_j) over samples 0 .. samples-1, without errors.
Index interaction(const Network& network, ConstMat theta, ConstMat other, const Sampler& sampler,
                  std::uint64_t seed, Index samples, Mat out, const RunOptions& options = {});

}  // namespace mfcore::inline MFCORE_LEVEL::inline features
