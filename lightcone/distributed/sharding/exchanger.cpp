#include <algorithm>

#include "lightcone/distributed/sharding/sharder.h"
#include "lightcone/passes/barrier.h"

namespace lc::distributed {
namespace {

// The parts behind one another along an axis; a mask chooses, because 0 + -0 is not -0.
Tensor concatenated(const std::vector<Tensor>& parts, int axis) {
  const Dim n = parts[0].extent(axis), total = n * Dim(static_cast<std::int64_t>(parts.size()));
  Tensor all;
  Dim first = 0;
  for (const Tensor& part : parts) {
    const Tensor padded = part.pad(axis, first, total - first - n);
    const Dim is_before = less(Dim::index(axis, total), first);
    all = all.defined() ? prim::where(part.graph().index(padded.shape(), is_before, DType::Bool), all, padded) : padded;
    first = first + n;
  }
  return all;
}

}  // namespace

Exchanger::Exchanger(const Collectives& ranks, const Mesh& mesh, PassLog& log)
    : ranks_(ranks),
      mesh_(mesh),
      log_(log),
      real_axes_(static_cast<int>(ranks.mesh().axes().size())),
      places_(mesh.size() / ranks.mesh().size()) {}

bool Exchanger::any_serial(const Axes& axes) const {
  return std::ranges::any_of(axes, [&](int a) { return is_serial(a); });
}
int Exchanger::place(int serial_place, const Axes& axes) const {
  return mesh_.place(ranks_.rank() * places_ + serial_place, axes);
}
std::vector<int> Exchanger::serial_group(int serial_place, int axis) const {
  const int first = ranks_.rank() * places_;
  std::vector<int> group = mesh_.group(first + serial_place, std::vector{axis});
  for (int& member : group) member -= first;
  return group;
}

void Exchanger::simplify(Held& h) const {
  if (!any_serial(h.s.partial) && std::ranges::none_of(h.s.axes, [&](const Axes& a) { return any_serial(a); }))
    h.local.resize(1);
}

// Sums of narrow floats are f32, as those of a communicator.
Tensor Exchanger::added(const std::vector<Tensor>& parts, ReduceOp r) const {
  const DType dtype = parts[0].dtype();
  const bool widened = r == ReduceOp::Sum && is_float(dtype) && size_of(dtype) < 4;
  const DType type = widened ? DType::F32 : dtype;
  Tensor total = parts[0].to(type);
  for (std::size_t k = 1; k < parts.size(); ++k) {
    const Tensor part = parts[k].to(type);
    total = behind_barrier(r == ReduceOp::Sum ? prim::add(total, part) : prim::maximum(total, part));
  }
  return total.to(dtype);
}

void Exchanger::add_up(Held& h, const Axes& axes, ReduceOp r) {
  Axes real;
  for (const int a : axes) {
    std::erase(h.s.partial, a);
    if (!is_serial(a)) {
      real.push_back(a);
      continue;
    }
    Locals sums;
    for (int v = 0; v < places_; ++v) {
      const auto group = serial_group(v, a);
      if (group[0] < v) {
        sums.push_back(sums[static_cast<std::size_t>(group[0])]);
        continue;
      }
      std::vector<Tensor> parts;
      for (const int k : group) parts.push_back(at(h.local, k));
      sums.push_back(added(parts, r));
    }
    h.local = std::move(sums);
  }
  simplify(h);
  if (real.empty()) return;
  for (Tensor& t : h.local) t = counted("all_reduce", ranks_.all_reduce(t, names(real), r));
}

void Exchanger::scatter(Held& h, int mesh_axis, std::size_t axis) {
  const int parts = mesh_.axes()[static_cast<std::size_t>(mesh_axis)].size, i = static_cast<int>(axis);
  const Dim length = divided(h.local[0].extent(i), parts);
  std::erase(h.s.partial, mesh_axis);
  h.s.axes[axis] = {mesh_axis};
  if (is_serial(mesh_axis)) {
    Locals sums;
    for (int v = 0; v < places_; ++v) {
      const Dim first = length * Dim(place(v, {mesh_axis}));
      std::vector<Tensor> all;
      for (const int k : serial_group(v, mesh_axis)) all.push_back(at(h.local, k).slice(i, first, first + length));
      sums.push_back(added(all, ReduceOp::Sum));
    }
    h.local = std::move(sums);
    return;
  }
  // [.., n, ..] -> [ranks, .., n / ranks, ..]
  Shape rows = h.local[0].shape();
  rows[axis] = length;
  rows.insert(rows.begin() + i, Dim(parts));
  std::vector<int> order{i};
  for (int k = 0; k < static_cast<int>(rows.size()); ++k)
    if (k != i) order.push_back(k);
  for (Tensor& t : h.local)
    t = counted("reduce_scatter", ranks_.reduce_scatter(t.reshape(rows).permute(order), names({mesh_axis})));
}

void Exchanger::gather(Held& h, std::size_t axis, bool again) {
  Axes& left = h.s.axes[axis];  // the innermost axes are gathered first
  while (!left.empty()) {
    if (is_serial(left.back())) {
      Locals whole;
      for (int v = 0; v < places_; ++v) {
        std::vector<Tensor> parts;
        for (const int k : serial_group(v, left.back())) parts.push_back(at(h.local, k));
        whole.push_back(concatenated(parts, static_cast<int>(axis)));
      }
      h.local = std::move(whole);
      left.pop_back();
    } else {
      auto first = left.end();
      while (first != left.begin() && !is_serial(first[-1])) --first;
      for (Tensor& t : h.local) t = gathered(t, Axes(first, left.end()), axis, again);
      left.erase(first, left.end());
    }
  }
  simplify(h);
}

// The attribute "again" keeps the operation apart from the one before.
Tensor Exchanger::gathered(const Tensor& x, const Axes& axes, std::size_t axis, bool again) {
  std::string along;
  for (const std::string& name : names(axes)) along += (along.empty() ? "" : "+") + name;
  std::vector<Attributes::Entry> attributes{{"axes", along}};
  if (again) attributes.push_back({"again", std::int64_t{1}});
  const CompositeRef& all_gather = ranks_.composite(Collective::Operation::AllGather);
  const Tensor rows = counted("all_gather", call(all_gather, {x}, Attributes(std::move(attributes)))[0]);
  Shape whole = x.shape();
  whole[axis] = whole[axis] * rows.extent(0);
  std::vector<int> order;
  for (int k = 1; k < rows.rank(); ++k) {
    if (k == static_cast<int>(axis) + 1) order.push_back(0);
    order.push_back(k);
  }
  return rows.permute(order).reshape(whole);
}

std::vector<std::string> Exchanger::names(const Axes& axes) const {
  std::vector<std::string> all;
  for (const int a : axes) all.push_back(mesh_.axes()[static_cast<std::size_t>(a)].name);
  return all;
}

Tensor Exchanger::counted(const char* what, Tensor t) {
  ++log_.fired[what];
  return t;
}

}  // namespace lc::distributed
