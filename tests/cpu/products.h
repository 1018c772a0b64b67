// Shared by the tests of products: weights in every storage type with their values in f64, caches of several sizes, and
// products whose scratch is guarded.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "guarded.h"
#include "lightcone/backends/cpu/products/gemm.h"
#include "lightcone/backends/cpu/products/packed_weights.h"
#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/core/dtype.h"
#include "lightcone/device/host_kernel.h"
#include "lightcone/formats/block_formats.h"

namespace lc::backends::cpu::products_test {

// A weight [n, k] in a storage type, and its values in f64.
struct Weight {
  std::vector<std::byte> bytes;
  std::vector<double> values;
  std::int64_t row;  // Gemm's stride between rows
};

inline Weight make_weight(WeightType t, std::int64_t n, std::int64_t k, std::mt19937& random) {
  std::normal_distribution<double> normal;
  Weight w;
  w.values.resize(static_cast<std::size_t>(n * k));
  const auto plain = [&](DType d) {
    w.bytes.resize(static_cast<std::size_t>(n * k) * size_of(d));
    w.row = k;
    for (std::size_t i = 0; i < w.values.size(); ++i) {
      store_f64(w.bytes.data(), d, i, normal(random));
      w.values[i] = load_f64(w.bytes.data(), d, i);
    }
  };
  if (t == WeightType::F32) plain(DType::F32);
  if (t == WeightType::F16) plain(DType::F16);
  if (t == WeightType::BF16) plain(DType::BF16);
  const QuantInfo* q = block_format(t);
  if (!q) return w;
  w.row = k / q->elements * q->bytes;
  w.bytes.resize(static_cast<std::size_t>(n * w.row));
  for (std::int64_t b = 0; b < n * k / q->elements; ++b) {
    std::byte* p = w.bytes.data() + b * q->bytes;
    for (int i = 0; i < q->bytes; ++i) p[i] = static_cast<std::byte>(random());
    put_quant_scales(q->format, std::abs(normal(random)) * 0.1 + 1e-4,
                     [p](int i, int byte) { p[i] = static_cast<std::byte>(byte); });
    for (int i = 0; i < q->elements; ++i)
      w.values[static_cast<std::size_t>(b * q->elements + i)] =
          quant_value(q->format, i, [p](std::int64_t at) { return static_cast<int>(p[at]); });
  }
  return w;
}

inline std::vector<std::byte> pack(WeightType t, const std::vector<std::byte>& blocks, std::int64_t n, std::int64_t k,
                                   Parallel& parallel) {
  std::vector<std::byte> to(static_cast<std::size_t>(packed_bytes(t, n, k)), std::byte{0xff});
  const void* in[] = {blocks.data()};
  pack_kernel(t, t, n, k, false)->run({in, to.data(), {}, nullptr, parallel});
  return to;
}

// Returns other caches and streams for each number of workers; neither may change a bit.
inline Blocking blocking(int workers) {
  if (workers == 2) return Blocking(Machine{.l1 = 8 << 10, .l2 = 64 << 10, .streams = 4});
  return Blocking(workers == 3 ? Machine{.l1 = 128 << 10, .l2 = 8 << 20} : Machine{});
}

// Runs the product with scratch of exactly gemm_scratch_bytes(), guarded at its end.
inline void run(const Gemm& g, const GemmBatch& batch, Parallel& parallel, Isa isa) {
  test::Guarded scratch(gemm_scratch_bytes(g, parallel.workers()), test::Against::Back);
  gemm(g, batch, parallel, scratch.data(), isa);
}

}  // namespace lc::backends::cpu::products_test
