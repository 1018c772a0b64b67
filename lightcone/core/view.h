// View: how an edge reads the buffer behind it, without copying.
//
// A View is the shape of a row-major buffer and the list of moves applied to it, neighbours
// merged where that is exact. The buffer position of a logical index is found by pulling that
// index back through the moves, newest first; simplification belongs to Dim, gradients to the
// transpose of each move. Any rank and zero-size extents work. Views are immutable and shared.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lightcone/core/dim.h"

namespace lc {

enum class MoveKind : std::uint8_t { Permute, Expand, Reshape, Slice, Pad, Unfold };

struct Move {
  MoveKind kind;
  Shape to;                             // the shape after this move
  std::vector<int> axes = {};           // Permute: to[i] = from[axes[i]];  Unfold: {axis}
  Shape before = {};                    // Slice: first element read;  Pad: elements added before
  std::vector<std::int64_t> step = {};  // Slice: a step per axis, negative to flip;
                                        // Unfold: {stride between windows, dilation inside one}
  friend bool operator==(const Move&, const Move&) = default;
};

class View {
 public:
  View();  // of a scalar
  explicit View(Shape base);

  const Shape& base() const;
  const Shape& shape() const;
  std::span<const Move> moves() const;
  bool identity() const { return moves().empty(); }
  std::size_t hash() const;

  View permute(std::vector<int> axes) const;
  View expand(Shape to) const;   // repeats axes of extent 1
  View reshape(Shape to) const;  // same number of elements, row-major order
  View slice(Shape begin, Shape extent, std::vector<std::int64_t> step = {}) const;
  View pad(Shape before, Shape after) const;  // with zeros
  // Windows of `size` elements of `axis`, `dilation` apart inside a window, `stride` between
  // windows: the axis becomes the number of windows, the window is a new last axis.
  View unfold(int axis, Dim size, std::int64_t stride, std::int64_t dilation) const;
  View then(const View& next) const;  // next.base() == shape()
  View then(std::span<const Move> next) const;
  View without_last(std::size_t moves) const;

  // Few moves, and positions that are computed in a few steps. Of an edge whose view is not, a graph makes two, with
  // a Contiguous between them: each reshape behind a permute may double what there is to compute for an element.
  bool simple() const;
  static constexpr std::size_t kMostMoves = 32, kMostParts = 512;

  struct Position {
    Dim offset;              // into the base buffer
    Dim valid;               // 1, or 0 where padding is read
    std::vector<Dim> index;  // the same by axes of the base; where padding is read they may lie outside
  };
  Position locate(std::vector<Dim> index) const;

  // offset + sum of strides[i] * index[i], where nothing is padded: the fast path.
  struct Strided {
    Dim offset;
    std::vector<Dim> strides;  // 0 for extents of 1
  };
  std::optional<Strided> strided() const;

  friend bool operator==(const View& a, const View& b);

 private:
  struct Data;
  View with(Move m) const;
  std::shared_ptr<const Data> data_;
};

Dim ravel(std::span<const Dim> index, const Shape& shape);
std::vector<Dim> unravel(Dim offset, const Shape& shape);
std::vector<Dim> index_symbols(const Shape& shape);  // i0, i1, ... over the shape

}  // namespace lc
