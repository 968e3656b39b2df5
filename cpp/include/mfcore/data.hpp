#pragma once
// Data laws P(x, y) as samplers: sample k is addressable, the same whatever is drawn before or beside it.
#include <cstdint>
#include <functional>
#include <memory>

#include "mfcore/views.hpp"

namespace mfcore {

class Sampler {
public:
    virtual ~Sampler() = default;
    virtual Index dimension() const = 0;
    /// Number of nodes of a finite law, all of equal weight 1/size (datasets, enumerated cubes); 0 for the
    /// others.
    virtual Index size() const { return 0; }
    /// May draw() be called from several threads at once? (False where it calls Python.)
    virtual bool concurrent() const { return true; }
    /// Samples first .. first + x.rows - 1 of the stream of `seed`; for a finite law the nodes of these
    /// numbers.
    virtual void draw(std::uint64_t seed, Index first, Mat x, double* y) const = 0;
};

using SamplerPtr = std::shared_ptr<const Sampler>;

}  // namespace mfcore
