#include "lightcone/ops/typed/typed.h"

#include <map>
#include <mutex>

namespace lc::typed {
namespace {

std::string text(const Shape& s) {
  Text t;
  t.add(s);
  return t.s;
}

// Finds a symbol by name in an expression.
const lc::Dim::Atom* find(const lc::Dim& d, std::string_view name) {
  for (const lc::Dim::Term& t : d.terms())
    for (const lc::Dim::Atom* f : t.factors) {
      if (f->kind == lc::Dim::Kind::Symbol && !f->is_index && f->name == name) return f;
      for (const lc::Dim* inside : {&f->a, &f->b})
        if (const lc::Dim::Atom* found = find(*inside, name)) return found;
    }
  return nullptr;
}
// Finds the symbol that a graph uses for a name. Inputs introduce names; bound() does so with an unused Index node.
const lc::Dim::Atom* find(const Graph& g, std::string_view name) {
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].op == Op::Input || g[id].op == Op::Index)
      for (const lc::Dim& d : g[id].shape)
        if (const lc::Dim::Atom* found = find(d, name)) return found;
  return nullptr;
}

struct Ranges {
  std::mutex lock;
  std::map<std::string, Bounds> of;
};
Ranges& ranges() {
  static Ranges r;
  return r;
}
lc::Dim symbol(const Graph& g, const char* name) {
  if (const lc::Dim::Atom* used = find(g, name)) return lc::Dim::from(used);
  Ranges& r = ranges();
  const std::lock_guard hold(r.lock);
  const Bounds b = r.of.try_emplace(name, Bounds{1, 4096}).first->second;
  return lc::Dim::symbol(name, b.lo, b.hi);
}

}  // namespace

void bound(const char* name, std::int64_t low, std::int64_t high) {
  Ranges& r = ranges();
  const std::lock_guard hold(r.lock);
  const Bounds b = r.of.try_emplace(name, Bounds{low, high}).first->second;
  if (b.lo != low || b.hi != high)
    throw Error("bound", lc::str_cat("'", name, "' is in use from ", b.lo, " to ", b.hi,
                                     "; bound it before its first use, once, or with bound(graph, ...) for one graph"));
}

void bound(Graph& g, const char* name, std::int64_t low, std::int64_t high) {
  if (low == high)
    throw Error("bound", lc::str_cat("'", name, "' is always ", low, ": write the number instead of the name"));
  if (const lc::Dim::Atom* used = find(g, name)) {
    const Bounds b = used->bounds;
    if (b.lo == low && b.hi == high) return;
    throw Error("bound", lc::str_cat("'", name, "' is in use in this graph from ", b.lo, " to ", b.hi,
                                     "; bound it before the first tensor that has it, once"));
  }
  g.index({lc::Dim::symbol(name, low, high)}, 0);
}

lc::Tensor check_as(lc::Tensor t, const Shape& to, DType dtype, const At& at) {
  const OpScope scope("as", at);
  const lc::Shape have = t.shape();
  bool ok = static_cast<int>(have.size()) == to.rank;
  for (int i = 0; i < to.rank && ok; ++i) {
    const lc::Dim& d = have[i];
    if (to.d[i].number()) ok = d == lc::Dim(to.d[i].n);
    if (to.d[i].named()) ok = d.name() == to.d[i].name;
  }
  if (!ok) throw Error("as", lc::str_cat("a tensor of ", str(have), " is not a ", text(to)));
  if (t.dtype() != dtype)
    throw Error("as", lc::str_cat("a tensor of ", name(t.dtype()), " is not one of ", name(dtype)));
  return t;
}

lc::Tensor make_input(Graph& g, const char* name, const Shape& s, DType dtype, std::initializer_list<lc::Dim> dims,
                      const At& at, bool parameter) {
  const OpScope scope("input", at);
  lc::Shape shape;
  auto next = dims.begin();
  for (int i = 0; i < s.rank; ++i) {
    if (s.d[i].number()) shape.push_back(s.d[i].n);
    else if (s.d[i].named()) shape.push_back(symbol(g, s.d[i].name));
    else if (next != dims.end()) shape.push_back(*next++);
    else throw Error("input", lc::str_cat("'", name, "' of ", text(s), " needs a number for each ?"));
  }
  if (next != dims.end())
    throw Error("input", lc::str_cat("'", name, "' of ", text(s), " takes ", next - dims.begin(), " numbers, not ",
                                     dims.size()));
  return g.input(name, std::move(shape), dtype, at, parameter);
}

namespace {

// Returns the tensor's own symbol of that name, if it has one.
lc::Dim own(const lc::Tensor& t, const char* name) {
  for (const lc::Dim& d : t.shape())
    if (d.name() == name) return d;
  return symbol(t.graph(), name);
}

}  // namespace

lc::Shape reshape_to(lc::Tensor t, const Shape& s) {
  lc::Shape shape;
  int open = -1;
  for (int i = 0; i < s.rank; ++i) {
    shape.push_back(s.d[i].number() ? lc::Dim(s.d[i].n) : s.d[i].named() ? own(t, s.d[i].name) : lc::Dim(1));
    if (s.d[i] == dyn) open = i;
  }
  if (open < 0) return shape;
  const lc::Dim rest = product(shape);
  if (rest == lc::Dim(0)) throw Error("reshape", lc::str_cat("the open extent of ", text(s), " could be anything"));
  shape[open] = product(t.shape()) / rest;
  return shape;
}

lc::Shape stretch_to(lc::Tensor t, const Shape& s) {
  lc::Shape shape;
  for (int i = 0; i < s.rank; ++i)
    shape.push_back(s.d[i].number() ? lc::Dim(s.d[i].n) : s.d[i].named() ? own(t, s.d[i].name) : t.extent(i - s.rank));
  return shape;
}

lc::Shape extents_in(const GraphOf& in, const Shape& s) {
  lc::Shape shape;
  for (int i = 0; i < s.rank; ++i)
    shape.push_back(s.d[i].number() ? lc::Dim(s.d[i].n) : s.d[i].named() ? symbol(in.graph, s.d[i].name) : lc::Dim(-1));
  return shape;
}

}  // namespace lc::typed
