#include "lightcone/nn/conv.h"

namespace lc::nn {

lc::Tensor batch_norm_training(Operand x, const lc::Tensor& weight, const lc::Tensor& bias, const Statistics& running,
                               const BatchNormOptions& o) {
  const OpScope scope("batch_norm", x.at);
  if (x->rank() < 2) throw Error("batch_norm", "needs [batch, channels, ...], not " + str(x->shape()));
  Axes others;
  for (int i = 0; i < x->rank(); ++i)
    if (i != 1) others.push_back(i);
  const lc::Tensor mean = lc::mean(x, others), var = lc::var(x, others, 0);
  Dim n = 1;
  for (const int i : others) n = n * x->extent(i);
  // the running variance is the unbiased one
  const lc::Tensor count = prim::cast(x->graph().index(var.shape(), n), var.dtype());
  const lc::Tensor unbiased = var * count / lc::maximum(count - 1.0, full_like(count, 1));
  Graph& g = x->graph();
  const auto moved = [&](const lc::Tensor& old, const lc::Tensor& now) {
    return old * (1 - o.momentum) + now * o.momentum;
  };
  g.assign(running.mean, moved(running.mean, mean));
  g.assign(running.var, moved(running.var, unbiased));
  g.assign(running.batches, running.batches + 1.0);
  return lc::batch_norm(x, mean, var, weight, bias, o.eps);
}

}  // namespace lc::nn
