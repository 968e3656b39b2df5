#pragma once
// Randomness is an address, not a state: number `item` of (seed, purpose, step) is the same whoever asks for
// it, in whatever order, chunk or thread. Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011) maps the address to
// bits. Its key is the seed; its four counter words are the block index (two words, low first), the low 32
// bits of the step, and purpose << 24 | step >> 32. Numbers of any kind are made of these same blocks, so a
// stream should be read as one kind only.
#include <array>
#include <cstdint>

#include "mfcore/base/views.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base::random {

/// The purpose of random numbers. Append only: renumbering would change everybody's results.
enum class Purpose : std::uint32_t {
    init = 0,               // initial neurons
    inputs = 1,             // coordinates of x
    labels = 2,             // class signs, label choices
    label_noise = 3,        // additive noise on y
    langevin = 4,           // Brownian increments of the neurons
    shuffle = 5,            // order of a finite dataset
    held_out = 6,           // the sample on which risks are estimated
    replica = 7,            // seeds of replicas
    probe = 8,              // random directions and test functions of diagnostics
    langevin_span = 9,      // blocked SGD: increments projected on the span of the block's samples
    langevin_rest = 10,     // blocked SGD: their sum orthogonal to it
    langevin_scalars = 11,  // blocked SGD: increments of output weights and biases
    langevin_radius = 12,   // reduced radii: normals for the increments across the point
    langevin_accept = 13,   // reduced radii: uniforms for the same
};

/// The names of the purposes, in order. Append here too.
inline constexpr std::array<const char*, 14> kPurposeNames = {
    "init",          "inputs",           "labels",          "label_noise",    "langevin",
    "shuffle",       "held_out",         "replica",         "probe",          "langevin_span",
    "langevin_rest", "langevin_scalars", "langevin_radius", "langevin_accept"};

/// 128 bits, what Philox makes of one counter.
using PhiloxBlock = std::array<std::uint32_t, 4>;

/// The Philox4x32-10 bijection itself, for comparison with the published known answers.
PhiloxBlock philox4x32(const PhiloxBlock& counter, const std::array<std::uint32_t, 2>& key);

/// One stream of numbers, item = 0, 1, 2, ...
struct Stream {
    std::uint64_t seed = 0;
    Purpose purpose = Purpose::probe;
    std::uint64_t step = 0;  // < 2^56
};

/// out[k] = number first + k of the stream: uniform on (0, 1), (b + 1/2) 2^-52 with 52 random bits b (23 for
/// float): one bit less than the type could hold, but never 0 or 1, symmetric about 1/2, and free of
/// rounding. Group g is made of blocks 8 g ... 8 g + 7: 16 doubles, the first 64 bits of each block and then
/// the last 64 of each, or 32 floats, words 0 and 1 of each block and then words 2 and 3 of each; the low
/// bits of them are used.
void uniforms(const Stream& stream, std::uint64_t first, Index count, double* out);
void uniforms(const Stream& stream, std::uint64_t first, Index count, float* out);

/// out[k] = number first + k of the stream: standard normal, by Box-Muller. Groups as above: the first half
/// of a group holds r cos t, the second r sin t, with r from the first bits of the blocks and t from the last
/// ones.
void normals(const Stream& stream, std::uint64_t first, Index count, double* out);
void normals(const Stream& stream, std::uint64_t first, Index count, float* out);

/// out[k] = number first + k < 2^40 of a pair of streams: chi-squared with any number of degrees of freedom
/// > 0. Marsaglia and Tsang (2000): attempt a = 0, 1, ..., 23 takes normal a 2^40 + first + k of one stream
/// and the uniform of the same number of the other, and fails with odds below 1/20; the last is taken as it
/// is. Below 2 degrees uniform 24 2^40 + first + k is the power that leads down from two more.
void chi_squares(const Stream& normals, const Stream& uniforms, double degrees, std::uint64_t first,
                 Index count, double* out);

/// out[k] = +1 or -1 with equal odds, number first + k of the stream: -1 if bit n % 128 of block n / 128 is
/// set.
void signs(const Stream& stream, std::uint64_t first, Index count, double* out);

/// A uniformly random permutation of 0 .. n-1: Fisher-Yates from the top, fed with the 64-bit words of the
/// stream in the order of the double uniforms.
void permutation(const Stream& stream, Index n, std::int64_t* out);

}  // namespace mfcore::inline MFCORE_LEVEL::inline base::random
