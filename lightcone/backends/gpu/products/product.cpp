#include "lightcone/backends/gpu/products/product.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace lc::backends::gpu {

using lowering::Contraction;
using lowering::Convolution;

bool multiple(const Dim& d, std::int64_t n) { return d % Dim(n) == Dim(0); }

namespace {

constexpr std::int64_t kInt = std::int64_t{1} << 31;

// An axis of a product, before it is merged with others.
struct Axis {
  Dim extent, a, b, c;
};

// Appends an axis, or merges it with the last one if one stride describes both.
void add(std::vector<Dim>& extents, std::initializer_list<std::vector<Dim>*> strides, const Dim& extent,
         std::initializer_list<Dim> steps) {
  bool joins = !extents.empty();
  const Dim* step = steps.begin();
  for (std::vector<Dim>* s : strides) joins = joins && s->back() == *step++ * extent;
  if (joins) extents.back() = extents.back() * extent;
  else extents.push_back(extent);
  step = steps.begin();
  for (std::vector<Dim>* s : strides) {
    if (joins) s->back() = *step++;
    else s->push_back(*step++);
  }
}

// Axes that only A has are rows, axes that only B has are columns, and axes of both or neither are batches.
void add_axis(Product& p, const Axis& x) {
  if (x.extent == Dim(1)) return;
  const bool in_a = !(x.a == Dim(0)), in_b = !(x.b == Dim(0));
  if (in_a && !in_b) add(p.rows, {&p.a.own, &p.c_rows}, x.extent, {x.a, x.c});
  else if (in_b && !in_a) add(p.columns, {&p.b.own, &p.c_columns}, x.extent, {x.b, x.c});
  else add(p.batch, {&p.a.batch, &p.b.batch, &p.c_batch}, x.extent, {x.a, x.b, x.c});
}

// Returns the type of floats that kernels read as they are stored.
std::optional<WeightType> narrow_type(DType t) {
  switch (t) {
    case DType::F16: return WeightType::F16;
    case DType::BF16: return WeightType::BF16;
    case DType::F8E4M3FN: return WeightType::F8E4M3FN;
    case DType::F8E5M2: return WeightType::F8E5M2;
    default: return std::nullopt;
  }
}

// Returns an upper bound of the elements' offsets.
std::int64_t reach(const Product& p, const Operand& s, const std::vector<Dim>& own) {
  Dim all = s.offset;
  const auto along = [&](const std::vector<Dim>& extents, const std::vector<Dim>& strides) {
    for (std::size_t i = 0; i < extents.size(); ++i) {
      const Bounds b = strides[i].bounds();
      all = all + extents[i] * max(strides[i], b.lo < 0 ? Dim(0) - strides[i] : strides[i]);
    }
  };
  along(p.batch, s.batch), along(own, s.own), along(p.sum, s.sum);
  return all.bounds().hi;
}

void finish(const Graph& g, Product& p) {
  for (Operand* s : {&p.a, &p.b})
    if (const auto narrow = narrow_type(g[s->node].dtype)) s->type = *narrow;
  const Dim all[] = {p.results(), product(p.rows), product(p.columns), product(p.sum)};
  p.needs_64bit_index = reach(p, p.a, p.rows) >= kInt / 2 || reach(p, p.b, p.columns) >= kInt / 2;
  for (const Dim& d : all) p.needs_64bit_index = p.needs_64bit_index || d.bounds().hi >= kInt / 2;
}

}  // namespace

lowering::Factors before_widening(const Graph& g, lowering::Factors f) {
  for (int side = 0; side < 2; ++side) {
    const Node& n = g[f.edge[side].node];
    if (n.op != Op::Contiguous || n.dtype != DType::F32 || !is_narrow(g[n.in[0].node].dtype)) continue;
    const View::Position before = n.in[0].view.locate(unravel(f.at[side].offset, n.shape));
    if (!(before.valid == Dim(1))) continue;
    f.at[side].offset = before.offset;
    f.edge[side] = n.in[0];
  }
  return f;
}

std::optional<Convolution> find_convolution(const Graph& g, const lowering::Factors& f) {
  auto c = lowering::match_convolution(g, f);
  if (!c) return std::nullopt;
  if (!(c->rows.image == Dim(0)) && !window_lines(make_product(g, *c))) return std::nullopt;
  if (c->channels_last && lowering::match_contraction(g, f)) return std::nullopt;
  return c;
}

Product make_product(const Graph& g, const Contraction& c) {
  Product p;
  p.a.node = c.a_node, p.b.node = c.b_node;
  p.a.offset = c.a_offset, p.b.offset = c.b_offset;
  p.b.type = c.type;
  p.exact = c.type == WeightType::I8, p.to_f32 = c.to_f32;
  if (p.exact) p.a.type = WeightType::I8;
  for (const Contraction::Axis& x : c.axes) add_axis(p, {x.extent, x.a, x.b, x.c});
  p.sum = {c.k.extent}, p.a.sum = {c.k.a}, p.b.sum = {c.k.b};
  p.row = c.axes.back().extent;
  finish(g, p);
  return p;
}

// With channels last the pixels are rows and the filters B; else the filters are A and the pixels columns.
Product make_product(const Graph& g, const Convolution& c) {
  Product p;
  Operand image{.node = c.image_node,
                .type = WeightType::F32,
                .offset = c.image_offset,
                .batch = {},
                .own = {},
                .sum = {},
                .bounds = {},
                .repacked = false,
                .blocks = 0};
  Operand weight{.node = c.weight_node,
                 .type = c.stored,
                 .offset = c.weight_offset,
                 .batch = {},
                 .own = {},
                 .sum = {},
                 .bounds = {},
                 .repacked = false,
                 .blocks = 0};
  (c.channels_last ? p.a : p.b) = image;
  (c.channels_last ? p.b : p.a) = weight;
  const auto axis = [&](const Dim& extent, const Dim& of_image, const Dim& of_weight, const Dim& out) {
    return c.channels_last ? Axis{extent, of_image, of_weight, out} : Axis{extent, of_weight, of_image, out};
  };
  Operand& seen = c.channels_last ? p.a : p.b;
  std::vector<Dim>& pixels = c.channels_last ? p.rows : p.columns;
  for (const Convolution::Axis& x : c.outer) add_axis(p, axis(x.extent, x.image, x.weight, x.out));
  add_axis(p, axis(c.rows.extent, c.rows.image, c.rows.weight, c.rows.out));
  const std::size_t before = pixels.size();  // axes of images: they move no coordinate
  Dim stride = c.channels_last ? c.rows.extent : Dim(1);
  std::array<Dim, lowering::kSpatial> out;
  for (int j = lowering::kSpatial; j-- > 0;) out[j] = stride, stride = stride * c.pixels[j].extent;
  std::vector<int> spatial;  // spatial axis of each axis that follows
  for (int j = 0; j < lowering::kSpatial; ++j) {
    const Convolution::Pixel& x = c.pixels[j];
    if (x.extent == Dim(1)) continue;
    pixels.push_back(x.extent);
    (c.channels_last ? p.c_rows : p.c_columns).push_back(out[j]);
    seen.own.push_back(x.image);
    spatial.push_back(j);
  }
  for (const Convolution::Sum& s : c.sums)
    p.sum.push_back(s.extent), seen.sum.push_back(s.image), (c.channels_last ? p.b : p.a).sum.push_back(s.weight);
  for (int j = 0; j < lowering::kSpatial; ++j) {
    const Convolution::Pixel& x = c.pixels[j];
    if (x.lo == Dim(-Convolution::kFar) && x.hi == Dim(Convolution::kFar)) continue;
    Operand::Bound b{{}, {}, x.lo, x.hi};
    b.own.assign(before, 0);
    for (int axis_of : spatial) b.own.push_back(axis_of == j ? x.step : 0);
    for (const Convolution::Sum& s : c.sums) b.sum.push_back(s.dilation[j]);
    seen.bounds.push_back(std::move(b));
  }
  // a contracted axis that is contiguous in both operands varies fastest
  for (std::size_t i = 0; i + 1 < p.sum.size(); ++i) {
    if (!(p.a.sum[i] == Dim(1)) || !(p.b.sum[i] == Dim(1))) continue;
    const auto last = [i](auto& v) {
      std::rotate(v.begin() + static_cast<std::ptrdiff_t>(i), v.begin() + static_cast<std::ptrdiff_t>(i) + 1, v.end());
    };
    last(p.sum), last(p.a.sum), last(p.b.sum);
    for (Operand::Bound& b : seen.bounds) last(b.sum);
    break;
  }
  if (c.channels_last) p.row = c.rows.extent;
  else
    for (const auto& x : c.pixels) p.row = p.row * x.extent;
  finish(g, p);
  return p;
}

}  // namespace lc::backends::gpu
