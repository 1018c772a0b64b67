#include "lightcone/runtime/view/groups.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <set>

#include "lightcone/core/composite.h"
#include "lightcone/device/kernel.h"
#include "lightcone/passes/origin.h"

namespace lc::view {
namespace {

using Nodes = std::vector<NodeId>;  // in topological order, which is the order of ids
using Path = std::vector<std::string>;

constexpr std::size_t kMostChildren = 80;  // most children of a group; larger groups are split into parts
constexpr std::size_t kMostCalls = 4;      // most calls named in a group's line
constexpr const char kCall[] = "\n";       // first character of a path component that stands for a user's call

Path common(const Path& a, const Path& b) {
  const auto [end, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return {a.begin(), end};
}

// Splits "layers.0.attention.wq.weight" into layers, 0, attention, wq.
Path module_of(const std::string& parameter) {
  Path path;
  std::size_t begin = 0;
  for (std::size_t dot; (dot = parameter.find('.', begin)) != std::string::npos; begin = dot + 1)
    path.push_back(parameter.substr(begin, dot - begin));
  return path;
}

bool same_call(const Location& a, const Location& b) {
  return a.known() && a.line == b.line && std::string_view(a.op) == b.op && std::string_view(a.file) == b.file;
}

std::vector<Origin::Step> steps_of(const Node& n) {
  if (n.op == Op::Kernel) return n.kernel->origin.steps;
  return {{n.composite ? std::string_view(n.composite->name) : info(n.op).name, n.where}};
}

class Grouper {
 public:
  explicit Grouper(const Graph& g);
  Grouping run();

 private:
  struct Item {  // an element of a level: a group or a single node
    std::string name;
    Nodes nodes;
    bool group = false;
    std::size_t depth = 0;  // first component of its nodes' paths that describes its content
  };
  void choose_drawn();
  bool is_weight(NodeId id) const;
  bool of_one_call(NodeId id) const;
  void find_calls();
  void find_paths();
  struct Layer {
    Path path;
    bool one = false;  // the layer of parameters that are read here, and not one that encloses several
  };
  std::set<Path> layers_of(const Nodes& nodes) const;
  static Path between(const std::vector<const Layer*>& operands, const Layer* next);
  void assign(const Nodes& nodes, bool within_a_call);
  std::vector<Item> items(const Nodes& nodes, std::size_t depth) const;
  std::vector<Nodes> convex(const Nodes& nodes, const Nodes& level) const;
  std::vector<std::vector<int>> readers(const std::vector<Item>& items) const;
  void sort(std::vector<Item>& items) const;
  std::vector<bool> in_circles(const std::vector<Item>& items) const;
  bool cut_circle(std::vector<Item>& items) const;
  std::vector<std::size_t> cuts(const std::vector<Item>& items) const;
  std::string calls(const Nodes& nodes) const;
  int group(std::string name, const Nodes& nodes, int parent, bool call);
  void place(const std::vector<Item>& items, int parent);
  void level(const Item& whole, int parent);
  void name_numbers();

  const Graph& g_;
  Grouping out_;
  bool has_parameters_ = false;
  std::vector<NodeId> call_;          // first node of the same call, by NodeId
  std::vector<Path> path_;            // by NodeId
  std::set<int> parts_;               // groups that are parts of a split level
  mutable std::vector<int> item_of_;  // scratch, by NodeId
};

Grouper::Grouper(const Graph& g) : g_(g), call_(g.size()), path_(g.size()), item_of_(g.size(), -1) {
  out_.of.assign(g.size(), -1);
  out_.alone.resize(g.size());
}

void Grouper::choose_drawn() {
  out_.drawn = g_.live();
  out_.beside.assign(g_.size(), false);
  out_.fixed.assign(g_.size(), false);
  std::vector<bool> result(g_.size(), false);
  for (const Root& r : g_.roots()) result[r.edge.node] = true;
  std::vector<bool> state(g_.size(), false);
  for (const Assignment& a : g_.assignments()) {
    state[a.state] = true;
    result[a.next.node] = true;
  }
  for (NodeId id = 0; id < g_.size(); ++id) {
    const Node& n = g_[id];
    if (!out_.drawn[id]) continue;
    if (n.op == Op::Constant && !result[id]) out_.drawn[id] = false;
    if (n.op == Op::Input) out_.beside[id] = (n.parameter || state[id]) && !result[id];
    has_parameters_ = has_parameters_ || n.parameter;
    if (n.op == Op::Index) out_.beside[id] = !result[id];
    // A value that depends on constants only belongs to no call: equal ones are one node, whichever call made them.
    const auto fixed = [&](const Edge& e) { return g_[e.node].op == Op::Constant || out_.fixed[e.node]; };
    const Kind kind = info(n.op).kind;
    const bool computed = kind == Kind::Elementwise || kind == Kind::Reduce || kind == Kind::Copy;
    out_.fixed[id] = computed && std::all_of(n.in.begin(), n.in.end(), fixed);
    const auto number = [&](const Edge& e) {
      return g_[e.node].op == Op::Constant || (out_.fixed[e.node] && out_.beside[e.node]);
    };
    if (out_.fixed[id] && kind != Kind::Reduce && n.shape.empty() && !result[id])
      out_.beside[id] = std::all_of(n.in.begin(), n.in.end(), number);
    // A weight that is cast, or packed at load
    const bool prepared = n.op == Op::Contiguous || (n.op == Op::Kernel && n.kernel->origin.steps.empty());
    if (prepared && n.in.size() == 1 && !result[id] && is_weight(n.in[0].node)) out_.beside[id] = true;
  }
}

// Returns true for a parameter and for a value prepared from one.
bool Grouper::is_weight(NodeId id) const {
  while (out_.beside[id] && !g_[id].in.empty()) id = g_[id].in[0].node;
  return g_[id].parameter && out_.beside[id];
}

// A kernel often implements several calls. A product counts as a call of its own.
bool Grouper::of_one_call(NodeId id) const {
  if (out_.beside[id] || out_.fixed[id]) return false;
  if (g_[id].op != Op::Kernel) return info(g_[id].op).kind != Kind::Leaf;
  const std::vector<Origin::Step>& steps = g_[id].kernel->origin.steps;
  return !steps.empty() && std::all_of(steps.begin(), steps.end(), [&](const Origin::Step& s) {
    return s.shapes.empty() && same_call(s.where, steps[0].where);
  });
}

// Joins nodes of the same line and operation that read each other into one call. Nodes of a call that runs through the
// whole model belong together wherever they are. A kernel may stand for several calls.
void Grouper::find_calls() {
  std::iota(call_.begin(), call_.end(), NodeId{0});
  const auto first = [&](NodeId id) {
    while (call_[id] != id) id = call_[id] = call_[call_[id]];
    return id;
  };
  const auto join = [&](NodeId a, NodeId b) {
    a = first(a), b = first(b);
    call_[std::max(a, b)] = std::min(a, b);
  };
  std::map<std::string, NodeId> through;  // calls that run through the model, by their location
  for (NodeId id = 0; id < g_.size(); ++id) {
    const Node& n = g_[id];
    if (!out_.drawn[id] || out_.beside[id] || info(n.op).kind == Kind::Leaf) continue;
    if (spans_model(n.where.op))
      join(id, through.try_emplace(str_cat(n.where.op, ' ', n.where.file, ' ', n.where.line), id).first->second);
    if (!of_one_call(id)) continue;
    for (const Edge& e : n.in)
      if (out_.drawn[e.node] && same_call(n.where, g_[e.node].where) && of_one_call(e.node)) join(id, e.node);
  }
  std::map<NodeId, int> sizes;
  for (NodeId id = 0; id < g_.size(); ++id)
    if (out_.drawn[id]) ++sizes[call_[id] = first(id)];
  for (NodeId id = 0; id < g_.size(); ++id) out_.alone[id] = out_.drawn[id] && sizes[call_[id]] == 1;
}

// Returns the layers whose parameters the nodes read.
std::set<Path> Grouper::layers_of(const Nodes& nodes) const {
  std::set<Path> layers;
  for (const NodeId id : nodes)
    for (const Edge& e : g_[id].in) {
      NodeId k = e.node;
      while (out_.beside[k] && !g_[k].in.empty()) k = g_[k].in[0].node;
      const Node& n = g_[k];
      if (n.op != Op::Input || (has_parameters_ ? !n.parameter : n.name.find('.') == std::string::npos)) continue;
      layers.insert(module_of(n.name));
    }
  return layers;
}

// Returns the layer of a call that reads no parameter: the common path of its operands' layers, or that of its newest
// operand and the next layer, whichever is longer. The result of a layer with parameters is outside of that layer.
Path Grouper::between(const std::vector<const Layer*>& operands, const Layer* next) {
  const auto outside = [](const Layer& l) {
    Path path = l.path;
    if (l.one && !path.empty()) path.pop_back();
    return path;
  };
  if (operands.empty()) return next ? outside(*next) : Path{};
  if (operands.size() == 1 && !next) return {};  // after the last layer
  Path around = outside(*operands[0]);
  for (const Layer* l : operands) around = common(around, outside(*l));
  Path ahead = next ? common(outside(*operands.back()), outside(*next)) : Path{};
  return ahead.size() > around.size() ? ahead : around;
}

// Sets the paths of nodes from the layers of parameters that their calls read. A call that runs through the model is in
// no layer, unless its own nodes are being grouped.
void Grouper::assign(const Nodes& nodes, bool within_a_call) {
  std::map<NodeId, Nodes> of_call;
  for (const NodeId id : nodes) of_call[call_[id]].push_back(id);
  std::map<NodeId, Layer> known;
  std::set<NodeId> own;  // calls that read parameters
  const auto through = [&](NodeId call) { return !within_a_call && spans_model(g_[call].where.op); };
  for (const auto& [call, members] : of_call) {
    const std::set<Path> read = layers_of(members);
    if (through(call)) known[call] = {};
    if (read.empty() || through(call)) continue;
    Layer l{*read.begin(), read.size() == 1};
    for (const Path& p : read) l.path = common(l.path, p);
    own.insert(call), known[call] = std::move(l);
  }
  std::vector<NodeId> order;  // calls in the order of their last nodes, when all their operands are known
  for (const auto& [call, members] : of_call) order.push_back(call);
  std::sort(order.begin(), order.end(), [&](NodeId a, NodeId b) { return of_call[a].back() < of_call[b].back(); });
  std::map<NodeId, std::set<NodeId>> operands;  // by call: the calls it reads
  std::map<NodeId, const Layer*> next;          // by call: the first layer with parameters after it
  for (const NodeId call : order)
    for (const NodeId member : of_call[call])
      for (const Edge& e : g_[member].in)
        if (call_[e.node] != call && of_call.contains(call_[e.node])) operands[call].insert(call_[e.node]);
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    if (through(*at)) continue;
    const Layer* here = own.contains(*at) ? &known[*at] : next[*at];
    for (const NodeId from : operands[*at])
      if (here) next[from] = here;
  }
  for (const NodeId call : order) {
    if (known.contains(call)) continue;
    std::vector<const Layer*> from;
    for (const NodeId k : operands[call])
      if (const auto l = known.find(k); l != known.end()) from.push_back(&l->second);
    if (!from.empty()) known[call] = {between(from, next[call]), false};
  }
  // A call with no layer before it, such as a mask, belongs to its readers.
  std::map<NodeId, Path> readers;
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    if (!known.contains(*at)) {
      const auto r = readers.find(*at);
      known[*at] = {r == readers.end() ? Path{} : r->second, false};
    }
    if (through(*at)) continue;
    for (const NodeId from : operands[*at]) {
      const auto [r, fresh] = readers.try_emplace(from, known[*at].path);
      if (!fresh) r->second = common(r->second, known[*at].path);
    }
  }
  for (const auto& [call, members] : of_call) {
    Path path = known[call].path;
    if (members.size() > 1) path.push_back(str_cat(kCall, call));
    for (const NodeId id : members) path_[id] = path;
  }
}

void Grouper::find_paths() {
  Nodes computed;
  std::map<NodeId, Nodes> calls;
  for (NodeId id = 0; id < g_.size(); ++id)
    if (out_.drawn[id] && !out_.beside[id] && info(g_[id].op).kind != Kind::Leaf) {
      computed.push_back(id);
      calls[call_[id]].push_back(id);
    }
  assign(computed, false);
  // Group again within a call that runs through several layers: backward, an optimiser's step, a whole encoder.
  for (const auto& [call, members] : calls) {
    if (layers_of(members).size() < 2 || members.size() < 12) continue;
    const Path before = path_[call];
    const std::size_t known = before.size() - 1;  // components of the layers' paths that the call's path has
    for (const NodeId id : members) call_[id] = id;
    assign(members, true);
    for (const NodeId id : members) {
      Path path = before;
      if (path_[id].size() > known)
        path.insert(path.end(), path_[id].begin() + static_cast<std::ptrdiff_t>(known), path_[id].end());
      path_[id] = path;
    }
  }
}

// Splits the nodes of a group into convex pieces: no path leaves a piece and returns to it.
std::vector<Nodes> Grouper::convex(const Nodes& nodes, const Nodes& level) const {
  const std::set<NodeId> mine(nodes.begin(), nodes.end());
  std::map<NodeId, int> piece;  // piece of a member; for another node: the last piece it depends on
  std::vector<Nodes> pieces;
  const auto begin = std::lower_bound(level.begin(), level.end(), nodes.front());
  const auto end = std::upper_bound(level.begin(), level.end(), nodes.back());
  for (auto at = begin; at != end; ++at) {
    const bool inside = mine.contains(*at);
    int k = inside ? 0 : -1;
    for (const Edge& e : g_[*at].in)
      if (const auto p = piece.find(e.node); p != piece.end())
        k = std::max(k, p->second + (inside && p->second >= 0 && !mine.contains(e.node)));
    if (inside || k >= 0) piece[*at] = k;
    if (!inside) continue;
    pieces.resize(std::max(pieces.size(), static_cast<std::size_t>(k) + 1));
    pieces[k].push_back(*at);
  }
  std::erase_if(pieces, [](const Nodes& p) { return p.empty(); });
  return pieces;
}

std::vector<Grouper::Item> Grouper::items(const Nodes& nodes, std::size_t depth) const {
  std::map<std::string, Nodes> named;
  std::vector<Item> all;
  for (const NodeId id : nodes)
    if (path_[id].size() > depth) named[path_[id][depth]].push_back(id);
    else all.push_back({"", {id}, false, depth});
  for (const auto& [name, members] : named) {
    std::vector<Nodes> pieces = convex(members, nodes);
    for (std::size_t k = 0; k < pieces.size(); ++k)
      all.push_back({k == 0 || name.starts_with(kCall) ? name : str_cat(name, " (", k + 1, ")"), std::move(pieces[k]),
                     true, depth + 1});
  }
  return all;
}

std::vector<std::vector<int>> Grouper::readers(const std::vector<Item>& items) const {
  for (std::size_t i = 0; i < items.size(); ++i)
    for (const NodeId id : items[i].nodes) item_of_[id] = static_cast<int>(i);
  std::vector<std::vector<int>> to(items.size());
  for (std::size_t i = 0; i < items.size(); ++i)
    for (const NodeId id : items[i].nodes)
      for (const Edge& e : g_[id].in)
        if (const int from = item_of_[e.node]; from >= 0 && from != static_cast<int>(i))
          to[from].push_back(static_cast<int>(i));
  for (const Item& item : items)
    for (const NodeId id : item.nodes) item_of_[id] = -1;
  for (auto& r : to) {
    std::sort(r.begin(), r.end());
    r.erase(std::unique(r.begin(), r.end()), r.end());
  }
  return to;
}

// Sorts topologically, by first node if there is a choice. The items must be acyclic.
void Grouper::sort(std::vector<Item>& items) const {
  const auto to = readers(items);
  std::vector<int> waits(items.size(), 0);
  for (const auto& r : to)
    for (const int i : r) ++waits[i];
  std::set<std::pair<NodeId, int>> ready;
  const auto free = [&](int i) { ready.insert({items[i].nodes.front(), i}); };
  for (std::size_t i = 0; i < items.size(); ++i)
    if (waits[i] == 0) free(static_cast<int>(i));
  std::vector<Item> sorted;
  while (!ready.empty()) {
    const auto i = static_cast<std::size_t>(ready.extract(ready.begin()).value().second);
    for (const int next : to[i])
      if (--waits[next] == 0) free(next);
    sorted.push_back(std::move(items[i]));
  }
  items = std::move(sorted);
}

// Returns which items are on a cycle of items that read each other, or between two cycles.
std::vector<bool> Grouper::in_circles(const std::vector<Item>& items) const {
  const auto to = readers(items);
  std::vector<std::vector<int>> from(items.size());
  for (std::size_t i = 0; i < items.size(); ++i)
    for (const int r : to[i]) from[r].push_back(static_cast<int>(i));
  std::vector<bool> left(items.size(), true);
  const auto peel = [&](const auto& before, const auto& behind) {
    std::vector<int> waits(items.size(), 0), ready;
    for (std::size_t i = 0; i < items.size(); ++i) {
      for (const int k : before[i]) waits[i] += left[k];
      if (left[i] && waits[i] == 0) ready.push_back(static_cast<int>(i));
    }
    while (!ready.empty()) {
      const auto i = static_cast<std::size_t>(ready.back());
      ready.pop_back();
      left[i] = false;
      for (const int k : behind[i])
        if (--waits[k] == 0 && left[k]) ready.push_back(k);
    }
  };
  peel(from, to);
  peel(to, from);
  return left;
}

// Replaces the smallest group on a cycle by its parts. Returns false if there is no cycle.
bool Grouper::cut_circle(std::vector<Item>& items) const {
  const std::vector<bool> circle = in_circles(items);
  std::size_t smallest = items.size();
  for (std::size_t i = 0; i < items.size(); ++i)
    if (circle[i] && items[i].group &&
        (smallest == items.size() || items[i].nodes.size() < items[smallest].nodes.size()))
      smallest = i;
  if (smallest == items.size()) return false;
  const Item whole = std::move(items[smallest]);
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(smallest));
  for (Item& inner : this->items(whole.nodes, whole.depth)) items.push_back(std::move(inner));
  return true;
}

// Chooses where to split too many items into consecutive parts: at positions that few values cross.
std::vector<std::size_t> Grouper::cuts(const std::vector<Item>& items) const {
  const std::size_t n = items.size(), each = std::max(kMostChildren / 2, (n + kMostChildren - 1) / kMostChildren);
  std::vector<int> crossing(n + 2, 0);  // values made before position k and read from it on
  const auto to = readers(items);
  for (std::size_t i = 0; i < n; ++i)
    if (!to[i].empty()) ++crossing[i + 1], --crossing[static_cast<std::size_t>(to[i].back()) + 1];
  std::partial_sum(crossing.begin(), crossing.end(), crossing.begin());
  std::vector<std::size_t> ends;
  for (std::size_t begin = 0; begin < n; begin = ends.back()) {
    std::size_t end = std::min(n, begin + each);
    for (std::size_t k = begin + each * 3 / 4; end < n && k <= std::min(n, begin + each * 5 / 4); ++k)
      if (crossing[k] < crossing[end]) end = k;
    ends.push_back(end);
  }
  return ends;
}

std::string Grouper::calls(const Nodes& nodes) const {
  std::vector<std::string_view> all;
  std::string text;
  for (const NodeId id : nodes)
    for (const Origin::Step& s : steps_of(g_[id])) {
      const std::string_view call = call_name(s);
      if (call == "contiguous" || std::find(all.begin(), all.end(), call) != all.end()) continue;
      if (all.size() == kMostCalls) return text + ", ...";
      all.push_back(call);
      text += str_cat(text.empty() ? "" : ", ", call);
    }
  return text;
}

int Grouper::group(std::string name, const Nodes& nodes, int parent, bool call) {
  Group made{parent, std::move(name), calls(nodes), {}};
  if (call) made.where = g_[nodes.front()].where;
  if (made.name.starts_with(kCall)) made.name = call_name({"", made.where});
  out_.groups.push_back(std::move(made));
  return static_cast<int>(out_.groups.size()) - 1;
}

void Grouper::place(const std::vector<Item>& items, int parent) {
  if (items.size() > kMostChildren) {
    std::size_t begin = 0;
    for (const std::size_t end : cuts(items)) {
      const std::vector<Item> part(items.begin() + static_cast<std::ptrdiff_t>(begin),
                                   items.begin() + static_cast<std::ptrdiff_t>(end));
      Nodes nodes;
      for (const Item& i : part) nodes.insert(nodes.end(), i.nodes.begin(), i.nodes.end());
      const std::string &first = part.front().name, &last = part.back().name;
      const bool named =
          part.size() > 1 && !first.empty() && !last.empty() && !first.starts_with(kCall) && !last.starts_with(kCall);
      const int made =
          group(named ? str_cat(first, " to ", last) : str_cat("part ", begin + 1, " to ", end), nodes, parent, false);
      parts_.insert(made);
      place(part, made);
      begin = end;
    }
    return;
  }
  for (const Item& i : items) {
    if (i.nodes.size() == 1) out_.of[i.nodes.front()] = parent;
    else level(i, parent);
  }
}

// Emits a group, or one group for a chain of groups that contain only each other.
void Grouper::level(const Item& whole, int parent) {
  std::string name = whole.name;
  bool call = name.starts_with(kCall);
  std::vector<Item> inner = items(whole.nodes, whole.depth);
  while (inner.size() == 1 && inner[0].group) {
    const Item only = std::move(inner[0]);
    if (only.name.starts_with(kCall)) call = true;
    else if (name.starts_with(kCall)) name = spans_model(g_[whole.nodes.front()].where.op) ? name : only.name;
    else name += "." + only.name;
    inner = items(only.nodes, only.depth);
  }
  while (cut_circle(inner)) {
  }
  sort(inner);
  place(inner, group(std::move(name), whole.nodes, parent, call));
}

// Completes numeric names: "0" becomes "layers.0" if the enclosing group is "layers".
void Grouper::name_numbers() {
  for (Group& k : out_.groups) {
    if (k.name.empty() || !std::isdigit(static_cast<unsigned char>(k.name[0]))) continue;
    int around = k.parent;
    while (parts_.contains(around)) around = out_.groups[around].parent;
    if (around < 0) continue;
    const std::string& name = out_.groups[around].name;
    k.name = name.substr(name.rfind('.') + 1) + "." + k.name;
  }
}

Grouping Grouper::run() {
  choose_drawn();
  find_calls();
  find_paths();
  Nodes computed;
  for (NodeId id = 0; id < g_.size(); ++id)
    if (out_.drawn[id] && !out_.beside[id] && info(g_[id].op).kind != Kind::Leaf) computed.push_back(id);
  std::vector<Item> top = items(computed, 0);
  while (cut_circle(top)) {
  }
  sort(top);
  place(top, -1);
  name_numbers();
  return std::move(out_);
}

}  // namespace

Grouping group_nodes(const Graph& g) { return Grouper(g).run(); }

}  // namespace lc::view
