#pragma once
// The list of all kinds of activation, and the one way from a kind to its struct.
#include <cstddef>
#include <utility>

#include "network/kinds/custom.hpp"
#include "network/kinds/erf.hpp"
#include "network/kinds/gelu.hpp"
#include "network/kinds/kind.hpp"
#include "network/kinds/pieces.hpp"
#include "network/kinds/polynomials.hpp"
#include "network/kinds/sigmoid.hpp"
#include "network/kinds/silu.hpp"
#include "network/kinds/sine.hpp"
#include "network/kinds/softplus.hpp"
#include "network/kinds/tanh.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline network::kinds {

template <class... K>
struct List {
    static constexpr int kSize = sizeof...(K);
};
/// The default of Activation comes first.
using All = List<Linear, Relu, Erf, Tanh, Sigmoid, Softplus, Gelu, Silu, Sin, Cos, PiecewiseLinear,
                 Polynomial, Hermite, Custom>;

template <class Body, class First, class... Rest>
decltype(auto) visit_at(int place, Body&& body, List<First, Rest...>) {
    if constexpr (sizeof...(Rest) > 0)
        if (place != 0) return visit_at(place - 1, std::forward<Body>(body), List<Rest...>{});
    return body(First{});
}

/// Call body(K{}) with the struct K of the kind.
template <class Body>
decltype(auto) visit(Activation::Kind kind, Body&& body) {
    return visit_at(kind.place(), std::forward<Body>(body), All{});
}

/// Call body(kernel) with the kernel of sigma, for loops that are compiled once per kind.
template <class T, class Body>
decltype(auto) with_kernel(const Activation& sigma, Body&& body) {
    return visit(sigma.kind, [&]<class K>(K) -> decltype(auto) {
        using Kernel = typename K::template Kernel<T>;
        if constexpr (requires { Kernel{sigma}; })
            return body(Kernel{sigma});
        else
            return body(Kernel{});
    });
}

/// True if a kernel works on vectors in registers; the others work on spans in memory.
template <class Kernel, class T>
concept OfVectors = requires(const Kernel& kernel, Vec<T> t) { kernel(t); };
inline bool is_of_vectors(const Activation& sigma) {
    return with_kernel<double>(sigma, []<class K>(const K&) { return OfVectors<K, double>; });
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline network::kinds
