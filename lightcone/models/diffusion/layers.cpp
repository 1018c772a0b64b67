#include "lightcone/models/diffusion/layers.h"

#include <cmath>

#include "lightcone/models/blocks/activation.h"
#include "lightcone/ops/creation.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc::diffusion {

Dim extent_of_input(LoadedModel& m, const char* name, std::int64_t size, std::int64_t least, std::int64_t most) {
  constexpr std::int64_t kLargest = 1 << 15;
  if (size < 0 || size > kLargest)
    throw Error("load_model", str_cat(name, " is ", size, "; 1 to ", kLargest, " is possible, and 0 for an open size"));
  if (size > 0) return Dim(size);
  m.limits[name] = most;
  return Dim::symbol(name, least, most);
}

GroupNorm::GroupNorm(std::int64_t groups, std::int64_t channels, double eps)
    : groups_(groups), channels_(channels), eps_(eps) {
  if (groups < 1 || channels % groups != 0)
    throw Error("GroupNorm", str_cat(groups, " groups (norm_num_groups) do not divide ", channels, " channels"));
}
void GroupNorm::visit(nn::Visitor& v) {
  v.parameter("weight", weight_, {channels_}, nn::constant_init(1));
  v.parameter("bias", bias_, {channels_}, nn::constant_init(0));
}
Tensor GroupNorm::operator()(const Tensor& x) const {
  return group_norm(x, static_cast<int>(groups_), weight_, bias_, eps_);
}

Tensor GroupNorm::by_means(const Tensor& x) const {
  const Tensor grouped = x.reshape({x.extent(0), groups_, channels_ / groups_, x.extent(2), x.extent(3)});
  const Tensor centred = grouped - mean(grouped, {2, 3, 4}, true);
  const Tensor variance = mean(centred * centred, {2, 3, 4}, true);
  const auto of_channels = [&](const Tensor& t) { return t.reshape({1, groups_, channels_ / groups_, 1, 1}); };
  return (centred / sqrt(variance + eps_) * of_channels(weight_) + of_channels(bias_)).reshape(x.shape());
}

Tensor sinusoids(const Tensor& timesteps, const SinusoidOptions& o) {
  const std::int64_t half = o.width / 2;
  const double step = -std::log(o.max_period) / (static_cast<double>(half) - o.shift);
  const Tensor frequencies = exp(arange(timesteps, Dim(half), DType::F32) * step);
  const Tensor angles = timesteps.unsqueeze(1) * frequencies.unsqueeze(0);
  const Tensor s = sin(angles), c = cos(angles);
  const Tensor both = o.cosines_first ? cat({c, s}, 1) : cat({s, c}, 1);
  return o.width % 2 == 0 ? both : both.pad(1, 0, 1);
}

TimestepEmbedding::TimestepEmbedding(std::int64_t in, std::int64_t out, std::string activation, std::string last,
                                     std::int64_t condition)
    : linear_1_(in, out), linear_2_(out, out), activation_(std::move(activation)), last_(std::move(last)) {
  if (condition > 0) cond_proj_.emplace(condition, in, nn::LinearOptions{.bias = false});
}
void TimestepEmbedding::visit(nn::Visitor& v) {
  v("linear_1", linear_1_)("linear_2", linear_2_);
  if (cond_proj_) v("cond_proj", *cond_proj_);
}
Tensor TimestepEmbedding::operator()(const Tensor& x, const Tensor& condition) const {
  const Tensor h = condition.defined() && cond_proj_ ? x + (*cond_proj_)(condition) : x;
  const Tensor y = linear_2_(activate(activation_, linear_1_(h)));
  return last_.empty() ? y : activate(last_, y);
}

ResnetBlock::ResnetBlock(const ResnetBlockOptions& o)
    : o_(o),
      norm1_(o.groups, o.in, o.eps),
      norm2_(o.groups, o.out, o.eps),
      conv1_(o.in, o.out, 3, {.padding = 1}),
      conv2_(o.out, o.out, 3, {.padding = 1}) {
  if (o.time > 0) time_emb_proj_.emplace(o.time, o.scale_shift ? 2 * o.out : o.out);
  if (o.in != o.out) conv_shortcut_.emplace(o.in, o.out, 1);
}
void ResnetBlock::visit(nn::Visitor& v) {
  v("norm1", norm1_)("conv1", conv1_);
  if (time_emb_proj_) v("time_emb_proj", *time_emb_proj_);
  v("norm2", norm2_)("conv2", conv2_);
  if (conv_shortcut_) v("conv_shortcut", *conv_shortcut_);
}
Tensor ResnetBlock::operator()(const Tensor& x, const Tensor& time) const {
  Tensor h = conv1_(activate(o_.activation, norm1_(x)));
  Tensor t;
  if (time_emb_proj_) t = (*time_emb_proj_)(activate(o_.activation, time)).unsqueeze(2).unsqueeze(3);
  if (t.defined() && !o_.scale_shift) h = h + t;
  h = norm2_(h);
  if (t.defined() && o_.scale_shift) h = h * (narrow(t, 1, 0, o_.out) + 1.0) + narrow(t, 1, o_.out, o_.out);
  h = conv2_(activate(o_.activation, h));
  const Tensor sum = (conv_shortcut_ ? (*conv_shortcut_)(x) : x) + h;
  return o_.output_scale == 1 ? sum : sum / o_.output_scale;
}

Downsample::Downsample(std::int64_t channels, int padding)
    : padding_(padding), conv_(channels, channels, 3, {.stride = 2, .padding = padding}) {}
Tensor Downsample::operator()(const Tensor& x) const { return conv_(padding_ == 0 ? x.pad(2, 0, 1).pad(3, 0, 1) : x); }

Tensor repeat_pixels(const Tensor& x, std::int64_t times) {
  const Dim b = x.extent(0), c = x.extent(1), h = x.extent(2), w = x.extent(3);
  const Tensor row = x.reshape({b, c, h, 1, w, 1}).expand({b, c, h, 1, w, times}).reshape({b, c, h, 1, w * times});
  // cat() writes the rows into memory, as convolutions want to find them: they would make a matrix of all windows of a
  // view that repeats, nine times as large.
  return cat(std::vector<Tensor>(static_cast<std::size_t>(times), row), 3).reshape({b, c, h * times, w * times});
}

Tensor Upsample::operator()(const Tensor& x, const Tensor& like) const {
  Tensor y = repeat_pixels(x, 2);
  for (const int axis : {2, 3})
    if (like.defined() && !(y.extent(axis) == like.extent(axis))) y = y.slice(axis, 0, like.extent(axis));
  return conv_(y);
}

Tensor pixels_as_tokens(const Tensor& x) {
  return x.permute({0, 2, 3, 1}).reshape({x.extent(0), x.extent(2) * x.extent(3), x.extent(1)});
}
Tensor tokens_as_pixels(const Tensor& x, const Tensor& like) {
  return x.reshape({x.extent(0), like.extent(2), like.extent(3), x.extent(2)}).permute({0, 3, 1, 2});
}

}  // namespace lc::diffusion
