#include "lightcone/backends/cpu/products/gather_mm.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "lightcone/backends/cpu/products/gemm.h"
#include "lightcone/backends/cpu/products/matmul_kernel.h"
#include "lightcone/device/host_kernel.h"

namespace lc::backends::cpu {

namespace {

using i64 = std::int64_t;

// Rows of one product: enough to amortise packing a matrix, few enough for their results to stay in the caches.
constexpr i64 kMostRows = 512;

i64 aligned(i64 bytes) { return (bytes + 63) / 64 * 64; }

std::optional<WeightType> type_of(const Node& n, DType stored) {
  const i64 format = n.attributes.integer("format");
  if (format >= 0) return weight_type(static_cast<QuantFormat>(format));
  if (stored == DType::F32) return WeightType::F32;
  if (stored == DType::F16) return WeightType::F16;
  if (stored == DType::BF16) return WeightType::BF16;
  return {};
}

// Sizes: n.
class GatherMmKernel final : public HostKernel {
 public:
  GatherMmKernel(const GatherMmPlan& p, Isa isa, const Blocking& blocking)
      : p_(p), isa_(isa), caches_(blocking.caches()), most_(std::min(kMostRows, p.rows.bounds().hi)) {}
  std::string name() const override {
    return "gather_mm_" + std::string(lc::name(p_.type)) + (p_.packed ? "_packed" : "") +
           (p_.unit ? "_" + std::string(p_.unit->name) : "");
  }
  std::vector<Dim> sizes() const override { return {p_.rows}; }
  Dim flops() const override { return p_.rows * Dim(2 * p_.m * p_.k); }
  Dim scratch_bytes(int workers) const override {
    Gemm largest = product();
    largest.m = most_, largest.rows = gathered;
    return Dim(static_cast<i64>(gemm_scratch_bytes(largest, workers)) + aligned(kFewRows * p_.k * 4) +
               aligned(most_ * p_.m * 4) + aligned((p_.count + 1) * 8)) +
           (p_.rows + 8) * 8;
  }
  void run(const HostLaunch& l) const override;

 private:
  // Some rows of one matrix: `order` has their indices.
  struct Chunk {
    const float* x;
    float *out, *c;
    const i64* order;
    i64 k, m;
  };
  static void gathered(const void* self, i64 first, i64 count, float* to) {
    const Chunk& s = *static_cast<const Chunk*>(self);
    for (i64 i = 0; i < count; ++i) std::copy_n(s.x + s.order[first + i] * s.k, s.k, to + i * s.k);
  }
  static void scattered(const void* self, float* row, i64 rows, i64 begin, i64 end) {
    const Chunk& s = *static_cast<const Chunk*>(self);
    const i64 first = (row - s.c) / s.m;
    for (i64 i = 0; i < rows; ++i)
      std::copy(row + i * s.m + begin, row + i * s.m + end, s.out + s.order[first + i] * s.m + begin);
  }

  Gemm product() const;
  i64 matrix_bytes() const;
  void sort(const HostLaunch& l, i64 n, i64* starts, i64* order) const;
  void multiply(const HostLaunch& l, const void* matrix, const i64* order, i64 rows, std::byte* scratch) const;

  GatherMmPlan p_;
  Isa isa_;
  CacheSizes caches_;
  i64 most_;
};

Gemm GatherMmKernel::product() const {
  Gemm g;
  g.n = p_.m, g.k = p_.k, g.a_m = p_.k, g.a_k = 1, g.c_m = p_.m;
  g.type = p_.packed ? p_.stored_type() : p_.type, g.packed = p_.packed;
  const QuantInfo* format = block_format(p_.type);
  g.b_n = format ? p_.k / format->elements * format->bytes : p_.k, g.b_k = 1;
  g.unit = p_.unit, g.few = p_.few, g.zero = int8_format(p_.type).zero;
  g.caches = caches_;
  return g;
}

i64 GatherMmKernel::matrix_bytes() const {
  if (p_.packed) return packed_bytes(p_.stored_type(), p_.m, p_.k);
  const QuantInfo* format = block_format(p_.type);
  return p_.m * (format ? p_.k / format->elements * format->bytes : p_.k * unit_bytes(p_.type));
}

// Sorts rows by their matrices, stably: matrix j has rows order[starts[j]] to order[starts[j + 1]]. Rows whose index is
// no matrix are zeros.
void GatherMmKernel::sort(const HostLaunch& l, i64 n, i64* starts, i64* order) const {
  const auto at = [&](i64 i) { return load_i64(l.in[2], p_.index, static_cast<std::size_t>(i)); };
  const auto known = [&](i64 j) { return j >= 0 && j < p_.count; };
  std::fill_n(starts, p_.count + 1, 0);
  for (i64 i = 0; i < n; ++i)
    if (const i64 j = at(i); known(j)) ++starts[j + 1];
  for (i64 j = 0; j < p_.count; ++j) starts[j + 1] += starts[j];
  for (i64 i = 0; i < n; ++i) {
    if (const i64 j = at(i); known(j)) order[starts[j]++] = i;
    else std::fill_n(static_cast<float*>(l.out) + i * p_.m, p_.m, 0.0f);
  }
  for (i64 j = p_.count; j > 0; --j) starts[j] = starts[j - 1];  // each start moved to its end
  starts[0] = 0;
}

void GatherMmKernel::multiply(const HostLaunch& l, const void* matrix, const i64* order, i64 rows,
                              std::byte* scratch) const {
  auto* few = reinterpret_cast<float*>(scratch);
  auto* c = reinterpret_cast<float*>(scratch + aligned(kFewRows * p_.k * 4));
  scratch += aligned(kFewRows * p_.k * 4) + aligned(most_ * p_.m * 4);
  const Chunk chunk{static_cast<const float*>(l.in[0]), static_cast<float*>(l.out), c, order, p_.k, p_.m};
  Gemm g = product();
  g.m = rows, g.b = matrix;
  if (order[rows - 1] - order[0] == rows - 1) {  // they lie side by side, as a single row does
    g.a = chunk.x + order[0] * p_.k, g.c = chunk.out + order[0] * p_.m;
  } else {
    if (rows > kFewRows) g.rows = gathered, g.rows_self = &chunk;
    else gathered(&chunk, 0, rows, few), g.a = few;
    g.c = c, g.finish = scattered, g.finish_self = &chunk;
  }
  gemm(g, {}, l.parallel, scratch, isa_);
}

void GatherMmKernel::run(const HostLaunch& l) const {
  const i64 n = l.sizes[0];
  if (n == 0 || p_.m == 0) return;
  auto* starts = reinterpret_cast<i64*>(l.scratch);
  auto* order = starts + p_.count + 1;
  sort(l, n, starts, order);
  std::byte* scratch = l.scratch + aligned((p_.count + 1 + n) * 8);
  const i64 bytes = matrix_bytes();
  for (i64 j = 0; j < p_.count; ++j)
    for (i64 first = starts[j]; first < starts[j + 1]; first += kMostRows)
      multiply(l, static_cast<const std::byte*>(l.in[1]) + j * bytes, order + first,
               std::min(kMostRows, starts[j + 1] - first), scratch);
}

}  // namespace

WeightType GatherMmPlan::stored_type() const {
  return type == WeightType::F32 && unit && unit->arithmetic == Arithmetic::Bf16 ? WeightType::BF16 : type;
}

std::optional<GatherMmPlan> plan_gather_mm(const Graph& g, const Node& n, Precision p, const Target& target) {
  const auto type = type_of(n, g[n.in[1].node].dtype);
  const Shape& w = n.in[1].view.shape();
  const auto count = w[0].constant(), m = w[1].constant(), k = n.in[0].view.shape()[1].constant();
  if (n.dtype != DType::F32 || !type || !count || !m || !k || *k == 0) return {};
  GatherMmPlan plan{.type = *type, .rows = n.in[0].view.shape()[0], .count = *count, .m = *m, .k = *k};
  plan.index = g[n.in[2].node].dtype;
  lowering::Contraction each;  // any of the products, for the choice of its arithmetic
  each.axes = {{plan.rows, *k, 0, *m}, {*m, 0, *k, 1}};
  each.k = {*k, 1, 1, 0}, each.type = *type;
  plan.unit = choose_unit(each, p, target);
  if (*count == 0 || !packable(n, plan)) return plan;
  each.axes[0].extent = plan.rows.bounds().hi / *count;  // rows of a matrix if all are chosen as often
  if (const Microkernel* u = choose_prompt_unit(each, p, target)) plan.few = plan.unit, plan.unit = u;
  return plan;
}

bool packable(const Node& n, const GatherMmPlan& plan) {
  return packed_layout(plan.type).block != 0 && n.in[1].view.identity() && plan.m % PackedLayout::rows == 0;
}

std::shared_ptr<HostKernel> gather_mm_kernel(const GatherMmPlan& plan, Isa isa, const Blocking& blocking) {
  return std::make_shared<GatherMmKernel>(plan, isa, blocking);
}

}  // namespace lc::backends::cpu
