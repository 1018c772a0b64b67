#include "lightcone/stablehlo/write/concat.h"

#include <algorithm>

#include "lightcone/lowering/factors.h"
#include "lightcone/stablehlo/write/writer.h"

namespace lc::stablehlo {
namespace {

// The box of indices where a mask is 1, as [lo, hi) of each axis.
struct Box {
  Sizes lo, hi;
  friend bool operator==(const Box&, const Box&) = default;
};

// Intersects a box with the half-space below < 0. An open axis stays whole.
bool cut(const Dim& below, const std::vector<Dim>& symbols, Box& box) {
  const auto l = lowering::linear(below * Dim(-1) - 1, symbols);
  if (!l || !l->offset.constant()) return false;
  std::optional<std::size_t> axis;
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    if (l->strides[i] == Dim(0)) continue;
    if (axis || !(l->strides[i] == Dim(1) || l->strides[i] == Dim(-1))) return false;
    axis = i;
  }
  if (!axis || is_open(box.hi[*axis])) return false;
  if (l->strides[*axis] == Dim(1)) box.lo[*axis] = std::max(box.lo[*axis], -*l->offset.constant());
  else box.hi[*axis] = std::min(box.hi[*axis], *l->offset.constant() + 1);
  return true;
}

std::optional<Box> box_of(SizeTable& sizes, const Dim& mask, const Shape& shape) {
  Box box{Sizes(shape.size(), 0), sizes.of(shape)};
  if (mask == Dim(1)) return box;
  if (mask.offset() != 0 || mask.terms().size() != 1 || mask.terms()[0].coefficient != 1) return std::nullopt;
  const std::vector<Dim> symbols = index_symbols(shape);
  for (const Dim::Atom* a : mask.terms()[0].factors)
    if (a->kind != Dim::Kind::Less || !cut(a->a - a->b, symbols, box)) return std::nullopt;
  return box;
}

// A view that ends in padding: its unpadded part, and the box of that part.
struct Padded {
  Edge x;
  Box box;
};
std::optional<Padded> padded(SizeTable& sizes, const Edge& e) {
  const auto moves = e.view.moves();
  if (moves.empty() || moves.back().kind != MoveKind::Pad) return std::nullopt;
  Padded p{{e.node, e.view.without_last(1)}, {}};
  const Sizes inner = sizes.of(p.x.view.shape());
  p.box.lo = sizes.of(moves.back().before);
  for (std::size_t i = 0; i < inner.size(); ++i) p.box.hi.push_back(sizes.sum(p.box.lo[i], inner[i]));
  return p;
}

const Node* mask_of(const Graph& g, const Node& n) {
  const Node& mask = g[n.in[0].node];
  return mask.op == Op::Index && n.in[0].view.identity() ? &mask : nullptr;
}

}  // namespace

std::optional<Padding> match_padding(SizeTable& sizes, const Graph& g, NodeId id) {
  const Node& n = g[id];
  if (n.op != Op::Where || g[n.in[2].node].op != Op::Constant || pads(n.in[2].view)) return std::nullopt;
  const Node* mask = mask_of(g, n);
  const auto p = padded(sizes, n.in[1]);
  const auto box = mask ? box_of(sizes, mask->index, n.shape) : std::nullopt;
  if (!p || !box || !(*box == p->box)) return std::nullopt;
  Padding r{p->x, p->box.lo, {}, g[n.in[2].node].value};
  for (std::size_t i = 0; i < n.shape.size(); ++i) r.high.push_back(sizes.of(n.shape[i] - sizes.dim(p->box.hi[i])));
  return r;
}

std::optional<Joint> match_joint(SizeTable& sizes, const Graph& g, NodeId id, const std::vector<int>& uses) {
  Joint j;
  std::optional<std::size_t> axis;
  std::int64_t end = 0;  // end of the current piece along the axis
  const auto whole_but_for_axis = [&](const Box& box, const Shape& s) {
    for (std::size_t i = 0; i < s.size(); ++i)
      if (i != *axis && (box.lo[i] != 0 || box.hi[i] != sizes.of(s[i]))) return false;
    return true;
  };
  for (NodeId at = id;;) {  // from the last piece to the first
    const Node& n = g[at];
    if (n.op != Op::Where) return std::nullopt;
    const Node* mask = mask_of(g, n);
    const auto before = mask ? box_of(sizes, mask->index, n.shape) : std::nullopt;
    const auto piece = padded(sizes, n.in[2]);
    if (!before || !piece) return std::nullopt;
    if (!axis) {
      for (std::size_t i = 0; i < n.shape.size(); ++i)
        if (piece->box.lo[i] != 0) axis = i;
      if (!axis || is_open(piece->box.hi[*axis])) return std::nullopt;
      end = sizes.of(n.shape[*axis]);
    }
    const std::int64_t begin = before->hi[*axis];
    if (before->lo[*axis] != 0 || !whole_but_for_axis(*before, n.shape) || !whole_but_for_axis(piece->box, n.shape) ||
        piece->box.lo[*axis] != begin || piece->box.hi[*axis] != end)
      return std::nullopt;
    j.pieces.push_back(piece->x);
    end = begin;
    if (const auto first = padded(sizes, n.in[1])) {
      if (first->box.lo[*axis] != 0 || first->box.hi[*axis] != end || !whole_but_for_axis(first->box, n.shape))
        return std::nullopt;
      j.pieces.push_back(first->x);
      break;
    }
    if (!n.in[1].view.identity() || uses[n.in[1].node] != 1) return std::nullopt;
    at = n.in[1].node;
  }
  std::ranges::reverse(j.pieces);
  j.axis = *axis;
  return j;
}

ValueId write_padding(Writer& w, const Padding& p) {
  Builder& b = w.builder();
  const ValueId x = w.value(p.x);
  return b.pad(x, b.splat(b.element(x), {}, p.value), p.low, p.high);
}

ValueId write_joint(Writer& w, const Joint& j) {
  std::vector<ValueId> pieces;
  for (const Edge& e : j.pieces) pieces.push_back(w.value(e));
  return w.builder().concatenate(pieces, j.axis);
}

}  // namespace lc::stablehlo
