#include "lightcone/backends/gpu/matrices.h"

#include <utility>

namespace lc::backends::gpu {
namespace {

using LibraryOperand = MatrixProduct::Operand;

std::optional<DType> type_of(WeightType t) {
  switch (t) {
    case WeightType::F32: return DType::F32;
    case WeightType::F16: return DType::F16;
    case WeightType::BF16: return DType::BF16;
    default: return std::nullopt;
  }
}

// Returns the only number of a list, or `none` if it is empty; nullopt if there are more or it is symbolic.
std::optional<std::int64_t> only(const std::vector<Dim>& v, std::int64_t none) {
  if (v.empty()) return none;
  return v.size() == 1 ? v[0].constant() : std::nullopt;
}

std::optional<LibraryOperand> operand(const Operand& s, std::int64_t own_extent, std::int64_t sum_extent) {
  const auto own = only(s.own, 0), sum = only(s.sum, 0), batch = only(s.batch, 0), offset = s.offset.constant();
  if (!own || !sum || !batch || !offset || !s.bounds.empty() || *batch < 0) return std::nullopt;
  if (*sum == 1 && *own >= sum_extent) return LibraryOperand{*offset, *own, true, *batch};
  if (*own == 1 && *sum >= own_extent) return LibraryOperand{*offset, *sum, false, *batch};
  return std::nullopt;
}

}  // namespace

std::optional<Matrices> as_matrices(const Product& p, Precision precision) {
  const auto type = type_of(p.a.type);
  const auto rows = only(p.rows, 0), columns = only(p.columns, 0), sum = only(p.sum, 0), batches = only(p.batch, 1);
  if (p.exact || !type || p.a.type != p.b.type || !rows || !columns || !sum || !batches) return std::nullopt;
  if (*rows <= 0 || *columns <= 0 || *sum <= 0 || *batches <= 0) return std::nullopt;
  const auto a = operand(p.a, *rows, *sum), b = operand(p.b, *columns, *sum);
  const auto c_row = only(p.c_rows, 0), c_column = only(p.c_columns, 0), c_batch = only(p.c_batch, 0);
  if (!a || !b || !c_row || !c_column || !c_batch) return std::nullopt;
  Matrices m;
  m.product = {*type, DType::F32, precision, *rows, *columns, *sum, *batches, *a, *b, *c_row, *c_batch};
  if (*type != DType::F32) m.product.precision = Precision::Highest;  // no rounding is allowed there
  if (*c_column == 1 && *c_row >= *columns) return m;
  if (*c_row != 1 || *c_column < *rows) return std::nullopt;
  std::swap(m.product.a, m.product.b), std::swap(m.product.rows, m.product.columns);
  m.product.pitch = *c_column, m.swapped = true;
  return m;
}

}  // namespace lc::backends::gpu
