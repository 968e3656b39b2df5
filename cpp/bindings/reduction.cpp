// Python bindings of averages over a direction and of reduced features.
#include "mfcore/reduction/reduction.hpp"

#include <cmath>
#include <memory>

#include "arrays.hpp"
#include "mfcore/base/quadrature.hpp"
#include "mfcore/grid/compress.hpp"
#include "mfcore/reduction/chi_panels.hpp"
#include "mfcore/reduction/normal_panels.hpp"
#include "mfcore/reduction/smoothing.hpp"
#include "mfcore/reduction/sphere.hpp"

namespace mfcore::bindings {
namespace {

py::tuple pair(const Rule& rule) {
    return py::make_tuple(
        py::array_t<double>(static_cast<py::ssize_t>(rule.nodes.size()), rule.nodes.data()),
        py::array_t<double>(static_cast<py::ssize_t>(rule.weights.size()), rule.weights.data()));
}

constexpr Index kFewPoints = 1024;

/// A rule, made without the GIL.
template <class Make>
py::tuple rule_of(Make&& make_rule) {
    Rule rule;
    {
        Released nogil;
        rule = make_rule();
    }
    return pair(rule);
}

// One of the three triples: (S, S_m, S_R), or the second derivatives.
template <class Call>
py::tuple three(const In& m, const In& R, Call&& call) {
    const Index n = m.size();
    vector(m, "m", n);
    vector(R, "R", n);
    auto x = make({n}), y = make({n}), z = make({n});
    double *px = x.mutable_data(), *py_ = y.mutable_data(), *pz = z.mutable_data();
    {
        Released nogil;
        const double *from_m = m.data(), *from_R = R.data();
        in_pieces(n, kFewPoints, [&](Index k, Index count) {
            call(count, from_m + k, from_R + k, px + k, py_ + k, pz + k);
        });
    }
    return py::make_tuple(x, y, z);
}

}  // namespace

void bind_reduction(py::module_& m) {
    using namespace py::literals;
    m.def(
        "gauss_gegenbauer", [](double d, Index n) { return rule_of([&] { return gauss_gegenbauer(d, n); }); },
        "d"_a, "n"_a);
    m.def(
        "gauss_chi", [](double d, Index n) { return rule_of([&] { return gauss_chi(d, n); }); }, "d"_a,
        "n"_a);
    m.def("gauss_hermite", [](Index n) { return rule_of([&] { return gauss_hermite(n); }); }, "n"_a);
    m.def("gauss_legendre", [](Index n) { return rule_of([&] { return gauss_legendre(n); }); }, "n"_a);
    m.def(
        "panels_chi", [](double d, Index panels) { return rule_of([&] { return panels_chi(d, panels); }); },
        "d"_a, "panels"_a);
    m.def("chi_rule", [](double d) { return rule_of([&] { return chi_rule(d); }); }, "d"_a);
    m.def(
        "angle_rule",
        [](double d, double spacing) { return rule_of([&] { return angle_rule(d, spacing); }); }, "d"_a,
        "spacing"_a);

    m.def("direction_tail", py::vectorize(&direction_tail), "d"_a, "tau"_a);
    m.def("direction_moment", py::vectorize(&direction_moment), "d"_a, "tau"_a);
    m.def("direction_density", py::vectorize(&direction_density), "d"_a, "tau"_a);

    py::class_<Smoother>(m, "Smoother")
        .def(py::init<const Activation&, double>(), "activation"_a, "d"_a)
        .def(
            "evaluate",
            [](const Smoother& s, const In& at, const In& R) {
                return three(at, R, [&](auto... args) { s.evaluate(args...); });
            },
            "m"_a, "R"_a, "S, its derivatives with respect to m and to R.")
        .def(
            "curvature",
            [](const Smoother& s, const In& at, const In& R) {
                return three(at, R, [&](auto... args) { s.curvature(args...); });
            },
            "m"_a, "R"_a, "Second derivatives of S: mm, mR, RR.");

    py::class_<ChiPanels, std::shared_ptr<ChiPanels>>(m, "ChiPanels")
        .def(py::init<double, Index>(), "d"_a, "panels"_a = 0)
        .def_property_readonly("panels", &ChiPanels::panels)
        .def_property_readonly(
            "rule", [](const ChiPanels& panels) { return pair(panels.rule()); }, "Nodes and weights.");

    py::class_<NormalPanels, std::shared_ptr<NormalPanels>>(m, "NormalPanels")
        .def(py::init<Index, double>(), "panels"_a, "end"_a = 8.3)
        .def_property_readonly("panels", &NormalPanels::panels)
        .def_property_readonly("end", &NormalPanels::end)
        .def_property_readonly(
            "rule", [](const NormalPanels& panels) { return pair(panels.rule()); }, "Nodes and weights.");

    py::class_<ReducedFeatures, std::shared_ptr<ReducedFeatures>>(m, "ReducedFeatures")
        .def(py::init([](const Activation& activation, bool has_a, bool has_b, std::vector<double> dims,
                         const In& nodes, std::shared_ptr<const ChiPanels> panels,
                         std::shared_ptr<const NormalPanels> along, double scale,
                         std::vector<double> centres) {
                 return std::make_shared<ReducedFeatures>(activation, has_a, has_b, std::move(dims),
                                                          matrix(nodes, "nodes"), std::move(panels),
                                                          std::move(along), scale, std::move(centres));
             }),
             "activation"_a, py::kw_only(), "has_a"_a, "has_b"_a, "dims"_a, "nodes"_a, "panels"_a = nullptr,
             "along"_a = nullptr, "scale"_a = 1.0, "centres"_a = std::vector<double>{})
        .def_property_readonly("coordinates", &ReducedFeatures::coordinates)
        .def_property_readonly("size", &ReducedFeatures::size)
        .def_property_readonly("nanoseconds", &ReducedFeatures::nanoseconds)
        .def(
            "features",
            [](const ReducedFeatures& f, const In& z, int threads) {
                const ConstMat points = matrix(z, "z", f.coordinates());
                auto phi = make({points.rows, f.size()});
                double* out = phi.mutable_data();
                Released nogil;
                f.evaluate(points, out, nullptr, threads);
                return phi;
            },
            "z"_a, "threads"_a = 0)
        .def(
            "gradients",
            [](const ReducedFeatures& f, const In& z, int threads) {
                const ConstMat points = matrix(z, "z", f.coordinates());
                auto grad = make({points.rows, f.size(), f.coordinates()});
                double* out = grad.mutable_data();
                Released nogil;
                f.evaluate(points, nullptr, out, threads);
                return grad;
            },
            "z"_a, "threads"_a = 0);

    m.def(
        "compress",
        [](const In& values, double tolerance) {
            const ConstMat table = matrix(values, "values");
            LowRank low;
            {
                Released nogil;
                low = compress(table, tolerance);
            }
            auto basis = make({table.rows, low.rank});
            auto coefficients = make({low.rank, table.cols});
            std::copy(low.basis.begin(), low.basis.end(), basis.mutable_data());
            std::copy(low.coefficients.begin(), low.coefficients.end(), coefficients.mutable_data());
            return py::make_tuple(basis, coefficients, low.error);
        },
        "values"_a, "tolerance"_a);
}

}  // namespace mfcore::bindings
