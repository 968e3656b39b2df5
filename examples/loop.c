/* A loop of one's own in C: 100 neurons learn y = tanh(x_1) by stochastic gradient descent on fresh samples.
 *
 *   flags=$(PKG_CONFIG_PATH=$(dirname "$(python -m mfcore --cmakedir)")/lib/pkgconfig \
 *           pkg-config --static --cflags --libs mfcore)
 *   cc examples/loop.c -o loop $flags && ./loop
 */
#include <math.h>
#include <mfcore/mfcore.h>
#include <stdio.h>
#include <stdlib.h>

enum { NEURONS = 100, D = 5, BATCH = 20, STEPS = 2000 };

/* A number between -1 and 1. */
static double number(void) { return 2.0 * rand() / RAND_MAX - 1.0; }

static void draw(double *x, double *y) {
    for (int i = 0; i < BATCH; ++i) {
        for (int j = 0; j < D; ++j) x[i * D + j] = number();
        y[i] = tanh(x[i * D]);
    }
}

/* Stop the program with what mfcore says, unless the code is that of success. */
static void expect(int code) {
    if (code == MFCORE_OK) return;
    fprintf(stderr, "mfcore: %s\n", mfcore_message());
    exit(1);
}

int main(void) {
    double theta[NEURONS * (1 + D)], x[BATCH * D], y[BATCH], f[BATCH], gradient[1 + D];
    for (int i = 0; i < NEURONS * (1 + D); ++i) theta[i] = number();

    mfcore_network *network = NULL; /* rows [a, w] */
    expect(mfcore_create("tanh", MFCORE_TRAINED, MFCORE_ABSENT, NEURONS, D, theta, &network));
    for (int k = 0; k < STEPS; ++k) {
        draw(x, y);
        expect(mfcore_step(network, BATCH, x, y, 0.2, 1));
    }

    draw(x, y);
    expect(mfcore_predict(network, BATCH, x, f, 1));
    double risk = 0;
    for (int i = 0; i < BATCH; ++i) risk += (y[i] - f[i]) * (y[i] - f[i]) / BATCH;
    expect(mfcore_potentials(network, 1, theta, BATCH, x, y, NULL, gradient, 1));
    printf("mfcore %s: risk %.4f after %d steps\n", mfcore_version(), risk, STEPS);

    if (mfcore_step(network, BATCH, x, y, -1.0, 1) == MFCORE_INVALID) printf("%s\n", mfcore_message());
    mfcore_free(network);
    return 0;
}
