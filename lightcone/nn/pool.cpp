#include "lightcone/nn/pool.h"

#include "lightcone/ops/conv.h"

namespace lc::nn {

lc::Tensor pooled(PoolKind kind, int n, Operand x, const IntList& kernel, const PoolOptions& o) {
  constexpr decltype(&lc::avg_pool2d) kAverage[] = {lc::avg_pool1d, lc::avg_pool2d, lc::avg_pool3d};
  constexpr decltype(&lc::max_pool2d) kLargest[] = {lc::max_pool1d, lc::max_pool2d, lc::max_pool3d};
  if (kind == PoolKind::Avg) return kAverage[n - 1](x, kernel, o.stride, o.padding, o.ceil_mode, o.count_include_pad);
  const auto largest = [&](const Operand& of) {
    return kLargest[n - 1](of, kernel, o.stride, o.padding, o.dilation, o.ceil_mode);
  };
  return kind == PoolKind::Max ? largest(x) : -largest(Operand(-x, x.at));
}

lc::Tensor adaptively_pooled(PoolKind kind, int n, Operand x, const IntList& output) {
  constexpr decltype(&lc::adaptive_avg_pool2d) kAverage[] = {lc::adaptive_avg_pool1d, lc::adaptive_avg_pool2d,
                                                             lc::adaptive_avg_pool3d};
  constexpr decltype(&lc::adaptive_max_pool2d) kLargest[] = {lc::adaptive_max_pool1d, lc::adaptive_max_pool2d,
                                                             lc::adaptive_max_pool3d};
  return (kind == PoolKind::Avg ? kAverage : kLargest)[n - 1](x, output);
}

}  // namespace lc::nn
