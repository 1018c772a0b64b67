#include "lightcone/models/blocks/positions/relative_bias.h"

#include <cmath>

#include "lightcone/nn/parameter.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc {

std::vector<std::int64_t> DistanceBuckets::thresholds() const {
  const std::int64_t all = of_a_direction(), exact = all / 2;
  const auto first = static_cast<double>(exact), growing = static_cast<double>(all - exact);
  const double ratio = static_cast<double>(most_distance) / first;
  std::vector<std::int64_t> begin;
  // A threshold that is a whole number counts as it is, however its power is rounded.
  for (std::int64_t k = 1; k < all - exact; ++k)
    begin.push_back(
        static_cast<std::int64_t>(std::ceil(first * std::pow(ratio, static_cast<double>(k) / growing) * (1 - 1e-6))));
  return begin;
}

Tensor relative_bias(const Tensor& table, const DistanceBuckets& b, const Dim& queries, const Dim& keys,
                     const Dim& past) {
  Graph& g = table.graph();
  const Shape shape{queries, keys};
  const Tensor ahead =
      g.index(shape, Dim::index(1, keys), DType::F32) - g.index(shape, past + Dim::index(0, queries), DType::F32);
  const Tensor distance = b.both_directions ? abs(ahead) : relu(-ahead);
  const std::int64_t exact = b.of_a_direction() / 2;
  Tensor bucket = minimum(distance, full_like(distance, static_cast<double>(exact), DType::F32));
  for (const std::int64_t begin : b.thresholds())
    bucket = bucket + prim::cast(distance >= static_cast<double>(begin), DType::F32);
  if (b.both_directions)
    bucket = bucket + prim::cast(ahead > 0.0, DType::F32) * static_cast<double>(b.of_a_direction());
  const Tensor bias = nn::rows(table, prim::cast(bucket, DType::I64));  // [queries, keys, heads]
  return bias.permute({2, 0, 1}).unsqueeze(0);
}

}  // namespace lc
