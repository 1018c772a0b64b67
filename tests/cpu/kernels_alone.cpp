// The micro-kernels link without the rest of the library, and can be called by name: a product of each instruction set
// of this processor, attention over three keys, and random words, with values worked out by hand or by plain loops.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "lightcone/backends/cpu/kernels/abi/entry_points.h"
#include "lightcone/backends/cpu/kernels/abi/tables.h"
#include "lightcone/random/random_bits.h"

namespace {

using namespace lc::backends::cpu;
using i64 = std::int64_t;
int wrong = 0;

void check(bool right, const char* what, const char* where) {
  if (!right) std::printf("%s: %s is wrong\n", where, what), ++wrong;
}

// C[m, n] = A[m, k] * B[k, n] by the three functions of a microkernel, of small integers, whose sums are exact.
void product(const Microkernel& u) {
  constexpr i64 m = 2, n = 5, k = 7;
  std::vector<float> a(m * k), b(k * n), c(static_cast<std::size_t>(u.mr * u.nr), -1);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 5) - 2;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 7) - 3;
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  const auto lines = [](i64 bytes) { return std::vector<Line>(static_cast<std::size_t>(bytes / 64 + 2)); };
  std::vector<Line> packed_a = lines(u.a_bytes(k)), packed_b = lines(u.b_bytes(k) * u.nr / 16);
  const Gemm g{.m = m, .n = n, .k = k, .a = a.data(), .a_m = k, .a_k = 1, .b = b.data(), .b_n = 1, .b_k = n};
  u.pack_a(a.data(), k, 1, m, k, 0, packed_a.data());
  u.pack_b(&g, 0, n, 0, k, packed_b.data(), u.b_bytes(k));
  u.tile(packed_a.data(), packed_b.data(), u.b_bytes(k), k, c.data(), u.nr, m, n, false, packed_b.data());
  for (i64 i = 0; i < m; ++i)
    for (i64 j = 0; j < n; ++j) {
      float want = 0;
      for (i64 e = 0; e < k; ++e)
        want += a[static_cast<std::size_t>(i * k + e)] * b[static_cast<std::size_t>(e * n + j)];
      check(c[static_cast<std::size_t>(i * u.nr + j)] == want, "a product", u.name);
    }
}

// One query against keys 0, 1 and 2, of which the mask hides the last: weights 1 / (1 + 2^x) and 2^x / (1 + 2^x) for
// the score x = 1.
void attention(const AttentionTable& table) {
  const float q = 1, keys[] = {0, 1, 50}, values[] = {3, 9, 1000};
  const bool hidden[] = {false, false, true};
  float out = 0;
  std::vector<float> scratch(static_cast<std::size_t>(attention_scratch(1, 1)) + 64);
  AttentionProblem p;
  p.steps = 1, p.step[0] = {.kind = ScoreStep::Mask, .value = -INFINITY, .keep = false, .key = 1};
  p.keys = 3, p.depth = p.width = p.q_depth = p.k_key = p.k_depth = p.v_key = p.v_width = 1;
  AttentionBlock b;
  b.problem = &p, b.rows = 1, b.end = 3, b.scratch = scratch.data();
  b.k = reinterpret_cast<const std::byte*>(keys), b.v = reinterpret_cast<const std::byte*>(values);
  b.q[0] = &q, b.out[0] = &out, b.step[0][0] = reinterpret_cast<const std::byte*>(hidden);
  table.blocks(&b, 1);
  check(std::abs(out - 7) < 1e-5f, "attention", "a block");  // (3 + 2 * 9) / 3
}

void words(const RandomTable& table) {
  std::int32_t got[6];
  const RandomBlocks r{{7, 8}, 3, 5};
  table.blocks(&r, 6, got);
  for (std::size_t i = 0; i < 6; ++i) {
    const std::uint32_t want = lc::Philox::words(lc::Philox::counter(5 + i / 4, 3), {7, 8})[i % 4];
    check(static_cast<std::uint32_t>(got[i]) == want, "a random word", "a block");
  }
}

}  // namespace

int main() {
  check(kernel_tables(Isa::Generic).f32->tile == lc_f32_tile_generic, "the address of", "lc_f32_tile_generic");
  check(kernel_tables(Isa::Generic).gemm->axpy == lc_gemm_axpy_generic, "the address of", "lc_gemm_axpy_generic");
  std::vector<Isa> isas = {Isa::Generic};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) isas.push_back(Isa::Avx2);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq"))
    isas.push_back(Isa::Avx512);
#elif defined(__aarch64__)
  isas.push_back(Isa::Neon);
#endif
  for (const Isa isa : isas) {
    const KernelTables& t = kernel_tables(isa);
    product(*t.f32), product(*t.bf16), attention(*t.attention), words(*t.random);
  }
  if (wrong == 0) std::printf("%zu instruction sets\n", isas.size());
  return wrong != 0;
}
