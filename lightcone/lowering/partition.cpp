#include "lightcone/lowering/partition.h"

#include <algorithm>
#include <deque>

#include "lightcone/composites/composites.h"

namespace lc::lowering {
namespace {

bool is_library(const Node& n) {
  return (n.op == Op::Composite && !is(n, builtin::gather())) || n.op == Op::Result || n.op == Op::Kernel;
}

bool casts(const Graph& g, const Node& n) {
  return n.op == Op::Contiguous && n.in[0].view.identity() && n.dtype != g[n.in[0].node].dtype;
}

// Returns true for a cast of a half or a byte to f32.
bool widens(const Graph& g, NodeId id) {
  const Node& n = g[id];
  if (n.op != Op::Contiguous || n.dtype != DType::F32 || !n.in[0].view.identity()) return false;
  const DType from = g[n.in[0].node].dtype;
  return is_half(from) || from == DType::I8;
}

// Returns true if the view shows all elements in memory order.
bool is_whole(const View& v) {
  return product(v.shape()) == product(v.base()) && v == View(v.base()).reshape(v.shape());
}

bool pads(const View& v) {
  return std::ranges::any_of(v.moves(), [](const Move& m) { return m.kind == MoveKind::Pad; });
}

// A value of at least this many operations is materialised if a concatenation reads it, because every element of the
// result would compute it, or if overlapping windows do.
constexpr int kCostly = 8;
// Returns true for a part of a concatenation: at least half as many elements again are padding.
bool pads_far(const View& v) {
  const auto shown = product(v.shape()).constant(), stored = product(v.base()).constant();
  return pads(v) && shown && stored && *shown >= *stored + *stored / 2;
}

// Returns true for a view by windows that overlap: it shows elements twice or more.
bool shows_again(const View& v) {
  std::int64_t shown = 1, moved = 1;
  for (const Move& m : v.moves())
    if (m.kind == MoveKind::Unfold) shown *= m.to.back().constant().value_or(1), moved *= m.step[0];
  return shown >= 2 * moved;
}

// Returns true if everything that reads the value is elementwise in its order and ends in one value, as x * sigmoid(x)
// does: one loop computes it once.
bool rejoins(const Graph& g, const std::vector<int>& uses, NodeId id) {
  constexpr NodeId kNear = 32;  // the nodes of an activation follow each other
  std::set<NodeId> inside{id};
  int open = uses[id];  // reads of values inside that are not found yet
  const NodeId end = static_cast<NodeId>(std::min<std::size_t>(g.size(), std::size_t{id} + kNear));
  for (NodeId k = id + 1; k < end; ++k) {
    int reads = 0;
    for (const Edge& e : g[k].in) {
      if (!inside.contains(e.node)) continue;
      if (info(g[k].op).kind != Kind::Elementwise || !e.view.identity()) return false;
      ++reads;
    }
    if (reads == 0 || uses[k] == 0) continue;
    open -= reads;
    if (open == 0) return true;
    open += uses[k];
    inside.insert(k);
  }
  return false;
}

// Returns true for a node that overwrites a part of its first operand; the values written are computed in a loop.
bool updates(const Node& n) { return is(n, builtin::slice_scatter()); }

}  // namespace

Partition::Partition(const Graph& g, PartitionRules rules)
    : g_(g), rules_(std::move(rules)), live_(g.live()), buffer_(g.size()), recomputed_(g.size()) {
  choose_buffers();
  choose_prepared();
  decide_fusion();
  build_loops();
  count_readers();
}

// Returns true for values that are cheap enough to recompute in each reader: constants, indices, arithmetic on them,
// and casts that only widen a number stored in memory.
bool Partition::trivial(NodeId id) const {
  const Node& n = g_[id];
  if (n.op == Op::Constant || n.op == Op::Index || widens(g_, id)) return true;
  const Kind k = info(n.op).kind;
  if (k != Kind::Elementwise && k != Kind::Copy) return false;
  return std::all_of(n.in.begin(), n.in.end(), [&](const Edge& e) {
    const Op op = g_[e.node].op;
    return op == Op::Constant || op == Op::Index;
  });
}

// Recomputes a value larger than the caches if a few operations make it from one value of its size that is in memory
// for other readers, too. Reading that operand and recomputing moves no more memory than reading the value, and the
// value is never written. Examples: the exponentials that a loss sums and its derivative divides by the sum; the square
// of an activation.
bool Partition::rematerializes(NodeId id, const std::vector<int>& uses, const std::function<bool(NodeId)>& in_memory) {
  constexpr std::int64_t kRow = 8;  // an operand is a statistic of a row if it has at most 1/kRow of the elements
  const Node& n = g_[id];
  const std::int64_t size = product(n.shape).constant().value_or(0);
  const std::int64_t bytes = size * static_cast<std::int64_t>(size_of(n.dtype));
  const int most = bytes >= rules_.recompute_threshold ? 16 : bytes >= rules_.recompute_threshold / 16 ? 2 : 0;
  if (info(n.op).kind != Kind::Elementwise || size == 0 || uses[id] > 2) return false;
  std::vector<NodeId> cone{id};
  NodeId whole = id;
  int reads = 0, operations = 0;  // reads: the number of reads of `whole`
  for (std::size_t i = 0; i < cone.size(); ++i) {
    if ((operations += info(g_[cone[i]].op).cost) > most) return false;
    for (const Edge& e : g_[cone[i]].in) {
      const Node& from = g_[e.node];
      if (std::find(cone.begin(), cone.end(), e.node) != cone.end() || trivial(e.node)) continue;
      if (product(from.shape).bounds().hi <= size / kRow) continue;  // several kernels read it now: it is materialised
      if (!is_whole(e.view)) {
        return false;
      } else if (in_memory(e.node)) {
        if (whole != id && whole != e.node) return false;
        whole = e.node, ++reads;
      } else if (info(from.op).kind == Kind::Elementwise && uses[e.node] == 1) {
        cone.push_back(e.node);
      } else {
        return false;
      }
    }
  }
  if (whole == id || uses[whole] <= reads || size_of(g_[whole].dtype) > size_of(n.dtype)) return false;
  buffer_[whole] = true;  // must not be recomputed in turn
  for (NodeId k : cone) recomputed_[k] = true;
  return true;
}

void Partition::choose_buffers() {
  for (const Root& r : g_.roots()) buffer_[r.edge.node] = true;
  for (const Assignment& a : g_.assignments()) buffer_[a.next.node] = true;
  std::vector<bool> behind(g_.size());  // elementwise after a convolution: free as its epilogue
  std::vector<bool> after(g_.size());   // the same after a matrix product
  const std::vector<int> uses = g_.uses();
  // Operations that are fused into an elementwise node, and its own; `work`: through conversions, too.
  std::vector<int> cost(g_.size()), work(g_.size());
  // A value that was narrowed is kept as it is, and each reader widens it.
  const auto stored = [&](NodeId id) { return widens(g_, id) && !buffer_[id] ? g_[id].in[0].node : id; };
  const auto keep = [&](NodeId id) { buffer_[g_[stored(id)].op == Op::Input ? id : stored(id)] = true; };
  const auto kept = [&](NodeId id) { return static_cast<bool>(buffer_[stored(id)]); };
  for (NodeId id = 0; id < g_.size(); ++id) {
    if (!live_[id]) continue;
    const Node& n = g_[id];
    for (const Edge& e : n.in) {
      if (cost[e.node] >= kCostly && pads_far(e.view)) keep(e.node);
      if (work[e.node] >= kCostly && shows_again(e.view)) keep(e.node);
      // padded, repeated or sliced: not in the order in which it is made
      if (behind[e.node] && !(product(e.view.shape()) == product(e.view.base()))) keep(e.node);
      if (after[e.node] && pads(e.view)) keep(e.node);
    }
    const auto count = [&](std::vector<int>& operations) {
      operations[id] = info(n.op).cost;
      for (const Edge& e : n.in)
        if (!kept(e.node)) operations[id] = std::min(operations[id] + operations[e.node], kCostly);
    };
    if (info(n.op).kind == Kind::Elementwise) count(cost);
    if (info(n.op).kind == Kind::Elementwise || casts(g_, n)) count(work);
    const auto follows = [&](const std::vector<bool>& those, auto is_product) {
      return std::ranges::any_of(n.in,
                                 [&](const Edge& e) { return is_product(e.node) || (those[e.node] && !kept(e.node)); });
    };
    const bool elementwise = info(n.op).kind == Kind::Elementwise;
    behind[id] =
        (elementwise || casts(g_, n)) && follows(behind, [&](NodeId k) { return get<Convolution>(k) != nullptr; });
    after[id] = elementwise && follows(after, [&](NodeId k) { return get<Contraction>(k) != nullptr; });
    if (behind[id] && uses[id] > 1 && !rejoins(g_, uses, id)) keep(id);  // not computed in each reader
    if (n.op == Op::Input || is_library(n)) buffer_[id] = true;
    if (is_library(n))
      for (std::size_t k = 0; k < n.in.size(); ++k)
        if (!updates(n) || k == 0) buffer_[n.in[k].node] = true;
    if (is(n, builtin::gather())) buffer_[n.in[0].node] = true;
    if (is_library(n) && !updates(n)) tasks_[id] = OpaqueKernel{};
    const auto f = factors(g_, id);
    if (!f) continue;
    PartitionRules::Match match = rules_.match(g_, *f);
    if (auto* c = std::get_if<Convolution>(&match)) tasks_[id] = std::move(*c);
    else if (auto* c = std::get_if<Contraction>(&match)) tasks_[id] = std::move(*c);
    else {
      // A loop reads its factors many times: materialise the rounded factor, not its wide operand.
      for (const Edge& e : f->edge)
        if (widens(g_, e.node)) buffer_[g_[e.node].in[0].node] = true;
      continue;
    }
    buffer_[id] = true;
    for (NodeId k : operands(id)) buffer_[k] = true;
  }
}

// A value made of parameters alone and broadcast to a larger one, such as the scales of a normalisation, is
// materialised: it is computed once when the parameters are loaded (device/prepared.h), or once per run if they are
// trained. The same holds for a value that takes fewer bytes than the parameter it is made of, because the parameter
// need not be kept then.
void Partition::choose_prepared() {
  std::vector<bool> fixed(g_.size()), loaded(g_.size());
  for (NodeId id = 0; id < g_.size(); ++id) {
    const Node& n = g_[id];
    loaded[id] = n.op == Op::Input && n.parameter;
    fixed[id] = loaded[id] || n.op == Op::Constant || n.op == Op::Index;
    if (info(n.op).kind == Kind::Elementwise && !n.in.empty()) {
      fixed[id] = std::all_of(n.in.begin(), n.in.end(), [&](const Edge& e) { return fixed[e.node]; });
      loaded[id] = std::any_of(n.in.begin(), n.in.end(), [&](const Edge& e) { return loaded[e.node]; });
    }
    for (const Edge& e : n.in) {
      const Node& from = g_[e.node];
      if (!live_[id] || fixed[id] || !fixed[e.node] || !loaded[e.node] || from.op == Op::Input) continue;
      const auto size = product(from.shape).constant();
      if (size && *size <= rules_.prepared && product(n.shape).bounds().lo > *size) buffer_[e.node] = true;
    }
  }
  choose_narrowed();
}

// A narrowed parameter is materialised where it meets a value that is not made of parameters, possibly after widening.
// So are sums of parameters, such as those of the columns of a weight of bytes.
void Partition::choose_narrowed() {
  std::vector<bool> assigned(g_.size()), loaded(g_.size());  // loaded: made of parameters only
  std::vector<bool> reduced(g_.size());                      // the same, by a reduction
  for (const Assignment& a : g_.assignments()) assigned[a.state] = true;
  for (NodeId id = 0; id < g_.size(); ++id) {
    const Node& n = g_[id];
    const Kind kind = info(n.op).kind;
    if (n.op == Op::Input) loaded[id] = n.parameter && !assigned[id];
    bool all = kind == Kind::Elementwise || kind == Kind::Copy || kind == Kind::Reduce;
    for (const Edge& e : n.in) {
      const Op op = g_[e.node].op;
      loaded[id] = loaded[id] || loaded[e.node];
      all = all && (loaded[e.node] || op == Op::Constant || op == Op::Index);
    }
    loaded[id] = loaded[id] && (all || n.op == Op::Input);
    reduced[id] = loaded[id] &&
                  (kind == Kind::Reduce || std::ranges::any_of(n.in, [&](const Edge& e) { return reduced[e.node]; }));
    for (const Edge& e : n.in) {
      const Node& from = g_[e.node];
      const bool narrows = from.op == Op::Contiguous && size_of(from.dtype) < size_of(g_[from.in[0].node].dtype);
      if (live_[id] && narrows && loaded[e.node] && (!loaded[id] || widens(g_, id))) buffer_[e.node] = true;
      if (live_[id] && reduced[e.node] && !loaded[id]) buffer_[e.node] = true;
    }
  }
}

// Visits readers from last to first. A value that two kernels would recompute is materialised, and so is one that would
// make its reader's kernel too long.
void Partition::decide_fusion() {
  const std::vector<int> uses = g_.uses();
  std::vector<int> length(g_.size(), 0);  // operations in the kernel that ends at a node
  constexpr NodeId kNone = ~NodeId{0}, kMany = ~NodeId{0} - 1;
  std::vector<NodeId> kernel(g_.size(), kNone);
  const auto used_by = [&](NodeId id, NodeId root) {
    kernel[id] = kernel[id] == kNone || kernel[id] == root ? root : kMany;
  };
  // A value that several kernels are known to read will be materialised.
  const auto kept = [&](NodeId id) { return buffer_[id] || (kernel[id] == kMany && !recomputed_[id] && !trivial(id)); };
  for (NodeId id = static_cast<NodeId>(g_.size()); id-- > 0;) {
    if (!live_[id]) continue;
    const Node& n = g_[id];
    const bool repeated = recomputed_[id] || (!buffer_[id] && kernel[id] == kMany && rematerializes(id, uses, kept));
    if (!buffer_[id] && kernel[id] != kNone && !trivial(id) && !repeated)
      buffer_[id] =
          kernel[id] == kMany ||
          (length[kernel[id]] += info(n.op).kind == Kind::Reduce ? rules_.reduction_weight : 1) > rules_.max_loop_ops;
    if (get<Contraction>(id) || get<Convolution>(id)) continue;  // reads its own operands, not those of the product
    for (const Edge& e : n.in) {
      if (info(n.op).kind == Kind::Reduce && info(g_[e.node].op).kind == Kind::Reduce &&
          product(g_[e.node].shape).bounds().hi > rules_.inner_results)
        buffer_[e.node] = true;  // nested reductions: the inner one becomes parallel
      used_by(e.node, buffer_[id] ? id : kernel[id]);
    }
  }
}

void Partition::build_loops() {
  std::deque<NodeId> todo;
  std::set<NodeId> queued;
  const auto push = [&](NodeId id) {
    if (queued.insert(id).second) todo.push_back(id);
  };
  std::vector<NodeId> stack;
  for (const Root& r : g_.roots()) stack.push_back(r.edge.node);
  for (const Assignment& a : g_.assignments()) stack.push_back(a.next.node);
  const auto settle = [&] {
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      if (g_[id].op == Op::Input || !results_.insert(id).second) continue;
      if (!tasks_.contains(id)) push(id);
      else
        for (NodeId k : operands(id)) stack.push_back(k);
    }
  };
  settle();
  while (!todo.empty()) {
    const NodeId id = todo.front();
    todo.pop_front();
    queued.erase(id);
    const Node& n = g_[id];
    const codegen::Region region{id, [&](NodeId k) { return k != id && buffer_[k]; }, updates(n) ? &n : nullptr,
                                 rules_.keep_rows};
    codegen::Built b = codegen::build(g_, region, rules_.machine);
    if (rules_.must_materialize && b.must_materialize.empty() && b.kernel)
      b.must_materialize = rules_.must_materialize(id, b);
    if (!b.must_materialize.empty()) {
      for (NodeId o : b.must_materialize) buffer_[o] = true;
      push(id);
      continue;
    }
    check(b.kernel.has_value(), "a kernel that could not be built");
    tasks_[id] = std::move(b);
    for (NodeId k : operands(id)) stack.push_back(k);
    settle();
  }
}

std::vector<NodeId> Partition::operands(NodeId id) const {
  const Task& task = tasks_.at(id);
  if (const auto* c = std::get_if<Contraction>(&task)) return {c->a_node, c->b_node};
  if (const auto* c = std::get_if<Convolution>(&task)) return {c->image_node, c->weight_node};
  std::vector<NodeId> nodes;
  if (const auto* loop = std::get_if<Loop>(&task)) {
    if (updates(g_[id])) nodes.push_back(g_[id].in[0].node);  // the base, which is overwritten in part
    nodes.insert(nodes.end(), loop->buffers.begin(), loop->buffers.end());
  } else {
    for (const Edge& e : g_[id].in) nodes.push_back(e.node);
  }
  return nodes;
}

void Partition::count_readers() {
  for (const Root& r : g_.roots()) ++readers_[r.edge.node];
  for (const Assignment& a : g_.assignments()) ++readers_[a.next.node];
  for (NodeId id : results_)
    for (NodeId k : operands(id)) ++readers_[k];
  std::vector<bool> assigned(g_.size());
  for (const Assignment& a : g_.assignments()) assigned[a.state] = true;
  for (NodeId id = 0; id < g_.size(); ++id) {
    const Node& n = g_[id];
    varies_.push_back((n.op == Op::Input && (!n.parameter || assigned[id])) ||
                      std::any_of(n.in.begin(), n.in.end(), [&](const Edge& e) { return varies_[e.node]; }));
  }
}

int Partition::readers(NodeId id) const {
  const auto it = readers_.find(id);
  return it == readers_.end() ? 0 : it->second;
}

}  // namespace lc::lowering
