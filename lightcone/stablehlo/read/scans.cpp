#include "lightcone/stablehlo/read/scans.h"

#include <algorithm>
#include <set>

#include "lightcone/composites/composites.h"
#include "lightcone/stablehlo/read/iota_patterns.h"

namespace lc::stablehlo {
namespace {

// A row of an array that a step reads or writes: one index of an axis.
struct Row {
  NodeId node = 0;        // the gather or the scatter
  std::size_t array = 0;  // index of the array among the inputs of the body
  int axis = 0;
  Progression at;
};

// Returns true if rows of axis 0 are the same rows of the view's base.
bool keeps_rows(const View& v) {
  return std::ranges::all_of(v.moves(), [&](const Move& m) {
    return m.kind == MoveKind::Reshape && !m.to.empty() && !v.base().empty() && m.to[0] == v.base()[0];
  });
}

class CountedLoop {
 public:
  CountedLoop(Reader& reader, const TracedLoop& loop, const Counter& counter);
  std::vector<Tensor> run();

 private:
  enum class Role { Carried, Steady, Written, Counter };
  struct Use {
    NodeId by;
    std::size_t operand;
  };

  const Edge& next(std::size_t state) const { return b_.graph.roots()[state].edge; }
  void find_uses();
  void find_steady();
  Progressions places(Reader& reader) const;
  std::optional<Row> row(NodeId node, const Progressions& places) const;
  std::optional<Row> written(std::size_t state, const Progressions& places) const;
  void find_reads(const Progressions& places);
  bool counter_is_read() const;
  bool opposed(const Row& r) const { return r.at.last != r.at.first && (r.at.last < r.at.first) != reverse_; }
  Tensor rows(const Row& r) const;
  Tensor put_back(const Row& r, Tensor ys) const;
  Scanned step(const std::vector<Tensor>& state, const std::vector<Tensor>& x) const;

  LoopBody& b_;
  const Counter& counter_;
  const std::vector<Tensor>& operands_;
  std::vector<Role> roles_;  // role of each input: the states, then the captures
  std::vector<bool> live_;
  std::map<NodeId, std::vector<Use>> uses_;  // by node, for live nodes
  std::map<NodeId, int> in_roots_;
  std::set<NodeId> in_derivatives_;  // for live nodes
  std::vector<Row> reads_, writes_;
  bool reverse_ = false;
};

CountedLoop::CountedLoop(Reader& reader, const TracedLoop& loop, const Counter& counter)
    : b_(*loop.body), counter_(counter), operands_(loop.operands), roles_(b_.inputs.size(), Role::Carried) {
  find_uses();
  find_steady();
  const Progressions at = places(reader);
  for (std::size_t k = 0; k < b_.states; ++k)
    if (const auto w = written(k, at)) writes_.push_back(*w);
  for (const Row& w : writes_) roles_[w.array] = Role::Written;
  find_reads(at);
  std::ptrdiff_t backwards = 0, all = 0;
  for (const auto* some : {&reads_, &writes_})
    for (const Row& r : *some) backwards += r.at.last < r.at.first, ++all;
  reverse_ = 2 * backwards > all;
  // The rows that a step writes become outputs of the body, after the states.
  for (const Row& w : writes_) {
    const Edge& source = b_.graph[w.node].in[2];
    Shape s = b_.graph[b_.inputs[w.array]].shape;
    s.erase(s.begin() + w.axis);
    b_.graph.root(str_cat("row", w.array), {source.node, source.view.reshape(s)});
  }
  if (!counter_is_read()) roles_[counter_.state] = Role::Counter;
}

void CountedLoop::find_uses() {
  const Graph& g = b_.graph;
  live_ = g.live();
  for (NodeId id = 0; id < g.size(); ++id) {
    if (!live_[id]) continue;
    for (std::size_t k = 0; k < g[id].in.size(); ++k) uses_[g[id].in[k].node].push_back({id, k});
    if (const Derivative* d = g.derivative(id))
      for (const Edge& e : d->in) in_derivatives_.insert(e.node);
  }
  for (const Root& r : g.roots()) ++in_roots_[r.edge.node];
}

void CountedLoop::find_steady() {
  for (std::size_t k = 0; k < b_.inputs.size(); ++k)
    if (k >= b_.states || (next(k).node == b_.inputs[k] && next(k).view.identity())) roles_[k] = Role::Steady;
}

Progressions CountedLoop::places(Reader& reader) const {
  std::map<NodeId, Progression> given;
  for (std::size_t k = 0; k < b_.inputs.size(); ++k) {
    if (roles_[k] != Role::Steady || !(product(operands_[k].shape()) == Dim(1))) continue;
    if (const auto v = reader.known(operands_[k]); v && v->size() == 1) given[b_.inputs[k]] = {(*v)[0], (*v)[0]};
  }
  given[b_.inputs[counter_.state]] = {counter_.from, counter_.from + (counter_.steps - 1) * counter_.step};
  return {b_.graph, std::move(given)};
}

// Returns the row of a gather or scatter of one row whose index is known for every step.
std::optional<Row> CountedLoop::row(NodeId node, const Progressions& places) const {
  const Node& n = b_.graph[node];
  const auto input = std::ranges::find(b_.inputs, n.in[0].node);
  if (input == b_.inputs.end()) return std::nullopt;
  const auto axis = static_cast<int>(n.attributes.integer("axis"));
  const Shape& array = n.in[0].view.shape();
  Shape one = array;
  one[axis] = 1;
  const auto extent = array[axis].constant();
  const auto at = places.of(n.in[1]);
  if (!at || !extent || !(n.in[1].view.shape() == one)) return std::nullopt;
  if (std::min(at->first, at->last) < 0 || std::max(at->first, at->last) >= *extent) return std::nullopt;
  return Row{node, static_cast<std::size_t>(input - b_.inputs.begin()), axis, *at};
}

// Returns the row of a state that each step replaces if nothing else happens to the array.
std::optional<Row> CountedLoop::written(std::size_t state, const Progressions& places) const {
  const Graph& g = b_.graph;
  const NodeId array = b_.inputs[state], node = next(state).node;
  if (!is(g[node], builtin::scatter()) || g[node].in[0].node != array) return std::nullopt;
  const auto r = row(node, places);
  if (!r || std::abs(r->at.last - r->at.first) != counter_.steps - 1) return std::nullopt;
  const bool as_it_is = g[node].in[0].view.identity() && next(state).view.identity();
  const bool by_rows = r->axis == 0 && keeps_rows(g[node].in[0].view) && keeps_rows(next(state).view);
  if (!as_it_is && !by_rows) return std::nullopt;
  if (in_roots_.contains(array) || in_roots_.at(node) != 1 || uses_.contains(node)) return std::nullopt;
  if (in_derivatives_.contains(array) || in_derivatives_.contains(node)) return std::nullopt;
  for (const Use& u : uses_.at(array)) {
    if (u.operand != 0) return std::nullopt;
    if (u.by == node) continue;
    // A row that is read before it is written still has its value from before the loop.
    if (!is(g[u.by], builtin::gather()) || !(g[u.by].in[0].view == g[node].in[0].view)) return std::nullopt;
    const auto read = row(u.by, places);
    if (!read || read->axis != r->axis || !(read->at == r->at)) return std::nullopt;
  }
  return r;
}

void CountedLoop::find_reads(const Progressions& places) {
  const Graph& g = b_.graph;
  for (NodeId id = 0; id < g.size(); ++id) {
    if (!live_[id] || !is(g[id], builtin::gather())) continue;
    const auto r = row(id, places);
    if (!r) continue;
    const Role role = roles_[r->array];
    const bool moves = !r->at.constant() || counter_.steps == 1;
    if (role == Role::Written || (role == Role::Steady && moves)) reads_.push_back(*r);
  }
}

// Returns true if another value depends on the counter when the scan reads and writes rows.
bool CountedLoop::counter_is_read() const {
  const Graph& g = b_.graph;
  std::set<NodeId> seen;
  std::vector<NodeId> open;
  for (std::size_t k = 0; k < g.roots().size(); ++k)
    if (k >= b_.states || (roles_[k] == Role::Carried && k != counter_.state)) open.push_back(g.roots()[k].edge.node);
  const NodeId counter = b_.inputs[counter_.state];
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (id == counter) return true;
    if (!seen.insert(id).second || std::ranges::find(reads_, id, &Row::node) != reads_.end()) continue;
    for (const Edge& e : g[id].in) open.push_back(e.node);
    if (const Derivative* d = g.derivative(id))
      for (const Edge& e : d->in) open.push_back(e.node);
  }
  // A loop that only writes values that do not change has nothing else to iterate over.
  const auto carried = std::ranges::count(roles_, Role::Carried);
  return carried == 1 && reads_.empty() && !writes_.empty();
}

// Returns the rows of an outer array in the order of the scan's axis 0.
Tensor CountedLoop::rows(const Row& r) const {
  const Tensor& operand = operands_[r.array];
  const Tensor array = operand.with(operand.view().then(b_.graph[r.node].in[0].view));
  const auto [least, most] = std::minmax(r.at.first, r.at.last);
  const std::int64_t apart = counter_.steps > 1 ? (most - least) / (counter_.steps - 1) : 1;
  Tensor t = array.slice(r.axis, least, most + 1, std::max<std::int64_t>(apart, 1));
  if (opposed(r)) t = t.flip(r.axis);
  std::vector<int> order = {r.axis};
  for (int a = 0; a < t.rank(); ++a)
    if (a != r.axis) order.push_back(a);
  return t.permute(order);
}

Tensor CountedLoop::put_back(const Row& r, Tensor ys) const {
  if (opposed(r)) ys = ys.flip(0);
  std::vector<int> order;
  for (int a = 0; a < ys.rank(); ++a) order.push_back(a == r.axis ? 0 : a < r.axis ? a + 1 : a);
  const Tensor rows = ys.permute(order), &before = operands_[r.array];
  if (rows.shape() == before.shape()) return rows;
  return prim::slice_scatter(before, rows, r.axis, std::min(r.at.first, r.at.last));
}

// Runs the original step, with its rows replaced by the scan's x and y.
Scanned CountedLoop::step(const std::vector<Tensor>& state, const std::vector<Tensor>& x) const {
  std::vector<Tensor> inputs = operands_;
  for (std::size_t k = 0, next = 0; k < b_.states; ++k)
    if (roles_[k] == Role::Carried) inputs[k] = state[next++];
  std::map<NodeId, Tensor> replaced;
  for (std::size_t k = 0; k < reads_.size(); ++k) replaced[reads_[k].node] = x[k].unsqueeze(reads_[k].axis);
  const std::vector<Tensor> out = instantiate(b_, inputs, operands_[0].graph(), replaced);
  Scanned r;
  for (std::size_t k = 0; k < b_.states; ++k)
    if (roles_[k] == Role::Carried) r.state.push_back(out[k]);
  r.ys.assign(out.begin() + static_cast<std::ptrdiff_t>(b_.states), out.end());
  return r;
}

std::vector<Tensor> CountedLoop::run() {
  std::vector<Tensor> last = operands_, carried, xs;
  last.resize(b_.states);
  for (std::size_t k = 0; k < b_.states; ++k)
    if (roles_[k] == Role::Carried) carried.push_back(operands_[k]);
  for (const Row& r : reads_) xs.push_back(rows(r));
  const Tensor& counter = operands_[counter_.state];
  if (roles_[counter_.state] == Role::Counter)
    last[counter_.state] = full(counter.graph(), {}, counter_.from + counter_.steps * counter_.step, counter.dtype());
  if (carried.empty() && writes_.empty()) return last;
  const auto f = [&](const std::vector<Tensor>& state, const std::vector<Tensor>& x) { return step(state, x); };
  const Scanned r =
      scan(f, std::move(carried), std::move(xs), {.reverse = reverse_, .length = counter_.steps, .keep_states = false});
  for (std::size_t k = 0, next = 0; k < b_.states; ++k)
    if (roles_[k] == Role::Carried) last[k] = r.state[next++];
  for (std::size_t k = 0; k < writes_.size(); ++k) last[writes_[k].array] = put_back(writes_[k], r.ys[k]);
  return last;
}

}  // namespace

std::vector<Tensor> run_counted(Reader& reader, const TracedLoop& loop, const Counter& counter) {
  return CountedLoop(reader, loop, counter).run();
}

}  // namespace lc::stablehlo
