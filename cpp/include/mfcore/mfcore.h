#ifndef MFCORE_H
#define MFCORE_H
/* Interface for programs in C, and in languages that call C: networks with activations of all kinds, steps of stochastic
 * gradient descent on samples of the caller, predictions, potentials, and densities on cells of one or two coordinates.
 *
 * Matrices are without gaps, row after row. A row of parameters is [a, b, w...], of which a and b may be absent
 * (mfcore/network/network.hpp). `threads` is how many to use, 0 for OMP_NUM_THREADS or else the cores; it changes
 * no bit. Functions return MFCORE_OK or another code, of which numbers are not used again for something else;
 * mfcore_message() then says in words what was wrong. A network or a density may be used by one thread at a time. */
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

/* An activation function sigma. Networks copy it, so that it may be freed once they are created. */
typedef struct mfcore_activation mfcore_activation;

/* Create an activation without parameters by its name: "linear", "relu", "erf", "tanh", "sigmoid", "softplus", "gelu",
 * "silu", "sin", "cos". *created is for mfcore_activation_free(). */
int mfcore_activation_named(const char* name, mfcore_activation** created);

/* Create sigma(t) = offset + left_slope t + sum_k jumps[k] max(t - knots[k], 0), for increasing knots. */
int mfcore_activation_piecewise_linear(int64_t count, const double* knots, const double* jumps, double offset,
                                       double left_slope, mfcore_activation** created);

/* Create sigma(t) = sum_k coefficients[k] t^k, for k < count. */
int mfcore_activation_polynomial(int64_t count, const double* coefficients, mfcore_activation** created);

/* Create sigma(t) = sum_k coefficients[k] h_k(t), with the orthonormal Hermite polynomials h_k = He_k / sqrt(k!). */
int mfcore_activation_hermite(int64_t count, const double* coefficients, mfcore_activation** created);

/* A function of the caller's: value[i] = sigma(z[i]) for i < n, and likewise the slope and the curvature where their
 * arrays are not NULL. n is a multiple of 64, and no two arrays overlap. A number must have the same bits wherever it
 * stands in z; several threads call at once. `user` is what mfcore_activation_custom() was given. */
typedef void (*mfcore_function)(int64_t n, const double* z, double* value, double* slope, double* curvature,
                                void* user);

/* Create an activation of the caller's own. sigma(0) and sigma'(0) must be finite. */
int mfcore_activation_custom(mfcore_function function, void* user, mfcore_activation** created);

/* Free an activation; NULL is none. */
void mfcore_activation_free(mfcore_activation* activation);

/* Create a network like mfcore_create(), with any activation, on rows of the caller: nothing is copied, steps move `theta`
 * in place, and it must live as long as the network. The caller may change the rows between calls. */
int mfcore_create_on(const mfcore_activation* activation, int a, int b, int64_t neurons, int64_t d,
                     double* theta, mfcore_network** created);

/* Create f(x) = (1/neurons) sum_i a_i sigma(<w_i, x> + b_i) for x in R^d. `activation` is sigma, by the name of a
 * kind without parameters ("linear", "relu", "erf", "tanh", "sigmoid", "softplus", "gelu", "silu", "sin", "cos"), `a` and `b` are of enum
 * mfcore_part, `theta` are the rows at the start, which are copied. *created is for mfcore_free(). */
int mfcore_create(const char* activation, int a, int b, int64_t neurons, int64_t d, const double* theta,
                  mfcore_network** created);

/* Free a network; NULL is none. */
void mfcore_free(mfcore_network* network);

/* Set the weight decay ridge >= 0 and the temperature >= 0 of later steps (0 at the start), and the seed of their
 * noise. */
int mfcore_set_forces(mfcore_network* network, double ridge, double temperature, uint64_t seed);

/* Set the rates >= 0 of later steps (1 at the start): factors of the drift of a, b and w, whose square roots are factors
 * of their noise. */
int mfcore_set_rates(mfcore_network* network, double a, double b, double w);

/* Set the scale alpha > 0 of the network (1 at the start): f(x) = (alpha/neurons) sum_i a_i sigma(<w_i, x> + b_i), from
 * this call on. */
int mfcore_set_scale(mfcore_network* network, double alpha);

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

/* Cells along one coordinate z of a density, between `edges`: cells + 1 increasing numbers, >= 0 where `volume` is not 0.
 * `rate` >= 0 is that of the drift and of the diffusion along z. `volume` is the exponent e of the volume element z^e dz,
 * such as d - 1 of a radius in R^d; it matters with noise only. */
typedef struct mfcore_axis {
    int64_t cells;
    const double* edges;
    double rate, volume;
} mfcore_axis;

/* Masses of cells, moved by d rho/dt = div(rho rate grad Psi_lambda[rho]) + noise of a temperature. */
typedef struct mfcore_density mfcore_density;

/* Create a density on the cells of one or two axes. The data are `nodes` averages with weights p_q > 0 and targets y_q;
 * features has a row for each cell (of two axes, the cells of the second one run fastest) and a column for each node:
 * Phi_q at the centre of the cell. So Psi(z) = sum_q p_q Phi_q(z) (int Phi_q d rho - y_q), to 1e-12 of the largest
 * feature. `decay` is a potential that is added to it, such as ridge |z|^2 / 2, one number for each cell; NULL is none.
 * `mass` are the masses >= 0 of the cells. They are not copied: steps move them in place, and the caller may change them
 * between calls. *created is for mfcore_density_free(). */
int mfcore_density_create(int axes, const mfcore_axis* axis, int64_t nodes, const double* weights,
                          const double* targets, const double* features, const double* decay,
                          double temperature, double* mass, mfcore_density** created);

/* Free a density; NULL is none. */
void mfcore_density_free(mfcore_density* density);

/* One step of size h >= 0. Without noise it is explicit, of second order in time and space (MUSCL), and MFCORE_INVALID
 * where h is beyond mfcore_density_bound(). With noise it is implicit in the masses (Euler, Scharfetter-Gummel fluxes), of
 * first order, and stable for every h as far as the potential, which is that of the masses before it, changes little. */
int mfcore_density_step(mfcore_density* density, double h);

/* Write the largest stable step of the present masses; infinity with noise, or where nothing moves. */
int mfcore_density_bound(mfcore_density* density, double* bound);

/* Write the risk sum_q p_q (y_q - int Phi_q d rho)^2 of the present masses. */
int mfcore_density_risk(mfcore_density* density, double* risk);

#ifdef __cplusplus
}
#endif
#endif
