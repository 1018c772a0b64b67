// Operations of Hopper (compute capability 9.0) for which CUDA C has no functions: products of four warps whose
// operands are in shared memory (wgmma), copies of boxes by the device itself (TMA), and the phases by which threads
// and copies wait for each other (mbarrier). PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions" and
// "cp.async.bulk.tensor". The tests' compiler for the CPU has functions of these names.
#include "lightcone/backends/gpu/products/warpgroup_tiles.h"
#include "lightcone/codegen/simt/filled.h"

namespace lc::backends::gpu {

using std::to_string;

namespace {

constexpr std::string_view kPrimitives = R"CUDA(
#ifndef LC_WARPGROUP
#define LC_WARPGROUP 1
#ifdef LC_CUDA_SHIM
#include "warpgroup.h"
#else
#if __CUDA_ARCH__ != 900
#error "these kernels need the matrix instructions of compute capability 9.0"
#endif
struct __align__(64) LcTileMap { u64 words[16]; };
#define LC_MAP const __grid_constant__ LcTileMap
LC u32 lc_shared_at(const void* p) { return (u32)__cvta_generic_to_shared(p); }
// The shared memory that a start adds, from a multiple of 1024 on.
#define LC_RING(NAME) \
  extern __shared__ u8 lc_ring[]; \
  u8* const NAME = lc_ring + ((1024u - (lc_shared_at(lc_ring) & 1023u)) & 1023u)
// Phases: one ends when so many have arrived and all bytes that were expected are there.
LC void lc_phase_init(u64* p, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(lc_shared_at(p)), "r"(arrivals) : "memory");
}
LC void lc_phase_init_done() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
LC void lc_phase_arrive(u64* p) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(lc_shared_at(p)) : "memory");
}
LC void lc_phase_expect(u64* p, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(lc_shared_at(p)), "r"(bytes) : "memory");
}
LC void lc_phase_wait(u64* p, int parity) {
  u32 ended;
  do {
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(ended) : "r"(lc_shared_at(p)), "r"(parity) : "memory");
  } while (!ended);
}
#define LC_COPY "cp.async.bulk.tensor."
#define LC_FROM "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {"
LC void lc_tile_copy_2(void* to, const LcTileMap* map, u64* p, int i, int j) {
  asm volatile(LC_COPY "2" LC_FROM "%3, %4}], [%2];"
      :: "r"(lc_shared_at(to)), "l"(map), "r"(lc_shared_at(p)), "r"(i), "r"(j) : "memory");
}
LC void lc_tile_copy_3(void* to, const LcTileMap* map, u64* p, int i, int j, int k) {
  asm volatile(LC_COPY "3" LC_FROM "%3, %4, %5}], [%2];"
      :: "r"(lc_shared_at(to)), "l"(map), "r"(lc_shared_at(p)), "r"(i), "r"(j), "r"(k) : "memory");
}
LC void lc_tile_copy_4(void* to, const LcTileMap* map, u64* p, int i, int j, int k, int l) {
  asm volatile(LC_COPY "4" LC_FROM "%3, %4, %5, %6}], [%2];"
      :: "r"(lc_shared_at(to)), "l"(map), "r"(lc_shared_at(p)), "r"(i), "r"(j), "r"(k), "r"(l) : "memory");
}
LC void lc_tile_copy_5(void* to, const LcTileMap* map, u64* p, int i, int j, int k, int l, int m) {
  asm volatile(LC_COPY "5" LC_FROM "%3, %4, %5, %6, %7}], [%2];"
      :: "r"(lc_shared_at(to)), "l"(map), "r"(lc_shared_at(p)), "r"(i), "r"(j), "r"(k), "r"(l), "r"(m) : "memory");
}
// A matrix of rows of 128 bytes with permuted chunks: bytes from one block of eight rows to the next, and, where rows go
// across the sum, from 64 of its own places to the next.
LC u64 lc_matrix(const void* p, int eight_rows, int next) {
  return (u64)((lc_shared_at(p) & 0x3ffffu) >> 4) | (u64)(next >> 4) << 16 | (u64)(eight_rows >> 4) << 32 | 1ul << 62;
}
// Sums of a warpgroup's products. From begin() to wait() they belong to the matrix instructions.
#define LC_SUMS(T, N, NAME) T NAME[N]
LC void lc_own(float& x) { asm volatile("" : "+f"(x) :: "memory"); }
LC void lc_own(int& x) { asm volatile("" : "+r"(x) :: "memory"); }
template <class T, int N> LC void lc_own(T (&sums)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) lc_own(sums[i]);
}
template <class T, int N> LC void lc_products_begin(T (&sums)[N]) {
  lc_own(sums);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
template <class T, int N> LC void lc_products_commit(T (&sums)[N]) {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// All but the latest LEFT groups have ended.
template <int LEFT, class T, int N> LC void lc_products_wait(T (&sums)[N]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(LEFT) : "memory");
  lc_own(sums);
}
template <int N> LC void lc_give_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(N)); }
template <int N> LC void lc_take_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(N)); }
#endif
#endif
)CUDA";

// Adds products to 64 x $N sums of a warpgroup, $K deep. Operands of 16 bits may be contiguous across the sum.
constexpr std::string_view kProduct = R"CUDA(
#ifndef LC_WGMMA_$TYPES_$N
#define LC_WGMMA_$TYPES_$N 1
#ifndef LC_CUDA_SHIM
template <int TURNED_A, int TURNED_B> LC void lc_wgmma_$TYPES_$N($SUM (&d)[$COUNT], u64 a, u64 b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n$Nk$K.$KINDS {$SUMS}, %$A, %$B, 1$REST;"
      : $REGISTERS : "l"(a), "l"(b)$IMMEDIATES);
}
#endif
#endif
)CUDA";

}  // namespace

std::string_view warpgroup_primitives() { return kPrimitives; }

std::string warpgroup_types(const Product& p, Cores cores) {
  switch (cores) {
    case Cores::F16: return "f16";
    case Cores::I8: return "s8";
    case Cores::F8: return f8_name(p.a.type) + "_" + f8_name(p.b.type);
    default: return "bf16";
  }
}

std::string warpgroup_product(const Product& p, Cores cores, int columns) {
  const bool bytes = cores == Cores::I8, f8 = cores == Cores::F8;
  const int count = columns / 2;
  const std::string types = warpgroup_types(p, cores);
  std::string sums, registers;
  for (int i = 0; i < count; ++i) {
    sums += (i ? ", %" : "%") + to_string(i);
    registers += std::string(i ? ", " : "") + (bytes ? "\"+r\"(d[" : "\"+f\"(d[") + to_string(i) + "])";
  }
  const auto number = [&](int k) { return "%" + to_string(count + k); };
  const std::string kinds = bytes ? "s32.s8.s8"
                            : f8  ? "f32." + f8_name(p.a.type) + "." + f8_name(p.b.type)
                                  : "f32." + types + "." + types;
  const bool halves = !bytes && !f8;
  return codegen::simt::filled(kProduct, {{"TYPES", types},
                                          {"KINDS", kinds},
                                          {"SUMS", sums},
                                          {"SUM", bytes ? "int" : "float"},
                                          {"COUNT", to_string(count)},
                                          {"REST", halves ? ", 1, 1, " + number(2) + ", " + number(3)
                                                   : f8   ? ", 1, 1"
                                                          : ""},
                                          {"REGISTERS", registers},
                                          {"IMMEDIATES", halves ? ", \"n\"(TURNED_A), \"n\"(TURNED_B)" : ""},
                                          {"N", to_string(columns)},
                                          {"K", halves ? "16" : "32"},
                                          {"A", to_string(count)},
                                          {"B", to_string(count + 1)}});
}

}  // namespace lc::backends::gpu
