// Activations, norms and embeddings that onnxruntime fuses, and operators of ai.onnx that it had first.
#include <cmath>

#include "lightcone/onnx/microsoft/microsoft.h"

namespace lc::onnx {
namespace {

// ---- activations ------------------------------------------------------------------------------------

Tensor with_bias(Call& c, const Tensor& x, std::size_t operand) {
  const Tensor bias = c.optional(operand);
  return bias.defined() ? x + expand_to(c, bias, x.shape()) : x;
}
Values gelu_of_sum(Call& c) { return {gelu(with_bias(c, c.x(), 1))}; }
Values fast_gelu(Call& c) { return {gelu(with_bias(c, c.x(), 1), "tanh")}; }
Values quick_gelu(Call& c) {
  const double alpha = c.number("alpha", 1.702F);
  return {c.x() * sigmoid(c.x() * alpha)};
}
Values bias_split_gelu(Call& c) {  // one half times gelu of the other
  const Tensor x = with_bias(c, c.x(), 1);
  const Dim half = x.extent(-1) / Dim(2);
  const int last = x.rank() - 1;
  return {narrow(x, last, 0, half) * gelu(narrow(x, last, half, half))};
}
Values scaled_silu(Call& c) {
  const Tensor x = c.x();
  const double alpha = c.number("alpha", 1);
  const Tensor z = c.has(1) ? x * expand_to(c, c.x(1).reshape({}), x.shape()) : x * alpha;
  return {z * sigmoid(z)};
}
Values clamped_swiglu(Call& c) {
  const double alpha = c.number("activation_alpha", 1), beta = c.number("activation_beta", 0),
               limit = c.number("limit", 0);
  if (c.flag("round_activation")) c.refuse("rounds between two products");
  Tensor gate = c.x(0), up = c.optional(1);
  if (!up.defined()) {
    const int last = gate.rank() - 1;
    const Dim half = gate.extent(last) / Dim(2);
    up = narrow(gate, last, half, half), gate = narrow(gate, last, 0, half);
  }
  const DType type = gate.dtype();
  gate = prim::cast(gate, DType::F32), up = prim::cast(up, DType::F32);
  if (limit > 0) gate = clamp_max(gate, limit), up = clamp(up, -limit, limit);
  return {prim::cast(gate * sigmoid(gate * alpha) * (beta == 0 ? up : up + beta), type)};
}
Values bias_softmax(Call& c) {
  const Tensor x = c.x(0), bias = c.x(1);
  const std::int64_t given = c.integer("axis", 1);
  const int axis = c.wrap(given, x.rank());
  const bool inner = c.flag("is_inner_broadcast", true);
  Shape s = bias.shape();
  if (inner && bias.rank() < x.rank()) {  // its leading axes are x's, and it is the same along those up to `axis`
    if (bias.rank() < x.rank() - axis) c.refuse(str_cat("its bias ", str(s), " has too few axes"));
    const auto rest = s.end() - (x.rank() - axis);
    s.insert(rest, static_cast<std::size_t>(x.rank() - bias.rank()), 1);
  }
  const Tensor y = x + expand_to(c, bias.reshape(s), x.shape());
  const Shape all = x.shape();
  Shape flat(all.begin(), all.begin() + axis);
  flat.push_back(product(Shape(all.begin() + axis, all.end())));
  return {softmax(y.reshape(flat), axis).reshape(all)};
}
Values bias_add(Call& c) { return {with_bias(c, with_bias(c, c.x(), 1), 2)}; }

// ---- norms ------------------------------------------------------------------------------------------

// Normalises over the last axis; the statistics are optional results.
template <bool kCentred>
Values skip_norm(Call& c) {
  const double eps = c.number("epsilon", 1e-12F);
  const std::size_t bias = kCentred ? 4 : 3;
  const Tensor x = with_bias(c, with_bias(c, c.x(), 1), bias);
  const Shape last{x.extent(-1)};
  const Tensor gamma = c.x(2);
  Tensor y;
  if (kCentred) {
    const Tensor beta = c.optional(3);
    y = beta.defined() ? layer_norm(x, last, gamma, beta, eps) : layer_norm(x, last, gamma, {}, eps);
  } else {
    y = rms_norm(x, last, gamma, eps);
  }
  if (c.wants(1) || c.wants(2)) {
    const Tensor wide = prim::cast(x, DType::F32);
    const Tensor mean = kCentred ? lc::mean(wide, {-1}, true) : Tensor();
    const Tensor power = lc::mean(square(kCentred ? wide - mean : wide), {-1}, true);
    return {y, kCentred ? Value(mean) : Value(), rsqrt(power + eps), x};
  }
  return {y, Value(), Value(), x};
}
Values simplified_norm(Call& c) {  // as onnxruntime writes RMS norms
  const double eps = c.number("epsilon", 1e-5F);
  c.ignore("stash_type");
  const Tensor x = c.x(0), scale = c.x(1);
  const int axis = c.axis("axis", -1, x.rank());
  const Shape s = x.shape();
  const Shape last(s.begin() + axis, s.end());
  const Tensor wide = prim::cast(x, DType::F32);
  const Tensor y = prim::cast(rms_norm(wide, last, {}, eps), scale.dtype());
  Values r{y * expand_to(c, scale, s)};
  if (c.wants(1)) {
    std::vector<int> axes;
    for (int k = axis; k < x.rank(); ++k) axes.push_back(k);
    r.push_back(rsqrt(mean(square(wide), axes, true) + eps));
  }
  return r;
}

Tensor norm_of_groups(Call& c, Tensor x, const Tensor& gamma, const Tensor& beta) {
  const bool last = c.flag("channels_last", true);
  const std::int64_t groups = c.integer("groups"), activation = c.integer("activation", 0);
  const double eps = c.number("epsilon", 1e-5F);
  if (x.rank() != 4) c.refuse("needs pictures with 4 axes");
  if (groups < 1 || groups > INT32_MAX) c.refuse("has no groups, or too many");
  if (activation != 0 && activation != 1) c.refuse("has an activation that is not 0 or 1");
  const DType type = x.dtype();
  if (last) x = x.permute({0, 3, 1, 2});
  Tensor y = group_norm(prim::cast(x, DType::F32), static_cast<int>(groups), prim::cast(gamma, DType::F32),
                        prim::cast(beta, DType::F32), eps);
  if (activation == 1) y = silu(y);
  return prim::cast(last ? y.permute({0, 2, 3, 1}) : y, type);
}
Values group_norm_(Call& c) { return {norm_of_groups(c, c.x(0), c.x(1), c.x(2))}; }
Values skip_group_norm(Call& c) {
  const Tensor x = c.x(0);
  Tensor skip = c.x(3);
  const bool last = c.flag("channels_last", true);
  if (skip.rank() == 2)
    skip =
        skip.reshape(last ? Shape{skip.extent(0), 1, 1, skip.extent(1)} : Shape{skip.extent(0), skip.extent(1), 1, 1});
  Tensor sum = x + expand_to(c, skip, x.shape());
  if (Tensor bias = c.optional(4); bias.defined())
    sum = sum + expand_to(c, last ? bias : bias.reshape({bias.extent(0), 1, 1}), x.shape());
  return {norm_of_groups(c, sum, c.x(1), c.x(2)), sum};
}

// ---- embeddings -------------------------------------------------------------------------------------

Values embed_layer_norm(Call& c) {
  const Tensor ids = c.x(0), segments = c.optional(1), words = c.x(2), places = c.x(3), kinds = c.optional(4);
  const double eps = c.number("epsilon", 1e-12F);
  c.ignore("mask_index_type");
  const Dim b = ids.extent(0), s = ids.extent(1), d = words.extent(1);
  Tensor sum = embedding(ids, words);
  if (const Tensor at = c.optional(8); at.defined()) {
    sum = sum + expand_to(c, embedding(at, places), {b, s, d});
  } else {
    sum = sum + expand_to(c, narrow(places, 0, 0, s), {b, s, d});
  }
  if (segments.defined()) {
    if (!kinds.defined()) c.refuse("has segments without their embedding");
    sum = sum + embedding(segments, kinds);
  }
  const Tensor y = layer_norm(sum, {d}, c.x(5), c.x(6), eps);
  const Tensor mask = c.optional(7);
  const Tensor lengths =
      mask.defined() ? lc::sum(mask.to(DType::I32), {1}).to(DType::I32) : zeros(c.graph(), {b}, DType::I32);
  return {y, lengths, sum};
}
Values torch_embedding(Call& c) { return {embedding(c.x(1), c.x(0))}; }

// The bias of T5: buckets of distances, small ones each for itself and the others in logarithmic steps.
Values relative_position_bias(Call& c) {
  const Tensor table = c.x(0);
  const bool both = c.flag("is_bidirectional");
  const std::int64_t most = c.integer("max_distance"), given = fixed(c, table.extent(0), "the number of buckets");
  const std::vector<Dim> queries = c.dims(1), keys = c.dims(2);
  if (queries.size() != 1 || keys.size() != 1) c.refuse("needs one length of queries and one of keys");
  const std::int64_t buckets = both ? given / 2 : given, exact = buckets / 2;
  if (exact < 1 || most <= exact) c.refuse("has no buckets for distances");
  const Shape s{queries[0], keys[0]};
  const Tensor distance = c.graph().index(s, Dim::index(1, keys[0]) - Dim::index(0, queries[0]), DType::I64);
  const Tensor behind = both ? abs(distance) : maximum(neg(distance), zeros_like(distance));
  const double steps =
      static_cast<double>(buckets - exact) / std::log(static_cast<double>(most) / static_cast<double>(exact));
  const Tensor far = log(maximum(behind, full_like(behind, 1)).to(DType::F32) / static_cast<double>(exact)) * steps;
  const Tensor step = minimum(far.to(DType::I64) + exact, full_like(behind, buckets - 1));
  Tensor bucket = where(behind < exact, behind, step);
  if (both) bucket = where(distance > 0, bucket + buckets, bucket);
  return {embedding(bucket, table).permute({2, 0, 1}).unsqueeze(0)};
}

// ---- operators that ai.onnx has as well -----------------------------------------------------------------

template <const char* kName, std::int64_t kVersion>
Values same_as(Call& c) {
  return as_onnx(c, kName, kVersion);
}
constexpr char kTrilu[] = "Trilu", kPad[] = "Pad", kRange[] = "Range", kGatherND[] = "GatherND",
               kGridSample[] = "GridSample";

Values fused_conv(Call& c) {
  const std::string_view name = c.text("activation");
  const std::vector<double> p = c.numbers("activation_params");
  Tensor y =
      as_onnx(c, "Conv", 11, {c.in.begin(), c.in.begin() + std::min<std::ptrdiff_t>(std::ssize(c.in), 3)}).at(0).tensor;
  if (c.has(3)) y = y + expand_to(c, c.x(3), y.shape());
  return {activated(c, y, name, !p.empty() ? p[0] : 0.01, p.size() > 1 ? p[1] : 0)};
}
Tensor channels_first(const Tensor& x) { return movedim(x, {-1}, {1}); }
Tensor channels_last(const Tensor& x) { return movedim(x, {1}, {-1}); }
Values nhwc_conv(Call& c) {
  Values in = c.in;
  const Tensor x = channels_first(c.x(0)), w = channels_first(c.x(1));
  in[0] = x, in[1] = w;
  return {channels_last(as_onnx(c, "Conv", 11, std::move(in)).at(0).tensor)};
}
Values nhwc_max_pool(Call& c) {
  return {channels_last(as_onnx(c, "MaxPool", 12, {channels_first(c.x(0))}).at(0).tensor)};
}

Values complex_product(Call& c, double sign) {  // [..., 2]: real and imaginary parts
  const auto both = broadcast(c, {c.x(0), c.x(1)});
  const auto part = [](const Tensor& t, int k) { return t.select(t.rank() - 1, k); };
  const Tensor a = part(both[0], 0), b = part(both[0], 1), x = part(both[1], 0), y = part(both[1], 1) * sign;
  return {stack({a * x - b * y, a * y + b * x}, -1)};
}
Values complex_mul(Call& c) { return complex_product(c, 1); }
Values complex_mul_conj(Call& c) { return complex_product(c, -1); }

Values squared_distances(Call& c) {
  const std::string_view metric = c.text("metric", "sqeuclidean");
  if (metric != "sqeuclidean" && metric != "euclidean") c.refuse(str_cat("has the metric ", metric));
  const Tensor d = c.x(0).unsqueeze(1) - c.x(1).unsqueeze(0);
  const Tensor y = sum(d * d, {2});
  return {metric == "euclidean" ? sqrt(y) : y};
}
Values expand_dims(Call& c) {
  const std::int64_t axis = c.integer(1);
  return {c.x(0).unsqueeze(c.wrap(axis, c.x(0).rank() + 1))};
}
Values all_finite(Call& c) {
  const bool nan = c.flag("isnan_only"), inf = c.flag("isinf_only");
  Tensor all;
  for (std::size_t k = 0; k < c.in.size(); ++k) {
    const Tensor x = c.x(k);
    const Tensor bad = any(nan ? isnan(x) : inf ? isinf(x) : logical_not(isfinite(x)));
    all = all.defined() ? prim::bitwise_or(all, bad) : bad;
  }
  if (!all.defined()) c.refuse("has no operands");
  return {logical_not(all)};
}

}  // namespace

void add_microsoft_layers(Operators& t) {
  const Operator rows[] = {
      {"", "SimplifiedLayerNormalization", 1, simplified_norm, "rms_norm"},
      {kMicrosoft, "BiasAdd", 1, bias_add, "x + bias + skip"},
      {kMicrosoft, "BiasGelu", 1, gelu_of_sum, "gelu"},
      {kMicrosoft, "BiasSoftmax", 1, bias_softmax, "softmax"},
      {kMicrosoft, "BiasSplitGelu", 1, bias_split_gelu, "one half times gelu of the other"},
      {kMicrosoft, "CDist", 1, squared_distances, "sums of squared differences"},
      {kMicrosoft, "ComplexMul", 1, complex_mul, "products of parts"},
      {kMicrosoft, "ComplexMulConj", 1, complex_mul_conj, "products of parts"},
      {kMicrosoft, "EmbedLayerNormalization", 1, embed_layer_norm, "embedding, layer_norm"},
      {kMicrosoft, "ExpandDims", 1, expand_dims, "unsqueeze"},
      {kMicrosoft, "FastGelu", 1, fast_gelu, "gelu by tanh"},
      {kMicrosoft, "FusedConv", 1, fused_conv, "Conv and its activation"},
      {kMicrosoft, "GatherND", 1, same_as<kGatherND, 12>, "GatherND"},
      {kMicrosoft, "Gelu", 1, gelu_of_sum, "gelu"},
      {kMicrosoft, "GridSample", 1, same_as<kGridSample, 16>, "GridSample"},
      {kMicrosoft, "GroupNorm", 1, group_norm_, "group_norm, silu"},
      {kMicrosoft, "IsAllFinite", 1, all_finite, "isfinite of all elements"},
      {kMicrosoft, "NhwcConv", 1, nhwc_conv, "Conv between views"},
      {kMicrosoft, "NhwcMaxPool", 1, nhwc_max_pool, "MaxPool between views"},
      {kMicrosoft, "Pad", 1, same_as<kPad, 11>, "Pad"},
      {kMicrosoft, "QuickGelu", 1, quick_gelu, "x sigmoid(alpha x)"},
      {kMicrosoft, "Range", 1, same_as<kRange, 11>, "Range"},
      {kMicrosoft, "RelativePositionBias", 1, relative_position_bias, "embedding of the buckets of distances"},
      {kMicrosoft, "ScaledSiLU", 1, scaled_silu, "silu"},
      {kMicrosoft, "SimplifiedLayerNormalization", 1, simplified_norm, "rms_norm"},
      {kMicrosoft, "SkipGroupNorm", 1, skip_group_norm, "group_norm of a sum"},
      {kMicrosoft, "SkipLayerNormalization", 1, skip_norm<true>, "layer_norm of a sum"},
      {kMicrosoft, "SkipSimplifiedLayerNormalization", 1, skip_norm<false>, "rms_norm of a sum"},
      {kMicrosoft, "SwiGLU", 1, clamped_swiglu, "silu of one half times the other"},
      {kMicrosoft, "TorchEmbedding", 1, torch_embedding, "embedding"},
      {kMicrosoft, "Trilu", 1, same_as<kTrilu, 14>, "Trilu"},
  };
  t.insert(t.end(), std::begin(rows), std::end(rows));
}

}  // namespace lc::onnx
