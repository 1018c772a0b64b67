#include "lightcone/distributed/sharding/sharding.h"

#include <algorithm>

#include "lightcone/base/error.h"

namespace lc::distributed {

bool Sharding::is_whole() const {
  return partial.empty() && std::ranges::all_of(axes, [](const Axes& a) { return a.empty(); });
}
bool Sharding::uses(int mesh_axis) const {
  return std::ranges::any_of(axes, [&](const Axes& a) { return std::ranges::find(a, mesh_axis) != a.end(); });
}

bool divides(int ranks, const Dim& extent) { return ranks == 1 || extent % Dim(ranks) == Dim(0); }
Dim divided(const Dim& extent, int ranks) { return ranks == 1 ? extent : extent / Dim(ranks); }

Shape local(const Mesh& mesh, const Shape& shape, const Sharding& s) {
  Shape part = shape;
  for (std::size_t i = 0; i < part.size(); ++i) part[i] = divided(part[i], mesh.extent(s.axes[i]));
  return part;
}

namespace {

// A factor of an axis: an axis of the base or the outermost part of one; base -1: anything else.
struct Piece {
  int base;
  Dim extent;
};
using Pieces = std::vector<Piece>;  // outermost first; their product is the axis

// Follows axes of the base through one move after the other.
class Follower {
 public:
  Follower(const View& view, const std::vector<int>& shards) : shards_(shards), shape_(view.base()) {
    for (std::size_t i = 0; i < shape_.size(); ++i) at_.push_back({{static_cast<int>(i), shape_[i]}});
  }

  void move(const Move& m) {
    const std::vector<Pieces> before = at_;
    at_.clear();
    for (const Dim& d : m.to) at_.push_back({{-1, d}});
    switch (m.kind) {
      case MoveKind::Permute:
        for (std::size_t i = 0; i < at_.size(); ++i) at_[i] = before[static_cast<std::size_t>(m.axes[i])];
        break;
      case MoveKind::Expand:
        for (std::size_t i = 0; i < at_.size(); ++i)
          if (shape_[i] == m.to[i]) at_[i] = before[i];
        break;
      case MoveKind::Slice:
        for (std::size_t i = 0; i < at_.size(); ++i)
          if (m.before[i] == Dim(0) && m.step[i] == 1 && shape_[i] == m.to[i]) at_[i] = before[i];
        break;
      case MoveKind::Pad:
        for (std::size_t i = 0; i < at_.size(); ++i)
          if (m.before[i] == Dim(0) && shape_[i] == m.to[i]) at_[i] = before[i];
        break;
      case MoveKind::Unfold:
        for (std::size_t i = 0; i < before.size(); ++i)
          if (static_cast<int>(i) != m.axes[0]) at_[i] = before[i];
        break;
      case MoveKind::Reshape: reshape(m.to, before); break;
    }
    shape_ = m.to;
  }

  // The shape of the rank's part.
  Shape part() const {
    Shape s;
    for (const Pieces& pieces : at_) {
      s.push_back(1);
      for (const Piece& p : pieces) s.back() = s.back() * divided(p.extent, parts(p));
    }
    return s;
  }
  Tracks tracks() const {
    Tracks t;
    for (const Pieces& pieces : at_) {
      int of = pieces.front().base;
      Dim before = pieces.front().extent;
      std::optional<Dim> outer;
      for (std::size_t k = 1; k < pieces.size() && !outer; before = before * pieces[k++].extent)
        if (parts(pieces[k]) > 1) outer = before;
      if (outer && parts(pieces.front()) == 1) of = -1;
      t.of.push_back(of), t.outer.push_back(outer);
    }
    return t;
  }

 private:
  int parts(const Piece& p) const { return p.base < 0 ? 1 : shards_[static_cast<std::size_t>(p.base)]; }

  // Axes of the two shapes form groups of one product.
  void reshape(const Shape& to, const std::vector<Pieces>& before) {
    const auto one = [](const Dim& d) { return d == Dim(1); };
    std::size_t i = 0, j = 0;
    while (true) {
      while (i < shape_.size() && one(shape_[i])) ++i;
      while (j < to.size() && one(to[j])) ++j;
      if (i == shape_.size() || j == to.size()) return;
      const std::size_t first = i, first_to = j;
      Dim a = shape_[i++], b = to[j++];
      while (!(a == b) && (i < shape_.size() || j < to.size())) {
        // The smaller product takes the next axis; it is the one that divides the other.
        const bool grow_a = i < shape_.size() && (j == to.size() || provably_below(a, b) || b % a == Dim(0));
        if (grow_a) a = a * shape_[i++];
        else b = b * to[j++];
      }
      if (!(a == b)) return;
      Pieces pieces;
      for (std::size_t k = first; k < i; ++k)
        for (const Piece& p : before[k])
          if (!one(p.extent)) pieces.push_back(p);
      regroup(pieces, to, first_to, j);
    }
  }

  // Makes the axes [begin, end) of a shape of pieces. If they do not fit, the outermost axis goes to the outermost one.
  void regroup(Pieces pieces, const Shape& to, std::size_t begin, std::size_t end) {
    const Piece first = pieces.front();
    std::size_t next = 0;
    for (std::size_t j = begin; j < end; ++j) {
      if (to[j] == Dim(1)) continue;
      Pieces own;
      for (Dim left = to[j]; !(left == Dim(1));) {
        if (next == pieces.size() || pieces[next].extent == Dim(0) || left == Dim(0))
          return outermost(first, to, begin, end);
        Piece& p = pieces[next];
        if (left % p.extent == Dim(0)) {
          own.push_back(p), ++next;
          left = left / p.extent;
        } else if (p.extent % left == Dim(0)) {
          own.push_back({part_of(p, left), left});
          p = {-1, p.extent / left};
          left = 1;
        } else {
          return outermost(first, to, begin, end);
        }
      }
      at_[j] = std::move(own);
    }
  }
  void outermost(const Piece& first, const Shape& to, std::size_t begin, std::size_t end) {
    for (std::size_t j = begin; j < end; ++j) at_[j] = {{j == begin ? part_of(first, to[j]) : -1, to[j]}};
  }
  int part_of(const Piece& p, const Dim& extent) const { return divides(parts(p), extent) ? p.base : -1; }

  const std::vector<int>& shards_;
  Shape shape_;
  std::vector<Pieces> at_;  // by axis
};

}  // namespace

Tracks tracks(const View& view, const std::vector<int>& shards) {
  Follower f(view, shards);
  for (const Move& m : view.moves()) f.move(m);
  return f.tracks();
}

View local(const View& view, const std::vector<int>& shards) {
  Follower f(view, shards);
  View part(f.part());
  for (Move m : view.moves()) {
    f.move(m);
    m.to = f.part();
    part = part.then(std::span<const Move>(&m, 1));
  }
  return part;
}

}  // namespace lc::distributed
