// Normalisations and losses.
#include <algorithm>

#include "lightcone/onnx/read/call.h"
#include "lightcone/ops/loss.h"

namespace lc::onnx {
namespace {

// A parameter of the channels, whose number is that of axis 1.
Tensor per_channel(Call& c, std::size_t operand, const Tensor& x) {
  const Tensor p = c.x(operand);
  if (p.rank() != 1) c.refuse(str_cat("operand ", operand, " has the shape ", str(p.shape()), ", not one axis"));
  c.importer.same_extent(p.extent(0), x.extent(1));
  return p;
}
std::vector<int> axes_but(int rank, int but) {
  std::vector<int> r;
  for (int k = 0; k < rank; ++k)
    if (k != but) r.push_back(k);
  return r;
}
// Normalisations are computed in f32 at least.
Tensor widened(const Tensor& x) { return is_narrow(x.dtype()) ? x.to(DType::F32) : x; }

// ---- by statistics of a batch ---------------------------------------------------------------------

bool trains(Call& c) {
  c.ignore("consumed_inputs");
  if (c.opset < 7) return !c.flag("is_test");
  if (c.opset >= 14) return c.flag("training_mode");
  return c.wants(1) || c.wants(2) || c.wants(3) || c.wants(4);
}
// Up to operator set 8, each element of a sample may have its own statistics: then they are its channels.
Values batch_normalization(Call& c) {
  const Tensor given = c.x(0);
  const double eps = c.number("epsilon", 1e-5), momentum = c.number("momentum", 0.9);
  const bool training = trains(c), spatial = c.flag("spatial", true);
  Tensor x = given;
  if (x.rank() == 0) c.refuse("needs [batch, channels, ...]");
  if (x.rank() == 1) x = x.unsqueeze(1);
  std::vector<Tensor> p;
  for (std::size_t k = 1; k <= 4; ++k) {
    const Tensor t = c.x(k);
    if (t.rank() != (spatial ? 1 : x.rank() - 1))
      c.refuse(str_cat("operand ", k, " has the shape ", str(t.shape()), ", which does not fit ", str(x.shape())));
    for (int a = 0; a < t.rank(); ++a) c.importer.same_extent(t.extent(a), x.extent(a + 1));
    p.push_back(t.reshape({product(t.shape())}));
  }
  if (!spatial) x = x.reshape({x.extent(0), p[0].extent(0)});
  const Tensor &scale = p[0], &bias = p[1], &old_mean = p[2], &old_variance = p[3];
  const auto result = [&](const Tensor& mean, const Tensor& variance) {
    return batch_norm(x, mean, variance, scale, bias, false, 0, eps).to(given.dtype()).reshape(given.shape());
  };
  if (!training) return {result(old_mean, old_variance)};
  const std::vector<int> others = axes_but(x.rank(), 1);
  const Tensor mean = lc::mean(widened(x), others), variance = var(widened(x), others, 0);
  const auto moved = [&](const Tensor& old, const Tensor& now) {
    return (widened(old) * momentum + now * (1 - momentum)).to(old.dtype()).reshape(c.x(3).shape());
  };
  const auto stored = [&](const Tensor& t) { return t.to(old_mean.dtype()).reshape(c.x(3).shape()); };
  return {result(mean, variance), moved(old_mean, mean), moved(old_variance, variance), stored(mean), stored(variance)};
}

Values instance_normalization(Call& c) {
  const Tensor x = c.x(0);
  c.ignore("consumed_inputs");
  if (x.rank() < 3) c.refuse("needs [batch, channels, ...]");
  const Tensor scale = per_channel(c, 1, x), bias = per_channel(c, 2, x);
  return {instance_norm(x, {}, {}, scale, bias, true, 0, c.number("epsilon", 1e-5))};
}

// In operator set 18 the scale and the bias are those of the groups, later those of the channels.
Values group_normalization(Call& c) {
  const Tensor x = c.x(0);
  if (x.rank() < 2) c.refuse("needs [batch, channels, ...]");
  const std::int64_t groups = c.integer("num_groups");
  if (groups < 1 || groups > INT32_MAX) c.refuse("has no number of groups");
  c.dtype("stash_type", ElementType::Float);  // sums have the precision of f32 at least
  const auto parameter = [&](std::size_t k) {
    if (c.opset >= 21) return per_channel(c, k, x);
    const Tensor p = c.x(k);
    if (p.rank() != 1) c.refuse(str_cat("operand ", k, " has the shape ", str(p.shape()), ", not one axis"));
    c.importer.same_extent(p.extent(0), groups);
    const Dim each = fixed(c, x.extent(1), "the number of channels") / groups;
    return p.reshape({groups, 1}).expand({groups, each}).reshape({each * Dim(groups)});
  };
  return {group_norm(x, static_cast<int>(groups), parameter(1), parameter(2), c.number("epsilon", 1e-5))};
}

// ---- over the last axes ---------------------------------------------------------------------------

// Multiplies by a scale of the normalized shape in the same kernel, or by one that broadcasts.
struct Last {
  Shape shape;  // the normalized shape
  std::vector<int> axes;
  bool fits(const Tensor& p) const { return !p.defined() || p.shape() == shape; }
};
Last last_axes(Call& c, const Tensor& x) {
  const int axis = c.axis("axis", -1, x.rank());
  Last r;
  for (int k = axis; k < x.rank(); ++k) r.axes.push_back(k), r.shape.push_back(x.extent(k));
  return r;
}
Values layer_normalization(Call& c) {
  const Tensor x = c.x(0), scale = c.x(1), bias = c.optional(2);
  const Last over = last_axes(c, x);
  const double eps = c.number("epsilon", 1e-5);
  const DType stash = c.dtype("stash_type", ElementType::Float);
  Tensor y;
  if (over.fits(scale) && over.fits(bias)) {
    y = layer_norm(x, over.shape, scale, bias, eps);
  } else {
    y = layer_norm(x, over.shape, {}, {}, eps);
    y = y * expand_to(c, scale, x.shape());
    if (bias.defined()) y = y + expand_to(c, bias, x.shape());
  }
  Values r = {y};
  if (!c.wants(1) && !c.wants(2)) return r;
  const Tensor t = widened(x);
  r.emplace_back(mean(t, over.axes, true).to(stash));
  r.emplace_back(rsqrt(var(t, over.axes, 0, true) + eps).to(stash));
  return r;
}
Values rms_normalization(Call& c) {
  const Tensor x = c.x(0), scale = c.x(1);
  const Last over = last_axes(c, x);
  const double eps = c.number("epsilon", 1e-5);
  c.dtype("stash_type", ElementType::Float);  // sums have the precision of f32 at least
  if (over.fits(scale)) return {rms_norm(x, over.shape, scale, eps).to(scale.dtype())};
  return {rms_norm(x, over.shape, {}, eps).to(scale.dtype()) * expand_to(c, scale, x.shape())};
}

// ---- others ---------------------------------------------------------------------------------------

Values lp_normalization(Call& c) {  // 0 where all elements of an axis are 0
  const Tensor x = widened(c.x());
  const int axis = c.axis("axis", -1, x.rank());
  const std::int64_t p = c.integer("p", 2);
  if (p != 1 && p != 2) c.refuse("needs p of 1 or 2");
  const Tensor length = norm(x, static_cast<double>(p), {axis}, true);
  return {(x / where(eq(length, 0), 1, length)).to(c.x().dtype())};
}
Values mean_variance_normalization(Call& c) {
  const Tensor x = widened(c.x());
  const std::vector<int> axes = c.wrap(c.integers("axes", {0, 2, 3}), x.rank());
  if (axes.empty()) c.refuse("names no axes");
  return {((x - mean(x, axes, true)) / (stddev(x, axes, 0, true) + 1e-9)).to(c.x().dtype())};
}
Values local_response_normalization(Call& c) {
  const Tensor x = widened(c.x());
  if (x.rank() < 2) c.refuse("needs [batch, channels, ...]");
  const std::int64_t size = c.integer("size");
  if (size < 1 || size > INT32_MAX) c.refuse("has no size");
  const double alpha = c.number("alpha", 1e-4), beta = c.number("beta", 0.75), bias = c.number("bias", 1);
  const std::int64_t before = (size - 1) / 2, after = size - 1 - before;
  const Tensor squares = (x * x).pad(1, before, after).unfold(1, size);
  const Tensor s = sum(squares, {-1}) * (alpha / static_cast<double>(size)) + bias;
  return {(x / pow(s, beta)).to(c.x().dtype())};
}

// ---- losses ---------------------------------------------------------------------------------------

Reduction loss_reduction(Call& c) {
  const std::string_view name = c.text("reduction", "mean");
  if (name == "none") return Reduction::None;
  if (name == "mean") return Reduction::Mean;
  if (name == "sum") return Reduction::Sum;
  c.refuse("has a reduction that is not none, mean or sum");
}
// Scores [n, classes, ...], classes [n, ...] and weights [classes].
struct Labelled {
  Tensor scores, classes, weight;
};
Labelled labelled(Call& c) {
  Labelled r{.scores = c.x(0), .classes = c.x(1), .weight = c.optional(2)};
  if (r.scores.rank() < 2 || r.classes.rank() != r.scores.rank() - 1)
    c.refuse("needs scores [n, classes, ...] and a class for each of [n, ...]");
  for (int k = 0; k < r.classes.rank(); ++k)
    c.importer.same_extent(r.classes.extent(k), r.scores.extent(k == 0 ? 0 : k + 1));
  if (!r.weight.defined()) return r;
  if (r.weight.rank() != 1) c.refuse("needs one weight for each class");
  c.importer.same_extent(r.weight.extent(0), r.scores.extent(1));
  return r;
}
constexpr std::int64_t kNoClass = INT64_MIN;  // ignored if no other is named

Values negative_log_likelihood(Call& c) {
  const Labelled l = labelled(c);
  return {nll_loss(
      l.scores, l.classes,
      {.weight = l.weight, .ignore_index = c.integer("ignore_index", kNoClass), .reduction = loss_reduction(c)})};
}
Values softmax_cross_entropy(Call& c) {
  const Labelled l = labelled(c);
  const Tensor loss = cross_entropy(
      l.scores, l.classes,
      {.weight = l.weight, .ignore_index = c.integer("ignore_index", kNoClass), .reduction = loss_reduction(c)});
  Values r = {loss};
  if (c.wants(1)) r.emplace_back(log_softmax(l.scores, 1));
  return r;
}

}  // namespace

void add_norms(Operators& t) {
  const Operator rows[] = {
      {"", "BatchNormalization", 1, batch_normalization, "batch_norm"},
      {"", "GroupNormalization", 18, group_normalization, "group_norm"},
      {"", "InstanceNormalization", 1, instance_normalization, "instance_norm"},
      {"", "LRN", 1, local_response_normalization, "a sum over a window of channels"},
      {"", "LayerNormalization", 17, layer_normalization, "layer_norm"},
      {"", "LpNormalization", 1, lp_normalization, "norm"},
      {"", "MeanVarianceNormalization", 9, mean_variance_normalization, "mean and std"},
      {"", "NegativeLogLikelihoodLoss", 12, negative_log_likelihood, "nll_loss"},
      {"", "RMSNormalization", 23, rms_normalization, "rms_norm"},
      {"", "SoftmaxCrossEntropyLoss", 12, softmax_cross_entropy, "cross_entropy; log_softmax"},
  };
  t.insert(t.end(), std::begin(rows), std::end(rows));
}

}  // namespace lc::onnx
