// Tensor core operations that CUDA C lacks: products, loads of fragments, asynchronous copies. A test's compiler for
// the CPU defines functions of these names already.
#include "lightcone/codegen/simt/tensor_cores.h"

namespace lc::codegen::simt {

std::string_view tensor_primitives() {
  return R"CUDA(
#ifndef LC_TENSOR
#define LC_TENSOR 1
#ifdef LC_CUDA_SHIM
LC u32 lc_pack_bf16(float a, float b) { return (u32)lc_f32_to_bf16(a) | (u32)lc_f32_to_bf16(b) << 16; }
#else
#if __CUDA_ARCH__ < 800
#error "these kernels need bf16 products and asynchronous copies: compute capability 8.0"
#endif
LC u32 lc_pack_bf16(float a, float b) {
  u32 r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(b), "f"(a));
  return r;
}
#define LC_MMA_HALVES(T) \
LC void lc_mma_##T(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) { \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." #T "." #T ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])); \
}
LC_MMA_HALVES(bf16)
LC_MMA_HALVES(f16)
// Floats of 8 bits, from compute capability 8.9 on.
#if __CUDA_ARCH__ >= 890
#define LC_MMA_F8(A, B) \
LC void lc_mma_##A##_##B(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) { \
  asm volatile("mma.sync.aligned.m16n8k32.row.col.f32." #A "." #B ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])); \
}
LC_MMA_F8(e4m3, e4m3)
LC_MMA_F8(e4m3, e5m2)
LC_MMA_F8(e5m2, e4m3)
LC_MMA_F8(e5m2, e5m2)
#endif
LC void lc_mma_tf32(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  u32 x[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
#pragma unroll
  for (int i = 0; i < 6; ++i) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(x[i]) : "f"(__uint_as_float(x[i])));
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(x[4]), "r"(x[5]));
}
LC void lc_mma_s8(int (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#define LC_LDMATRIX(NAME, HOW) \
LC void NAME(u32 (&r)[4], const void* p) { \
  const u32 s = (u32)__cvta_generic_to_shared(p); \
  asm volatile("ldmatrix.sync.aligned.m8n8.x4" HOW ".shared.b16 {%0,%1,%2,%3}, [%4];" \
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(s) : "memory"); \
}
LC_LDMATRIX(lc_ldmatrix4, "")
LC_LDMATRIX(lc_ldmatrix4_trans, ".trans")
LC void lc_copy16_async(void* to, const void* from) {
  const u32 s = (u32)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(s), "l"(from) : "memory");
}
LC void lc_copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> LC void lc_copy_wait() { asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory"); }
#endif
// What a warp does with 16 own rows, of which a thread has two: sums of their products with N * 4 other rows, of which a
// thread has two neighbours of each eight. Rows are bf16 in shared memory, DEPTH numbers and `pitch` apart.
template <int DEPTH, int N> LC void lc_core_products(float (&s)[2][N], const u16* own, const u16* others, int pitch) {
  const int t = LC_THREAD % 32;
#pragma unroll (DEPTH > 64 ? 2 : 4)  // more would push sums out of registers
  for (int d = 0; d < DEPTH; d += 16) {
    u32 a[4];
    lc_ldmatrix4(a, own + t % 16 * pitch + d + t / 16 * 8);
#pragma unroll
    for (int j = 0; j < N; j += 4) {  // 16 of them
      u32 b[4];
      lc_ldmatrix4(b, others + (j * 4 + t / 16 * 8 + t % 8) * pitch + d + t / 8 % 2 * 8);
#pragma unroll
      for (int n = 0; n < 4; n += 2) {
        const u32 y[2] = {b[n], b[n + 1]};
        float x[4] = {s[0][j + n], s[0][j + n + 1], s[1][j + n], s[1][j + n + 1]};
        lc_mma_bf16(x, a, y);
        s[0][j + n] = x[0], s[0][j + n + 1] = x[1], s[1][j + n] = x[2], s[1][j + n + 1] = x[3];
      }
    }
  }
}
// Adds to `sums` the other rows, of COLUMNS * 4 columns, weighted by `s`: sums as lc_core_products() leaves them in the
// threads, rounded to bf16. The rows are transposed when they are loaded.
template <int N, int COLUMNS>
LC void lc_core_weighted(float (&sums)[2][COLUMNS], const float (&s)[2][N], const u16* others, int pitch) {
  const int t = LC_THREAD % 32;
#pragma unroll
  for (int j = 0; j < N; j += 4) {
    const u32 a[4] = {lc_pack_bf16(s[0][j], s[0][j + 1]), lc_pack_bf16(s[1][j], s[1][j + 1]),
                      lc_pack_bf16(s[0][j + 2], s[0][j + 3]), lc_pack_bf16(s[1][j + 2], s[1][j + 3])};
#pragma unroll
    for (int c = 0; c < COLUMNS; c += 4) {  // 16 of them
      u32 b[4];
      lc_ldmatrix4_trans(b, others + (j * 4 + t / 8 % 2 * 8 + t % 8) * pitch + c * 4 + t / 16 * 8);
#pragma unroll
      for (int n = 0; n < 4; n += 2) {
        const u32 y[2] = {b[n], b[n + 1]};
        float x[4] = {sums[0][c + n], sums[0][c + n + 1], sums[1][c + n], sums[1][c + n + 1]};
        lc_mma_bf16(x, a, y);
        sums[0][c + n] = x[0], sums[0][c + n + 1] = x[1], sums[1][c + n] = x[2], sums[1][c + n + 1] = x[3];
      }
    }
  }
}
#endif
)CUDA";
}

}  // namespace lc::codegen::simt
