// Matrices of random numbers by address.
#include "mfcore/base/random_rows.hpp"

#include <algorithm>

#include "base/parallel.hpp"
#include "base/scratch.hpp"
#include "mfcore/base/errors.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base::random {

void fill_rows(const Stream& stream, Numbers kind, double shift, double scale, Mat out, int threads,
               Index first) {
    require(out.rows >= 0 && out.cols >= 0, "out", "must have rows and columns >= 0",
            std::min(out.rows, out.cols));
    require(first >= 0, "first", "must be >= 0", first);
    constexpr Index kPiece = 1 << 13;  // numbers that stay in the cache from draw to store
    const Index rows = std::max<Index>(1, kPiece / std::max<Index>(out.cols, 1));
    const bool gaps = out.stride != out.cols;
    const int team = threads_for(2 * out.rows * out.cols, threads);
    for_blocks(out.rows, rows, team, [&](Index, Index begin, Index end) {
        const Index n = (end - begin) * out.cols;
        const auto number = static_cast<std::uint64_t>((first + begin) * out.cols);
        Scratch<double> memory(gaps ? n : 0);
        double* const z = gaps ? memory.data() : out.row(begin);
        if (kind == Numbers::normal)
            normals(stream, number, n, z);
        else
            uniforms(stream, number, n, z);
        // Two loops, not one: fused to one rounding, the bits would not be those of NumPy's shift + scale z.
        for (Index k = 0; k < n; ++k) z[k] *= scale;
        for (Index k = 0; k < n; ++k) z[k] += shift;
        for (Index k = begin; gaps && k < end; ++k)
            std::copy_n(z + (k - begin) * out.cols, out.cols, out.row(k));
    });
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline base::random
