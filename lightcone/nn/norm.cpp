#include "lightcone/nn/norm.h"

namespace lc::nn {
namespace {

// Normalises by statistics [channels], then applies weight and bias if they are defined.
lc::Tensor by(const Operand& x, const lc::Tensor& mean, const lc::Tensor& var, const lc::Tensor& weight,
              const lc::Tensor& bias, double eps) {
  return lc::batch_norm(x, mean, var, weight, bias, false, 0, eps);
}

// Moves the running statistics by the fraction `part` towards those of a batch. `var` is the biased variance of `count`
// elements; the running one is unbiased.
void move(const Statistics& running, const lc::Tensor& mean, const lc::Tensor& var, const Dim& count,
          const lc::Tensor& part) {
  Graph& g = mean.graph();
  const lc::Tensor n = prim::cast(g.index(var.shape(), count), var.dtype());
  const lc::Tensor unbiased = var * n / lc::maximum(n - 1.0, full_like(n, 1));
  const auto moved = [&](const lc::Tensor& old, const lc::Tensor& now) {
    return old * (1.0 - part) + to(now, old.dtype()) * part;
  };
  g.assign(running.mean, moved(running.mean, mean));
  g.assign(running.var, moved(running.var, unbiased));
}

}  // namespace

void Statistics::visit(Visitor& v, std::int64_t channels) {
  v.buffer("running_mean", mean, {channels}, constant_init(0));
  v.buffer("running_var", var, {channels}, constant_init(1));
  v.buffer("num_batches_tracked", batches, {}, constant_init(0), DType::I64);
}

lc::Tensor layer_norm_over(Operand x, const Shape& over, const lc::Tensor& weight, const lc::Tensor& bias,
                           const NormOptions& o) {
  const OpScope scope("LayerNorm", x.at);
  if (o.affine) require_visited("LayerNorm", weight);
  return to(lc::layer_norm(x, over, weight, bias, o.eps), x->dtype());
}

lc::Tensor batch_norm(Operand x, const lc::Tensor& weight, const lc::Tensor& bias, const Statistics& running,
                      const BatchNormOptions& o, bool training) {
  const OpScope scope("batch_norm", x.at);
  if (x->rank() < 2) throw Error("batch_norm", "needs [batch, channels, ...], not " + str(x->shape()));
  if (!training && o.track_running_stats) return by(x, running.mean, running.var, weight, bias, o.eps);
  Axes others;
  for (int i = 0; i < x->rank(); ++i)
    if (i != 1) others.push_back(i);
  Dim n = 1;
  for (const int i : others) n = n * x->extent(i);
  if (n == Dim(1))
    throw Error("batch_norm", str_cat("training needs more than one value in a channel, and ", str(x->shape()),
                                      " has one: take a larger batch"));
  const lc::Tensor mean = lc::mean(x, others), var = lc::var(x, others, 0);
  if (o.track_running_stats) {
    const lc::Tensor batches = running.batches + 1;
    x->graph().assign(running.batches, batches);
    move(running, mean, var, n, o.momentum ? full(x->graph(), {}, *o.momentum) : 1.0 / batches);
  }
  return by(x, mean, var, weight, bias, o.eps);
}

lc::Tensor instance_norm(Operand x, const lc::Tensor& weight, const lc::Tensor& bias, const Statistics& running,
                         const InstanceNormOptions& o, bool training) {
  const OpScope scope("instance_norm", x.at);
  if (x->rank() < 3) throw Error("instance_norm", "needs [batch, channels, spatial axes], not " + str(x->shape()));
  if (!training && o.track_running_stats) return by(x, running.mean, running.var, weight, bias, o.eps);
  if (training && o.track_running_stats) {
    Axes spatial;
    Dim n = 1;
    for (int i = 2; i < x->rank(); ++i) spatial.push_back(i), n = n * x->extent(i);
    move(running, mean(lc::mean(x, spatial), {0}), mean(lc::var(x, spatial, 0), {0}), n,
         full(x->graph(), {}, o.momentum));
  }
  return lc::instance_norm(x, {}, {}, weight, bias, true, o.momentum, o.eps);
}

lc::Tensor local_response_norm(Operand x, int size, double alpha, double beta, double k) {
  const OpScope scope("LocalResponseNorm", x.at);
  if (x->rank() < 3 || size < 1)
    throw Error("LocalResponseNorm",
                str_cat(size, " neighbours of ", str(x->shape()), ", which is not [batch, channels, ...]"));
  // Means over windows of channels, with zeros at the edges. torch divides by `size` at the edges, too.
  const lc::Tensor squares = pad(square(x), 1, size / 2, (size - 1) / 2);
  const lc::Tensor m = mean(squares.unfold(1, size), {-1});
  return x / pow(m * alpha + k, beta);
}

}  // namespace lc::nn
