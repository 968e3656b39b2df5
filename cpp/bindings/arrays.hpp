#pragma once
// Translation between NumPy arrays and views. The Python layer has already checked values; shapes are checked
// here too, because C++ trusts them with memory.
#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "deadline.hpp"
#include "mfcore/base/errors.hpp"
#include "mfcore/base/kept.hpp"
#include "mfcore/base/views.hpp"

namespace mfcore::bindings {

namespace py = pybind11;
template <class T>
using Array = py::array_t<T, py::array::c_style | py::array::forcecast>;
using In = Array<double>;

template <class T>
MatView<const T> matrix(const Array<T>& a, const char* name, Index cols = -1) {
    require(a.ndim() == 2, name, "must have 2 dimensions", a.ndim());
    if (cols >= 0) require_count(a.shape(1), cols, name, "columns");
    return {a.data(), a.shape(0), a.shape(1)};
}

template <class T>
const T* vector(const Array<T>& a, const char* name, Index size) {
    require(a.ndim() == 1, name, "must have 1 dimension", a.ndim());
    require_count(a.shape(0), size, name, "entries");
    return a.data();
}

/// A new NumPy array of the given shape, uninitialised.
template <class T = double>
py::array_t<T> make(std::vector<py::ssize_t> shape) {
    std::size_t bytes = sizeof(T);
    for (const py::ssize_t n : shape) bytes *= static_cast<std::size_t>(std::max<py::ssize_t>(n, 0));
    if (!KeptMemory::suits(bytes)) return py::array_t<T>(std::move(shape));
    auto memory = std::make_unique<KeptMemory>(bytes);
    const auto* data = static_cast<const T*>(memory->data());
    const py::capsule owner(memory.get(), [](void* m) { delete static_cast<KeptMemory*>(m); });
    memory.release();
    return py::array_t<T>(std::move(shape), data, owner);
}

template <class T>
MatView<T> writable(py::array_t<T>& a) {
    return {a.mutable_data(), a.shape(0), a.shape(1)};
}

/// The caller's own array, never a copy, whose rows must be without gaps and one after the other.
inline Mat in_place(py::array_t<double>& a, const char* name) {
    constexpr py::ssize_t size = sizeof(double);
    require(a.ndim() == 2, name, "must have 2 dimensions", a.ndim());
    const py::ssize_t rows = a.shape(0), cols = a.shape(1), step = rows > 1 ? a.strides(0) : cols * size;
    require((cols <= 1 || a.strides(1) == size) && step >= cols * size && step % size == 0, name,
            "must have rows without gaps, with a row stride of", step);
    return {a.mutable_data(), rows, cols, step / size};
}

/// A vector as an array of one dimension.
template <class T>
py::array_t<T> array_of(const std::vector<T>& values) {
    auto array = make<T>({static_cast<py::ssize_t>(values.size())});
    std::copy(values.begin(), values.end(), array.mutable_data());
    return array;
}

/// The entries of an array in a dictionary of arrays, such as a state.
template <class T>
std::vector<T> entry_of(const py::dict& arrays, const char* name) {
    const auto array = arrays[name].cast<Array<T>>();
    return {array.data(), array.data() + array.size()};
}

/// A Python object the core may drop on any thread, with or without the GIL.
template <class Object>
std::shared_ptr<const Object> keep_object(Object object) {
    return {new Object(std::move(object)), [](const Object* p) { with_gil([&] { delete p; }); }};
}

inline constexpr Index kPiece = 1 << 16;  // entries of the loops that functions of arrays are

void bind_deadline(py::module_& m);
void bind_run(py::module_& m);
void bind_random(py::module_& m);
void bind_activation(py::module_& m);
void bind_data(py::module_& m);
void bind_network(py::module_& m);
void bind_gaussian(py::module_& m);
void bind_reduction(py::module_& m);
void bind_estimate(py::module_& m);
void bind_sgd(py::module_& m);
void bind_layer_wise(py::module_& m);
void bind_step(py::module_& m);
void bind_grid(py::module_& m);
void bind_flow(py::module_& m);
void bind_separable(py::module_& m);
void bind_fokker_planck(py::module_& m);

}  // namespace mfcore::bindings
