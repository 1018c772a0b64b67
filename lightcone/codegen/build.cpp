#include "lightcone/codegen/build.h"

#include <algorithm>
#include <map>
#include <set>

#include "lightcone/codegen/positions.h"
#include "lightcone/codegen/symbols.h"
#include "lightcone/composites/composites.h"

namespace lc::codegen {
namespace {

constexpr double kTooMuchAgain = 8;  // most recomputations of an expensive value
constexpr int kTooManyCopies = 4;    // most copies of one inlined node at different indices
constexpr std::size_t kTooManyInstrs = 600;
constexpr std::size_t kTooManyParts = View::kMostParts;  // most parts of an index: each view multiplies them

bool expensive(Op op) { return info(op).cost > 1 || op == Op::Composite; }

struct Splits {
  std::vector<Dim> output;                    // extents of the output loops
  std::map<NodeId, std::vector<Dim>> reduce;  // extents of a reduction's loops
};

struct TooBig {};

std::size_t parts_of(const std::vector<Dim>& index, const Dim& guard) {
  std::size_t parts = guard.parts();
  for (const Dim& d : index) parts += d.parts();
  return parts;
}

class Builder {
 public:
  Builder(const Graph& g, const Region& r, Splits& splits, const Machine& m)
      : g_(g), region_(r), splits_(splits), machine_(m) {}

  Built build();
  // A loop to split in two: the loop with this symbol, at a multiple of `by`.
  struct Split {
    std::string symbol;
    Dim by;
  };
  std::optional<Split> split;
  struct Origin {  // the axis a loop was split from: of the output or of a reduction
    std::optional<NodeId> reduction;
    std::size_t k;
  };
  std::map<std::string, Origin> origins;
  // Reductions that are computed many times for each of their elements as the loops are now.
  std::set<NodeId> repeated;

 private:
  struct Key {
    NodeId node;
    std::vector<Dim> index;
    Dim guard;
    bool operator<(const Key& o) const {
      if (node != o.node) return node < o.node;
      if (index.size() != o.index.size()) return index.size() < o.index.size();
      for (std::size_t k = 0; k < index.size(); ++k)
        if (!(index[k] == o.index[k])) return order(index[k], o.index[k]);
      return guard == o.guard ? false : order(guard, o.guard);
    }
    static bool order(const Dim& a, const Dim& b) {
      return std::pair(a.offset(), &a.terms()) < std::pair(b.offset(), &b.terms());
    }
  };

  int depth_of(const Dim& d);
  int add(Instr in, int depth);
  // value(), read() and elementwise() recurse to the depth of a kernel's expression. Code outside of this recursion is
  // in functions that are not inlined, so that each level needs little stack.
  int value(NodeId id, std::vector<Dim> index, const Dim& guard);
  [[gnu::noinline]] int leaf(const Node& n, const std::vector<Dim>& index);
  [[gnu::noinline]] int zero_of(DType t);
  [[gnu::noinline]] int guarded(int v, const Dim& valid, DType t);  // 0 where not valid
  [[gnu::noinline]] int applied(NodeId id, const int (&in)[3], const std::vector<Dim>& index);
  int read(const Edge& e, const std::vector<Dim>& index, const Dim& guard);
  [[gnu::noinline]] int load(NodeId id, const std::vector<Dim>& index, const Dim& guard);
  [[gnu::noinline]] int gather(NodeId id, const std::vector<Dim>& index, const Dim& guard);
  [[gnu::noinline]] int reduction(NodeId id, const std::vector<Dim>& index, const Dim& guard);
  int elementwise(NodeId id, const std::vector<Dim>& index, const Dim& guard);
  int buffer(NodeId id);
  void look_for_splits(const Dim& d);
  int steps(NodeId id);
  bool repeats_walk(NodeId id, const std::vector<Dim>& index, const Dim& guard);
  void offend(NodeId id) { must_materialize_.insert(id); }
  // Continues as if the value were in memory already: its operands do not matter to this kernel then.
  [[gnu::noinline]] int in_memory(NodeId id, const std::vector<Dim>& index, const Dim& guard) {
    offend(id);
    return load(id, index, guard);
  }
  double again(const std::vector<Dim>& index, const Dim& guard, int depth) const;
  double iterations_an_index(const std::vector<Dim>& index, int depth) const;
  Block& block_at(int depth) {
    return depth == 0 ? kernel_.top : kernel_.loops[path_[static_cast<std::size_t>(depth) - 1]].body;
  }
  void choose_lanes();

  const Graph& g_;
  const Region& region_;
  Splits& splits_;
  const Machine& machine_;
  Kernel kernel_;
  std::vector<int> path_;   // open loops, outermost first
  std::vector<int> depth_;  // depth of each value
  std::map<std::string, int> symbol_depth_;
  std::map<Key, int> memo_;
  std::map<NodeId, int> copies_, steps_;
  std::map<NodeId, int> buffer_of_;
  std::vector<NodeId> buffers_, reductions_;
  std::vector<bool> same_index_;
  std::set<NodeId> must_materialize_;
  std::pair<std::size_t, NodeId> largest_{0, 0};  // the inlined value that took most instructions
  NodeId entered_ = 0;                            // the value begun last
  std::size_t reduce_loops_ = 0;
};

int Builder::depth_of(const Dim& d) {
  int depth = 0;
  each_symbol(d, [&](const Dim::Atom& s) {
    const auto it = symbol_depth_.find(s.name);
    if (it != symbol_depth_.end()) depth = std::max(depth, it->second);
  });
  return depth;
}

// Returns how often a value at this index is recomputed with the same result.
double Builder::again(const std::vector<Dim>& index, const Dim& guard, int depth) const {
  std::set<std::string_view> used;
  const auto use = [&](const Dim::Atom& s) { used.insert(s.name); };
  for (const Dim& d : index) each_symbol(d, use);
  each_symbol(guard, use);
  double times = 1;
  for (int k = 0; k < depth; ++k) {
    const Loop& l = kernel_.loops[path_[static_cast<std::size_t>(k)]];
    if (!used.contains(l.symbol)) times *= static_cast<double>(std::max<std::int64_t>(l.extent.bounds().hi, 1));
  }
  return times;
}

// Returns how many iterations of the open loops there are for each index that occurs, at least: an index may depend on
// all loops and take few values, as i / 2048 does.
double Builder::iterations_an_index(const std::vector<Dim>& index, int depth) const {
  double times = 1;
  for (int k = 0; k < depth; ++k)
    times *= static_cast<double>(
        std::max<std::int64_t>(kernel_.loops[path_[static_cast<std::size_t>(k)]].extent.bounds().hi, 1));
  for (const Dim& d : index) {
    const Bounds b = d.bounds();
    times /= std::max(static_cast<double>(b.hi) - static_cast<double>(b.lo) + 1, 1.0);
  }
  return times;
}

void Builder::look_for_splits(const Dim& d) {
  if (split) return;
  for (const Dim::Term& t : d.terms())
    for (const Dim::Atom* f : t.factors) {
      if (f->kind == Dim::Kind::Symbol) continue;
      look_for_splits(f->a);
      look_for_splits(f->b);
      if (split || (f->kind != Dim::Kind::Div && f->kind != Dim::Kind::Mod)) continue;
      const auto name = f->a.name();
      if (!name || !symbol_depth_.contains(*name)) continue;
      bool constant_divisor = true;
      each_symbol(f->b, [&](const Dim::Atom& s) { constant_divisor = constant_divisor && !s.is_index; });
      if (constant_divisor) split = {*name, f->b};
    }
}

int Builder::add(Instr in, int depth) {
  if (kernel_.instrs.size() > kTooManyInstrs) {
    offend(largest_.first > 0 ? largest_.second : entered_);
    throw TooBig{};
  }
  for (int k : {in.a, in.b, in.c})
    if (k >= 0) depth = std::max(depth, depth_[k]);
  const int id = static_cast<int>(kernel_.instrs.size());
  kernel_.instrs.push_back(std::move(in));
  depth_.push_back(depth);
  block_at(depth).items.push_back({false, id});
  return id;
}

int Builder::buffer(NodeId id) {
  const auto [it, fresh] = buffer_of_.try_emplace(id, static_cast<int>(buffers_.size()));
  if (fresh) {
    buffers_.push_back(id);
    same_index_.push_back(true);
    kernel_.buffers.push_back(g_[id].dtype);
  }
  return it->second;
}

int Builder::load(NodeId id, const std::vector<Dim>& index, const Dim& guard) {
  const Dim offset = raveled(index, g_[id].shape);
  look_for_splits(offset);
  look_for_splits(guard);
  const int b = buffer(id);
  if (!(offset == kernel_.store_offset)) same_index_[b] = false;
  return add({.code = Code::Load, .dtype = g_[id].dtype, .offset = offset, .valid = guard, .buffer = b},
             std::max(depth_of(offset), depth_of(guard)));
}

int Builder::read(const Edge& e, const std::vector<Dim>& index, const Dim& guard) {
  // locate() returns the flat offset; the producer needs an index of its own shape.
  const View::Position at = pinned(located(e.view, index));
  const Shape& s = g_[e.node].shape;
  const Dim both = guard * at.valid;
  if (at.valid == Dim(0)) return zero_of(g_[e.node].dtype);
  const int v = value(e.node, operand_index(at, s, both), both);
  const Code code = kernel_.instrs[v].code;
  if (at.valid == Dim(1) || ((code == Code::Load || code == Code::GatherLoad) && region_.is_buffer(e.node))) return v;
  return guarded(v, at.valid, g_[e.node].dtype);
}
int Builder::zero_of(DType t) { return add({.code = Code::Constant, .dtype = t}, 0); }
int Builder::guarded(int v, const Dim& valid, DType t) {
  look_for_splits(valid);
  const int c = add({.code = Code::Index, .dtype = DType::Bool, .offset = valid}, depth_of(valid));
  const int zero = zero_of(t);
  return add({.code = Code::Apply, .dtype = t, .op = Op::Where, .a = c, .b = v, .c = zero}, 0);
}

int Builder::gather(NodeId id, const std::vector<Dim>& index, const Dim& guard) {
  const Node& n = g_[id];
  const auto axis = static_cast<std::size_t>(n.attributes.integer("axis"));
  const int j = read(n.in[1], index, guard);
  // Split the offset into rest + j * stride by locating with the axis as a separate symbol.
  const Shape& data = n.in[0].view.shape();
  std::vector<Dim> at = index;
  const Dim probe = Dim::index(kGathered[0], data[axis]);
  at[axis] = probe;
  const View::Position p = n.in[0].view.locate(at);
  Dim stride = 0, rest = p.offset;
  if (const auto name = probe.name()) {
    const Dim zero =
        p.offset.substitute([&](const std::string& s) { return s == *name ? std::optional<Dim>(0) : std::nullopt; });
    const Dim one =
        p.offset.substitute([&](const std::string& s) { return s == *name ? std::optional<Dim>(1) : std::nullopt; });
    stride = one - zero;
    rest = zero;
    if (!(rest + stride * probe == p.offset) || !(p.valid == Dim(1)) || stride.symbols().contains(*name)) {
      offend(n.in[0].node);  // the caller materialises the view of the data
      return j;
    }
  }
  look_for_splits(rest);
  const int b = buffer(n.in[0].node);
  same_index_[b] = false;
  return add({.code = Code::GatherLoad,
              .dtype = n.dtype,
              .offset = rest,
              .valid = guard * p.valid,
              .stride = stride,
              .extent = data[axis],
              .buffer = b,
              .a = j},
             std::max(depth_of(rest), depth_of(guard)));
}

int Builder::reduction(NodeId id, const std::vector<Dim>& index, const Dim& guard) {
  const Node& n = g_[id];
  int depth = depth_of(guard);
  for (const Dim& d : index) depth = std::max(depth, depth_of(d));
  // A reduction that does not depend on inner loops is placed outside of them by block_at(). One that does not depend
  // on outer loops would be recomputed in each of their iterations.
  if (again(index, guard, depth) > 1.5 && id != region_.root) return in_memory(id, index, guard);
  // Loops that are split at the divisor may let it be placed outside of the inner one.
  if (iterations_an_index(index, depth) >= kTooMuchAgain && id != region_.root) repeated.insert(id);
  // Another loop of the kernel would add in another order, so the maximum of some sums would equal none of them.
  if (copies_[id] > 1 && n.op == Op::SumReduce && is_float(n.dtype)) return in_memory(id, index, guard);
  const std::vector<int> saved(path_.begin() + depth, path_.end());
  path_.resize(static_cast<std::size_t>(depth));
  std::vector<Dim>& extents =
      splits_.reduce.try_emplace(id, std::vector<Dim>{n.in[0].view.shape()[n.axis]}).first->second;
  std::vector<Dim> symbols;
  const int r = static_cast<int>(kernel_.reductions.size());
  kernel_.reductions.push_back({n.op, accumulated(n.dtype), -1, -1, -1});
  reductions_.push_back(id);
  std::vector<int> loops;
  for (std::size_t k = 0; k < extents.size(); ++k) {
    Loop l = loop_over(kReduceLoops[reduce_loops_++], extents[k]);
    l.depth = static_cast<int>(path_.size()), l.reduction = r, l.parent = path_.empty() ? -1 : path_.back();
    symbols.push_back(symbol(l));
    loops.push_back(static_cast<int>(kernel_.loops.size()));
    kernel_.loops.push_back(std::move(l));
    path_.push_back(loops.back());
    symbol_depth_[kernel_.loops.back().symbol] = static_cast<int>(path_.size());
    origins[kernel_.loops.back().symbol] = {id, k};
  }
  std::vector<Dim> inner = index;
  inner.insert(inner.begin() + n.axis, ravel(symbols, extents));
  const int v = read(n.in[0], inner, guard);
  kernel_.reductions[r].outer_loop = loops.front();
  kernel_.reductions[r].inner_loop = loops.back();
  kernel_.reductions[r].value = v;
  for (std::size_t k = loops.size(); k-- > 1;) kernel_.loops[loops[k - 1]].body.items.push_back({true, loops[k]});
  path_.resize(static_cast<std::size_t>(depth));
  block_at(depth).items.push_back({true, loops.front()});
  path_.insert(path_.end(), saved.begin(), saved.end());
  return add({.code = Code::Accumulator, .dtype = n.dtype, .buffer = r}, depth);
}

int Builder::elementwise(NodeId id, const std::vector<Dim>& index, const Dim& guard) {
  const Node& n = g_[id];
  int in[3] = {-1, -1, -1};
  for (std::size_t k = 0; k < n.in.size(); ++k) in[k] = read(n.in[k], index, guard);
  return applied(id, in, index);
}
int Builder::applied(NodeId id, const int (&in)[3], const std::vector<Dim>& index) {
  const Node& n = g_[id];
  const bool copy = n.op == Op::Contiguous;
  const int v = add(
      {.code = copy ? Code::Convert : Code::Apply, .dtype = n.dtype, .op = n.op, .a = in[0], .b = in[1], .c = in[2]},
      0);
  const bool shift = n.op == Op::Div && is_integer(n.dtype) &&  // or a multiplication: compilers divide by constants so
                     kernel_.instrs[in[1]].code == Code::Constant;
  if (expensive(n.op) && !shift && id != region_.root && again(index, 1, depth_[v]) >= kTooMuchAgain) offend(id);
  return v;
}

int Builder::leaf(const Node& n, const std::vector<Dim>& index) {
  if (n.op == Op::Constant) return add({.code = Code::Constant, .dtype = n.dtype, .value = n.value}, 0);
  SymbolValues axes;
  for (std::size_t a = 0; a < index.size(); ++a) axes.emplace(Dim::index_name(kAxes[a]), index[a]);
  const Dim d = at_values(n.index, axes);
  look_for_splits(d);
  return add({.code = Code::Index, .dtype = n.dtype, .offset = d}, depth_of(d));
}

// Returns how many gathers follow each other up to a value, as the steps of a walk through a tree do.
int Builder::steps(NodeId id) {
  const auto [it, fresh] = steps_.try_emplace(id, 0);
  if (!fresh || region_.is_buffer(id)) return it->second;
  const Node& n = g_[id];
  const Kind kind = info(n.op).kind;
  int most = 0;
  if (is(n, builtin::gather())) most = 1 + steps(n.in[1].node);
  else if (kind == Kind::Elementwise || kind == Kind::Copy)
    for (const Edge& e : n.in) most = std::max(most, steps(e.node));
  return steps_[id] = most;
}
// Returns true if the loops as they are would take the same steps several times.
bool Builder::repeats_walk(NodeId id, const std::vector<Dim>& index, const Dim& guard) {
  if (steps(id) < 2) return false;
  int depth = depth_of(guard);
  for (const Dim& d : index) depth = std::max(depth, depth_of(d));
  return again(index, guard, depth) > 1.5;
}

int Builder::value(NodeId id, std::vector<Dim> index, const Dim& guard) {
  const Node& n = g_[id];
  const Key key{id, index, guard};
  if (const auto it = memo_.find(key); it != memo_.end()) return it->second;
  int v = -1;
  const bool inlined = !region_.is_buffer(id) && info(n.op).kind != Kind::Leaf && id != region_.root;
  const std::size_t first = kernel_.instrs.size();
  if (inlined) entered_ = id;
  if (region_.is_buffer(id)) {
    v = load(id, index, guard);
  } else if (inlined && (++copies_[id] > kTooManyCopies || parts_of(index, guard) > kTooManyParts ||
                         repeats_walk(id, index, guard))) {
    v = in_memory(id, index, guard);
  } else {
    switch (info(n.op).kind) {
      case Kind::Leaf: v = leaf(n, index); break;
      case Kind::Elementwise:
      case Kind::Copy: v = elementwise(id, index, guard); break;
      case Kind::Reduce: v = reduction(id, index, guard); break;
      case Kind::Composite:
        check(is(n, builtin::gather()), "a composite inside a loop kernel");
        v = gather(id, index, guard);
        break;
      case Kind::Result:
      case Kind::Kernel: check(false, "a kernel inside a loop kernel");
    }
  }
  memo_.emplace(key, v);
  if (inlined) largest_ = std::max(largest_, {kernel_.instrs.size() - first, id});
  return v;
}

// Chooses the loop for lanes: the one along which more loads are contiguous, but no reduction of fewer elements than
// there are lanes.
void Builder::choose_lanes() {
  const int outputs = kernel_.output_loops;
  const std::string inner = outputs ? kernel_.loops[static_cast<std::size_t>(outputs) - 1].symbol : "";
  int along_reduce = 0, along_output = 0;
  bool reduces_inside = false, brief = true;
  for (const Reduction& r : kernel_.reductions) {
    const Loop& outer = kernel_.loops[r.outer_loop];
    if (outer.depth < outputs || outputs == 0) continue;
    reduces_inside = true;
    brief = brief && kernel_.loops[r.inner_loop].extent.bounds().hi < kLanes;
    const std::string& s = kernel_.loops[r.inner_loop].symbol;
    for (const Instr& i : kernel_.instrs)
      if (i.code == Code::Load) {
        along_reduce += coefficient(i.offset, s) == 1;
        along_output += coefficient(i.offset, inner) == 1;
      }
  }
  const bool lanes_on_output = outputs > 0 && (!reduces_inside || brief || along_output > along_reduce);
  if (lanes_on_output) kernel_.loops[static_cast<std::size_t>(outputs) - 1].lanes = true;
  for (const Reduction& r : kernel_.reductions) {
    Loop& l = kernel_.loops[r.inner_loop];
    l.lanes = std::none_of(l.body.items.begin(), l.body.items.end(), [](const Item& i) { return i.is_loop; });
    for (int up = l.parent; up >= 0; up = kernel_.loops[up].parent)
      if (lanes_on_output && up == outputs - 1) l.lanes = false;
  }
}

Built Builder::build() {
  Built built;
  const Node& root = g_[region_.root];
  kernel_.dtype = root.dtype;
  kernel_.output_loops = static_cast<int>(splits_.output.size());
  std::vector<Dim> symbols;
  for (std::size_t k = 0; k < splits_.output.size(); ++k) {
    Loop l = loop_over(kOutputLoops[k], splits_.output[k]);
    l.depth = static_cast<int>(k), l.parent = l.depth - 1;
    symbols.push_back(symbol(l));
    origins[l.symbol] = {std::nullopt, k};
    kernel_.loops.push_back(std::move(l));
    path_.push_back(static_cast<int>(k));
    symbol_depth_[kernel_.loops.back().symbol] = static_cast<int>(k) + 1;
  }
  const Dim flat = ravel(symbols, splits_.output);
  kernel_.store_offset = flat;
  const Shape& shape = root.shape;
  std::vector<Dim> index = unravel(flat, shape);
  if (region_.scatter) {
    const Node& s = *region_.scatter;
    index = unravel(flat, s.in[1].view.shape());
    std::vector<Dim> to = index;
    Dim& along = to[s.attributes.integer("axis")];
    along = along + s.attributes.dim("start");
    kernel_.store_offset = ravel(to, s.shape);
    look_for_splits(kernel_.store_offset);
  }
  try {
    kernel_.result = region_.scatter ? read(region_.scatter->in[1], index, 1) : value(region_.root, index, 1);
  } catch (const TooBig&) {
    built.must_materialize.assign(must_materialize_.begin(), must_materialize_.end());
    return built;
  }
  must_materialize_.erase(region_.root);
  built.must_materialize.assign(must_materialize_.begin(), must_materialize_.end());
  if (!built.must_materialize.empty()) return built;
  for (std::size_t k = splits_.output.size(); k-- > 1;)
    kernel_.loops[k - 1].body.items.push_back({true, static_cast<int>(k)});
  if (!splits_.output.empty()) kernel_.top.items.push_back({true, 0});
  choose_lanes();
  fuse_products(kernel_);
  block_sums(kernel_);
  if (region_.keep_rows) keep_rows(kernel_, kept_bytes(machine_));
  kernel_.work = static_cast<double>(kernel_.instrs.size());
  for (const Reduction& r : kernel_.reductions)
    if (kernel_.loops[r.outer_loop].depth >= kernel_.output_loops)
      kernel_.work *= static_cast<double>(std::max<std::int64_t>(kernel_.loops[r.inner_loop].extent.bounds().hi, 1));
  std::set<std::string> sizes;
  const auto collect = [&](const Dim& d) {
    each_symbol(d, [&](const Dim::Atom& s) {
      if (!s.is_index) sizes.insert(s.name);
    });
  };
  for (const Instr& i : kernel_.instrs)
    for (const Dim* d : {&i.offset, &i.valid, &i.stride, &i.extent}) collect(*d);
  for (const Loop& l : kernel_.loops) collect(l.extent);
  collect(kernel_.store_offset);
  kernel_.sizes.assign(sizes.begin(), sizes.end());
  built.kernel = std::move(kernel_);
  built.buffers = std::move(buffers_);
  built.reductions = std::move(reductions_);
  built.same_index = std::move(same_index_);
  return built;
}

// Splits axis k so that its inner part has extent `by`. Returns false if it does not divide evenly.
bool cut(std::vector<Dim>& extents, std::size_t k, const Dim& by) {
  const Dim outer = extents[k] / by;
  if (!(outer * by == extents[k]) || extents[k] == by || by == Dim(1) || by.bounds().lo < 0) return false;
  extents[k] = outer;
  extents.insert(extents.begin() + static_cast<std::ptrdiff_t>(k) + 1, by);
  return true;
}

}  // namespace

Built build(const Graph& g, const Region& region, const Machine& m) {
  Splits splits;
  const Shape& shape = region.scatter ? region.scatter->in[1].view.shape() : g[region.root].shape;
  const Dim all = product(shape);
  if (!shape.empty()) splits.output = {all};
  for (int attempt = 0;; ++attempt) {
    Builder b(g, region, splits, m);
    Built built = b.build();
    if (!built.must_materialize.empty()) return built;
    bool cut_again = false;
    if (b.split && attempt <= 24) {
      if (const auto it = b.origins.find(b.split->symbol); it != b.origins.end()) {
        const auto& [reduction, k] = it->second;
        cut_again = cut(reduction ? splits.reduce[*reduction] : splits.output, k, b.split->by);
      }
    }
    if (cut_again) continue;  // otherwise a division that is left stays: correct, but slower
    built.must_materialize.assign(b.repeated.begin(), b.repeated.end());
    if (!b.repeated.empty()) built.kernel.reset();
    return built;
  }
}

}  // namespace lc::codegen
