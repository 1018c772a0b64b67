#include "lightcone/lowering/attention_operands.h"

#include <algorithm>
#include <cmath>

#include "lightcone/codegen/symbols.h"
#include "lightcone/core/tensor.h"

namespace lc::lowering {

bool mentions(const Dim& d, const Dim& symbol) {
  const auto name = symbol.name();
  return name && d.symbols().contains(*name);
}

std::optional<AttentionOperands::Coordinate> AttentionOperands::pull(const Edge& e, const Index& index) const {
  const View::Position p = e.view.locate(index);
  if (!(p.valid == Dim(1))) return std::nullopt;
  return Coordinate{e.node, unravel(p.offset, g_[e.node].shape)};
}

// Finds an axis that can be split so that a division or remainder by a number disappears.
void AttentionOperands::look_for_cut(const Dim& d) {
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

std::optional<AttentionOperands::Read> AttentionOperands::read(const Edge& e, const Index& index) {
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
std::optional<AttentionOperands::Read> AttentionOperands::smallest(const Edge& e, Index index,
                                                                   const std::set<std::string>& used) {
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
void AttentionOperands::depends(const Coordinate& p, std::set<std::string>& on, int& budget) const {
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
std::optional<AttentionOperands::Read> AttentionOperands::read_small(const Edge& e, const Index& index) {
  const auto place = pull(e, index);
  if (!place) return std::nullopt;
  std::set<std::string> on;
  int budget = 64;
  depends(*place, on, budget);
  return smallest({place->node, View(node(*place).shape)}, place->index, on);
}

void AttentionOperands::make_axes() {
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

bool AttentionOperands::add_keys(const Dim& keys) {
  keys_ = keys;
  key_ = Dim::index(codegen::kAttentionKey[0], keys);
  if (!key_.name() || keys.bounds().lo < 1) return false;
  symbols_.push_back(key_);
  return true;
}

void AttentionOperands::add_depth(const Dim& depth) {
  depth_ = depth;
  symbols_.resize(axes_.size() + 1);
  symbols_.push_back(Dim::index(codegen::kAttentionDepth[0], depth));
}

bool AttentionOperands::fits_product() const {
  const std::size_t key = axes_.size();
  if (!q_ || !k_ || !(q_->at.strides[key] == Dim(0)) || k_->numbers.at.strides[key] == Dim(0)) return false;
  return !k_->scale || k_->scale->at.strides[key + 1] == Dim(0);  // else the scale varies along the key
}

namespace {

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

}  // namespace

// Matches integers times a scale that is constant along a key or value.
std::optional<AttentionOperands::Cached> AttentionOperands::quantised(const Coordinate& p) {
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
std::optional<AttentionOperands::Cached> AttentionOperands::cached(const Edge& e, const Index& index) {
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

// Classifies the axes: those that index keys or values (batches), rows, and the one that runs along a value.
bool AttentionOperands::place_axes(Attention& p) const {
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

std::optional<Attention> AttentionOperands::plan() const {
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

}  // namespace lc::lowering
