#include "lightcone/models/convnet/residual.h"

#include <cmath>

#include "lightcone/models/blocks/activation.h"

namespace lc {
namespace {

const ConvNormNames kParts{"convolution", "normalization"};

}  // namespace

ResidualNet::ResidualNet(const ResidualOptions& o)
    : o_(o),
      stem_({.in = o.channels,
             .out = o.stem,
             .kernel = {o.stem_kernel},
             .stride = 2,
             .eps = o.eps,
             .activation = o.activation,
             .names = kParts}) {
  if (o.stages.empty()) throw Error("ResidualNet", "there are no stages");
  std::int64_t in = o.stem;
  for (const ResidualStage& s : o.stages) {
    Stage& made = stages_.emplace_back();
    for (std::int64_t k = 0; k < s.layers; ++k, in = s.width)
      made.layers.push_back(layer(in, s, k == 0 ? s.stride : 1));
  }
}

ResidualNet::Layer ResidualNet::layer(std::int64_t in, const ResidualStage& s, int stride) const {
  Layer l;
  const auto conv = [&](std::int64_t from, std::int64_t to, int kernel, int step, int groups, bool last) {
    return ConvNorm({.in = from,
                     .out = to,
                     .kernel = {kernel},
                     .stride = step,
                     .groups = groups,
                     .eps = o_.eps,
                     .activation = last ? "linear" : o_.activation,
                     .names = kParts});
  };
  if (o_.bottleneck) {
    l.body.push_back(conv(in, s.inner, 1, o_.stride_first ? stride : 1, 1, false));
    l.body.push_back(conv(s.inner, s.inner, 3, o_.stride_first ? 1 : stride, s.groups, false));
    l.body.push_back(conv(s.inner, s.width, 1, 1, 1, true));
  } else {
    l.body.push_back(conv(in, s.width, 3, stride, 1, false));
    l.body.push_back(conv(s.width, s.width, 3, 1, 1, true));
  }
  if (o_.squeeze)
    l.squeeze.emplace(SqueezeExciteOptions{.channels = s.inner,
                                           .squeezed = std::lrint(static_cast<double>(in) / 4),  // ties to even
                                           .reduce = "attention.0",
                                           .expand = "attention.2"});
  if (in != s.width || stride != 1) l.shortcut.emplace(conv(in, s.width, 1, stride, 1, true));
  return l;
}

void ResidualNet::Layer::visit(nn::Visitor& v) {
  const std::size_t last = body.size() - 1;
  for (std::size_t k = 0; k < last; ++k) v(str_cat("layer.", k), body[k]);
  if (squeeze) v(str_cat("layer.", last), *squeeze);
  v(str_cat("layer.", squeeze ? last + 1 : last), body[last]);
  if (shortcut) v("shortcut", *shortcut);
}

Tensor ResidualNet::Layer::operator()(const Tensor& x, const std::string& activation) const {
  Tensor y = x;
  for (std::size_t k = 0; k < body.size(); ++k) {
    if (squeeze && k + 1 == body.size()) y = (*squeeze)(y);
    y = body[k](y);
  }
  return activate(activation, y + (shortcut ? (*shortcut)(x) : x));
}

void ResidualNet::visit(nn::Visitor& v) { v("embedder", stem_)("stages", stages_); }

Tensor ResidualNet::pooled(const Tensor& x) const {
  if (!o_.pool_ceil) return max_pool(x, 3, 2, 1);
  return max_pool(x.pad(2, 1, 3).pad(3, 1, 3), 3, 2);
}

std::vector<Tensor> ResidualNet::operator()(const Tensor& pictures) const {
  const OpScope scope("ResidualNet", nn::At::current());
  Tensor x = stem_(pictures);
  if (o_.stem_pool) x = pooled(x);
  std::vector<Tensor> all{x};
  for (const Stage& s : stages_) {
    for (const Layer& l : s.layers) x = l(x, o_.activation);
    all.push_back(x);
  }
  return all;
}

}  // namespace lc
