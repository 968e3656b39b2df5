#pragma once
// Step sizes as Python gives them: of runs of SGD and of layer-wise training.
#include <functional>
#include <tuple>

#include "arrays.hpp"

namespace mfcore::bindings {

/// steps(first, count, h): step sizes of steps first .. first + count - 1.
using StepSizes = std::function<void(Index, Index, double*)>;

/// `step`: the size of every step, (h, k, rest), or a function.
inline StepSizes sizes_of(const py::object& step) {
    if (py::isinstance<py::float_>(step)) {
        const double h = step.cast<double>();
        return [h](Index, Index count, double* out) { std::fill_n(out, count, h); };
    }
    if (py::isinstance<py::tuple>(step)) {  // (h, k, rest): step k alone has the size `rest`
        const auto [h, at, rest] = step.cast<std::tuple<double, Index, double>>();
        return [h = h, at = at, rest = rest](Index begin, Index count, double* out) {
            std::fill_n(out, count, h);
            if (begin <= at && at < begin + count) out[at - begin] = rest;
        };
    }
    // step(first, count) -> array; kept alive by the shared pointer, dropped under the GIL.
    return [call = keep_object(py::function(step))](Index begin, Index count, double* out) {
        with_gil([&] {
            const In h = (*call)(begin, count).cast<In>();
            std::copy_n(vector(h, "schedule", count), count, out);
        });
    };
}

}  // namespace mfcore::bindings
