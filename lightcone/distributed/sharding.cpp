#include "lightcone/distributed/sharding.h"

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

// Follows axes of the base through one move after the other.
class Follower {
 public:
  Follower(const View& view, const std::vector<int>& shards) : shards_(shards), shape_(view.base()) {
    for (std::size_t i = 0; i < shape_.size(); ++i) at_.push_back(static_cast<int>(i));
  }

  void move(const Move& m) {
    const std::vector<int> before = at_;
    at_.assign(m.to.size(), -1);
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

  int shards(std::size_t axis) const { return at_[axis] < 0 ? 1 : shards_[static_cast<std::size_t>(at_[axis])]; }
  // The shape of the rank's part.
  Shape part() const {
    Shape s = shape_;
    for (std::size_t i = 0; i < s.size(); ++i) s[i] = divided(s[i], shards(i));
    return s;
  }
  std::vector<int> take() && { return std::move(at_); }

 private:
  // Axes of the two shapes form groups of one product. The outermost axis of a group goes to the outermost one.
  void reshape(const Shape& to, const std::vector<int>& before) {
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
      const int axis = before[first];
      if (axis >= 0 && divides(shards_[static_cast<std::size_t>(axis)], to[first_to])) at_[first_to] = axis;
    }
  }

  const std::vector<int>& shards_;
  Shape shape_;
  std::vector<int> at_;
};

}  // namespace

Tracks tracks(const View& view, const std::vector<int>& shards) {
  Follower f(view, shards);
  for (const Move& m : view.moves()) f.move(m);
  Tracks t;
  t.of = std::move(f).take();
  for (std::size_t i = 0; i < shards.size(); ++i)
    if (shards[i] > 1 && std::ranges::find(t.of, static_cast<int>(i)) == t.of.end()) t.stuck.push_back(i);
  return t;
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

std::optional<int> merged_from(const View& view, int axis) {
  if (view.identity() || view.moves().back().kind != MoveKind::Reshape) return std::nullopt;
  const Shape from = view.without_last(1).shape(), &to = view.shape();
  const auto before = static_cast<std::size_t>(axis), after = to.size() - before - 1;
  if (from.size() < to.size() + 1) return std::nullopt;
  const bool others = std::equal(to.begin(), to.begin() + axis, from.begin()) &&
                      std::equal(to.end() - static_cast<std::ptrdiff_t>(after), to.end(),
                                 from.end() - static_cast<std::ptrdiff_t>(after));
  return others ? std::optional(axis) : std::nullopt;
}

}  // namespace lc::distributed
