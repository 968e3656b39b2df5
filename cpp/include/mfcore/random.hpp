#pragma once
// Randomness is an address, not a state: number `item` of (seed, purpose, step) is the same whoever asks for
// it, in whatever order, chunk or thread. Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011) maps the address to
// bits.
#include <array>
#include <cstdint>

#include "mfcore/views.hpp"

namespace mfcore::random {

/// What the numbers are for. Append only: renumbering would change everybody's results.
enum class Purpose : std::uint32_t {
    init = 0,         // initial neurons
    inputs = 1,       // coordinates of x
    labels = 2,       // class signs, label choices
    label_noise = 3,  // additive noise on y
    langevin = 4,     // Brownian increments of the neurons
    shuffle = 5,      // order of a finite dataset
    held_out = 6,     // the sample on which risks are estimated
    replica = 7,      // seeds of replicas
    probe = 8,        // random directions and test functions of diagnostics
};

using Block = std::array<std::uint32_t, 4>;

/// The bare bijection, for the published known answers.
Block philox4x32(const Block& counter, const std::array<std::uint32_t, 2>& key);

/// One stream of numbers, item = 0, 1, 2, ...
struct Stream {
    std::uint64_t seed = 0;
    Purpose purpose = Purpose::probe;
    std::uint64_t step = 0;  // < 2^56
};

/// out[k] = number first + k of the stream: uniform on (0, 1), 53 random bits (24 for float).
void uniforms(const Stream& stream, std::uint64_t first, Index count, double* out);
void uniforms(const Stream& stream, std::uint64_t first, Index count, float* out);

/// out[k] = number first + k of the stream: standard normal (Box-Muller on packets).
void normals(const Stream& stream, std::uint64_t first, Index count, double* out);
void normals(const Stream& stream, std::uint64_t first, Index count, float* out);

/// out[k] = +1 or -1 with equal odds, number first + k of the stream.
void signs(const Stream& stream, std::uint64_t first, Index count, double* out);

/// A uniformly random permutation of 0 .. n-1 (Fisher-Yates), a function of the stream alone.
void permutation(const Stream& stream, Index n, std::int64_t* out);

}  // namespace mfcore::random
