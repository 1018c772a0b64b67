// Recognises a contraction as a convolution. The summed index is split where the image's offset divides it (k / 9, k /
// 3 % 3 and k % 3 become three axes). The offset must then be linear, and the condition that guards the padding a
// conjunction of linear bounds, each on one output axis.
#include "lightcone/lowering/convolution.h"

#include <algorithm>
#include <set>

#include "lightcone/codegen/symbols.h"

namespace lc::lowering {
namespace {

using i64 = std::int64_t;

// Returns u if `d` is (k / u) or (k / u) % m. Adds every divisor it meets to `found`.
std::optional<i64> unit(const Dim& d, const std::string& k, std::set<i64>& found);
void collect(const Dim& d, const std::string& k, std::set<i64>& found) {
  for (const Dim::Term& t : d.terms())
    for (const Dim::Atom* a : t.factors) {
      if (a->kind == Dim::Kind::Symbol) continue;
      if (!unit(Dim::from(a), k, found)) collect(a->a, k, found), collect(a->b, k, found);
    }
}
std::optional<i64> unit(const Dim& d, const std::string& k, std::set<i64>& found) {
  if (d.name() == k) return 1;
  if (d.offset() != 0 || d.terms().size() != 1) return std::nullopt;
  const Dim::Term& t = d.terms()[0];
  if (t.coefficient != 1 || t.factors.size() != 1) return std::nullopt;
  const Dim::Atom& a = *t.factors[0];
  if (a.kind != Dim::Kind::Div && a.kind != Dim::Kind::Mod) return std::nullopt;
  const auto by = a.b.constant(), inner = unit(a.a, k, found);
  if (!by || !inner) return std::nullopt;
  found.insert(*inner * *by);
  return a.kind == Dim::Kind::Div ? *inner * *by : *inner;
}

// The operands as functions of the output axes and the parts of the summed index.
struct Split {
  std::size_t rank;
  std::vector<Dim> symbols, extents;  // output axes, then the parts of the summed index, innermost last
  Linear offset[2];
  Dim valid[2];
};
std::optional<Split> split(const Graph& g, const Factors& s) {
  const Node& sum = g[s.sum];
  Split r{sum.shape.size(), s.symbols, sum.shape, {}, {}};
  const std::string k = *s.symbols.back().name();
  std::set<i64> divisors;
  for (const auto& p : s.at) collect(p.offset, k, divisors), collect(p.valid, k, divisors);
  r.symbols.pop_back();
  Dim whole = 0, extent = sum.in[0].view.shape()[sum.axis];
  std::vector<i64> cuts(divisors.rbegin(), divisors.rend());
  cuts.push_back(1);
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    if (i > 0 && cuts[i - 1] % cuts[i] != 0) return std::nullopt;
    const Dim part = i == 0 ? extent / Dim(cuts[0]) : Dim(cuts[i - 1] / cuts[i]);
    if (i == 0 && !(part * Dim(cuts[0]) == extent)) return std::nullopt;
    r.extents.push_back(part);
    r.symbols.push_back(Dim::index(codegen::kSummedParts[i], part));
    whole = whole + r.symbols.back() * Dim(cuts[i]);
  }
  const auto in_parts = [&](const Dim& d) {
    return d.substitute([&](const std::string& name) { return name == k ? std::optional(whole) : std::nullopt; });
  };
  for (int side = 0; side < 2; ++side) {
    const auto l = linear(in_parts(s.at[side].offset), r.symbols);
    if (!l) return std::nullopt;
    r.offset[side] = *l;
    r.valid[side] = in_parts(s.at[side].valid);
  }
  return r;
}

// Adds a bound f >= 0 on one output axis to `c`, as lo <= coordinate or coordinate < hi.
bool bound(const Linear& f, const Split& s, const int (&pixel_of)[16], Convolution& c, bool (&taken)[kSpatial]) {
  i64 step[kSpatial] = {}, sign = 0;
  std::vector<i64> dilation;
  int at = -1;
  for (std::size_t i = 0; i < s.symbols.size(); ++i) {
    const auto v = f.strides[i].constant();
    if (!v) return false;
    if (*v != 0 && sign == 0) sign = *v < 0 ? -1 : 1;
    if (i >= s.rank) dilation.push_back(*v * sign);
    else if (*v != 0 && (pixel_of[i] < 0 || at >= 0)) return false;
    else if (*v != 0) step[at = pixel_of[i]] = *v * sign;
  }
  if (sign == 0) return false;
  const auto same = [&](int j) {
    if (!taken[j] || (at >= 0 && j != at) || c.pixels[j].step != step[j]) return false;
    for (std::size_t m = 0; m < dilation.size(); ++m)
      if (c.sums[m].dilation[j] != dilation[m]) return false;
    return true;
  };
  int slot = -1;
  for (int j = kSpatial; slot < 0 && j-- > 0;)  // the axis it varies with, or an axis of extent one
    if (same(j) || (!taken[j] && (at >= 0 ? j == at : c.pixels[j].extent == Dim(1)))) slot = j;
  if (slot < 0) return false;
  Convolution::Pixel& p = c.pixels[slot];
  if (!taken[slot]) {
    taken[slot] = true;
    p.step = at >= 0 ? step[at] : 0;
    for (std::size_t m = 0; m < dilation.size(); ++m) c.sums[m].dilation[slot] = dilation[m];
  }
  if (sign > 0) p.lo = max(p.lo, Dim(0) - f.offset);
  else p.hi = min(p.hi, f.offset + 1);
  return true;
}

bool bounds(const Dim& valid, const Split& s, const int (&pixel_of)[16], Convolution& c) {
  if (valid == Dim(1)) return true;
  if (valid.offset() != 0 || valid.terms().size() != 1 || valid.terms()[0].coefficient != 1) return false;
  bool taken[kSpatial] = {};
  for (const Dim::Atom* a : valid.terms()[0].factors) {
    if (a->kind != Dim::Kind::Less) return false;
    const auto f = linear(a->b - a->a - 1, s.symbols);
    if (!f || !bound(*f, s, pixel_of, c, taken)) return false;
  }
  return true;
}

}  // namespace

// Returns true if the windows do not overlap, like the rows or columns of a matrix. No element is then read twice, and
// a copy that merges the summed axes turns the convolution into a matrix product whose narrow weights stay narrow.
bool apart(const Convolution& c) {
  const Convolution::Pixel& p = c.pixels[kSpatial - 1];
  const auto step = p.image.constant(), extent = p.extent.constant();
  std::int64_t span = 0, least = INT64_MAX;
  for (const Convolution::Sum& s : c.sums) {
    const auto stride = s.image.constant(), n = s.extent.constant();
    if (!stride || !n) return false;
    if (*n < 2) continue;
    span += (*n - 1) * std::abs(*stride);
    least = std::min(least, std::abs(*stride));
  }
  const bool padded = !(p.lo == Dim(-Convolution::kFar)) || !(p.hi == Dim(Convolution::kFar));
  return !padded && step && (span < std::abs(*step) || (extent && (*extent - 1) * std::abs(*step) < least));
}

std::string shapes_of(const Graph& g, const Convolution& c) {
  return str_cat(str(g[c.image_node].shape), " x ", str(g[c.weight_node].shape));
}

std::optional<NodeId> filters_parameter(const Graph& g, NodeId operand) {
  const auto loaded = [&](NodeId id) { return g[id].op == Op::Input && g[id].parameter; };
  const Node& w = g[operand];
  if (loaded(operand)) return operand;
  const bool widened = w.op == Op::Contiguous && w.dtype == DType::F32 && w.in[0].view.identity();
  if (!widened || !loaded(w.in[0].node) || !is_half(g[w.in[0].node].dtype)) return std::nullopt;
  return w.in[0].node;
}

std::optional<Convolution> match_convolution(const Graph& g, const Factors& both) {
  if (g[both.sum].dtype != DType::F32) return std::nullopt;
  if (both.symbols.size() > 16) return std::nullopt;
  const Node& mul = g[g[both.sum].in[0].node];
  if (product(mul.shape).bounds().hi == 0) return std::nullopt;  // strides have no meaning if nothing is computed
  const auto s = split(g, both);
  if (!s) return std::nullopt;
  std::size_t last = s->rank;
  while (last > 0 && !s->symbols[last - 1].name()) --last;
  if (last == 0) return std::nullopt;
  const auto moves = [&](int side, std::size_t i) { return !(s->offset[side].strides[i] == Dim(0)); };
  const bool depthwise = moves(0, last - 1) && moves(1, last - 1);  // each channel of the image has its own filters
  // Channels last: two pixel axes, followed by one axis that the weights have.
  const auto pixels_before = [&](int of) {
    std::size_t i = last - 1;
    for (int n = 0; n < 2; ++n) {
      while (i > 0 && !s->symbols[i - 1].name()) --i;
      if (i == 0 || !moves(of, --i) || moves(1 - of, i)) return false;
    }
    return s->rank > 3;
  };
  const int inner = depthwise ? (pixels_before(0) ? 1 : 0) : moves(0, last - 1) ? 0 : 1;
  const bool channels_last = pixels_before(1 - inner);
  if (depthwise && !channels_last) return std::nullopt;
  const int image = channels_last ? 1 - inner : inner, weight = 1 - image;
  if (!(s->valid[weight] == Dim(1))) return std::nullopt;
  const Linear &x = s->offset[image], &w = s->offset[weight];

  Convolution c;
  c.channels_last = channels_last;
  c.image_node = both.edge[image].node, c.weight_node = both.edge[weight].node;
  c.image_offset = x.offset, c.weight_offset = w.offset;
  int pixel_of[16], pixels = 0;
  std::fill(std::begin(pixel_of), std::end(pixel_of), -1);
  const std::size_t end = channels_last ? last - 1 : s->rank;
  std::size_t first = end;  // pixel axes are the trailing ones that only the image has
  while (first > 0 && pixels < kSpatial && !moves(weight, first - 1) &&
         (moves(image, first - 1) || !s->symbols[first - 1].name())) {
    --first;
    if (!s->symbols[first].name()) continue;
    const int j = kSpatial - 1 - pixels++;
    pixel_of[first] = j;
    c.pixels[j].extent = s->extents[first], c.pixels[j].image = x.strides[first];
  }
  Dim stride = 1;
  bool rows = false;
  for (std::size_t i = s->rank; i-- > 0;) {
    if ((i < first || i >= end) && s->symbols[i].name()) {
      const Convolution::Axis a{s->extents[i], x.strides[i], w.strides[i], stride};
      if (!rows && (depthwise || !moves(image, i)) && moves(weight, i)) c.rows = a, rows = true;
      else c.outer.insert(c.outer.begin(), a);
    }
    stride = stride * s->extents[i];
  }
  for (std::size_t i = s->rank; i < s->symbols.size(); ++i)
    c.sums.push_back({s->extents[i], x.strides[i], w.strides[i], {}});
  if (!bounds(s->valid[image], *s, pixel_of, c)) return std::nullopt;
  if (channels_last) {
    if (const auto p = filters_parameter(g, c.weight_node)) {
      c.weight_node = *p;
      const DType stored = g[*p].dtype;
      c.stored = stored == DType::BF16 ? WeightType::BF16 : stored == DType::F16 ? WeightType::F16 : WeightType::F32;
    }
    return c;
  }
  // A matrix product reads nothing outside the image and has one column axis: match_contraction() handles it.
  const auto plain = match_contraction(g, both);
  if (plain && (pixels < 2 || plain->k.b == Dim(1) || plain->type != WeightType::F32)) return std::nullopt;
  if (pixels < 2 && apart(c)) return std::nullopt;
  return c;
}

}  // namespace lc::lowering
