#ifndef MFCORE_H
#define MFCORE_H
/* Interface for programs in C, and in languages that call C: a network, steps of stochastic gradient descent on
 * samples of the caller, predictions and potentials.
 *
 * Matrices are without gaps, row after row. A row of parameters is [a, b, w...], of which a and b may be absent
 * (mfcore/network/network.hpp). `threads` is how many to use, 0 for OMP_NUM_THREADS or else the cores; it changes
 * no bit. Functions return MFCORE_OK or another code, of which numbers are not used again for something else;
 * mfcore_message() then says in words what was wrong. A network may be used by one thread at a time. */
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What functions return. */
enum mfcore_code {
    MFCORE_OK = 0,
    MFCORE_INVALID = 1,    /* an argument is wrong; nothing was done */
    MFCORE_NOT_FINITE = 2, /* the step would leave the finite numbers; the network is as before it */
    MFCORE_NO_MEMORY = 3,
    MFCORE_FAILED = 4 /* anything else */
};

/* A part of the row of parameters: not there (a is 1, b is 0), there and left as it is, or trained. */
enum mfcore_part { MFCORE_ABSENT = 0, MFCORE_FIXED = 1, MFCORE_TRAINED = 2 };

/* A network, with the forces and the number of its next step. */
typedef struct mfcore_network mfcore_network;

/* The version of the library, such as "0.1.0". */
const char* mfcore_version(void);

/* The instruction-set level in use, such as "v3": the best one that this library holds and this machine has, or the one
 * that the environment variable MFCORE_ISA names; "" if there is none, and all calls return MFCORE_FAILED. */
const char* mfcore_level(void);

/* What was wrong in the last call of this thread that did not return MFCORE_OK: argument, rule and value. */
const char* mfcore_message(void);

/* Create f(x) = (1/neurons) sum_i a_i sigma(<w_i, x> + b_i) for x in R^d. `activation` is sigma, by the name of a
 * kind without parameters ("linear", "relu", "erf", "tanh", "sigmoid", "softplus", "gelu"), `a` and `b` are of enum
 * mfcore_part, `theta` are the rows at the start, which are copied. *created is for mfcore_free(). */
int mfcore_create(const char* activation, int a, int b, int64_t neurons, int64_t d, const double* theta,
                  mfcore_network** created);

/* Free a network; NULL is none. */
void mfcore_free(mfcore_network* network);

/* Set the weight decay ridge >= 0 and the temperature >= 0 of later steps (0 at the start), and the seed of their
 * noise. */
int mfcore_set_forces(mfcore_network* network, double ridge, double temperature, uint64_t seed);

/* One step of size h >= 0, with the gradient averaged over `samples` rows of x with labels y. */
int mfcore_step(mfcore_network* network, int64_t samples, const double* x, const double* y, double h,
                int threads);

/* Write f(x) for each row of x. */
int mfcore_predict(const mfcore_network* network, int64_t samples, const double* x, double* f, int threads);

/* Write the potential Psi(theta_i; rho) of each of `points` rows of theta, and its gradients, rows like those of
 * theta, in the field of the network rho on the samples. A result that is NULL is not computed. */
int mfcore_potentials(const mfcore_network* network, int64_t points, const double* theta, int64_t samples,
                      const double* x, const double* y, double* value, double* gradient, int threads);

/* The length of a row of parameters; 0 for NULL. */
int64_t mfcore_row(const mfcore_network* network);

/* Write the rows of parameters. */
int mfcore_theta(const mfcore_network* network, double* theta);

#ifdef __cplusplus
}
#endif
#endif
