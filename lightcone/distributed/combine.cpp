#include "lightcone/distributed/combine.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "lightcone/device/plan.h"
#include "lightcone/passes/gradient_marks.h"

namespace lc {
namespace {

using Operation = Collective::Operation;

// Times are positions among the nodes that compute: what a rank's place makes constant changes none, so that all ranks
// exchange in the same order.
using Time = std::size_t;
constexpr Time kNever = ~Time{0};

// Operations that become one.
struct Bucket {
  std::vector<NodeId> members;
  std::size_t bytes = 0;
  Time slot = 0;          // stands before the node of this time
  Time need = kNever;     // the time of its first reader
  std::size_t depth = 0;  // operations on which it depends directly come before it at the same time
};

class Combiner {
 public:
  Combiner(const Graph& g, const Collectives& ranks, const ExchangeOptions& o, PassLog& log)
      : g_(g),
        ranks_(ranks),
        options_(o),
        log_(log),
        live_(g.live()),
        time_(g.size()),
        soonest_(g.size()),
        held_(g.size()),
        need_(g.size(), kNever),
        depth_(g.size()),
        bucket_(g.size(), nullptr),
        to_(g.size(), kNone) {}

  Graph run() {
    measure();
    const std::size_t deepest = depth_.empty() ? 0 : *std::ranges::max_element(depth_);
    for (std::size_t depth = 1; depth <= deepest; ++depth) choose(depth);
    emit_all();
    return std::move(dst_);
  }

 private:
  static constexpr NodeId kNone = ~NodeId{0};

  std::optional<Operation> operation(NodeId id) const {
    for (const Operation o : {Operation::AllReduce, Operation::AllGather, Operation::ReduceScatter, Operation::AllToAll,
                              Operation::Broadcast, Operation::Permute})
      if (is(g_[id], ranks_.composite(o))) return o;
    return std::nullopt;
  }
  bool exchanges(NodeId id) const { return depth_[id] > 0; }
  // True for what is computed as soon as its operands are, if an operation waits for it: a scale, a mark.
  bool follows_at_once(const Node& n) const {
    const Kind kind = info(n.op).kind;
    return (kind == Kind::Elementwise || kind == Kind::Copy || is(n, gradient_result())) &&
           std::ranges::none_of(n.in, [&](const Edge& e) { return exchanges(e.node); });
  }

  void measure();
  void choose(std::size_t depth);
  Time ready(NodeId id) const;
  std::size_t bytes(NodeId id) const { return std::max(upper_bytes(g_[id]), upper_bytes(g_[g_[id].in[0].node])); }
  void join(NodeId id, Time earliest, std::map<std::string, Bucket*>& open);
  bool gathers_again(NodeId before, NodeId id) const;
  void emit_all();
  void emit(const Bucket& b);
  void put(NodeId id);

  const Graph& g_;
  const Collectives& ranks_;
  const ExchangeOptions& options_;
  PassLog& log_;
  const std::vector<bool> live_;
  std::vector<Time> time_;          // by NodeId; 0 for leaves
  std::vector<Time> soonest_;       // by NodeId: the time behind which it can be computed
  std::vector<bool> held_;          // by NodeId: made of parameters and states alone
  std::vector<Time> need_;          // by NodeId, of operations: the first reader
  std::vector<std::size_t> depth_;  // by NodeId: 0, or for an operation how many follow each other directly up to it
  std::vector<Bucket*> bucket_;     // by NodeId
  std::map<NodeId, NodeId> kept_;   // the operation whose result is still there
  std::vector<std::unique_ptr<Bucket>> all_;
  Graph dst_;
  std::vector<NodeId> to_;
};

void Combiner::measure() {
  std::vector<bool> state(g_.size());
  for (const Assignment& a : g_.assignments()) state[a.state] = true;
  Time now = 0;
  for (NodeId id = 0; id < g_.size(); ++id) {
    if (!live_[id]) continue;
    const Node& n = g_[id];
    const bool is_operation = operation(id).has_value();
    held_[id] = n.op == Op::Input ? n.parameter || state[id] : std::ranges::all_of(n.in, [&](const Edge& e) {
      return held_[e.node] && (is_operation || !exchanges(e.node));
    });
    if (is_operation) {
      depth_[id] = 1;
      for (const Edge& e : n.in) depth_[id] = std::max(depth_[id], depth_[e.node] + 1);
    } else if (info(n.op).kind != Kind::Leaf) {
      time_[id] = soonest_[id] = ++now;
      if (follows_at_once(n)) {
        soonest_[id] = 0;
        for (const Edge& e : n.in) soonest_[id] = std::max(soonest_[id], soonest_[e.node]);
      }
    }
  }
  for (NodeId id = static_cast<NodeId>(g_.size()); id-- > 0;)
    if (live_[id])
      for (const Edge& e : g_[id].in) need_[e.node] = std::min(need_[e.node], exchanges(id) ? need_[id] : time_[id]);
}

// The earliest place of an operation.
Time Combiner::ready(NodeId id) const {
  const NodeId x = g_[id].in[0].node;
  if (exchanges(x)) return bucket_[x]->slot;
  return held_[id] ? 1 : soonest_[x] + 1;
}

// Adds an operation to the open bucket of its kind, or opens one, not before `earliest`.
void Combiner::join(NodeId id, Time earliest, std::map<std::string, Bucket*>& open) {
  const Node& n = g_[id];
  const Operation o = *operation(id);
  const bool combines = o == Operation::AllReduce || o == Operation::AllGather || o == Operation::ReduceScatter;
  Bucket*& b = open[str_cat(name(o), " ", name(n.dtype), " ", n.attributes.str())];
  const std::size_t more = bytes(id);
  const Time from = ready(id);
  const bool fits =
      b && combines && b->bytes + more <= options_.bucket_bytes && from <= (held_[id] ? b->slot : b->need);
  if (!fits) {
    b = all_.emplace_back(std::make_unique<Bucket>()).get();
    b->depth = depth_[id], b->slot = std::max(from, earliest);
  }
  b->members.push_back(id);
  b->bytes += more;
  b->slot = std::max(b->slot, from), b->need = std::min(b->need, need_[id]);
  bucket_[id] = b;
}

// Operations that grow what parameters alone make are held back: the first reader of one lets the next begin.
void Combiner::choose(std::size_t depth) {
  std::vector<NodeId> now, later;
  for (NodeId id = 0; id < g_.size(); ++id) {
    if (!live_[id] || depth_[id] != depth) continue;
    (held_[id] && upper_bytes(g_[id]) > upper_bytes(g_[g_[id].in[0].node]) ? later : now).push_back(id);
  }
  std::ranges::stable_sort(now, {}, [&](NodeId id) { return ready(id); });
  std::map<std::string, Bucket*> open;
  for (const NodeId id : now) join(id, 0, open);
  std::ranges::stable_sort(later, {}, [&](NodeId id) { return need_[id]; });
  open.clear();
  std::map<NodeId, NodeId> last;  // by operand
  for (Time earliest = 0; const NodeId id : later) {
    const std::size_t buckets = all_.size();
    const auto [before, fresh] = last.try_emplace(g_[id].in[0].node, id);
    if (!fresh && bucket_[before->second] == all_.back().get() && gathers_again(before->second, id)) {
      kept_[id] = before->second, bucket_[id] = all_.back().get();
      ++log_.fired["result kept"];
      continue;
    }
    before->second = id;
    join(id, earliest, open);
    if (all_.size() > buckets) earliest = need_[id];
  }
}

// True for what the backward pass gathers, and the forward pass has gathered last.
bool Combiner::gathers_again(NodeId before, NodeId id) const {
  const auto without = [&](NodeId k) {
    std::vector<Attributes::Entry> entries = g_[k].attributes.entries();
    std::erase_if(entries, [](const Attributes::Entry& e) { return e.name == "again"; });
    return Attributes(std::move(entries));
  };
  return g_[before].composite == g_[id].composite && g_[before].in == g_[id].in && without(before) == without(id);
}

void Combiner::emit_all() {
  std::ranges::stable_sort(all_, {}, [](const auto& b) { return std::tuple(b->slot, b->depth, b->need); });
  auto next = all_.begin();
  for (NodeId id = 0; id < g_.size(); ++id) {
    if (!live_[id] || exchanges(id)) continue;
    for (; time_[id] > 0 && next != all_.end() && (*next)->slot <= time_[id]; ++next) emit(**next);
    put(id);
  }
  for (; next != all_.end(); ++next) emit(**next);
  copy_results(g_, to_, dst_);
}

// Adds a node, and what it depends on, unless it is there.
void Combiner::put(NodeId id) {
  if (to_[id] != kNone) return;
  if (const auto it = kept_.find(id); it != kept_.end()) {
    put(it->second);
    to_[id] = to_[it->second];
    return;
  }
  std::vector<Edge> in = g_[id].in;
  for (Edge& e : in) put(e.node), e.node = to_[e.node];
  const OpScope scope(g_[id].where);
  to_[id] = dst_.adopt(g_[id], std::move(in));
}

void Combiner::emit(const Bucket& b) {
  if (b.members.size() == 1) return put(b.members[0]);
  const Node& first = g_[b.members[0]];
  std::vector<Tensor> in;
  for (const NodeId id : b.members) {
    const Edge& e = g_[id].in[0];
    put(e.node);
    in.emplace_back(dst_, Edge{to_[e.node], e.view});
  }
  const CompositeRef together = ranks_.composite(*operation(b.members[0]), in.size());
  const auto all = call(together, std::move(in), first.attributes, SourceLocation(first.where.file, first.where.line));
  for (std::size_t k = 0; k < all.size(); ++k) to_[b.members[k]] = all[k].edge().node;
  ++log_.fired[str_cat(name(*operation(b.members[0])), "s combined")];
}

}  // namespace

Compiler combine_exchanges(const Collectives& ranks, const ExchangeOptions& o) {
  Pass p{"combine-exchanges", [ranks, o](const Graph& g, PassLog& log) { return Combiner(g, ranks, o, log).run(); }};
  return Compiler(std::move(p));
}

}  // namespace lc
