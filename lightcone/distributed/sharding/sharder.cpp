#include "lightcone/distributed/sharding/sharder.h"

#include <algorithm>

#include "lightcone/composites/composites.h"
#include "lightcone/distributed/sharding/specs.h"
#include "lightcone/passes/barrier.h"
#include "lightcone/passes/gradient_marks.h"

namespace lc::distributed {
namespace {

Mesh with_serial_axes(const Mesh& ranks, const std::vector<MeshAxis>& serial) {
  std::vector<MeshAxis> all(ranks.axes().begin(), ranks.axes().end());
  all.insert(all.end(), serial.begin(), serial.end());
  return Mesh(std::move(all));
}

// The axes along which a result is the sum, or the maximum, of parts.
Axes parts_of(const Plan& p, std::size_t result, bool maxima) {
  const std::vector<int>& labels = p.rule.results[result];
  Axes all = maxima ? Axes() : p.kept;
  for (std::size_t l = 0; l < p.rule.labels.size(); ++l) {
    const LabelKind kind = p.rule.labels[l];
    const bool added = maxima ? kind == LabelKind::Max : kind == LabelKind::Sum || kind == LabelKind::Indexed;
    if (!added || std::ranges::find(labels, static_cast<int>(l)) != labels.end()) continue;
    for (const int axis : p.axes[l])
      if (std::ranges::none_of(p.of(labels), [&](const Axes& a) { return std::ranges::find(a, axis) != a.end(); }))
        all.push_back(axis);
  }
  std::ranges::sort(all);
  return all;
}

// The axes of the operation, of which the rule has some as several.
Tensor joined(const Tensor& t, const std::vector<int>& labels, int own_labels) {
  Shape s;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const Dim extent = t.extent(static_cast<int>(i));
    if (labels[i] < own_labels) s.push_back(extent);
    else s.back() = s.back() * extent;
  }
  return s.size() == labels.size() ? t : t.reshape(s);
}

}  // namespace

Sharder::Sharder(const Graph& src, const Collectives& ranks, const ShardSpecs& specs, const ShardOptions& options,
                 PassLog& log)
    : src_(src),
      ranks_(ranks),
      specs_(specs),
      gathers_again_(options.reshard_after_forward),
      mesh_(with_serial_axes(ranks.mesh(), options.serial)),
      log_(log),
      exchanger_(ranks, mesh_, log),
      to_(src.size()) {}

Graph Sharder::run() {
  read_specs();
  find_hints();
  const auto live = src_.live();
  for (NodeId id = 0; id < src_.size(); ++id)
    if (live[id] || is_state(id)) node(id);
  note_whole_parameters();
  is_behind_loss_ = false;
  for (const Root& r : src_.roots()) {
    made_for(r.edge.node, -1);
    dst_.root(r.name, at(r.edge, std::vector<Axes>(r.edge.view.shape().size()), {})[0].edge());
  }
  for (const Assignment& a : src_.assignments()) {
    made_for(a.next.node, -1);
    // The input of a state has all serial parts.
    std::vector<Axes> want = given_.at(a.state).axes;
    for (Axes& axes : want) std::erase_if(axes, [&](int axis) { return exchanger_.is_serial(axis); });
    dst_.assignment(inputs_.at(a.state), at(a.next, want, {})[0].edge());
  }
  made_for(0, -1);
  return std::move(dst_);
}

bool Sharder::is_state(NodeId id) const {
  return std::ranges::any_of(src_.assignments(), [&](const Assignment& a) { return a.state == id; });
}

void Sharder::read_specs() {
  const SpecIndex index(specs_);
  for (NodeId id = 0; id < src_.size(); ++id) {
    const Node& n = src_[id];
    if (n.op != Op::Input) continue;
    given_.emplace(id, sharding_of(mesh_, specs_, index, n.name, n.shape));
  }
}

// Values that depend on data, and not on parameters and states alone, stay where they are when two operands cannot.
// What becomes the next value of a state is best computed as the state is spread, and so is what it is computed from.
void Sharder::find_hints() {
  depends_on_data_.resize(src_.size()), reads_inputs_.resize(src_.size()), follows_loss_.resize(src_.size());
  hints_.resize(src_.size());
  for (NodeId id = 0; id < src_.size(); ++id) {
    const Node& n = src_[id];
    follows_loss_[id] = is(n, gradient_seed()) ||
                        std::ranges::any_of(n.in, [&](const Edge& e) { return follows_loss_[e.node] != false; });
    reads_inputs_[id] =
        n.op == Op::Input || std::ranges::any_of(n.in, [&](const Edge& e) { return reads_inputs_[e.node] != false; });
    depends_on_data_[id] = (n.op == Op::Input && !n.parameter && !is_state(id)) ||
                           std::ranges::any_of(n.in, [&](const Edge& e) { return depends_on_data_[e.node] != false; });
  }
  for (const Assignment& a : src_.assignments())
    if (a.next.view.identity()) hint(a.next.node, given_.at(a.state));
  for (NodeId id = static_cast<NodeId>(src_.size()); id-- > 0;) {
    if (!hints_[id]) continue;
    const Node& n = src_[id];
    const Kind kind = info(n.op).kind;
    std::vector<Axes> of_operand = hints_[id]->axes;
    if (kind == Kind::Reduce) of_operand.insert(of_operand.begin() + n.axis, Axes());
    else if (kind != Kind::Elementwise && kind != Kind::Copy) continue;
    for (const Edge& e : n.in) hint(e.node, through(e.view, of_operand));
  }
}

// The sharding of a value whose axes are read through a view and divided there like this.
Sharding Sharder::through(const View& view, const std::vector<Axes>& axes) const {
  Sharding s(view.base().size());
  for (std::size_t i = 0; i < s.axes.size(); ++i) {
    for (std::size_t k = 0; k < axes.size() && s.axes[i].empty(); ++k) {
      if (axes[k].empty() || !divides(mesh_.extent(axes[k]), view.base()[i])) continue;
      std::vector<int> parts(s.axes.size(), 1);
      parts[i] = mesh_.extent(axes[k]);
      if (tracks(view, parts).of[k] == static_cast<int>(i)) s.axes[i] = axes[k];
    }
  }
  return s;
}

void Sharder::hint(NodeId id, const Sharding& s) {
  if (!hints_[id] && !s.is_whole()) hints_[id] = s;
}

// What is made from here on serves this node.
void Sharder::made_for(NodeId node, int place) {
  purposes_.resize(dst_.size(), current_);
  current_ = {node, place};
}

void Sharder::node(NodeId id) {
  const Node& n = src_[id];
  const OpScope scope(n.where);
  made_for(id, -1);
  is_behind_loss_ = follows_loss_[id];
  if (n.op == Op::Input) {
    input(id);
  } else if (info(n.op).kind == Kind::Leaf) {
    to_[id] = {{{Tensor(dst_, {dst_.adopt(n, {}), View(n.shape)})}, Sharding(n.shape.size()), View(n.shape)}};
  } else if (n.op == Op::Result) {
    to_[id] = {to_[n.in[0].node].at(static_cast<std::size_t>(n.axis))};
  } else if (n.op == Op::Kernel) {
    throw Error("shard", "the graph has kernels of a device already: put shard() in front of it");
  } else if (n.composite && n.composite->loop) {
    loop(id);
  } else {
    operation(id);
  }
}

// The input of a graph is the rank's part, which is then cut into serial parts.
void Sharder::input(NodeId id) {
  const Node& n = src_[id];
  const Sharding& s = given_.at(id);
  Sharding of_rank = s;
  for (Axes& axes : of_rank.axes) {
    const auto serial = std::ranges::find_if(axes, [&](int a) { return exchanger_.is_serial(a); });
    if (std::any_of(serial, axes.end(), [&](int a) { return !exchanger_.is_serial(a); }))
      throw Error("shard", str_cat("'", n.name, "' is divided along a serial axis and then along one of the mesh: ",
                                   "name the axis of the mesh first"));
    axes.erase(serial, axes.end());
  }
  const Node part{.op = Op::Input,
                  .dtype = n.dtype,
                  .shape = local(mesh_, n.shape, of_rank),
                  .parameter = n.parameter,
                  .name = n.name,
                  .where = n.where};
  inputs_[id] = dst_.add(part);
  to_[id] = {{{Tensor(dst_, {inputs_[id], View(part.shape)})}, of_rank, View(n.shape)}};
  if (of_rank == s) return;
  to_[id] = {{at({id, View(n.shape)}, s.axes, {}), s, View(n.shape)}};
}

void Sharder::operation(NodeId id) {
  const Node& n = src_[id];
  const Plan p = plan(id);
  std::vector<Locals> in;
  for (std::size_t k = 0; k < n.in.size(); ++k) {
    made_for(n.in[k].node, -1);
    in.push_back(at(p.in[k], p.of(p.rule.operands[k]), p.kept));
  }
  made_for(id, -1);
  for (std::size_t l = 0; l < p.rule.labels.size(); ++l)
    if (p.rule.labels[l] == LabelKind::Indexed && !p.axes[l].empty()) move_index(n, p, static_cast<int>(l), in);
  const bool serial = std::ranges::any_of(in, [](const Locals& l) { return l.size() > 1; });
  std::vector<Locals> out(results_of(n).size());
  for (int v = 0; v < (serial ? exchanger_.places() : 1); ++v) {
    if (serial) made_for(id, v);
    std::vector<Tensor> here;
    for (std::size_t k = 0; k < in.size(); ++k)
      here.push_back(
          joined(in[k][in[k].size() == 1 ? 0 : static_cast<std::size_t>(v)], p.rule.operands[k], p.own_labels));
    const auto made = p.rule.local ? emit_local(n, p, here, v) : emit(n, here);
    for (std::size_t k = 0; k < made.size(); ++k) out[k].push_back(made[k]);
  }
  made_for(id, -1);
  for (std::size_t k = 0; k < out.size(); ++k) {
    const Shape& shape = p.out[k];
    const View whole(shape), view = shape == results_of(n)[k].shape ? whole : whole.reshape(results_of(n)[k].shape);
    Held h{std::move(out[k]), Sharding(), view};
    h.s.axes = p.of(p.rule.results[k]);
    if (!view.identity())
      for (Tensor& t : h.local) t = t.reshape(local(mesh_, shape, h.s));
    h.s.partial = parts_of(p, k, false);
    const Axes maxima = parts_of(p, k, true);
    if (maxima.empty()) exchanger_.simplify(h);
    else exchanger_.add_up(h, maxima, ReduceOp::Max);
    if (p.travels >= 0) {
      const auto table = std::ranges::find(p.rule.labels, LabelKind::Indexed) - p.rule.labels.begin();
      const auto& labels = p.rule.results[k];
      exchanger_.scatter(h, p.axes[static_cast<std::size_t>(table)][0],
                         static_cast<std::size_t>(std::ranges::find(labels, p.travels) - labels.begin()));
    }
    to_[id].push_back(std::move(h));
  }
}

// A rank that has rows [first, first + length) finds row i at i - first; what it does not have is out of range.
void Sharder::move_index(const Node& n, const Plan& p, int label, std::vector<Locals>& in) const {
  const Axes& axes = p.axes[static_cast<std::size_t>(label)];
  for (std::size_t k = 0; k < n.in.size(); ++k)
    for (std::size_t i = 0; i < p.rule.operands[k].size(); ++i) {
      if (p.rule.operands[k][i] != label) continue;
      Locals& index = in[static_cast<std::size_t>(p.rule.index)];
      const bool known = !reads_inputs_[n.in[static_cast<std::size_t>(p.rule.index)].node];  // see pads_a_part()
      if (exchanger_.any_serial(axes) && index.size() == 1)
        index.resize(static_cast<std::size_t>(exchanger_.places()), index[0]);
      for (std::size_t v = 0; v < index.size(); ++v) {
        const Dim rows = divided(p.in[k].view.shape()[i], mesh_.extent(axes)),
                  first = rows * Dim(exchanger_.place(static_cast<int>(v), axes));
        const Tensor wide = prim::cast(index[v], DType::I64);
        const Tensor shift = full_like(wide, -first.constant().value_or(0));
        index[v] = prim::add(wide, known ? behind_barrier(shift) : shift);
      }
      return;
    }
}

std::vector<Tensor> Sharder::emit(const Node& n, const std::vector<Tensor>& in) {
  if (n.op == Op::Composite) return call(n.composite, in, n.attributes, SourceLocation(n.where.file, n.where.line));
  std::vector<Edge> edges;
  for (const Tensor& t : in) edges.push_back(t.edge());
  const NodeId made = dst_.adopt(n, std::move(edges));
  return {Tensor(dst_, {made, View(dst_[made].shape)})};
}

std::vector<Tensor> Sharder::emit_local(const Node& n, const Plan& p, const std::vector<Tensor>& in, int place) {
  const auto before = static_cast<NodeId>(dst_.size());
  const std::function<int(const Axes&)> of = [&](const Axes& axes) { return exchanger_.place(place, axes); };
  std::vector<Tensor> out = p.rule.local({ranks_, n, p.axes, of, in});
  for (NodeId id = before; id < dst_.size(); ++id)
    if (is_exchange(dst_[id])) ++log_.fired[dst_[id].composite->name];
  return out;
}

bool Sharder::is_exchange(const Node& n) const {
  using Operation = Collective::Operation;
  for (const Operation o : {Operation::AllReduce, Operation::AllGather, Operation::ReduceScatter, Operation::AllToAll,
                            Operation::Broadcast, Operation::Permute})
    if (is(n, ranks_.composite(o))) return true;
  return false;
}

}  // namespace lc::distributed
