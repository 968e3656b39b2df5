// Python bindings of the samplers of data laws, and a sampler that calls Python.
#include "mfcore/data/data.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "arrays.hpp"

namespace mfcore::bindings {
namespace {

// pybind11 wants a holder of the class it was told about; samplers have no methods that write.
using SamplerHolder = std::shared_ptr<Sampler>;
SamplerHolder hold_sampler(const SamplerPtr& sampler) { return std::const_pointer_cast<Sampler>(sampler); }

Link python_link(Index p, py::function function) {
    Link link;
    link.dimension = p;
    link.concurrent = false;
    link.evaluate = [f = keep_object(std::move(function))](ConstMat z, double* y) {
        with_gil([&] {
            auto copy = make({z.rows, z.cols});
            for (Index k = 0; k < z.rows; ++k) std::copy_n(z.row(k), z.cols, copy.mutable_data(k, 0));
            const auto values = (*f)(copy).template cast<In>();
            std::copy_n(vector(values, "values of link", z.rows), z.rows, y);
        });
    };
    return link;
}

Link polynomial_link(Index p, std::vector<std::pair<double, std::vector<std::pair<Index, int>>>> terms) {
    std::vector<HermiteTerm> list;
    for (auto& [coefficient, factors] : terms) list.push_back({coefficient, std::move(factors)});
    return hermite_link(p, std::move(list));
}

/// Batches from Python: draw(seed, first, count) -> (X, y) must be addressable.
class PythonSampler final : public Sampler {
public:
    PythonSampler(Index d, py::function function) : d_(d), draw_(keep_object(std::move(function))) {}
    Index dimension() const override { return d_; }
    bool concurrent() const override { return false; }
    void draw(std::uint64_t seed, Index first, Mat x, double* y) const override {
        with_gil([&] {
            const auto [inputs, labels] = (*draw_)(seed, first, x.rows).template cast<std::pair<In, In>>();
            const ConstMat from = matrix(inputs, "X", d_);
            require_count(from.rows, x.rows, "X", "rows");
            for (Index k = 0; k < x.rows; ++k) std::copy_n(from.row(k), d_, x.row(k));
            std::copy_n(vector(labels, "y", x.rows), x.rows, y);
        });
    }

private:
    const Index d_;
    const std::shared_ptr<const py::function> draw_;
};

py::tuple draw_samples(const Sampler& sampler, std::uint64_t seed, Index first, Index count) {
    require(count >= 0, "count", "must be >= 0", count);
    auto x = make({count, sampler.dimension()});
    auto y = make({count});
    const Mat out = writable(x);
    double* labels = y.mutable_data();
    {
        Released nogil;
        const Index piece = sampler.concurrent() ? std::max<Index>(1, (1 << 20) / out.cols) : count;
        in_pieces(count, piece, [&](Index k, Index rows) {
            sampler.draw(seed, first + k, out.middle_rows(k, rows), labels + k);
        });
    }
    return py::make_tuple(x, y);
}

Inputs inputs_named(const std::string& name) {
    static const std::map<std::string, Inputs> names = {
        {"gaussian", Inputs::gaussian}, {"hypercube", Inputs::hypercube}, {"sphere", Inputs::sphere}};
    const auto found = names.find(name);
    require(found != names.end(), "inputs", "must be gaussian, hypercube or sphere", name);
    return found->second;
}

ConstMat rows_or_none(const std::optional<In>& a, const char* name) {
    return a ? matrix(*a, name) : ConstMat{};
}

}  // namespace

void bind_data(py::module_& m) {
    py::class_<Sampler, SamplerHolder>(m, "Sampler", "Draws samples of a data law by number.")
        .def_property_readonly("dimension", &Sampler::dimension)
        .def_property_readonly("size", &Sampler::size)
        .def_property_readonly("concurrent", &Sampler::concurrent)
        .def("draw", &draw_samples, py::arg("seed"), py::arg("first"), py::arg("count"));

    py::class_<Link>(m, "Link", "Noiseless labels of projected inputs.")
        .def_readonly("dimension", &Link::dimension)
        .def("__call__", [](const Link& link, const In& z) {
            const ConstMat rows = matrix(z, "z", link.dimension);
            auto y = make({rows.rows});
            link.evaluate(rows, y.mutable_data());
            return y;
        });
    m.def("hermite_link", &polynomial_link, py::arg("p"), py::arg("terms"));
    m.def("python_link", &python_link, py::arg("p"), py::arg("function"));
    m.def(
        "network_link",
        [](const Network& network, const In& theta, Index d) {
            return network_link(network, matrix(theta, "theta"), d);
        },
        py::arg("network"), py::arg("theta"), py::arg("d"));

    m.def(
        "isotropic_gaussians",
        [](Index d, double delta) { return hold_sampler(isotropic_gaussians(d, delta)); }, py::arg("d"),
        py::arg("delta"));
    m.def(
        "anisotropic_gaussians",
        [](Index d, Index s0, double delta, const std::optional<In>& basis) {
            if (!basis) return hold_sampler(anisotropic_gaussians(d, s0, delta));
            return hold_sampler(anisotropic_gaussians(matrix(*basis, "basis", d), delta));
        },
        py::arg("d"), py::arg("s0"), py::arg("delta"), py::arg("basis") = py::none());
    m.def(
        "multi_index",
        [](const std::string& inputs, Index d, const Link& link, const std::optional<In>& directions,
           double noise, const std::optional<In>& root) {
            const ConstMat rows = rows_or_none(directions, "directions");
            return hold_sampler(
                multi_index(inputs_named(inputs), d, link, rows, noise, rows_or_none(root, "root")));
        },
        py::arg("inputs"), py::arg("d"), py::arg("link"), py::arg("directions") = py::none(),
        py::arg("noise") = 0.0, py::arg("root") = py::none());
    m.def(
        "gaussian_mixture",
        [](const In& means, const std::vector<In>& roots, const In& labels, const In& weights) {
            const ConstMat rows = matrix(means, "means");
            std::vector<ConstMat> each;
            for (const In& root : roots) each.push_back(matrix(root, "roots"));
            return hold_sampler(gaussian_mixture(rows, each, vector(labels, "labels", rows.rows),
                                                 vector(weights, "weights", rows.rows)));
        },
        py::arg("means"), py::arg("roots"), py::arg("labels"), py::arg("weights"));
    m.def(
        "linear_law",
        [](const In& w, const std::optional<In>& root, double noise) {
            return hold_sampler(linear(w.size(), w.data(), rows_or_none(root, "root"), noise));
        },
        py::arg("w"), py::arg("root") = py::none(), py::arg("noise") = 0.0);
    m.def(
        "cube_nodes",
        [](Index d, const Link& link, const std::optional<In>& directions) {
            return hold_sampler(cube_nodes(d, link, rows_or_none(directions, "directions")));
        },
        py::arg("d"), py::arg("link"), py::arg("directions") = py::none());
    m.def(
        "finite_law",
        [](const In& x, const In& y) {
            const ConstMat rows = matrix(x, "X");
            const double* labels = vector(y, "y", rows.rows);
            return hold_sampler(finite_law(rows, labels, keep_object(py::make_tuple(x, y))));
        },
        py::arg("X"), py::arg("y"));
    m.def(
        "scaled_labels",
        [](const SamplerHolder& law, double factor) { return hold_sampler(scaled_labels(law, factor)); },
        py::arg("law"), py::arg("factor"));
    m.def("passes", [](const SamplerHolder& nodes) { return hold_sampler(passes(nodes)); }, py::arg("nodes"));
    m.def(
        "resampled", [](const SamplerHolder& nodes) { return hold_sampler(resampled(nodes)); },
        py::arg("nodes"));
    m.def(
        "python_sampler",
        [](Index d, py::function function) -> SamplerHolder {
            return std::make_shared<PythonSampler>(d, std::move(function));
        },
        py::arg("d"), py::arg("draw"));
}

}  // namespace mfcore::bindings
