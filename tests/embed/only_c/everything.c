/* Every function of mfcore.h at work, in a project in C alone. Prints lines "name numbers", which
 * tests/packaging/test_only_c.py compares with Python's. Argument: the seed of the noise. */
#include <math.h>
#include <mfcore/mfcore.h>
#include <stdio.h>
#include <stdlib.h>

enum { NEURONS = 3, D = 2, ROW = 2 + D, SAMPLES = 4, CELLS = 40 };

static const double start[NEURONS * ROW] = {1.0,  0.1, 0.5,  -0.3, /* rows [a, b, w] */
                                            -0.5, 0.2, -0.4, 0.8,  /* */
                                            0.7,  0.0, 0.3,  0.6};
static const double x[SAMPLES * D] = {1.0, 0.5, -0.5, 1.5, 0.25, -1.0, -1.0, -0.75};
static const double y[SAMPLES] = {1.0, -1.0, 0.5, 0.25};

static void print(const char *name, int64_t count, const double *numbers) {
    printf("%s", name);
    for (int64_t i = 0; i < count; ++i) printf(" %.17g", numbers[i]);
    printf("\n");
}

/* Stop the program with what mfcore says, unless the code is that of success. */
static void expect(int code) {
    if (code == MFCORE_OK) return;
    fprintf(stderr, "mfcore: %s\n", mfcore_message());
    exit(1);
}

/* Show what a mistake is answered with. */
static void refused(const char *mistake, int code) { printf("%s: %d %s\n", mistake, code, mfcore_message()); }

/* sigma(z) = sin(frequency z) */
static void sine(int64_t n, const double *z, double *value, double *slope, double *curvature, void *user) {
    const double frequency = *(const double *)user;
    for (int64_t i = 0; i < n; ++i) {
        if (value) value[i] = sin(frequency * z[i]);
        if (slope) slope[i] = frequency * cos(frequency * z[i]);
        if (curvature) curvature[i] = -frequency * frequency * sin(frequency * z[i]);
    }
}

/* Three steps with rates, scale, decay and noise on rows of this function, then predictions and potentials. */
static void learn(const char *name, mfcore_activation *sigma, uint64_t seed) {
    double theta[NEURONS * ROW], copy[NEURONS * ROW], f[SAMPLES], value[NEURONS], gradient[NEURONS * ROW];
    for (int i = 0; i < NEURONS * ROW; ++i) theta[i] = start[i];
    mfcore_network *network = NULL;
    expect(mfcore_create_on(sigma, MFCORE_TRAINED, MFCORE_TRAINED, NEURONS, D, theta, &network));
    mfcore_activation_free(sigma);
    expect(mfcore_set_forces(network, 0.1, 0.01, seed));
    expect(mfcore_set_rates(network, 2.0, 0.5, 1.5));
    expect(mfcore_set_scale(network, 3.0));
    for (int k = 0; k < 3; ++k) expect(mfcore_step(network, SAMPLES, x, y, 0.05, 1));
    expect(mfcore_predict(network, SAMPLES, x, f, 1));
    expect(mfcore_potentials(network, NEURONS, start, SAMPLES, x, y, value, gradient, 1));
    expect(mfcore_theta(network, copy));
    for (int i = 0; i < NEURONS * ROW; ++i)
        if (copy[i] != theta[i]) printf("%s: the rows are not those of the caller\n", name);
    if (mfcore_row(network) != ROW) printf("%s: wrong row\n", name);
    printf("%s.", name);
    print("theta", NEURONS * ROW, theta);
    printf("%s.", name);
    print("f", SAMPLES, f);
    printf("%s.", name);
    print("value", NEURONS, value);
    printf("%s.", name);
    print("gradient", NEURONS * ROW, gradient);
    mfcore_free(network);
}

static void activations(uint64_t seed) {
    const double knots[] = {-0.5, 0.5}, jumps[] = {1.0, -1.5}, coefficients[] = {0.1, 0.5, 0.25};
    double frequency = 1.5;
    mfcore_activation *sigma = NULL;
    expect(mfcore_activation_named("tanh", &sigma));
    learn("tanh", sigma, seed);
    expect(mfcore_activation_piecewise_linear(2, knots, jumps, 0.25, 0.5, &sigma));
    learn("piecewise_linear", sigma, seed);
    expect(mfcore_activation_polynomial(3, coefficients, &sigma));
    learn("polynomial", sigma, seed);
    expect(mfcore_activation_hermite(3, coefficients, &sigma));
    learn("hermite", sigma, seed);
    expect(mfcore_activation_custom(sine, &frequency, &sigma));
    learn("custom", sigma, seed);

    refused("no name", mfcore_activation_named(NULL, &sigma));
    refused("name", mfcore_activation_named("rellu", &sigma));
    refused("no coefficients", mfcore_activation_polynomial(0, coefficients, &sigma));
    refused("knots", mfcore_activation_piecewise_linear(2, jumps, jumps, 0, 0, &sigma));
    refused("no function", mfcore_activation_custom(NULL, NULL, &sigma));
    mfcore_activation_free(NULL);
}

/* Masses of a bump in the middle of [0, 2], and, of two axes, of [0, 2]^2. */
static void bump(int axes, const double *edges, double *mass) {
    double sum = 0;
    const int columns = axes == 1 ? 1 : CELLS;
    for (int i = 0; i < CELLS; ++i)
        for (int j = 0; j < columns; ++j) {
            const double u = (edges[i] + edges[i + 1]) / 2 - 0.8;
            const double v = axes == 1 ? 0 : (edges[j] + edges[j + 1]) / 2 - 1.2;
            sum += mass[i * columns + j] = exp(-20 * (u * u + v * v));
        }
    for (int i = 0; i < CELLS * columns; ++i) mass[i] /= sum;
}

/* A density on `axes` coordinates until t = 1: Phi_1 = z_1 (and z_1 z_2), targets 1, decay |z|^2 / 20. */
static void move(const char *name, int axes, double temperature) {
    static double mass[CELLS * CELLS], features[2 * CELLS * CELLS], decay[CELLS * CELLS];
    double edges[CELLS + 1];
    for (int i = 0; i <= CELLS; ++i) edges[i] = 2.0 * i / CELLS;
    bump(axes, edges, mass);
    const int columns = axes == 1 ? 1 : CELLS, cells = CELLS * columns;
    for (int i = 0; i < CELLS; ++i)
        for (int j = 0; j < columns; ++j) {
            const double u = (edges[i] + edges[i + 1]) / 2, v = (edges[j] + edges[j + 1]) / 2;
            const int cell = i * columns + j;
            features[2 * cell] = u;
            features[2 * cell + 1] = axes == 1 ? u * u : u * v;
            decay[cell] = 0.05 * (u * u + (axes == 1 ? 0 : v * v));
        }
    const mfcore_axis axis[] = {{CELLS, edges, 1.0, 0.0}, {CELLS, edges, 0.5, 0.0}};
    const double weights[] = {0.75, 0.25}, targets[] = {1.0, 1.0};
    mfcore_density *density = NULL;
    expect(mfcore_density_create(axes, axis, 2, weights, targets, features, decay, temperature, mass, &density));
    double t = 0, bound = 0, risk[2];
    expect(mfcore_density_risk(density, &risk[0]));
    while (t < 1) {
        expect(mfcore_density_bound(density, &bound));
        double h = isinf(bound) ? 0.001 : 0.5 * bound;
        if (h > 0.001) h = 0.001;
        if (h > 1 - t) h = 1 - t;
        expect(mfcore_density_step(density, h));
        t += h;
    }
    expect(mfcore_density_risk(density, &risk[1]));
    printf("%s.", name);
    print("risk", 2, risk);
    printf("%s.", name);
    print("mass", cells, mass);
    if (temperature == 0) {
        expect(mfcore_density_bound(density, &bound));
        const int code = mfcore_density_step(density, 3 * bound);
        printf("%s beyond the bound: %d %.9s\n", name, code, mfcore_message());
    }
    refused(name, mfcore_density_step(density, -1.0));
    mfcore_density_free(density);
}

int main(int count, char **arguments) {
    activations(count > 1 ? strtoull(arguments[1], NULL, 10) : 0);
    move("line", 1, 0.0);
    move("noisy-line", 1, 0.05);
    move("plane", 2, 0.0);
    move("noisy-plane", 2, 0.05);
    mfcore_density *density = NULL;
    refused("axes", mfcore_density_create(3, NULL, 1, NULL, NULL, NULL, NULL, 0.0, NULL, &density));
    refused("density", mfcore_density_step(NULL, 0.1));
    mfcore_density_free(NULL);
    return 0;
}
