#include "lightcone/io/checkpoints/torch/paths.h"

#include <algorithm>
#include <set>

#include "lightcone/io/printable.h"

namespace lc::io::torch {
namespace {

constexpr std::size_t kDeepest = 1000;  // Python's own limit of nested calls
// Steps of the walk for each value of the arena: a value that several others have is visited once for each of its
// paths.
constexpr std::uint64_t kStepsEach = 64, kStepsAtLeast = 1u << 20;
constexpr std::size_t kStepText = 16;      // bytes of a name that count as a step
constexpr std::size_t kMostPassing = 256;  // names of buffers of one module that are not persistent

// The keys below which a checkpoint has a model's weights; at most one of them is left out of names.
constexpr std::string_view kWrappers[] = {"state_dict", "model_state_dict", "model",     "module",
                                          "net",        "network",          "params",    "params_ema",
                                          "ema",        "model_ema",        "generator", "weights"};

// The dict of attributes of an object, of which Python may write a pair with a dict of slots; kNoKey: it has none.
Id attributes(const Values& v, Id object) {
  const Id state = v.state(object);
  if (v.is(state, Kind::Dict)) return state;
  const auto both = v.items(state);
  return v.is(state, Kind::Tuple) && both.size() == 2 && v.is(both[0], Kind::Dict) ? both[0] : Values::kNoKey;
}

bool is_module(const Values& v, Id attributes) {
  return v.is(v.at(attributes, "_parameters"), Kind::Dict) && v.is(v.at(attributes, "_modules"), Kind::Dict);
}

bool visit_pairs(const Values& v, std::span<const Id> pairs, const Visitor& visit) {
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const auto place = v.whole(pairs[i]).value_or(static_cast<std::int64_t>(i / 2));
    if (!visit({v.text(pairs[i]), place, pairs[i + 1]})) return false;
  }
  return true;
}

bool visit_list(std::span<const Id> items, const Visitor& visit) {
  for (std::size_t i = 0; i < items.size(); ++i)
    if (!visit({{}, static_cast<std::int64_t>(i), items[i]})) return false;
  return true;
}

bool visit_module(const Values& v, Id attributes, const Visitor& visit) {
  std::set<std::string_view> passing;
  if (const Id names = v.at(attributes, "_non_persistent_buffers_set"); v.is(names, Kind::Set))
    for (Id name : v.items(names).first(std::min(v.items(names).size(), kMostPassing))) passing.insert(v.text(name));
  const Id buffers = v.at(attributes, "_buffers");
  const auto persistent = [&](const Child& c) { return passing.contains(c.name) || visit(c); };
  return visit_pairs(v, v.items(v.at(attributes, "_parameters")), visit) &&
         (!v.is(buffers, Kind::Dict) || visit_pairs(v, v.items(buffers), persistent)) &&
         visit_pairs(v, v.items(v.at(attributes, "_modules")), visit);
}

bool visit_object(const Values& v, Id object, bool others, const Visitor& visit) {
  const Id has = attributes(v, object), state = v.state(object);
  if (is_module(v, has))
    return others ? visit_pairs(v, v.items(has), [&](const Child& c) { return c.name.starts_with('_') || visit(c); })
                  : visit_module(v, has, visit);
  if (has != Values::kNoKey && !visit_pairs(v, v.items(has), visit)) return false;
  const auto parts = v.items(state);
  if (v.is(state, Kind::Tuple) && has != Values::kNoKey) {  // the second part has slots
    if (v.is(parts[1], Kind::Dict) && !visit_pairs(v, v.items(parts[1]), visit)) return false;
  } else if (v.is(state, Kind::Tuple) || v.is(state, Kind::List)) {
    if (!visit_list(parts, visit)) return false;
  } else if (v.is(state, Kind::Tensor) && !visit({"state", 0, state})) {
    return false;
  }
  return visit_list(v.items(v.arguments(object)), visit) && visit_pairs(v, v.items(object).subspan(2), visit);
}

}  // namespace

bool visit_children(const Values& v, Id of, bool others, const Visitor& visit) {
  switch (v[of].kind) {
    case Kind::Dict: return visit_pairs(v, v.items(of), visit);
    case Kind::List:
    case Kind::Tuple:
    case Kind::Set: return visit_list(v.items(of), visit);
    case Kind::Object: return visit_object(v, of, others, visit);
    default: return true;
  }
}

namespace {

// Walks from the root to all tensors, without recursion.
class Walk {
 public:
  explicit Walk(Values& v) : v_(v), left_(kStepsAtLeast + kStepsEach * v.size()) {}
  Paths run(Id root);

 private:
  struct Frame {
    Id value;
    std::size_t path, next = 0;  // length of its path; the child that is visited next
    std::vector<Child> children;
  };
  void find_useful(Id root);
  void step(std::size_t n);
  std::vector<Child> children(Id of);
  void enter(Id value);
  void visit(const Child& c);
  Values& v_;
  std::uint64_t left_;
  std::size_t widest_ = 0;
  std::vector<bool> useful_, open_;  // values from which a tensor is reached; those between the root and here
  std::vector<Frame> frames_;
  std::string path_;
  std::vector<Path> found_;
};

void Walk::step(std::size_t n) {
  if (n > left_) v_.wrong("its values are nested in each other too often to name all of them");
  left_ -= n;
}

std::vector<Child> Walk::children(Id of) {
  std::vector<Child> all;
  visit_children(v_, of, false, [&](const Child& c) {
    step(1);
    all.push_back(c);
    return true;
  });
  step(1);
  if (all.capacity() > widest_) {
    v_.budget().take(2 * (all.capacity() - widest_), sizeof(Child));
    widest_ = all.capacity();
  }
  return all;
}

// Marks the values from which a tensor is reached: edges are collected from the root, then followed back from tensors.
void Walk::find_useful(Id root) {
  v_.budget().take(v_.size(), 1);
  useful_.resize(v_.size());
  open_.resize(v_.size());
  std::vector<bool> seen(v_.size());
  std::vector<std::pair<Id, Id>> edges;  // child, parent
  std::vector<Id> todo{root};
  seen[root] = true;
  while (!todo.empty()) {
    const Id parent = todo.back();
    todo.pop_back();
    for (const Child& c : children(parent)) {
      append(edges, {c.value, parent}, v_.budget());
      if (seen[c.value]) continue;
      seen[c.value] = true;
      append(todo, c.value, v_.budget());
    }
  }
  std::ranges::sort(edges);
  for (Id id = 0; id < v_.size(); ++id)
    if (seen[id] && v_.is(id, Kind::Tensor)) useful_[id] = true, append(todo, id, v_.budget());
  while (!todo.empty()) {
    const Id child = todo.back();
    todo.pop_back();
    for (auto at = std::ranges::lower_bound(edges, std::pair(child, Id{0})); at != edges.end() && at->first == child;
         ++at)
      if (!useful_[at->second]) useful_[at->second] = true, append(todo, at->second, v_.budget());
  }
}

void Walk::enter(Id value) {
  if (frames_.size() == kDeepest) v_.wrong(str_cat("its values are nested more than ", kDeepest, " deep"));
  Frame f{value, path_.size(), 0, children(value)};
  std::erase_if(f.children, [&](const Child& c) { return !useful_[c.value]; });
  v_.budget().take(sizeof(Frame) + f.children.capacity() * sizeof(Child));
  open_[value] = true;
  frames_.push_back(std::move(f));
}

void Walk::visit(const Child& c) {
  if (open_[c.value]) return;  // a child that has its parent
  const std::string place = c.name.empty() ? str_cat(c.place) : std::string(c.name);
  step(1 + place.size() / kStepText);
  path_ += path_.empty() ? place : "." + place;
  if (!v_.is(c.value, Kind::Tensor)) return enter(c.value);
  v_.budget().take(sizeof(Path) + 2 * path_.size() + 64);
  found_.emplace_back(path_, static_cast<std::size_t>(v_[c.value].integer));
}

Paths Walk::run(Id root) {
  find_useful(root);
  if (v_.is(root, Kind::Tensor)) found_.emplace_back("tensor", static_cast<std::size_t>(v_[root].integer));
  else if (useful_[root]) enter(root);
  while (!frames_.empty()) {
    Frame& f = frames_.back();
    path_.resize(f.path);
    if (f.next < f.children.size()) {
      visit(f.children[f.next++]);
    } else {
      open_[f.value] = false;
      frames_.pop_back();
    }
  }
  return {std::move(found_), std::move(useful_), {}};
}

bool is_below(std::string_view path, std::string_view key) {
  return path.size() > key.size() && path.starts_with(key) && path[key.size()] == '.';
}

// Leaves the one key out that only says that these are the weights, and returns it; "": there is none.
std::string unwrap(const Values& v, Id root, std::vector<Path>& paths) {
  if (!v.is(root, Kind::Dict)) return "";
  std::set<std::string_view> wrappers, names;
  for (const std::string_view key : kWrappers) {
    const Id below = v.at(root, key);
    if (below == Values::kNoKey || v.is(below, Kind::Tensor)) continue;
    if (std::ranges::any_of(paths, [&](const Path& p) { return is_below(p.first, key); })) wrappers.insert(key);
  }
  if (wrappers.size() != 1) return "";
  const std::string_view key = *wrappers.begin();
  for (const Path& p : paths)
    if (!names.insert(std::string_view(p.first).substr(is_below(p.first, key) ? key.size() + 1 : 0)).second) return "";
  for (Path& p : paths)
    if (is_below(p.first, key)) p.first.erase(0, key.size() + 1);
  return std::string(key);
}

}  // namespace

Paths paths_of_tensors(Values& v, Id root) {
  Paths all = Walk(v).run(root);
  std::vector<Path>& paths = all.tensors;
  std::ranges::sort(paths);
  for (std::size_t i = 1; i < paths.size(); ++i)
    if (paths[i].first == paths[i - 1].first) v.wrong(str_cat("two tensors are called ", in_quotes(paths[i].first)));
  v.budget().take(paths.size(), 64);
  all.left_out = unwrap(v, root, paths);
  return all;
}

}  // namespace lc::io::torch
