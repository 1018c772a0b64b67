#include "lightcone/models/convnet/inverted_residual.h"

namespace lc {

InvertedResidual::InvertedResidual(const InvertedResidualOptions& o)
    : o_(o),
      depthwise_({.in = o.inner,
                  .out = o.inner,
                  .kernel = {o.kernel},
                  .stride = o.stride,
                  .groups = static_cast<int>(o.inner),
                  .padding = o.padding ? std::optional(0) : std::nullopt,
                  .eps = o.eps,
                  .activation = o.activation,
                  .names = o.names.depthwise_parts}),
      project_({.in = o.inner, .out = o.out, .eps = o.eps, .names = o.names.project_parts}) {
  if (o.expands)
    expand_.emplace(ConvNormOptions{
        .in = o.in, .out = o.inner, .eps = o.eps, .activation = o.activation, .names = o.names.expand_parts});
  if (o.squeezed > 0)
    squeeze_.emplace(SqueezeExciteOptions{.channels = o.inner,
                                          .squeezed = o.squeezed,
                                          .activation = o.squeeze_activation,
                                          .gate = o.gate,
                                          .reduce = o.names.reduce,
                                          .expand = o.names.expand_gate});
}

void InvertedResidual::visit(nn::Visitor& v) {
  if (expand_) v(o_.names.expand, *expand_);
  v(o_.names.depthwise, depthwise_);
  if (squeeze_) v(o_.names.squeeze, *squeeze_);
  v(o_.names.project, project_);
}

Tensor InvertedResidual::operator()(const Tensor& x) const {
  Tensor y = expand_ ? (*expand_)(x) : x;
  if (o_.padding) y = y.pad(2, o_.padding->first, o_.padding->second).pad(3, o_.padding->first, o_.padding->second);
  y = depthwise_(y);
  if (squeeze_) y = (*squeeze_)(y);
  y = project_(y);
  return o_.shortcut ? x + y : y;
}

}  // namespace lc
