// Operands: values as an operation wants to read them.
#include <algorithm>

#include "lightcone/distributed/sharding/sharder.h"
#include "lightcone/passes/barrier.h"

namespace lc::distributed {
namespace {

// True if a part of the axis is nothing but padding. A compiler that finds that something is zero at one rank's place
// may leave out an exchange for which other ranks wait: a barrier hides such parts, on all ranks alike. What is
// computed from numbers alone, as a mask is, is hidden for the same reason.
bool pads_a_part(const Tensor& x, int axis, const Dim& length, int parts) {
  const auto moves = x.view().moves();
  if (std::ranges::none_of(moves, [](const Move& m) { return m.kind == MoveKind::Pad; })) return false;
  for (int k = 0; k < parts; ++k) {
    const View part = x.slice(axis, length * Dim(k), length * Dim(k + 1)).view();
    std::vector<Dim> index;
    for (std::size_t i = 0; i < part.shape().size(); ++i)
      index.push_back(Dim::index(static_cast<int>(i), part.shape()[i]));
    if (part.locate(std::move(index)).valid.bounds().hi == 0) return true;
  }
  return false;
}

}  // namespace

std::vector<int> Sharder::shards(const Sharding& s) const {
  std::vector<int> n;
  for (const Axes& a : s.axes) n.push_back(mesh_.extent(a));
  return n;
}

// The mesh axes along which the axes of an operand are divided as it lies.
std::vector<Axes> Sharder::seen(const Edge& e) const {
  const Sharding& s = held(e).s;
  const Tracks t = tracks(view_of(e), shards(s));
  std::vector<Axes> all;
  for (const int axis : t.of) all.push_back(axis < 0 ? Axes() : s.axes[static_cast<std::size_t>(axis)]);
  return all;
}

// The operand with its axes divided as `want` says. Sums of parts are added up, but for those over `kept`.
Locals Sharder::at(const Edge& e, const std::vector<Axes>& want, const Axes& kept) {
  Held h = held(e);
  const View view = view_of(e);
  add_up(h, view, want, kept);
  Tracks t = tracks(view, shards(h.s));
  for (std::size_t axis = 0; axis < h.s.axes.size(); ++axis) {
    if (h.s.axes[axis].empty()) continue;
    const auto place = std::ranges::find(t.of, static_cast<int>(axis));
    if (place == t.of.end() || want[static_cast<std::size_t>(place - t.of.begin())] != h.s.axes[axis])
      exchanger_.gather(h, axis, gathers_again_ && is_behind_loss_ && !depends_on_data_[e.node]);
  }
  t = tracks(view, shards(h.s));
  for (Tensor& x : h.local) x = x.with(x.view().then(local(view, shards(h.s))));
  for (std::size_t i = 0; i < want.size(); ++i) {
    const bool is_divided = t.of[i] >= 0 && !h.s.axes[static_cast<std::size_t>(t.of[i])].empty();
    if (want[i].empty() || is_divided) continue;
    if (exchanger_.any_serial(want[i]) && h.local.size() == 1)
      h.local.resize(static_cast<std::size_t>(exchanger_.places()), h.local[0]);
    const int axis = static_cast<int>(i);
    const Dim length = divided(h.local[0].extent(axis), mesh_.extent(want[i]));
    const bool differs = std::ranges::any_of(want[i], [&](int a) { return !exchanger_.is_serial(a); });
    for (std::size_t v = 0; v < h.local.size(); ++v) {
      const Dim first = length * Dim(exchanger_.place(static_cast<int>(v), want[i]));
      Tensor& x = h.local[v];
      if (differs && pads_a_part(x, axis, length, mesh_.extent(want[i]))) x = behind_barrier(x);
      x = x.slice(axis, first, first + length);
      if (differs && !reads_inputs_[e.node]) x = behind_barrier(x);
    }
  }
  return h.local;
}

// Adds the ranks' parts: into parts of the result if those are wanted, else into the whole on every rank.
void Sharder::add_up(Held& h, const View& view, const std::vector<Axes>& want, const Axes& kept) {
  Axes whole;
  for (const int a : Axes(h.s.partial)) {
    if (std::ranges::find(kept, a) != kept.end()) continue;
    if (!scatter(h, view, want, a)) whole.push_back(a);
  }
  if (!whole.empty()) exchanger_.add_up(h, whole);
}

bool Sharder::scatter(Held& h, const View& view, const std::vector<Axes>& want, int mesh_axis) {
  const auto place = std::ranges::find(want, Axes{mesh_axis});
  if (place == want.end()) return false;
  const auto i = static_cast<std::size_t>(place - want.begin());
  auto parts = shards(h.s);
  const int axis = tracks(view, parts).of[i];
  if (axis < 0 || parts[static_cast<std::size_t>(axis)] > 1) return false;
  const auto at = static_cast<std::size_t>(axis);
  parts[at] = mesh_.axes()[static_cast<std::size_t>(mesh_axis)].size;
  if (!divides(parts[at], h.local[0].extent(axis)) || tracks(view, parts).of[i] != axis) return false;
  exchanger_.scatter(h, mesh_axis, at);
  return true;
}

}  // namespace lc::distributed
