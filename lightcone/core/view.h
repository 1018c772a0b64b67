// View: how an edge reads its producer's buffer without copying.
//
// A View is the shape of a row-major buffer and a list of moves applied to it, adjacent moves merged if that is exact.
// The buffer position of a logical index is found by mapping it back through the moves, newest first. Dim does the
// simplification; gradients use the transpose of each move. Any rank and zero-size extents work. Views are immutable
// and shared.
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
  Shape to;                    // the shape after this move
  std::vector<int> axes = {};  // Permute: to[i] = from[axes[i]];  Unfold: {axis}
  Shape before = {};           // Slice: first element read;  Pad: zeros added before
  // Slice: a step per axis, negative to flip. Unfold: {stride between windows, dilation inside one}.
  std::vector<std::int64_t> step = {};
  friend bool operator==(const Move&, const Move&) = default;
};

class View {
 public:
  View();  // a scalar's view
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
  // Windows of `size` elements along `axis`, `dilation` apart inside a window, `stride` apart between windows. The axis
  // becomes the number of windows; a new last axis runs inside the window.
  View unfold(int axis, Dim size, std::int64_t stride, std::int64_t dilation) const;
  View then(const View& next) const;  // requires next.base() == shape()
  View then(std::span<const Move> next) const;
  View without_last(std::size_t moves) const;

  // True if there are few moves and positions are cheap to compute. A graph splits an edge with any other view by a
  // Contiguous: each reshape after a permute may double the cost of computing a position.
  bool simple() const;
  static constexpr std::size_t kMostMoves = 32, kMostParts = 512;

  struct Position {
    Dim offset;              // into the base buffer
    Dim valid;               // 1, or 0 where padding is read
    std::vector<Dim> index;  // per axis of the base; may be out of range if padding is read
  };
  Position locate(std::vector<Dim> index) const;

  // offset + sum of strides[i] * index[i], if nothing is padded: the fast path.
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
