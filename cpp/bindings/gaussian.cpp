// Python bindings of exact expectations under Gaussian inputs.
#include "arrays.hpp"
#include "mfcore/gaussian/expectations.hpp"

namespace mfcore::bindings {
namespace {

constexpr Index kFewPairs = 256;  // of (m, R), whose averages may take a hundred nodes

py::tuple smooth_arrays(const Activation& sigma, const In& m, const In& R) {
    const Index n = m.size();
    vector(m, "m", n);
    vector(R, "R", n);
    auto T = make({n}), T_m = make({n}), T_R = make({n});
    const double *from_m = m.data(), *from_R = R.data();
    double *to_T = T.mutable_data(), *to_m = T_m.mutable_data(), *to_R = T_R.mutable_data();
    {
        Released nogil;
        in_pieces(n, kFewPairs, [&](Index k, Index count) {
            smooth(sigma, count, from_m + k, from_R + k, to_T + k, to_m + k, to_R + k);
        });
    }
    return py::make_tuple(T, T_m, T_R);
}

py::array_t<double> slope_coefficients_array(const Activation& sigma, const In& m, const In& R, Index count) {
    const Index n = m.size();
    vector(m, "m", n);
    vector(R, "R", n);
    require(count >= 1, "count", "must be >= 1", count);
    auto s = make({n, count});
    const Mat to = writable(s);
    const double *from_m = m.data(), *from_R = R.data();
    {
        Released nogil;
        in_pieces(n, Index{1}, [&](Index k, Index rows) {
            slope_coefficients(sigma, rows, from_m + k, from_R + k, to.middle_rows(k, rows));
        });
    }
    return s;
}

py::array_t<double> bivariate_normal_array(const In& h, const In& k, const In& rho) {
    const Index n = h.size();
    vector(h, "h", n);
    vector(k, "k", n);
    vector(rho, "rho", n);
    auto p = make({n});
    const double *from_h = h.data(), *from_k = k.data(), *from_rho = rho.data();
    double* const to = p.mutable_data();
    {
        Released nogil;
        in_pieces(n, kPiece, [&](Index i, Index count) {
            bivariate_normal(count, from_h + i, from_k + i, from_rho + i, to + i);
        });
    }
    return p;
}

py::array_t<double> pair_matrix_array(const Network& network, const In& theta, const In& other, int threads,
                                      const Network* other_network) {
    const ConstMat rows = matrix(theta, "theta"), cols = matrix(other, "other");
    auto U = make({rows.rows, cols.rows});
    const Mat to = writable(U);
    {
        Released nogil;
        pair_matrix(network, rows, other_network ? *other_network : network, cols, to, threads);
    }
    return U;
}

py::array_t<double> pair_slopes_array(const Network& network, const In& theta, const In& other, int threads) {
    const ConstMat rows = matrix(theta, "theta"), cols = matrix(other, "other");
    auto P = make({rows.rows, cols.rows});
    const Mat to = writable(P);
    {
        Released nogil;
        pair_slopes(network, rows, cols, to, threads);
    }
    return P;
}

py::array_t<double> pair_kernel_array(const Network& network, const In& theta, const In& other, double value,
                                      double constant, double along, int threads) {
    const ConstMat rows = matrix(theta, "theta"), cols = matrix(other, "other");
    auto K = make({rows.rows, cols.rows});
    const Mat to = writable(K);
    {
        Released nogil;
        pair_kernel(network, rows, cols, {value, constant, along}, to, threads);
    }
    return K;
}

py::tuple pair_potential_arrays(const Network& network, const In& theta, const In& other, const In& weights,
                                bool want_grad, int threads, const Network* other_network) {
    const ConstMat rows = matrix(theta, "theta"), cols = matrix(other, "other");
    const double* w = vector(weights, "weights", cols.rows);
    auto value = make({rows.rows});
    auto grad = make({want_grad ? rows.rows : 0, rows.cols});
    double* to_value = value.mutable_data();
    Mat to_grad = writable(grad);
    {
        Released nogil;
        pair_potential(network, rows, other_network ? *other_network : network, cols, w, to_value,
                       want_grad ? &to_grad : nullptr, threads);
    }
    return py::make_tuple(value, want_grad ? py::object(grad) : py::object(py::none()));
}

py::tuple own_potential_arrays(const Network& network, const In& theta, const In& weights,
                               const std::vector<double>& shares, const std::vector<Index>& ends,
                               const std::vector<double>& scales, bool want_grad, int threads) {
    const ConstMat rows = matrix(theta, "theta");
    const double* w = vector(weights, "weights", rows.rows);
    const Mixture law{shares, ends, scales};
    auto value = make({rows.rows});
    auto grad = make({want_grad ? rows.rows : 0, rows.cols});
    double* to_value = value.mutable_data();
    Mat to_grad = writable(grad);
    {
        Released nogil;
        own_potential(network, rows, w, law, to_value, want_grad ? &to_grad : nullptr, threads);
    }
    return py::make_tuple(value, want_grad ? py::object(grad) : py::object(py::none()));
}

}  // namespace

void bind_gaussian(py::module_& m) {
    m.def("smooth", &smooth_arrays, py::arg("activation"), py::arg("m"), py::arg("R"),
          "T = E sigma(m + R G) and its derivatives in m and R.");
    m.def("slope_coefficients", &slope_coefficients_array, py::arg("activation"), py::arg("m"), py::arg("R"),
          py::arg("count"), "E[sigma'(m + R G) h_k(G)], k = 0 .. count - 1, shape (n, count).");
    m.def("bivariate_normal", &bivariate_normal_array, py::arg("h"), py::arg("k"), py::arg("rho"),
          "P(u > h, v > k) for standard normals of correlation rho.");
    m.def("has_exact_pairs", &has_exact_pairs, py::arg("first"), py::arg("second"));
    m.def("pair_matrix", &pair_matrix_array, py::arg("network"), py::arg("theta"), py::arg("other"),
          py::arg("threads") = 0, py::kw_only(), py::arg("other_network") = nullptr,
          "U(theta_i, other_j) under x ~ N(0, I).");
    m.def("pair_nanoseconds", &pair_nanoseconds, py::arg("network"),
          "Nanoseconds, roughly, that an exact pair of neurons takes, at most.");
    m.def("pair_slopes", &pair_slopes_array, py::arg("network"), py::arg("theta"), py::arg("other"),
          py::arg("threads") = 0, "E[sigma'(g_i) sigma'(g'_j)] of pre-activations under x ~ N(0, I).");
    m.def("pair_kernel", &pair_kernel_array, py::arg("network"), py::arg("theta"), py::arg("other"),
          py::arg("value"), py::arg("constant"), py::arg("along"), py::arg("threads") = 0,
          "value E s s' + (constant + along <w, w'>) E ds ds' of all pairs of neurons.");
    m.def("pair_potential", &pair_potential_arrays, py::arg("network"), py::arg("theta"), py::arg("other"),
          py::arg("weights"), py::arg("want_grad") = false, py::arg("threads") = 0, py::kw_only(),
          py::arg("other_network") = nullptr,
          "sum_j weights_j U(theta_i, other_j) and its gradient (None unless wanted).");
    m.def("own_potential", &own_potential_arrays, py::arg("network"), py::arg("theta"), py::arg("weights"),
          py::arg("shares"), py::arg("ends"), py::arg("scales"), py::arg("want_grad") = false,
          py::arg("threads") = 0, "pair_potential of neurons for each other under a mixture of Gaussians.");
}

}  // namespace mfcore::bindings
