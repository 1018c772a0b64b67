#include "lightcone/runtime/remat.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "lightcone/composites/composites.h"
#include "lightcone/core/tensor.h"
#include "lightcone/device/plan.h"
#include "lightcone/passes/barrier.h"
#include "lightcone/passes/composites.h"
#include "lightcone/passes/gradient_marks.h"
#include "lightcone/runtime/program.h"

namespace lc {
namespace {

bool is_leaf(const Node& n) { return n.op == Op::Constant || n.op == Op::Index || n.op == Op::Input; }

// The forward pass: live nodes before the first gradient seed that depend on inputs which change from run to run.
class Forward {
 public:
  explicit Forward(const Graph& g);
  bool any() const { return !nodes_.empty(); }
  bool contains(NodeId id) const { return id < varies_.size() && varies_[id] && !is_leaf(g_[id]); }
  // Returns true for an input that a clone must read through a barrier.
  bool varying_input(NodeId id) const { return id < varies_.size() && varies_[id] && g_[id].op == Op::Input; }
  NodeId end() const { return end_; }

  using Choice = std::set<NodeId>;  // nodes that are recomputed
  Choice cheap(std::size_t eighths) const;
  // Chooses everything except the values between `count` segments of about equal bytes. The last segment is not
  // recomputed.
  std::optional<Choice> segments(std::size_t count) const;

 private:
  bool is_cheap(NodeId id) const;
  void find_boundaries();

  const Graph& g_;
  std::vector<bool> live_, varies_;
  NodeId end_ = 0;
  std::vector<NodeId> nodes_;
  std::vector<NodeId> last_use_;         // last reader within the forward pass
  std::vector<bool> kept_;               // read by the backward pass
  std::vector<std::size_t> kept_up_to_;  // prefix sum of kept bytes over nodes_
  std::vector<std::size_t> boundaries_;  // positions in nodes_ after which a single large value is live
};

Forward::Forward(const Graph& g) : g_(g), live_(g.live()) {
  for (NodeId id = 0; id < g.size() && end_ == 0; ++id)
    if (live_[id] && is(g[id], gradient_seed())) end_ = id;
  varies_.resize(end_), last_use_.resize(end_), kept_.resize(end_);
  for (NodeId id = 0; id < g.size(); ++id) {
    if (!live_[id]) continue;
    for (const Edge& e : g[id].in) {
      if (e.node >= end_) continue;
      if (id >= end_) kept_[e.node] = true;
      else varies_[id] = varies_[id] || varies_[e.node], last_use_[e.node] = id;
    }
    if (id >= end_) continue;
    if (g[id].op == Op::Input) varies_[id] = !g[id].parameter;
    if (contains(id)) nodes_.push_back(id);
  }
  find_boundaries();
}

void Forward::find_boundaries() {
  constexpr std::size_t kSmall = 64;
  std::size_t largest = 0, kept = 0;
  for (const NodeId id : nodes_)
    if (kept_[id]) largest = std::max(largest, upper_bytes(g_[id]));
  std::multiset<NodeId> open;  // last uses of large values
  for (std::size_t k = 0; k < nodes_.size(); ++k) {
    const NodeId id = nodes_[k];
    const std::size_t bytes = upper_bytes(g_[id]);
    open.erase(open.begin(), open.upper_bound(id));
    if (bytes * kSmall >= largest && last_use_[id] > id) open.insert(last_use_[id]);
    kept += kept_[id] ? bytes : 0;
    kept_up_to_.push_back(kept);
    if (open.size() == 1) boundaries_.push_back(k);
  }
}

// Products are expensive to clone, and so are operations that only move data.
bool Forward::is_cheap(NodeId id) const {
  const Node& n = g_[id];
  if (n.op == Op::Kernel || n.op == Op::Result || n.op == Op::Composite) return false;
  if (n.op != Op::SumReduce || g_[n.in[0].node].op != Op::Mul) return true;
  const Node& product = g_[n.in[0].node];
  return std::ranges::any_of(product.in,
                             [&](const Edge& e) { return upper_bytes(g_[e.node]) >= upper_bytes(product); });
}

Forward::Choice Forward::cheap(std::size_t eighths) const {
  Choice c;
  const std::size_t all = kept_up_to_.back();
  for (std::size_t k = 0; k < nodes_.size() && kept_up_to_[k] * 8 <= all * eighths; ++k)
    if (is_cheap(nodes_[k])) c.insert(nodes_[k]);
  return c;
}

std::optional<Forward::Choice> Forward::segments(std::size_t count) const {
  if (boundaries_.size() + 1 < count) return std::nullopt;
  std::vector<std::size_t> ends;
  for (std::size_t s = 1; s < count; ++s)
    for (const std::size_t k : boundaries_)
      if (kept_up_to_[k] * count >= kept_up_to_.back() * s && (ends.empty() || k > ends.back())) {
        ends.push_back(k);
        break;
      }
  if (ends.empty()) return std::nullopt;
  Choice c(nodes_.begin(), nodes_.begin() + static_cast<std::ptrdiff_t>(ends.back()) + 1);
  for (const std::size_t end : ends)
    for (std::size_t k = 0; k <= end; ++k)
      if (last_use_[nodes_[k]] > nodes_[end]) c.erase(nodes_[k]);
  return c;
}

// Rewrites the graph with clones of the chosen nodes, each placed where the backward pass first reads it.
class Recomputed {
 public:
  Recomputed(const Graph& g, const Forward& f, const Forward::Choice& again) : g_(g), f_(f), again_(again) {}
  Graph run();
  int clones() const { return clones_; }

 private:
  Edge later(const Edge& e);
  NodeId clone_of(NodeId id);
  NodeId operand(NodeId id);

  const Graph& g_;
  const Forward& f_;
  const Forward::Choice& again_;
  Graph dst_;
  std::vector<NodeId> to_;
  std::map<NodeId, NodeId> clone_, behind_;  // behind_: values behind a barrier
  int clones_ = 0;
};

// Returns the operand of a clone: another clone, or the kept value.
NodeId Recomputed::operand(NodeId id) {
  if (again_.contains(id)) return clone_.at(id);
  if (!f_.contains(id) && !f_.varying_input(id)) return to_[id];
  const auto [it, fresh] = behind_.try_emplace(id, 0);
  if (fresh) it->second = behind_barrier(Tensor(dst_, {to_[id], View(dst_[to_[id]].shape)})).edge().node;
  return it->second;
}

NodeId Recomputed::clone_of(NodeId id) {
  if (const auto it = clone_.find(id); it != clone_.end()) return it->second;
  std::set<NodeId> missing{id};
  std::vector<NodeId> open{id};
  while (!open.empty()) {
    const NodeId at = open.back();
    open.pop_back();
    for (const Edge& e : g_[at].in)
      if (again_.contains(e.node) && !clone_.contains(e.node) && missing.insert(e.node).second) open.push_back(e.node);
  }
  for (const NodeId at : missing) {
    std::vector<Edge> in = g_[at].in;
    for (Edge& e : in) e.node = operand(e.node);
    clone_[at] = dst_.adopt(g_[at], std::move(in));
    ++clones_;
  }
  return clone_.at(id);
}

Edge Recomputed::later(const Edge& e) { return {again_.contains(e.node) ? clone_of(e.node) : to_[e.node], e.view}; }

Graph Recomputed::run() {
  to_.resize(g_.size());
  const std::vector<bool> live = g_.live();
  for (NodeId id = 0; id < g_.size(); ++id) {
    if (!live[id]) continue;
    std::vector<Edge> in = g_[id].in;
    for (Edge& e : in) e = id < f_.end() ? Edge{to_[e.node], e.view} : later(e);
    const OpScope scope(g_[id].where);
    to_[id] = dst_.adopt(g_[id], std::move(in));
  }
  for (const Root& r : g_.roots()) dst_.root(r.name, {to_[r.edge.node], r.edge.view});
  for (const Assignment& a : g_.assignments()) dst_.assignment(to_[a.state], {to_[a.next.node], a.next.view});
  return std::move(dst_);
}

// Searches for the first candidate that fits the budget.
class Search {
 public:
  Search(const Graph& g, std::size_t budget, const Compiler& then) : g_(g), forward_(g), budget_(budget), then_(then) {}
  Graph run(PassLog& log);

 private:
  struct Tried {
    Graph graph;
    std::size_t bytes;
    int clones;
  };
  Tried attempt(const Forward::Choice& c);
  bool fits(const Tried& t) const { return t.bytes <= budget_; }
  std::optional<Tried> cheap();
  std::optional<Tried> segments();

  const Graph& g_;
  Forward forward_;
  std::size_t budget_, least_ = SIZE_MAX;
  const Compiler& then_;
};

Search::Tried Search::attempt(const Forward::Choice& c) {
  Recomputed r(g_, forward_, c);
  Tried t{r.run(), 0, r.clones()};
  t.bytes = compile(t.graph, then_).plan().total_bytes();
  least_ = std::min(least_, t.bytes);
  return t;
}

std::optional<Search::Tried> Search::cheap() {
  std::size_t fails = 0, works = 8;  // eighths of the kept bytes
  std::optional<Tried> best = attempt(forward_.cheap(works));
  if (!fits(*best)) return std::nullopt;
  while (works - fails > 1) {
    const std::size_t middle = (works + fails) / 2;
    Tried t = attempt(forward_.cheap(middle));
    if (fits(t)) works = middle, best = std::move(t);
    else fails = middle;
  }
  return best;
}

std::optional<Search::Tried> Search::segments() {
  std::size_t before = SIZE_MAX;
  for (std::size_t count = 2;; count *= 2) {
    const auto choice = forward_.segments(count);
    if (!choice) return std::nullopt;
    Tried t = attempt(*choice);
    if (fits(t)) return t;
    if (t.bytes >= before) return std::nullopt;
    before = t.bytes;
  }
}

Graph Search::run(PassLog& log) {
  if (!forward_.any()) return g_.clone();
  Tried plain = attempt({});
  if (fits(plain)) return g_.clone();
  std::optional<Tried> best = cheap();
  if (!best) best = segments();
  if (!best)
    throw Error("remat", str_cat("the step needs ", least_, " bytes with values computed again and ", plain.bytes,
                                 " without; the budget is ", budget_, ". Smaller batches need less"));
  log.fired["value computed again"] += best->clones;
  return std::move(best->graph);
}

}  // namespace

Compiler remat(const RematOptions& o, const Compiler& then) {
  Pass p;
  p.name = "remat";
  p.applies = [](const Graph& g) { return any_node(g, [](const Node& n) { return is(n, gradient_seed()); }); };
  p.run = [o, then](const Graph& given, PassLog& log) {
    const Graph g = inline_transparent(given, log, builtin::attention());  // parts of a layer can be computed again
    return Search(g, o.bytes, then).run(log);
  };
  return Compiler(std::move(p)) | then;
}

}  // namespace lc
