#include "lightcone/models/sentence/pooling.h"

#include <limits>

#include "lightcone/models/blocks/activation.h"
#include "lightcone/ops/creation.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc {
namespace {

constexpr double kSmallest = 1e-9;  // the least count of tokens, as in sentence-transformers

// The sum of the tokens with weights [batch, length].
Tensor weighted_sum(const Tensor& hidden, const Tensor& weights) { return sum(hidden * weights.unsqueeze(2), {1}); }

Tensor at_least(const Tensor& x, double least) { return maximum(x, full_like(x, least, DType::F32)); }

Tensor pooled(const Tensor& hidden, const Tensor& mask, Pooling kind) {
  const Tensor real = to(ne(mask, 0), DType::F32);  // [batch, length]
  const Tensor count = sum(real, {1}, true);        // [batch, 1]
  const Tensor place = to(arange(hidden.graph(), hidden.extent(1)), DType::F32).unsqueeze(0);
  switch (kind) {
    case Pooling::Cls: return narrow(hidden, 1, 0, 1).squeeze(1);
    case Pooling::Max: {
      const Tensor low = masked_fill(hidden, eq(mask, 0).unsqueeze(2), -std::numeric_limits<double>::infinity());
      return amax(low, {1});
    }
    case Pooling::Mean: return weighted_sum(hidden, real) / at_least(count, kSmallest);
    case Pooling::MeanSqrt: return weighted_sum(hidden, real) / sqrt(at_least(count, kSmallest));
    case Pooling::WeightedMean: {
      const Tensor weights = real * (place + 1);
      return weighted_sum(hidden, weights) / at_least(sum(weights, {1}, true), kSmallest);
    }
    case Pooling::Last: return weighted_sum(hidden, to(eq(place, count - 1), DType::F32));
  }
  throw Error("pooled", "there is no such pooling");
}

}  // namespace

Tensor pooled(const Tensor& hidden, const Tensor& mask, std::span<const Pooling> kinds) {
  std::vector<Tensor> all;
  for (const Pooling kind : kinds) all.push_back(pooled(hidden, mask, kind));
  return all.size() == 1 ? all.front() : cat(all, 1);
}

Tensor SentenceDenseLayer::operator()(const Tensor& x) const { return activate(activation_, linear_(x)); }

}  // namespace lc
