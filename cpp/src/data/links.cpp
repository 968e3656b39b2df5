// Labels y = phi(z): Hermite polynomials (on +-1 coordinates: Fourier monomials) and teacher networks.
#include <algorithm>
#include <cmath>

#include "base/products.hpp"
#include "base/scratch.hpp"
#include "mfcore/base/errors.hpp"
#include "mfcore/data/data.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline data {
namespace {

/// table(j, k) = h_k(z_j) by h_{k+1} = (z h_k - sqrt(k) h_{k-1}) / sqrt(k+1), for one sample z.
void hermite_table(const double* z, Mat table) {
    for (Index j = 0; j < table.rows; ++j) {
        double* h = table.row(j);
        h[0] = 1;
        if (table.cols > 1) h[1] = z[j];
        for (Index k = 1; k + 1 < table.cols; ++k) {
            const double root = std::sqrt(static_cast<double>(k));
            h[k + 1] = (z[j] * h[k] - root * h[k - 1]) / std::sqrt(static_cast<double>(k + 1));
        }
    }
}

}  // namespace

Link hermite_link(Index p, std::vector<HermiteTerm> terms) {
    require(p >= 1, "P", "must be >= 1", p);
    Index degree = 1;
    for (const HermiteTerm& term : terms) {
        for (const auto& [coordinate, k] : term.factors) {
            require(coordinate >= 0 && coordinate < p, "coordinate of a term", "must be in [0, P)",
                    coordinate);
            require(k >= 0, "degree of a term", "must be >= 0", k);
            degree = std::max<Index>(degree, k);
        }
    }
    Link link;
    link.dimension = p;
    link.evaluate = [p, degree, terms = std::move(terms)](ConstMat z, double* y) {
        FilledScratch<double> memory(static_cast<std::size_t>(p * (degree + 1)));
        const Mat table{memory.data(), p, degree + 1};
        for (Index i = 0; i < z.rows; ++i) {
            hermite_table(z.row(i), table);
            double sum = 0;
            for (const HermiteTerm& term : terms) {
                double product = term.coefficient;
                for (const auto& [coordinate, k] : term.factors) product *= table(coordinate, k);
                sum += product;
            }
            y[i] = sum;
        }
    };
    return link;
}

Link network_link(Network network, ConstMat theta, Index d) {
    network.activation.validate();
    require(theta.rows >= 1, "theta", "must have at least one row", theta.rows);
    require_count(theta.cols, network.row(d), "theta", "columns");
    std::vector<double> rows(static_cast<std::size_t>(theta.rows * theta.cols));
    for (Index j = 0; j < theta.rows; ++j) {
        std::copy_n(theta.row(j), theta.cols, rows.data() + j * theta.cols);
    }
    Link link;
    link.dimension = d;
    link.evaluate = [network, rows = std::move(rows), n = theta.rows, width = theta.cols, d](ConstMat x,
                                                                                             double* y) {
        constexpr Index kChunk = 32;  // samples whose pre-activations are held at once
        const ConstMat w{rows.data() + network.w_at(), n, d, width};
        FilledScratch<double> memory(static_cast<std::size_t>(kChunk * n));
        for (Index first = 0; first < x.rows; first += kChunk) {
            const Index m = std::min(kChunk, x.rows - first);
            const Mat z{memory.data(), m, n};
            row_products({x.row(first), m, d, x.stride}, w, z);
            for (Index i = 0; i < m; ++i) {
                double* row = z.row(i);
                if (network.has_b()) {
                    for (Index j = 0; j < n; ++j) row[j] += rows[j * width + network.b_at()];
                }
                // Sample by sample: the label must not depend on the place of a sample in the batch.
                evaluate<double>(network.activation, n, row, row);
                double sum = 0;
                for (Index j = 0; j < n; ++j) sum += network.has_a() ? rows[j * width] * row[j] : row[j];
                y[first + i] = sum / static_cast<double>(n);
            }
        }
    };
    return link;
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline data
