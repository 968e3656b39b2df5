// Python bindings of random numbers by address.
#include <string>
#include <variant>

#include "arrays.hpp"
#include "mfcore/base/random_rows.hpp"

namespace mfcore::bindings {
namespace {

using random::kPurposeNames;
using random::Purpose;
using random::Stream;
using PurposeArg = std::variant<std::string, std::uint32_t>;

Purpose purpose_of(const PurposeArg& arg) {
    if (const auto* number = std::get_if<std::uint32_t>(&arg)) {
        require(*number < kPurposeNames.size(), "purpose", "must be registered in PURPOSES", *number);
        return Purpose{*number};
    }
    const std::string& name = std::get<std::string>(arg);
    std::uint32_t found = 0;
    while (found < kPurposeNames.size() && kPurposeNames[found] != name) ++found;
    require(found < kPurposeNames.size(), "purpose", "must be registered in PURPOSES", name);
    return Purpose{found};
}

template <class T, class Fill>
py::array filled(const Stream& stream, std::uint64_t first, Index count, Fill fill) {
    auto out = make<T>({count});
    T* const data = out.mutable_data();
    {
        Released nogil;
        in_pieces(count, kPiece, [&](Index k, Index n) {
            fill(stream, first + static_cast<std::uint64_t>(k), n, data + k);
        });
    }
    return out;
}

// Bind a pair of overloads void (stream, first, count, double* or float*).
template <class Fill>
void bind_filler(py::module_& m, const char* name, Fill fill) {
    m.def(
        name,
        [fill](std::uint64_t seed, const PurposeArg& purpose, std::uint64_t step, std::uint64_t first,
               Index count, const py::object& dtype) -> py::array {
            require(count >= 0, "count", "must be >= 0", count);
            const Stream stream{seed, purpose_of(purpose), step};
            const py::dtype type = py::dtype::from_args(dtype);
            if (type.equal(py::dtype::of<float>())) return filled<float>(stream, first, count, fill);
            require(type.equal(py::dtype::of<double>()), "dtype", "must be float64 or float32",
                    std::string(py::str(type)));
            return filled<double>(stream, first, count, fill);
        },
        py::arg("seed"), py::arg("purpose"), py::arg("step"), py::arg("first"), py::arg("count"),
        py::arg("dtype") = "float64");
}

}  // namespace

void bind_random(py::module_& m) {
    py::dict purposes;
    for (std::size_t k = 0; k < kPurposeNames.size(); ++k) purposes[kPurposeNames[k]] = k;
    m.attr("PURPOSES") = purposes;
    m.def("philox4x32", &random::philox4x32, py::arg("counter"), py::arg("key"));
    bind_filler(m, "uniforms", [](auto... args) { random::uniforms(args...); });
    bind_filler(m, "normals", [](auto... args) { random::normals(args...); });
    m.def(
        "fill_rows",
        [](py::array_t<double> out, const std::string& kind, double shift, double scale, std::uint64_t seed,
           const PurposeArg& purpose, std::uint64_t step, int threads, Index first) {
            require(kind == "normal" || kind == "uniform", "kind", "must be normal or uniform", kind);
            require(first >= 0, "first", "must be >= 0", first);
            const Stream stream{seed, purpose_of(purpose), step};
            const Mat rows = in_place(out, "out");
            const Released nogil;
            random::fill_rows(stream, kind == "normal" ? random::Numbers::normal : random::Numbers::uniform,
                              shift, scale, rows, threads, first);
        },
        py::arg("out").noconvert(), py::arg("kind"), py::arg("shift"), py::arg("scale"), py::arg("seed"),
        py::arg("purpose"), py::arg("step"), py::arg("threads") = 0, py::arg("first") = 0,
        "out[k, j] = shift + scale z, z number (first + k) columns + j of the stream, in place.");
    m.def(
        "chi_squares",
        [](std::uint64_t seed, std::uint64_t step, double degrees, std::uint64_t first, Index count) {
            require(count >= 0, "count", "must be >= 0", count);
            const Stream uniforms{seed, Purpose::langevin_accept, step};
            const auto fill = [&](const Stream& normals, std::uint64_t from, Index n, double* out) {
                random::chi_squares(normals, uniforms, degrees, from, n, out);
            };
            return filled<double>({seed, Purpose::langevin_radius, step}, first, count, fill);
        },
        py::arg("seed"), py::arg("step"), py::arg("degrees"), py::arg("first"), py::arg("count"));
    m.def(
        "signs",
        [](std::uint64_t seed, const PurposeArg& purpose, std::uint64_t step, std::uint64_t first,
           Index count) {
            require(count >= 0, "count", "must be >= 0", count);
            return filled<double>({seed, purpose_of(purpose), step}, first, count, random::signs);
        },
        py::arg("seed"), py::arg("purpose"), py::arg("step"), py::arg("first"), py::arg("count"));
    m.def(
        "permutation",
        [](std::uint64_t seed, const PurposeArg& purpose, std::uint64_t step, Index n) {
            require(n >= 0, "n", "must be >= 0", n);
            const Stream stream{seed, purpose_of(purpose), step};
            auto out = make<std::int64_t>({n});
            std::int64_t* const data = out.mutable_data();
            {
                Released nogil;
                random::permutation(stream, n, data);
            }
            return out;
        },
        py::arg("seed"), py::arg("purpose"), py::arg("step"), py::arg("n"));
}

}  // namespace mfcore::bindings
