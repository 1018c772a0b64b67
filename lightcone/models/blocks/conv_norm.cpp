#include "lightcone/models/blocks/conv_norm.h"

#include "lightcone/models/blocks/activation.h"

namespace lc {

void FrozenBatchNorm::visit(nn::Visitor& v) {
  const nn::Init zero = nn::constant_init(0), one = nn::constant_init(1);
  v.parameter("weight", weight_, {channels_}, one).parameter("bias", bias_, {channels_}, zero);
  v.parameter("running_mean", mean_, {channels_}, zero).parameter("running_var", var_, {channels_}, one);
}
Tensor FrozenBatchNorm::scale() const { return weight_ / sqrt(var_ + eps_); }
Tensor FrozenBatchNorm::shift() const { return bias_ - mean_ * scale(); }
Tensor FrozenBatchNorm::operator()(const Tensor& x) const {
  Shape channels(static_cast<std::size_t>(x.rank()), 1);
  channels[1] = channels_;
  return x * scale().reshape(channels) + shift().reshape(channels);
}

ConvNorm::ConvNorm(const ConvNormOptions& o) : o_(o), norm_(o.out, o.eps) {
  if (o_.kernel.size() == 1) o_.kernel.push_back(o_.kernel[0]);
  o_.bias = o_.bias || !o_.norm;
  if (o_.groups < 1 || o_.in % o_.groups != 0 || o_.out % o_.groups != 0)
    throw Error("ConvNorm", str_cat(o_.groups, " groups do not divide ", o_.in, " channels in and ", o_.out, " out"));
}

void ConvNorm::visit(nn::Visitor& v) {
  const nn::Init init = nn::conv_init(o_.in / o_.groups, o_.kernel);
  v.parameter(o_.names.conv + ".weight", weight_, {o_.out, o_.in / o_.groups, o_.kernel[0], o_.kernel[1]}, init);
  if (o_.bias) v.parameter(o_.names.conv + ".bias", bias_, {o_.out}, init);
  if (o_.norm) v(o_.names.norm, norm_);
}

Tensor ConvNorm::weight() const { return o_.norm ? weight_ * norm_.scale().reshape({o_.out, 1, 1, 1}) : weight_; }
Tensor ConvNorm::bias() const {
  if (!o_.norm) return bias_;
  return o_.bias ? norm_.shift() + bias_ * norm_.scale() : norm_.shift();
}

Tensor ConvNorm::operator()(const Tensor& x, const nn::At& at) const {
  const OpScope scope("ConvNorm", at);
  return with(x, weight(), bias());
}

Tensor ConvNorm::with(const Tensor& x, const Tensor& weight, const Tensor& bias) const {
  std::vector<int> padding;
  for (const std::int64_t k : o_.kernel)
    padding.push_back(o_.padding.value_or(o_.dilation * (static_cast<int>(k) - 1) / 2));
  const Tensor y = conv(x, weight, bias,
                        {.stride = {o_.stride}, .padding = padding, .dilation = {o_.dilation}, .groups = o_.groups});
  return activate(o_.activation, y);
}

SqueezeExcite::SqueezeExcite(const SqueezeExciteOptions& o)
    : o_(o), reduce_(o.channels, o.squeezed, 1), expand_(o.squeezed, o.channels, 1) {}
void SqueezeExcite::visit(nn::Visitor& v) { v(o_.reduce, reduce_)(o_.expand, expand_); }
Tensor SqueezeExcite::operator()(const Tensor& x) const {
  const Tensor squeezed = activate(o_.activation, reduce_(mean(x, {2, 3}, true)));
  return x * activate(o_.gate, expand_(squeezed));
}

}  // namespace lc
