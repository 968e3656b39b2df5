// Python bindings of separable features on boxes.
#include "mfcore/grid/separable.hpp"

#include <algorithm>
#include <memory>
#include <tuple>

#include "arrays.hpp"
#include "mfcore/base/factor.hpp"

namespace mfcore::bindings {
namespace {

using GivenAxis = std::tuple<In, Array<double>, bool>;  // edges, series (panels, terms, rank), clamped

PanelBasis axis(const GivenAxis& given) {
    const auto& [edges, series, clamped] = given;
    require(series.ndim() == 3 && edges.ndim() == 1 && edges.shape(0) == series.shape(0) + 1, "series",
            "must have 3 dimensions, the first one as long as there are panels", series.ndim());
    PanelBasis basis;
    basis.edges.assign(edges.data(), edges.data() + edges.size());
    basis.terms = series.shape(1);
    basis.rank = series.shape(2);
    basis.series.assign(series.data(), series.data() + series.size());
    basis.clamped = clamped;
    return basis;
}

const double* optional_weights(const std::optional<In>& weights, Index n) {
    return weights ? vector(*weights, "weights", n) : nullptr;
}

}  // namespace

void bind_separable(py::module_& m) {
    using namespace py::literals;
    using Self = SeparableFeatures;
    py::class_<Self, std::shared_ptr<Self>>(m, "SeparableFeatures")
        .def(py::init([](const std::vector<GivenAxis>& axes, const In& core, std::vector<double> target,
                         double rest) {
                 std::vector<PanelBasis> bases;
                 for (const GivenAxis& given : axes) bases.push_back(axis(given));
                 return std::make_shared<Self>(std::move(bases), matrix(core, "core"), std::move(target),
                                               rest);
             }),
             "axes"_a, "core"_a, "target"_a, "rest"_a)
        .def_property_readonly("coordinates", &Self::coordinates)
        .def_property_readonly("size", &Self::size)
        .def_property_readonly("columns", &Self::columns)
        .def(
            "basis",
            [](const Self& s, Index c, const In& z, int order) {
                require(c >= 0 && c < s.coordinates(), "coordinate", "must be one of the coordinates", c);
                const double* points = vector(z, "z", z.size());
                auto out = make({z.size(), s.rank(c)});
                double* to = out.mutable_data();
                Index outside = 0;
                {
                    Released nogil;
                    outside = s.basis(c, out.shape(0), points, order, to);
                }
                return py::make_tuple(out, outside);
            },
            "coordinate"_a, "z"_a, "order"_a = 0)
        .def(
            "moments",
            [](const Self& s, const In& z, const std::optional<In>& weights, int threads) {
                const ConstMat points = matrix(z, "z", s.coordinates());
                const double* w = optional_weights(weights, points.rows);
                auto out = make({s.size()});
                double* to = out.mutable_data();
                Index outside = 0;
                {
                    Released nogil;
                    outside = s.moments(points, w, to, threads);
                }
                return py::make_tuple(out, outside);
            },
            "z"_a, "weights"_a = py::none(), "threads"_a = 0)
        .def(
            "residual",
            [](const Self& s, const In& moments, int threads) {
                const double* given = vector(moments, "moments", s.size());
                auto out = make({s.size()});
                double* to = out.mutable_data();
                double risk = 0;
                {
                    Released nogil;
                    risk = s.residual(given, to, threads);
                }
                return py::make_tuple(out, risk);
            },
            "moments"_a, "threads"_a = 0)
        .def(
            "potential",
            [](const Self& s, const In& coefficients, const In& z, int order, int threads) {
                require(order >= 0 && order <= 2, "order", "must be 0, 1 or 2", order);
                const ConstMat points = matrix(z, "z", s.coordinates());
                const double* g = vector(coefficients, "coefficients", s.size());
                const Index k = s.coordinates();
                auto value = make({points.rows});
                auto gradient = make({order > 0 ? points.rows : 0, k});
                auto hessian = make({order > 1 ? points.rows : 0, k, k});
                double* to = value.mutable_data();
                double* slope = order > 0 ? gradient.mutable_data() : nullptr;
                double* curve = order > 1 ? hessian.mutable_data() : nullptr;
                Index outside = 0;
                {
                    Released nogil;
                    outside = s.potential(g, points, to, slope, curve, threads);
                }
                return py::make_tuple(value, gradient, hessian, outside);
            },
            "coefficients"_a, "z"_a, "order"_a = 0, "threads"_a = 0);

    m.def(
        "product",
        [](const In& a, const In& b) {
            const ConstMat left = matrix(a, "a"), right = matrix(b, "b");
            auto out = make({left.rows, right.cols});
            const Mat to = writable(out);
            {
                Released nogil;
                product(left, right, to);
            }
            return out;
        },
        "a"_a, "b"_a);
    m.def(
        "qr",
        [](const In& a) {
            const ConstMat given = matrix(a, "a");
            const Index s = std::min(given.rows, given.cols);
            auto q = make({given.rows, s}), r = make({s, given.cols});
            const Mat to_q = writable(q), to_r = writable(r);
            {
                Released nogil;
                qr(given, to_q, to_r);
            }
            return py::make_tuple(q, r);
        },
        "a"_a);
    m.def(
        "svd",
        [](const In& a) {
            const ConstMat given = matrix(a, "a");
            const Index s = std::min(given.rows, given.cols);
            auto left = make({given.rows, s}), sizes = make({s}), right = make({s, given.cols});
            const Mat to_left = writable(left), to_right = writable(right);
            double* to_sizes = sizes.mutable_data();
            {
                Released nogil;
                svd(given, to_left, to_sizes, to_right);
            }
            return py::make_tuple(left, sizes, right);
        },
        "a"_a);
    m.def(
        "pivots",
        [](const In& a) {
            const ConstMat given = matrix(a, "a");
            Released nogil;
            return pivots(given);
        },
        "a"_a);
    m.def(
        "solve_lower",
        [](const In& lower, const In& b) {
            const ConstMat triangle = matrix(lower, "lower"), right = matrix(b, "b");
            auto x = make({right.rows, right.cols});
            const Mat to = writable(x);
            {
                Released nogil;
                std::copy_n(right.data, right.rows * right.cols, to.data);
                solve_lower(triangle, to);
            }
            return x;
        },
        "lower"_a, "b"_a);
}

}  // namespace mfcore::bindings
