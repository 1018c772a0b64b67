// Fuses products into one kernel: several products of the same rows of A, and as a prologue the loop that computes
// these rows.
#include <algorithm>

#include "lightcone/backends/cpu/lower.h"
#include "lightcone/composites/composites.h"

namespace lc::backends::cpu {

// Returns the product that computes a result, directly or before its epilogue; null if no product does.
const MatmulPlan* CpuEmitter::matmul_of(NodeId result) const {
  const auto f = fused_.find(result);
  const auto c = matcher_.matmuls.find(f == fused_.end() ? result : f->second.producer);
  return c == matcher_.matmuls.end() ? nullptr : &c->second;
}

// Groups products of the same rows with packed weights into one kernel, such as Q, K and V, or gate and up.
void CpuEmitter::find_groups() {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;  // bytes of a result: a group's results are in one buffer
  const auto same_rows = [](const MatmulPlan& a, const MatmulPlan& b) {
    bool same = a.a_offset == b.a_offset && a.k.extent == b.k.extent && a.k.a == b.k.a && a.type == b.type &&
                a.type != WeightType::I8 && a.unit == b.unit && a.axes.size() == b.axes.size();
    for (std::size_t i = 0; same && i + 1 < a.axes.size(); ++i)
      same = a.axes[i].extent == b.axes[i].extent && a.axes[i].a == b.axes[i].a;
    return same;
  };
  std::map<NodeId, std::vector<std::vector<NodeId>>> by_rows;  // by the node of A
  for (NodeId id : partition_.results()) {
    const MatmulPlan* c = matmul_of(id);
    if (!c || !c->packed || g_[id].dtype != DType::F32 || product(g_[id].shape).bounds().hi > kMost ||
        c->axes.back().extent.bounds().lo < 1)
      continue;
    const Node& a = g_[c->a_node];
    if (a.op == Op::Input && !partition_.varies(c->a_node)) continue;  // the products are computed once, at load
    auto& groups = by_rows[c->a_node];
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const std::vector<NodeId>& of) {
      return of.size() < kMaxParts && same_rows(*matmul_of(of[0]), *c);
    });
    if (group != groups.end()) group->push_back(id);
    else groups.push_back({id});
  }
  for (const auto& [a, groups] : by_rows)
    for (const std::vector<NodeId>& group : groups)
      if (group.size() > 1) groups_[group[0]] = group;
}

// Returns the products of the group whose epilogue operands are already materialised, or come from an earlier product
// of the group and are read at the index that is written.
std::vector<NodeId> CpuEmitter::available(const std::vector<NodeId>& group) const {
  std::vector<NodeId> parts;
  bool tied = false;  // if set, all products must have the same number of columns
  for (NodeId id : group) {
    bool there = true, ties = tied;
    if (const auto f = fused_.find(id); f != fused_.end())
      for (NodeId k : f->second.epilogue->operands()) {
        if (new_id_[k] != kNone || g_[k].op == Op::Input) continue;
        const lowering::Loop& loop = *partition_.get<lowering::Loop>(id);
        const auto at =
            static_cast<std::size_t>(std::find(loop.buffers.begin(), loop.buffers.end(), k) - loop.buffers.begin());
        there = there && std::find(parts.begin(), parts.end(), k) != parts.end() && loop.same_index[at];
        ties = true;
      }
    const Dim& columns = matmul_of(id)->axes.back().extent;
    const bool even =
        std::all_of(parts.begin(), parts.end(), [&](NodeId p) { return matmul_of(p)->axes.back().extent == columns; });
    if (!there || (ties && !even)) continue;
    parts.push_back(id);
    tied = ties;
  }
  return parts;
}

// Returns how many steps the outermost loop of the loop that computes A takes per row, or nullopt if that loop cannot
// run strip by strip as a prologue of these products. It must compute nothing but their rows. It must also be so cheap
// compared with them that a short product, which has only one strip, loses nothing by computing it on one worker.
std::optional<Dim> CpuEmitter::steps_of_a_row(const std::vector<NodeId>& results) const {
  constexpr std::int64_t kLongestRow = 1 << 14, kMostBytes = 64 << 20;
  constexpr double kShare = 16;
  const MatmulPlan& c = *matmul_of(results[0]);
  const auto* loop = partition_.get<lowering::Loop>(c.a_node);
  const Node& a = g_[c.a_node];
  if (!loop || is(a, builtin::slice_scatter()) || a.dtype != DType::F32 || !partition_.varies(c.a_node) ||
      static_cast<std::size_t>(partition_.readers(c.a_node)) != results.size())
    return std::nullopt;
  if (!(c.a_offset == Dim(0)) || !(c.k.a == Dim(1)) || !(c.axes.back().a == Dim(0))) return std::nullopt;
  Dim row = c.k.extent, all = row;
  for (std::size_t i = c.axes.size() - 1; i-- > 0;) {
    if (!(c.axes[i].a == all) || !(c.axes[i].b == Dim(0))) return std::nullopt;
    all = all * c.axes[i].extent;
  }
  if (!(all == product(a.shape)) || all.bounds().lo < 1 || row.bounds().hi > kLongestRow ||
      all.bounds().hi > kMostBytes / 4)
    return std::nullopt;
  double columns = 0;
  for (NodeId id : results) columns += static_cast<double>(matmul_of(id)->axes.back().extent.bounds().lo);
  codegen::Kernel k = *loop->kernel;
  codegen::tile_loops(k, options_.tile_side, machine_);
  if (k.output_loops == 0 || !k.tiles.empty() || k.work * kShare > columns) return std::nullopt;
  const Dim step = all / k.loops[0].extent;
  if (!(step * k.loops[0].extent == all) || !(row % step == Dim(0))) return std::nullopt;
  return row / step;
}

// Finds the loops that can run as prologues of the products that read them.
void CpuEmitter::find_prologues() {
  std::set<NodeId> grouped;
  for (const auto& [first, group] : groups_) {
    grouped.insert(group.begin(), group.end());
    if (steps_of_a_row(group)) prologues_.insert(matmul_of(first)->a_node);
  }
  for (NodeId id : partition_.results())
    if (matmul_of(id) && !grouped.contains(id) && steps_of_a_row({id})) prologues_.insert(matmul_of(id)->a_node);
}

// Returns the shapes of products of the same rows, as one text at the sum of the first one.
std::map<NodeId, std::string> CpuEmitter::shapes_of_products(const std::vector<NodeId>& results) const {
  std::vector<Dim> others;
  for (std::size_t p = 1; p < results.size(); ++p) others.push_back(matmul_of(results[p])->axes.back().extent);
  const auto f = fused_.find(results[0]);
  return {{f == fused_.end() ? results[0] : f->second.producer, lowering::shapes_of(*matmul_of(results[0]), others)}};
}

// Emits one product, or several of the same rows, as one kernel with a node for each result.
void CpuEmitter::emit_products(Graph& dst, const std::vector<NodeId>& results) {
  Draft d = draft(results[0]);
  Node& out = d.node;
  const auto reads = [&](NodeId k) {
    if (new_id_[k] == kNone)
      emit_node(dst, k);  // an input with a later number, or a loop that is no prologue after all
    read(d, dst, k);
    return static_cast<int>(out.in.size()) - 1;
  };
  const NodeId a = matmul_of(results[0])->a_node;
  MatmulRows rows;
  if (const auto steps = new_id_[a] == kNone ? steps_of_a_row(results) : std::nullopt) {
    const lowering::Loop& b = *partition_.get<lowering::Loop>(a);
    for (NodeId k : b.buffers) reads(k);
    rows = {std::make_shared<LoopKernel>(*b.kernel, b.same_index), *steps, b.buffers.size()};
    name_loop(*rows.loop);
    loop_kernels_.push_back(rows.loop);
    ++log_.fired["rows made in the product"];
  } else {
    reads(a);
  }
  std::vector<MatmulPart> parts;
  for (NodeId id : results) {
    const MatmulPlan& c = *matmul_of(id);
    if (c.packed) {
      if (new_id_[c.b_node] == kNone) emit_node(dst, c.b_node);
      read_from(d, dst, packed(dst, c), c.b_node);
    } else {
      reads(c.b_node);
    }
    parts.push_back({.c = c, .epilogue = nullptr, .operands = {}});
  }
  std::vector<Origin::Step> made;
  const std::map<NodeId, std::string> shapes = shapes_of_products(results);
  for (std::size_t p = 0; p < results.size(); ++p) {
    if (const auto f = fused_.find(results[p]); f != fused_.end()) {
      parts[p].epilogue = behind(f->second);
      for (NodeId k : f->second.epilogue->operands()) {
        const auto part = std::find(results.begin(), results.end(), k);
        parts[p].operands.push_back(part == results.end() ? reads(k) : ~static_cast<int>(part - results.begin()));
      }
    }
    std::vector<NodeId> known = d.operands;
    known.insert(known.end(), results.begin(), results.begin() + static_cast<std::ptrdiff_t>(p));
    for (Origin::Step& s : steps(g_, results[p], known, shapes)) made.push_back(std::move(s));
    ++log_.fired["matmul"];
  }
  const bool several = results.size() > 1;
  if (several) {
    ++log_.fired["products of the same rows"];
    out.dtype = DType::F32, out.shape = {matmul_bytes(parts) / 4};
  }
  auto kernel = matmul_kernel(parts, std::move(rows), options_.target->isa, Blocking(machine_));
  kernel->origin = {"cpu: matmul", std::move(made), {}};
  out.name = kernel->name(), kernel->device = device_, out.kernel = std::move(kernel);
  const NodeId whole = new_id_[results[0]] = dst.add(std::move(out));
  for (std::size_t p = 0; several && p < results.size(); ++p) {
    const Node& n = g_[results[p]];
    Node part{.op = Op::Kernel, .dtype = n.dtype, .shape = n.shape, .where = n.where};
    part.in.push_back({whole, View(dst[whole].shape)});
    auto kernel_of_part = part_kernel(parts, p);
    kernel_of_part->device = device_, part.name = kernel_of_part->name(), part.kernel = std::move(kernel_of_part);
    new_id_[results[p]] = dst.add(std::move(part));
  }
}

}  // namespace lc::backends::cpu
