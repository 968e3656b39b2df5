#pragma once
// A function of the caller's, called once for each span of some hundred numbers.
#include <algorithm>
#include <cmath>
#include <functional>
#include <type_traits>

#include "network/kinds/kind.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline network::kinds {

struct Custom {
    static constexpr const char* name = "custom";
    static Facts facts(const Activation& sigma) {
        return {.strip = sigma.span.strip, .curved = sigma.span.curved, .kinks = sigma.span.kinks};
    }
    static void validate(const Activation& sigma) {
        const Activation::Span& span = sigma.span;
        require(span.function != nullptr, "function", "must not be null", "null");
        require(span.strip >= 0, "strip", "must be >= 0", span.strip);
        require_finite(span.kinks, "kinks");
        require(std::ranges::adjacent_find(span.kinks, std::greater_equal{}) == span.kinks.end(), "kinks",
                "must be strictly increasing", list(span.kinks));
    }

    /// A function of spans, not of vectors. Spans are whole groups, so that a loop compiled for vectors leaves
    /// no remainder, which another code would do with other bits. Arguments are copied: outputs may be z.
    template <class T>
    struct Kernel {
        static constexpr Index kMost = 512, kGroup = 64;
        const Activation::Span& of;

        explicit Kernel(const Activation& sigma) : of(sigma.span) {}

        void operator()(Index n, const T* z, T* value, T* slope, T* curvature) const {
            require(!curvature || of.curved, "curvature", "must be given where it is needed", "none");
            alignas(64) double arguments[kMost], outputs[3][kMost];
            T* const to[3] = {value, slope, curvature};
            for (Index first = 0; first < n; first += kMost) {
                const Index count = std::min(kMost, n - first),
                            whole = (count + kGroup - 1) / kGroup * kGroup;
                std::copy_n(z + first, count, arguments);
                std::fill(arguments + count, arguments + whole, arguments[count - 1]);
                double* at[3] = {outputs[0], slope || curvature ? outputs[1] : nullptr,
                                 curvature ? outputs[2] : nullptr};
                if constexpr (std::is_same_v<T, double>)
                    for (int k = 0; k < 3; ++k)
                        if (to[k] && count == whole) at[k] = to[k] + first;
                of.function(whole, arguments, at[0], at[1], at[2], of.user);
                for (int k = 0; k < 3; ++k)
                    if (to[k] && at[k] == outputs[k])
                        for (Index i = 0; i < count; ++i) to[k][first + i] = static_cast<T>(at[k][i]);
            }
        }
    };
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline network::kinds
