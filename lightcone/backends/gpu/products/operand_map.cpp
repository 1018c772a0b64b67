#include "lightcone/backends/gpu/products/operand_map.h"

#include <algorithm>

namespace lc::backends::gpu {

namespace {

constexpr int kAlignment = 16;  // required by the copies: bytes of an address, and of every stride
constexpr int kMostBox = 256;   // extent of a box's axis
constexpr std::size_t kMostAxes = 5;
constexpr std::int64_t kMostExtent = std::int64_t{1} << 31, kMostStride = std::int64_t{1} << 40;

}  // namespace

std::vector<Dim> OperandMap::sizes() const {
  std::vector<Dim> all{offset};
  all.insert(all.end(), extents.begin(), extents.end());
  all.insert(all.end(), strides.begin(), strides.end());
  return all;
}

std::optional<OperandMap> operand_map(const Product& p, bool is_b, int own) {
  const Operand& s = is_b ? p.b : p.a;
  const std::vector<Dim>& extents = is_b ? p.columns : p.rows;
  const bool halves = s.type == WeightType::F16 || s.type == WeightType::BF16;
  if ((!halves && s.type != WeightType::I8 && !is_f8(s.type)) || !s.bounds.empty() || s.repacked) return {};
  if (p.sum.size() != 1 || extents.size() != 1) return {};
  OperandMap m;
  m.buffer = is_b, m.bytes = halves ? 2 : 1, m.offset = s.offset;
  m.along_sum = s.sum[0] == Dim(1);
  // the instructions transpose only elements of 16 bits
  if (!m.along_sum && (!halves || !(s.own[0] == Dim(1)))) return {};
  const int row = kMapRowBytes / m.bytes, unit = kAlignment / m.bytes;
  const auto add = [&](const Dim& extent, const Dim& stride, int box) {
    m.extents.push_back(extent), m.strides.push_back(stride), m.box.push_back(box);
    return extent.bounds().hi < kMostExtent && stride.bounds().lo > 0 && stride.bounds().hi < kMostStride / m.bytes &&
           multiple(stride, unit);
  };
  m.extents = {m.along_sum ? p.sum[0] : extents[0]}, m.box = {row};
  bool right = m.extents[0].bounds().hi < kMostExtent && multiple(s.offset, unit);
  right &= m.along_sum ? add(extents[0], s.own[0], std::min(own, kMostBox)) : add(p.sum[0], s.sum[0], row);
  for (std::size_t i = 0; i < p.batch.size(); ++i) {
    if (s.batch[i] == Dim(0)) continue;  // the operand is the same for the whole axis
    m.batch.push_back(i);
    right &= add(p.batch[i], s.batch[i], 1);
  }
  if (!right || m.extents.size() > kMostAxes) return {};
  return m;
}

}  // namespace lc::backends::gpu
