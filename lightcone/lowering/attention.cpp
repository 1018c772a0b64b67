// Matches SumReduce(softmax(scores) * V) with scores = steps(SumReduce(Q * K)). An index of the result is pulled back
// through every view on the way. The normalisation is a softmax if its sum and its maximum run over exactly the
// elements that the last product sums over.
#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>

#include "lightcone/codegen/symbols.h"
#include "lightcone/core/tensor.h"
#include "lightcone/lowering/attention.h"
#include "lightcone/lowering/factors.h"

namespace lc::lowering {
namespace {

using Index = std::vector<Dim>;

struct Coordinate {  // an element of a value
  NodeId node;
  Index index;
  friend bool operator==(const Coordinate&, const Coordinate&) = default;
};
struct Read {  // an operand of the kernel
  Edge edge;
  Linear at;
};
struct Cached {  // keys or values as they are stored
  Read numbers;
  CacheType type = CacheType::F32;
  std::optional<Read> scale;
};
struct AxisCut {  // an axis of the result, split in two because operands depend on one part of it only
  std::size_t axis;
  Dim by;
};

class Matcher {
 public:
  Matcher(const Graph& g, NodeId root, const std::vector<AxisCut>& cuts, bool scales)
      : g_(g), root_(root), cuts_(cuts), scales_(scales) {}
  std::optional<Attention> match(const std::vector<int>& uses);
  std::optional<AxisCut> wish;
  bool scaled = false;  // keys or values were matched as integers times scales

 private:
  struct Axis {
    Dim symbol, extent, out;
  };
  struct Step {
    AttentionStep step;
    std::optional<Read> read;
  };

  const Node& node(const Coordinate& p) const { return g_[p.node]; }
  bool is(const Coordinate& p, Op op) const { return node(p).op == op && node(p).dtype == DType::F32; }
  std::optional<Coordinate> pull(const Edge& e, const Index& index) const;
  std::optional<Coordinate> pull(const Coordinate& p, std::size_t k) const { return pull(node(p).in[k], p.index); }
  std::optional<double> constant(const Coordinate& p, std::size_t k) const;
  std::optional<Read> read(const Edge& e, const Index& index);
  std::optional<Cached> cached(const Edge& e, const Index& index);
  std::optional<Cached> quantised(const Coordinate& p);
  std::optional<Read> smallest(const Edge& e, Index index, const std::set<std::string>& used);
  std::optional<Read> read_small(const Edge& e, const Index& index);
  void depends(const Coordinate& p, std::set<std::string>& on, int& budget) const;
  void look_for_cut(const Dim& d);

  void make_axes();
  std::optional<Coordinate> reduced(const Coordinate& p, Op op) const;
  bool softmax(const Coordinate& p);
  bool exponential(const Coordinate& p, const Coordinate& sum);
  bool difference(const Coordinate& p);
  bool chain(const Coordinate& p, int steps);
  bool step(const Coordinate& p, std::size_t chained, Step s, std::optional<std::size_t> read, int steps);
  bool dot(const Coordinate& p);
  bool private_to(const std::vector<int>& uses) const;
  std::optional<Attention> plan() const;
  bool place_axes(Attention& p) const;

  const Graph& g_;
  NodeId root_;
  const std::vector<AxisCut>& cuts_;
  bool scales_;  // whether keys and values may come with scales
  std::vector<Axis> axes_;
  Index index_;    // index of the result
  Index symbols_;  // symbols of the axes, the keys and the depth
  Dim key_, keys_, depth_;
  double exponent_ = 1;
  float scale_ = 1;
  std::optional<Read> q_;
  std::optional<Cached> k_, v_;
  std::vector<Step> steps_;
  std::vector<NodeId> inside_;  // nodes that the kernel replaces
};

bool mentions(const Dim& d, const Dim& symbol) {
  const auto name = symbol.name();
  return name && d.symbols().contains(*name);
}

std::optional<Coordinate> Matcher::pull(const Edge& e, const Index& index) const {
  const View::Position p = e.view.locate(index);
  if (!(p.valid == Dim(1))) return std::nullopt;
  return Coordinate{e.node, unravel(p.offset, g_[e.node].shape)};
}

std::optional<double> Matcher::constant(const Coordinate& p, std::size_t k) const {
  const auto at = pull(p, k);
  if (!at || node(*at).op != Op::Constant) return std::nullopt;
  return node(*at).value;
}

// Finds an axis that can be split so that a division or remainder by a number disappears.
void Matcher::look_for_cut(const Dim& d) {
  for (const Dim::Term& t : d.terms())
    for (const Dim::Atom* f : t.factors) {
      if (wish || f->kind == Dim::Kind::Symbol) continue;
      look_for_cut(f->a);
      if (f->kind != Dim::Kind::Div && f->kind != Dim::Kind::Mod) continue;
      for (std::size_t i = 0; !wish && i < g_[root_].shape.size(); ++i) {
        const Dim s = Dim::index(static_cast<int>(i), g_[root_].shape[i]);
        if (f->a == s && f->b.bounds().lo > 0 && g_[root_].shape[i] % f->b == Dim(0)) wish = AxisCut{i, f->b};
      }
    }
}

std::optional<Read> Matcher::read(const Edge& e, const Index& index) {
  const View::Position p = e.view.locate(index);
  if (!(p.valid == Dim(1))) return std::nullopt;
  if (const auto at = linear(p.offset, symbols_)) return Read{{e.node, View(g_[e.node].shape)}, *at};
  look_for_cut(p.offset);
  if (wish) return std::nullopt;
  std::set<std::string> on;
  for (const auto& [name, b] : p.offset.symbols()) on.insert(name);
  return smallest(e, index, on);
}

// Returns the elements of an edge as an operand that has to be copied. An axis whose index is not used keeps its first
// element only.
std::optional<Read> Matcher::smallest(const Edge& e, Index index, const std::set<std::string>& used) {
  const Shape& shape = e.view.shape();
  Shape extent = shape;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    bool fixed = true, needed = false;
    for (const Dim& symbol : symbols_)
      if (mentions(index[i], symbol)) fixed = false, needed = needed || used.contains(*symbol.name());
    if (!fixed && !needed && shape[i].bounds().lo > 0) index[i] = 0, extent[i] = 1;
  }
  const Dim offset = ravel(index, extent);
  const auto strides = linear(offset, symbols_);
  if (!strides) {
    look_for_cut(offset);
    return std::nullopt;
  }
  return Read{{e.node, extent == shape ? e.view : e.view.slice(Shape(shape.size(), 0), extent)}, *strides};
}

// Collects the loop symbols that an element depends on.
void Matcher::depends(const Coordinate& p, std::set<std::string>& on, int& budget) const {
  const auto mention = [&](const Dim& d) {
    for (const auto& [name, b] : d.symbols()) on.insert(name);
  };
  const Node& n = node(p);
  const Kind kind = info(n.op).kind;
  if (n.op == Op::Constant) return;
  if (n.op == Op::Index) {
    mention(n.index.substitute([&](const std::string& s) -> std::optional<Dim> {
      for (std::size_t i = 0; i < p.index.size(); ++i)
        if (s == Dim::index_name(static_cast<int>(i))) return p.index[i];
      return std::nullopt;
    }));
  } else if (--budget < 0 || (kind != Kind::Elementwise && kind != Kind::Copy)) {
    for (const Dim& d : p.index) mention(d);
  } else {
    for (const Edge& e : n.in) {
      const View::Position at = e.view.locate(p.index);
      mention(at.valid);
      depends({e.node, unravel(at.offset, g_[e.node].shape)}, on, budget);
    }
  }
}

// Reads a mask or a bias. An axis that it does not depend on keeps its first element only.
std::optional<Read> Matcher::read_small(const Edge& e, const Index& index) {
  const auto place = pull(e, index);
  if (!place) return std::nullopt;
  std::set<std::string> on;
  int budget = 64;
  depends(*place, on, budget);
  return smallest({place->node, View(node(*place).shape)}, place->index, on);
}

void Matcher::make_axes() {
  const Shape& shape = g_[root_].shape;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const auto cut = std::find_if(cuts_.begin(), cuts_.end(), [&](const AxisCut& c) { return c.axis == i; });
    const Dim stride = product(Shape(shape.begin() + static_cast<std::ptrdiff_t>(i) + 1, shape.end()));
    if (cut == cuts_.end()) {
      axes_.push_back({Dim::index(static_cast<int>(i), shape[i]), shape[i], stride});
      index_.push_back(axes_.back().symbol);
    } else {
      const Dim outer = Dim::index(codegen::kAttentionSplits[2 * i], shape[i] / cut->by);
      const Dim inner = Dim::index(codegen::kAttentionSplits[2 * i + 1], cut->by);
      axes_.push_back({outer, shape[i] / cut->by, stride * cut->by});
      axes_.push_back({inner, cut->by, stride});
      index_.push_back(outer * cut->by + inner);
    }
  }
  for (const Axis& a : axes_) symbols_.push_back(a.symbol);
}

// Returns the element of the operand that a sum or maximum over the keys reads for the current key.
std::optional<Coordinate> Matcher::reduced(const Coordinate& p, Op op) const {
  if (!is(p, op)) return std::nullopt;
  const Node& n = node(p);
  if (!(n.in[0].view.shape()[static_cast<std::size_t>(n.axis)] == keys_)) return std::nullopt;
  for (const Dim& d : p.index)
    if (mentions(d, key_)) return std::nullopt;
  Index index = p.index;
  index.insert(index.begin() + n.axis, key_);
  return pull(n.in[0], index);
}

// Matches e / sum(e), written as e * recip(sum) or as a division.
bool Matcher::softmax(const Coordinate& p) {
  if (!is(p, Op::Mul) && !is(p, Op::Div)) return false;
  inside_.push_back(p.node);
  const std::size_t mark = inside_.size();
  for (const std::size_t e : {0u, 1u}) {
    inside_.resize(mark);
    const auto top = pull(p, e);
    auto below = pull(p, 1 - e);
    if (!top || !below) continue;
    if (is(p, Op::Mul)) {
      if (!is(*below, Op::Recip)) continue;
      inside_.push_back(below->node);
      below = pull(*below, 0);
      if (!below) continue;
    } else if (e == 1) {
      continue;
    }
    if (exponential(*top, *below)) return true;
  }
  return false;
}

bool Matcher::exponential(const Coordinate& p, const Coordinate& sum) {
  if ((!is(p, Op::Exp2) && !is(p, Op::Exp)) || reduced(sum, Op::SumReduce) != p) return false;
  inside_.push_back(sum.node), inside_.push_back(p.node);
  const auto power = pull(p, 0);
  if (!power) return false;
  if (is(p, Op::Exp)) {
    exponent_ = std::numbers::log2e;
    return difference(*power);
  }
  if (!is(*power, Op::Mul)) return difference(*power);
  for (const std::size_t k : {0u, 1u}) {
    const auto c = constant(*power, k);
    const auto d = pull(*power, 1 - k);
    if (!c || !d || !(*c > 0) || !std::isfinite(*c)) continue;
    exponent_ = *c;
    inside_.push_back(power->node);
    return difference(*d);
  }
  return false;
}

// Matches x - max(x), written as an addition.
bool Matcher::difference(const Coordinate& p) {
  if (!is(p, Op::Add)) return false;
  inside_.push_back(p.node);
  for (const std::size_t k : {0u, 1u}) {
    const auto x = pull(p, k), minus = pull(p, 1 - k);
    if (!x || !minus || !is(*minus, Op::Mul)) continue;
    for (const std::size_t s : {0u, 1u}) {
      const auto max = pull(*minus, 1 - s);
      if (constant(*minus, s) != -1.0 || !max || reduced(*max, Op::MaxReduce) != x) continue;
      inside_.push_back(minus->node), inside_.push_back(max->node);
      return chain(*x, 0);
    }
  }
  return false;
}

// Follows a score from the softmax back to the product of Q and K. `steps` counts the steps passed so far.
bool Matcher::chain(const Coordinate& p, int steps) {
  if (node(p).dtype != DType::F32) return false;
  if (node(p).op == Op::SumReduce) return dot(p);
  if (steps > kAttentionSteps) return false;  // the first scale is merged into the product, so one more
  using S = AttentionStep;
  const auto number = [&](std::size_t k) { return constant(p, k); };
  switch (node(p).op) {
    case Op::Mul:
      for (const std::size_t k : {0u, 1u})
        if (const auto c = number(k)) return step(p, 1 - k, {{S::Scale, static_cast<float>(*c)}, {}}, {}, steps);
      return false;
    case Op::Div:
      if (const auto c = number(1); c && std::isnormal(static_cast<float>(1 / *c)))
        return step(p, 0, {{S::Scale, static_cast<float>(1 / *c)}, {}}, {}, steps);
      return false;
    case Op::Add:
      for (const std::size_t k : {0u, 1u})
        if (const auto c = number(k)) return step(p, 1 - k, {{S::Shift, static_cast<float>(*c)}, {}}, {}, steps);
      return step(p, 0, {{S::Bias}, {}}, 1, steps) || step(p, 1, {{S::Bias}, {}}, 0, steps);
    case Op::Where:
      for (const std::size_t k : {1u, 2u})
        if (const auto c = number(k)) return step(p, 3 - k, {{S::Mask, static_cast<float>(*c), k == 2}, {}}, 0, steps);
      return false;
    default: return false;
  }
}

bool Matcher::step(const Coordinate& p, std::size_t chained, Step s, std::optional<std::size_t> from, int steps_above) {
  const auto next = pull(p, chained);
  const std::size_t inside = inside_.size(), steps = steps_.size();
  inside_.push_back(p.node);
  if (next && chain(*next, steps_above + 1)) {
    if (from) s.read = read_small(node(p).in[*from], p.index);
    if (!from || s.read) {
      steps_.push_back(s);
      return true;
    }
  }
  inside_.resize(inside), steps_.resize(steps);
  return false;
}

// Returns the storage type if the node is a cast to f32 that the kernel can do while it reads.
std::optional<CacheType> widened(const Graph& g, const Node& n) {
  if (n.op != Op::Contiguous || n.dtype != DType::F32) return std::nullopt;
  switch (g[n.in[0].node].dtype) {
    case DType::F16: return CacheType::F16;
    case DType::BF16: return CacheType::BF16;
    case DType::I8: return CacheType::I8;
    default: return std::nullopt;
  }
}

// Matches integers times a scale that is constant along a key or value.
std::optional<Cached> Matcher::quantised(const Coordinate& p) {
  if (!scales_ || !is(p, Op::Mul)) return std::nullopt;
  for (const std::size_t k : {0u, 1u}) {
    const auto codes = pull(p, k);
    if (!codes || widened(g_, node(*codes)) != CacheType::I8) continue;
    const auto numbers = read(node(*codes).in[0], codes->index);
    const auto scale = read(node(p).in[1 - k], p.index);
    if (!numbers || !scale) return std::nullopt;
    scaled = true;
    return Cached{*numbers, CacheType::I8, scale};
  }
  return std::nullopt;
}

// Reads keys or values. The kernel performs their casts and scaling.
std::optional<Cached> Matcher::cached(const Edge& e, const Index& index) {
  const auto place = pull(e, index);
  if (place) {
    if (auto q = quantised(*place)) return q;
    if (const auto type = widened(g_, node(*place))) {
      if (const auto numbers = read(node(*place).in[0], place->index)) return Cached{*numbers, *type, {}};
      return std::nullopt;
    }
  }
  if (const auto numbers = read(e, index)) return Cached{*numbers, CacheType::F32, {}};
  return std::nullopt;
}

bool Matcher::dot(const Coordinate& p) {
  const Node& n = node(p);
  depth_ = n.in[0].view.shape()[static_cast<std::size_t>(n.axis)];
  const Dim d = Dim::index(codegen::kAttentionDepth[0], depth_);
  Index index = p.index;
  index.insert(index.begin() + n.axis, d);
  const auto mul = pull(n.in[0], index);
  if (!mul || !is(*mul, Op::Mul)) return false;
  symbols_.resize(axes_.size() + 1);
  symbols_.push_back(d);
  for (const std::size_t k : {0u, 1u}) {
    q_ = read(node(*mul).in[1 - k], mul->index);
    k_ = cached(node(*mul).in[k], mul->index);
    const std::size_t key = axes_.size();
    if (!q_ || !k_ || !(q_->at.strides[key] == Dim(0)) || k_->numbers.at.strides[key] == Dim(0)) continue;
    if (k_->scale && !(k_->scale->at.strides[key + 1] == Dim(0))) continue;  // the scale varies along the key
    inside_.push_back(p.node), inside_.push_back(mul->node);
    return true;
  }
  return false;
}

bool Matcher::private_to(const std::vector<int>& uses) const {
  std::vector<NodeId> nodes = inside_;
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  std::map<NodeId, int> own;
  for (const NodeId id : nodes)
    for (const Edge& e : g_[id].in) ++own[e.node];
  for (const Edge& e : g_[root_].in) ++own[e.node];
  return std::all_of(nodes.begin(), nodes.end(), [&](NodeId id) { return own[id] == uses[id]; });
}

// Classifies the axes: those that index keys or values (batches), rows, and the one that runs along a value.
bool Matcher::place_axes(Attention& p) const {
  AttentionLayout<Dim>& l = p.layout;
  std::vector<AttentionLayout<Dim>::Axis> batches, rows;
  bool innermost = true;
  l.width = 1;
  for (std::size_t i = axes_.size(); i-- > 0;) {
    if (!axes_[i].symbol.name()) continue;
    AttentionLayout<Dim>::Axis a{.extent = axes_[i].extent,
                                 .q = q_->at.strides[i],
                                 .k = k_->numbers.at.strides[i],
                                 .v = v_->numbers.at.strides[i],
                                 .k_scale = k_->scale ? k_->scale->at.strides[i] : 0,
                                 .v_scale = v_->scale ? v_->scale->at.strides[i] : 0,
                                 .out = axes_[i].out};
    bool scored = !(a.q == Dim(0)) || !(a.k == Dim(0)) || !(a.k_scale == Dim(0));
    for (std::size_t s = 0; s < steps_.size(); ++s)
      if (steps_[s].read) {
        a.step[s] = steps_[s].read->at.strides[i];
        scored = scored || !(a.step[s] == Dim(0));
      }
    if (!scored && !innermost) return false;              // the scores would be recomputed for each index of this axis
    if (!scored && !(a.v_scale == Dim(0))) return false;  // the scale varies along the value
    const bool shared = a.k == Dim(0) && a.v == Dim(0) && a.k_scale == Dim(0) && a.v_scale == Dim(0);
    if (!scored) l.width = a.extent, l.v_width = a.v;
    else (shared ? rows : batches).push_back(a);
    innermost = false;
  }
  if (batches.size() + rows.size() > kAttentionAxes) return false;
  p.batches = static_cast<int>(batches.size());
  std::copy(batches.rbegin(), batches.rend(), l.axis.begin());
  std::copy(rows.rbegin(), rows.rend(), l.axis.begin() + p.batches);
  p.axes = p.batches + static_cast<int>(rows.size());
  return true;
}

std::optional<Attention> Matcher::plan() const {
  Attention p;
  AttentionLayout<Dim>& l = p.layout;
  AttentionScores& a = p.scores;
  if (steps_.size() > kAttentionSteps || !place_axes(p)) return std::nullopt;
  const std::size_t key = axes_.size(), depth = key + 1;
  l.keys = keys_, l.depth = depth_;
  l.q_at = q_->at.offset, l.q_depth = q_->at.strides[depth];
  const Linear &k_at = k_->numbers.at, &v_at = v_->numbers.at;
  l.k_at = k_at.offset, l.k_key = k_at.strides[key], l.k_depth = k_at.strides[depth];
  l.v_at = v_at.offset, l.v_key = v_at.strides[key];
  a.k_type = k_->type, a.v_type = v_->type;
  a.exponent = static_cast<float>(exponent_), a.scale = scale_;
  p.operands = {q_->edge, k_->numbers.edge, v_->numbers.edge};
  const auto scale = [&](const Cached& c, int& operand, Dim& at, Dim& along) {
    if (!c.scale) return;
    operand = static_cast<int>(p.operands.size());
    p.operands.push_back(c.scale->edge);
    at = c.scale->at.offset, along = c.scale->at.strides[key];
  };
  scale(*k_, p.k_scale, l.k_scale_at, l.k_scale_key);
  scale(*v_, p.v_scale, l.v_scale_at, l.v_scale_key);
  a.steps = static_cast<int>(steps_.size());
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    a.step[s] = steps_[s].step;
    const auto& from = steps_[s].read;
    if (!from) continue;
    l.step_at[s] = from->at.offset, l.step_key[s] = from->at.strides[key];
    const auto it = std::find(p.operands.begin(), p.operands.end(), from->edge);
    p.operand[s] = static_cast<int>(it - p.operands.begin());
    if (it == p.operands.end()) p.operands.push_back(from->edge);
  }
  a.skips = a.steps;
  while (a.skips > 0) {
    const AttentionStep& s = a.step[static_cast<std::size_t>(a.skips) - 1];
    if (s.kind != AttentionStep::Mask || s.value != static_cast<float>(-kInf)) break;
    --a.skips;
  }
  return p;
}

std::optional<Attention> Matcher::match(const std::vector<int>& uses) {
  const Node& n = g_[root_];
  if (n.op != Op::SumReduce || n.dtype != DType::F32) return std::nullopt;
  const Node& mul = g_[n.in[0].node];
  const auto weighs = [&](const Edge& e) { return g_[e.node].op == Op::Mul || g_[e.node].op == Op::Div; };
  if (mul.op != Op::Mul || !std::any_of(mul.in.begin(), mul.in.end(), weighs)) return std::nullopt;
  make_axes();
  keys_ = n.in[0].view.shape()[static_cast<std::size_t>(n.axis)];
  key_ = Dim::index(codegen::kAttentionKey[0], keys_);
  if (!key_.name() || keys_.bounds().lo < 1) return std::nullopt;
  symbols_.push_back(key_);
  Index index = index_;
  index.insert(index.begin() + n.axis, key_);
  const auto at = pull(n.in[0], index);
  if (!at) return std::nullopt;
  for (const std::size_t k : {0u, 1u}) {
    steps_.clear();
    inside_ = {at->node};
    const auto weights = pull(*at, k);
    if (!weights || !softmax(*weights)) continue;
    v_ = cached(mul.in[1 - k], at->index);
    if (!v_) return std::nullopt;
    if (!steps_.empty() && steps_[0].step.kind == AttentionStep::Scale) {  // merged into the product, where it is free
      scale_ = steps_[0].step.value;
      steps_.erase(steps_.begin());
    }
    return private_to(uses) ? plan() : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Attention> match_attention(const Graph& g, const std::vector<int>& uses, NodeId id) {
  if (g[id].op != Op::SumReduce) return std::nullopt;
  std::vector<AxisCut> cuts;
  for (bool scales = true;;) {
    Matcher m(g, id, cuts, scales);
    if (auto plan = m.match(uses)) return plan;
    if (m.wish && cuts.size() <= 3) cuts.push_back(*m.wish);
    else if (m.scaled) scales = false, cuts.clear();  // take the product for f32 that another kernel computes
    else return std::nullopt;
  }
}

std::string describe(const Attention& a) {
  Shape queries;
  for (int i = 0; i < a.axes; ++i) queries.push_back(a.layout.axis[static_cast<std::size_t>(i)].extent);
  queries.push_back(a.layout.depth);
  return str_cat("attention ", str(queries), " over ", a.layout.keys);
}

Graph fuse_attention(const Graph& g, PassLog& log, const AttentionKernels& kernels) {
  const std::vector<bool> live = g.live();
  const std::vector<int> uses = g.uses();
  Graph out;
  std::vector<NodeId> to(g.size());
  for (NodeId id = 0; id < g.size(); ++id) {
    if (!live[id]) continue;
    Node n = g[id];
    auto match = match_attention(g, uses, id);
    const std::vector<Edge> operands = match ? match->operands : std::vector<Edge>();
    NamedKernel made = match ? kernels(g, id, std::move(*match)) : NamedKernel{};
    for (Edge& e : n.in) e.node = to[e.node];
    if (made.kernel) {
      n = Node{.op = Op::Kernel, .dtype = n.dtype, .shape = n.shape, .where = n.where};
      for (const Edge& e : operands) {
        const Edge here{to[e.node], e.view};
        n.in.push_back(e.view.identity() ? here : prim::contiguous(Tensor(out, here)).edge());
      }
      n.name = std::move(made.name), n.kernel = std::move(made.kernel);
      ++log.fired["attention"];
    }
    to[id] = out.add(std::move(n));
  }
  copy_results(g, to, out);
  return out;
}

}  // namespace lc::lowering
