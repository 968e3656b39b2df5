#pragma once
// The samples of a run, drawn a little ahead by the threads that use them.
#include <algorithm>
#include <atomic>
#include <type_traits>
#include <utility>

#include "base/scratch.hpp"
#include "mfcore/data/data.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline sgd {

/// The samples of a segment of a run, of which three pieces are in memory, near the cores: the one in use, the one
/// to come and the one that others may not have left yet. A piece is some whole blocks of steps. Who would have to
/// wait for others draws meanwhile, a few samples at a time, so that uneven shares of neurons even out. Where only
/// one thread may draw, all samples of a segment are drawn when it begins, and are one piece.
template <class T>
class Samples {
public:
    Samples(SamplerPtr sampler, std::uint64_t seed)
        : sampler_(std::move(sampler)), seed_(seed), d_(sampler_->dimension()) {}

    /// True if a segment takes the same memory however long it is.
    bool in_pieces() const { return sampler_->concurrent(); }
    /// Begin a segment: samples first .. first + rows - 1, in blocks of `block`, drawn at most `chunk` at a time.
    void open(Index first, Index rows, Index block, Index chunk) {
        constexpr Index kPiece = 4096;  // numbers of a piece, at least
        const Index held = !in_pieces() && first == first_ ? rows_ : 0;
        first_ = first;
        rows_ = std::max(held, rows);
        piece_ = in_pieces() ? (kPiece + block * d_ - 1) / (block * d_) * block : rows_;
        chunk_ = chunk;
        const Index pieces = std::min(kPieces, (rows_ + piece_ - 1) / piece_);
        if (y_.size() < static_cast<std::size_t>(pieces * piece_)) {
            x_.resize(pieces * piece_ * d_);
            y_.resize(pieces * piece_);
        }
        next_ = 0;
        if (in_pieces()) return;
        next_ = rows_;
        if (held == rows_) return;
        rows_ = held;  // if the sampler throws
        fill(held, next_);
        rows_ = next_;
    }

    Index rows() const { return rows_; }
    /// Rows [begin, end) of the segment, which are of one piece.
    MatView<const T> x(Index begin, Index end) const {
        return {x_.data() + place(begin) * d_, end - begin, d_};
    }
    const T* y(Index begin) const { return y_.data() + place(begin); }

    Index piece_of(Index row) const { return row / piece_; }
    /// Draw what nobody has begun of a piece. The one before it has been drawn, or others are drawing it.
    void draw(Index piece) {
        while (draw_some(piece)) {
        }
    }
    /// Draw some samples of it; false if none is left.
    bool draw_some(Index piece) {
        const Index last = std::min(rows_, (piece + 1) * piece_);
        Index begin = next_.load(std::memory_order_relaxed), end = 0;
        do {
            if (begin >= last) return false;
            end = std::min(last, begin + chunk_);
        } while (!next_.compare_exchange_weak(begin, end, std::memory_order_relaxed));
        fill(begin, end);
        return true;
    }

private:
    static constexpr Index kPieces = 3;

    Index place(Index row) const { return row / piece_ % kPieces * piece_ + row % piece_; }

    void fill(Index begin, Index end) {
        const Index at = place(begin), count = end - begin;
        if constexpr (std::is_same_v<T, double>) {
            sampler_->draw(seed_, first_ + begin, {&x_[at * d_], count, d_}, &y_[at]);
        } else {
            Scratch<double> x(count * d_), y(count);
            sampler_->draw(seed_, first_ + begin, {x.data(), count, d_}, y.data());
            std::copy(x.begin(), x.end(), &x_[at * d_]);
            std::copy(y.begin(), y.end(), &y_[at]);
        }
    }

    SamplerPtr sampler_;
    std::uint64_t seed_;
    Index d_, first_ = -1, rows_ = 0, piece_ = 1, chunk_ = 1;
    std::atomic<Index> next_{0};  // the first row that nobody has begun to draw
    Scratch<T> x_, y_;
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline sgd
