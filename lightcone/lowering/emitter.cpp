#include "lightcone/lowering/emitter.h"

#include "lightcone/composites/composites.h"

namespace lc::lowering {

Emitter::Emitter(const Graph& g, std::shared_ptr<Device> device, PassLog& log, std::string device_name)
    : g_(g), device_(std::move(device)), log_(log), new_id_(g.size(), kNone), device_name_(std::move(device_name)) {}

Emitter::Draft Emitter::draft(NodeId result) const {
  const Node& n = g_[result];
  return {{.op = Op::Kernel, .dtype = n.dtype, .shape = n.shape, .where = n.where}, {}};
}

void Emitter::read(Draft& d, const Graph& dst, NodeId k) const {
  check(new_id_[k] != kNone, "a kernel reads a value that is not in memory");
  read_from(d, dst, new_id_[k], k);
}

void Emitter::read_from(Draft& d, const Graph& dst, NodeId from, NodeId k) const {
  d.node.in.push_back({from, View(dst[from].shape)});
  d.operands.push_back(k);
}

NodeId Emitter::finish(Graph& dst, Draft d, std::shared_ptr<Kernel> kernel, const std::string& kind, NodeId result,
                       const std::map<NodeId, std::string>& shapes) {
  ++log_.fired[kind];
  kernel->origin = {device_name_ + ": " + kind, steps(g_, result, d.operands, shapes), std::move(kernel->origin.kind)};
  kernel->device = device_;
  d.node.name = kernel->name(), d.node.kernel = std::move(kernel);
  return dst.add(std::move(d.node));
}

NodeId Emitter::add_packed(Graph& dst, NodeId parameter, DType dtype, Dim elements, std::shared_ptr<Kernel> kernel) {
  const NodeId from = new_id_[parameter];
  Node n{.op = Op::Kernel, .dtype = dtype, .shape = {std::move(elements)}, .where = g_[parameter].where};
  n.in.push_back({from, View(dst[from].shape)});
  kernel->device = device_;
  n.name = kernel->name(), n.kernel = std::move(kernel);
  ++log_.fired["weight packed"];
  return dst.add(std::move(n));
}

std::set<NodeId> Emitter::read_by_roots() const {
  std::set<NodeId> raw;
  for (const Root& r : g_.roots()) raw.insert(r.edge.node);
  for (const Assignment& a : g_.assignments()) raw.insert(a.state);
  return raw;
}

Dim Emitter::base_bytes(NodeId id) const {
  const Node& n = g_[id];
  if (!is(n, builtin::slice_scatter())) return 0;
  return product(n.shape) * Dim(static_cast<std::int64_t>(size_of(n.dtype)));
}

Graph Emitter::emit_all(const Partition& partition) {
  Graph dst;
  for (NodeId id = 0; id < g_.size(); ++id) {
    const bool wanted = g_[id].op == Op::Input ? partition.is_live(id) : partition.results().contains(id);
    if (new_id_[id] == kNone && wanted && !waits(id)) emit_node(dst, id);
  }
  copy_results(g_, new_id_, dst);
  return dst;
}

}  // namespace lc::lowering
