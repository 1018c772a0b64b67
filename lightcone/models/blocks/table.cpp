#include "lightcone/models/blocks/table.h"

#include <cmath>
#include <cstdint>

#include "lightcone/ops/creation.h"
#include "lightcone/ops/ops.h"

namespace lc {
namespace {

// Whether the values are 2^(first + step k), to within rounding.
bool geometric(const std::vector<double>& values, double& step) {
  if (!(values.front() > 0)) return false;
  step = values.size() < 2 ? 0 : std::log2(values.back() / values.front()) / static_cast<double>(values.size() - 1);
  for (std::size_t k = 0; k < values.size(); ++k) {
    const double wanted = values.front() * std::exp2(step * static_cast<double>(k));
    if (!(std::fabs(values[k] - wanted) <= 1e-13 * wanted)) return false;
  }
  return true;
}

// The values from `begin` to `end` at the positions of `at`, by halves.
Tensor chosen(const Tensor& at, const std::vector<double>& values, std::size_t begin, std::size_t end) {
  if (end - begin == 1) return full_like(at, values[begin], DType::F64);
  const std::size_t half = begin + (end - begin) / 2;
  return where(at < static_cast<std::int64_t>(half), chosen(at, values, begin, half), chosen(at, values, half, end));
}

}  // namespace

Tensor table_of(Graph& g, const std::vector<double>& values) {
  if (values.empty()) throw Error("table_of", "there are no values");
  const Dim n = static_cast<std::int64_t>(values.size());
  if (double step = 0; geometric(values, step))
    return exp2(g.index({n}, Dim::index(0, n), DType::F64) * step + std::log2(values.front()));
  return chosen(g.index({n}, Dim::index(0, n)), values, 0, values.size());
}

}  // namespace lc
