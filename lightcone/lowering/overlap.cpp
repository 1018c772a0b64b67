#include <algorithm>
#include <map>

#include "lightcone/device/halves.h"
#include "lightcone/device/plan.h"
#include "lightcone/lowering/order.h"

namespace lc::lowering {
namespace {

// Operands and results of operations under way take at most so many bytes, if there are more than two.
constexpr std::size_t kUnderWay = std::size_t{64} << 20;

bool is_part(const Node& n) { return n.op == Op::Kernel && n.kernel->part(); }

class Overlap {
 public:
  Overlap(const Graph& g, PassLog& log)
      : g_(g),
        log_(log),
        late_(g.size(), true),
        started_(g.size()),
        is_postponed_(g.size()),
        open_(g.size()),
        to_(g.size()) {
    for (const Assignment& a : g.assignments()) state_.emplace(a.next.node, a.state);
    for (NodeId id = static_cast<NodeId>(g.size()); id-- > 0;) {
      const bool leads_to_one = !late_[id] || halves(g[id]);
      for (const Edge& e : g[id].in) late_[e.node] = late_[e.node] && !leads_to_one;
    }
  }
  Graph run();

 private:
  enum class What : std::uint8_t { Whole, Start, Wait };
  struct Step {
    NodeId node;
    What what;
  };
  void plan();
  bool postpone(NodeId id);
  void begin(NodeId id);
  void end(NodeId id);
  void end_operands(NodeId id);
  void join_neighbours();
  void emit(const Step& s);
  NodeId owner(NodeId id) const { return is_part(g_[id]) ? g_[id].in[0].node : id; }
  std::size_t bytes(NodeId id) const {
    std::size_t all = upper_bytes(g_[id]);
    for (const Edge& e : g_[id].in) all += upper_bytes(g_[e.node]);
    return all;
  }

  const Graph& g_;
  PassLog& log_;
  std::vector<bool> late_;  // by NodeId: no exchange depends on it
  // By NodeId: the number of the last exchange on which an exchange or a postponed node depends; 0 for others.
  std::vector<std::size_t> started_;
  std::size_t starts_ = 0;
  std::vector<NodeId> postponed_;
  std::vector<bool> is_postponed_;
  std::multimap<NodeId, NodeId> state_;  // which a node's value becomes
  std::vector<Step> steps_;
  std::vector<NodeId> under_way_;                // in the order of their starts
  std::map<NodeId, std::vector<NodeId>> parts_;  // the parts of results that are under way
  std::size_t bytes_ = 0;                        // under way
  std::vector<bool> open_;                       // by NodeId: under way
  Graph dst_;
  std::vector<NodeId> to_;
  std::map<NodeId, std::pair<Halves, NodeId>> halves_;  // with the start's node in the new graph
};

void Overlap::begin(NodeId id) {
  while (under_way_.size() > 1 && bytes_ + bytes(id) > kUnderWay) end(under_way_.front());
  steps_.push_back({id, What::Start});
  under_way_.push_back(id);
  bytes_ += bytes(id);
  open_[id] = true;
  started_[id] = ++starts_;
}

void Overlap::end(NodeId id) {
  steps_.push_back({id, What::Wait});
  for (const NodeId part : parts_[id]) steps_.push_back({part, What::Whole});
  std::erase(under_way_, id);
  bytes_ -= bytes(id);
  open_[id] = false;
}

// Ends what the node reads, and what reads a state that the node's kernel may overwrite in place.
void Overlap::end_operands(NodeId id) {
  for (const Edge& e : g_[id].in)
    if (open_[owner(e.node)]) end(owner(e.node));
  for (auto [it, last] = state_.equal_range(id); it != last; ++it) {
    const auto reads = [&](NodeId k) {
      return std::ranges::any_of(g_[k].in, [&](const Edge& e) { return e.node == it->second; });
    };
    for (const NodeId k : std::vector<NodeId>(under_way_))
      if (reads(k)) end(k);
  }
}

// Nodes on which no exchange depends come last if they wait for one, and then in the order in which these end: while an
// optimiser updates the parameters of the first, the others are under way.
bool Overlap::postpone(NodeId id) {
  if (!late_[id]) return false;
  for (const Edge& e : g_[id].in) {
    const NodeId from = owner(e.node);
    if (open_[from] || is_postponed_[from]) started_[id] = std::max(started_[id], started_[from]);
  }
  if (started_[id] == 0) return false;
  is_postponed_[id] = true;
  postponed_.push_back(id);
  return true;
}

void Overlap::plan() {
  for (NodeId id = 0; id < g_.size(); ++id) {
    const Node& n = g_[id];
    if (is_part(n) && open_[n.in[0].node]) {
      parts_[n.in[0].node].push_back(id);
      continue;
    }
    if (postpone(id)) continue;
    end_operands(id);
    if (const auto two = halves(n)) halves_.emplace(id, std::pair(*two, 0)), begin(id);
    else steps_.push_back({id, What::Whole});
  }
  std::ranges::stable_sort(postponed_, {}, [&](NodeId id) { return started_[id]; });
  for (const NodeId id : postponed_) end_operands(id), steps_.push_back({id, What::Whole});
  while (!under_way_.empty()) end(under_way_.front());
}

// Makes one kernel again of halves between which nothing runs.
void Overlap::join_neighbours() {
  std::vector<Step> joined;
  for (const Step& s : steps_) {
    auto last = joined.rbegin();
    if (s.what == What::Wait)  // what takes no time may stand between them
      while (last != joined.rend() && last->what == What::Whole &&
             (g_[last->node].op != Op::Kernel || is_part(g_[last->node])))
        ++last;
    if (s.what == What::Wait && last != joined.rend() && last->what == What::Start && last->node == s.node)
      last->what = What::Whole;
    else joined.push_back(s);
  }
  steps_ = std::move(joined);
}

void Overlap::emit(const Step& s) {
  const Node& n = g_[s.node];
  std::vector<Edge> in = n.in;
  for (Edge& e : in) e.node = to_[e.node];
  if (s.what == What::Whole) {
    to_[s.node] = dst_.adopt(n, std::move(in));
    return;
  }
  auto& [both, start] = halves_.at(s.node);
  const bool starts = s.what == What::Start;
  const std::shared_ptr<Kernel>& half = starts ? both.start : both.wait;
  half->origin = n.kernel->origin, half->device = n.kernel->device;
  Node made{
      .op = Op::Kernel, .dtype = n.dtype, .shape = n.shape, .name = half->name(), .kernel = half, .where = n.where};
  if (starts) {
    made.dtype = DType::U8;
    made.shape = {product(n.shape) * Dim(static_cast<std::int64_t>(size_of(n.dtype)))};
    ++log_.fired["exchange overlapped"];
  } else {
    in.insert(in.begin(), {start, View(dst_[start].shape)});
  }
  made.in = std::move(in);
  (starts ? start : to_[s.node]) = dst_.add(std::move(made));
}

Graph Overlap::run() {
  plan();
  join_neighbours();
  for (const Step& s : steps_) emit(s);
  copy_results(g_, to_, dst_);
  return std::move(dst_);
}

}  // namespace

bool has_exchanges(const Graph& g) {
  return any_node(g, [](const Node& n) { return halves(n).has_value(); });
}

Graph overlap_exchanges(const Graph& g, PassLog& log) { return Overlap(g, log).run(); }

}  // namespace lc::lowering
