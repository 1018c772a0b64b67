// C++ twins of the PTX in kernels for compute capability 9.0: copies of boxes, phases, and products of a warpgroup from
// shared memory (lightcone/backends/gpu/products/warpgroup_primitives.cpp). A product is computed when it is waited
// for, from the content of shared memory then. Until then its sums are NaN, and boxes arrive as late as possible. Each
// warp computes its quarter of the warpgroup's rows by itself.
#pragma once

struct __attribute__((aligned(64))) LcTileMap {
  u64 words[16];
};
#define LC_MAP const LcTileMap
#define LC_RING(NAME) u8* const NAME = (u8*)(((u64)lc_scheduler->dynamic_shared + 1023) & ~(u64)1023)

static inline void lc_phase_init(u64* p, int arrivals) { lc_scheduler->phase_begin(p, (unsigned)arrivals); }
static inline void lc_phase_init_done() {}
static inline void lc_phase_arrive(u64* p) { lc_scheduler->phase_arrive(p, 0); }
static inline void lc_phase_expect(u64* p, int bytes) { lc_scheduler->phase_arrive(p, (unsigned)bytes); }
static inline void lc_phase_wait(u64* p, int parity) { lc_scheduler->phase_wait(p, (unsigned)parity); }

#define LC_TILE_COPY(AXES, ...)   \
  const int at[] = {__VA_ARGS__}; \
  lc_scheduler->copy_tile(to, map, p, AXES, at)
static inline void lc_tile_copy_2(void* to, const LcTileMap* map, u64* p, int i, int j) { LC_TILE_COPY(2, i, j); }
static inline void lc_tile_copy_3(void* to, const LcTileMap* map, u64* p, int i, int j, int k) {
  LC_TILE_COPY(3, i, j, k);
}
static inline void lc_tile_copy_4(void* to, const LcTileMap* map, u64* p, int i, int j, int k, int l) {
  LC_TILE_COPY(4, i, j, k, l);
}
static inline void lc_tile_copy_5(void* to, const LcTileMap* map, u64* p, int i, int j, int k, int l, int m) {
  LC_TILE_COPY(5, i, j, k, l, m);
}
#undef LC_TILE_COPY

// A descriptor has 14 bits for an address. Here the address is relative to the dynamic shared memory.
static inline u64 lc_matrix(const void* p, int eight_rows, int next) {
  const u64 at = (u64)p - (u64)lc_scheduler->dynamic_shared;
  if (at >= 1 << 18 || at % 16)
    lc_scheduler->fault("a matrix that does not begin at 16 bytes of the added shared memory");
  return (at & 0x3ffff) >> 4 | (u64)(next >> 4) << 16 | (u64)(eight_rows >> 4) << 32 | 1ul << 62;
}

// Loads element (`own`, `sum`) of a matrix of BYTES-byte elements. Rows of 128 bytes run along the contracted axis. If
// TURNED, they run across it, with 64 elements of 2 bytes of the other axis per row.
template <int BYTES, bool TURNED>
static inline unsigned lc_element(u64 matrix, int own, int sum) {
  if (matrix >> 62 != 1) lc_scheduler->fault("a matrix whose rows are not of 128 bytes");
  const u64 next = (matrix >> 16 & 0x3fff) << 4, eight_rows = (matrix >> 32 & 0x3fff) << 4;
  u64 at = (u64)lc_scheduler->dynamic_shared + ((matrix & 0x3fff) << 4);
  if (at >> 7 & 7) lc_scheduler->fault("a matrix that does not begin with the first of eight rows");
  if (TURNED) at += (own / 64) * next + (sum / 8) * eight_rows + sum % 8 * 128 + own % 64 * 2;
  else at += (own / 8) * eight_rows + own % 8 * 128 + sum * BYTES;
  at ^= (at >> 7 & 7) << 4;
  return BYTES == 1 ? *(const u8*)at : *(const u16*)at;
}

// A lane's sums. Element 4 j + 2 h + e belongs to row lane / 4 + 8 h and column 8 j + lane % 4 * 2 + e of the warp's 16
// rows.
template <class T, int N>
struct LcSums {
  struct Product {
    u64 a, b;
    void (*compute)(LcSums* const* lanes, u64 a, u64 b);
    int group;
  };
  T now[N], kept[N];  // `now` is NaN while products are in flight
  Product products[16];
  int count = 0, group = 0, left = 0;
  bool begun = false;
  T& operator[](int i) { return now[i]; }
};
#define LC_SUMS(T, N, NAME) LcSums<T, N> NAME

template <class OfA, class OfB, class T, int N, bool TURNED_A, bool TURNED_B>
static void lc_compute(LcSums<T, N>* const* lanes, u64 a, u64 b) {
  enum { K = OfA::K, COLUMNS = 2 * N, BYTES = 4 / OfA::in_register };
  typedef typename OfA::Sum Sum;
  static Sum rows[16][K], columns[K][COLUMNS], sums[16][COLUMNS];
  const int first = lc_scheduler->thread->warp % 4 * 16;
  for (int k = 0; k < K; ++k) {
    for (int i = 0; i < 16; ++i) rows[i][k] = OfA::value(lc_element<BYTES, TURNED_A>(a, first + i, k), 0);
    for (int j = 0; j < COLUMNS; ++j) columns[k][j] = OfB::value(lc_element<BYTES, TURNED_B>(b, j, k), 0);
  }
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < N; ++i)
      sums[lane / 4 + i / 2 % 2 * 8][i / 4 * 8 + lane % 4 * 2 + i % 2] = (Sum)lanes[lane]->kept[i];
  typedef Sum Row __attribute__((vector_size(8 * sizeof(Sum)), aligned(4)));
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < COLUMNS; j += 8) {
      Row sum = *(const Row*)&sums[i][j];
      for (int k = 0; k < K; ++k) sum += rows[i][k] * *(const Row*)&columns[k][j];
      *(Row*)&sums[i][j] = sum;
    }
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < N; ++i)
      lanes[lane]->kept[i] = (T)sums[lane / 4 + i / 2 % 2 * 8][i / 4 * 8 + lane % 4 * 2 + i % 2];
}

template <class T, int N>
static inline void lc_products_begin(LcSums<T, N>& s) {
  s.begun = true;
}

template <class OfA, class OfB, bool TURNED_A, bool TURNED_B, class T, int N>
static inline void lc_wgmma(LcSums<T, N>& s, u64 a, u64 b) {
  if (!s.begun) lc_scheduler->fault("a warpgroup's product before its sums were handed over (wgmma.fence)");
  if (s.count == 16) lc_scheduler->fault("more than 16 products of a warpgroup under way");
  if (s.count == 0) {
    __builtin_memcpy(s.kept, s.now, sizeof s.now);
    __builtin_memset(s.now, 0xff, sizeof s.now);
  }
  s.products[s.count++] = {a, b, lc_compute<OfA, OfB, T, N, TURNED_A, TURNED_B>, s.group};
}
#define LC_WGMMA_OF(TYPES, COLUMNS, OF_A, OF_B, T)                                           \
  template <int TURNED_A, int TURNED_B>                                                      \
  static inline void lc_wgmma_##TYPES##_##COLUMNS(LcSums<T, COLUMNS / 2>& s, u64 a, u64 b) { \
    lc_wgmma<OF_A, OF_B, TURNED_A, TURNED_B>(s, a, b);                                       \
  }
#define LC_WGMMA(TYPES, OF_A, OF_B, T)   \
  LC_WGMMA_OF(TYPES, 128, OF_A, OF_B, T) \
  LC_WGMMA_OF(TYPES, 256, OF_A, OF_B, T)
// clang-format off
LC_WGMMA(bf16, LcBf16Operands, LcBf16Operands, float)
LC_WGMMA(f16, LcF16Operands, LcF16Operands, float)
LC_WGMMA(e4m3_e4m3, LcE4m3Operands, LcE4m3Operands, float)
LC_WGMMA(e4m3_e5m2, LcE4m3Operands, LcE5m2Operands, float)
LC_WGMMA(e5m2_e4m3, LcE5m2Operands, LcE4m3Operands, float)
LC_WGMMA(e5m2_e5m2, LcE5m2Operands, LcE5m2Operands, float)
LC_WGMMA(s8, LcS8Operands, LcS8Operands, int)
// clang-format on
#undef LC_WGMMA_OF
#undef LC_WGMMA

template <class T, int N>
static inline void lc_products_commit(LcSums<T, N>& s) {
  ++s.group;
  s.begun = false;
}

template <class T, int N>
static void lc_finish_products(void* const* lanes) {
  LcSums<T, N>* const* all = (LcSums<T, N>* const*)lanes;
  LcSums<T, N>& one = *all[0];
  int done = 0;
  for (; done < one.count && one.products[done].group + one.left < one.group; ++done) {
    for (int lane = 1; lane < 32; ++lane) {
      const auto &p = one.products[done], &q = all[lane]->products[done];
      if (q.a != p.a || q.b != p.b || q.compute != p.compute || all[lane]->count != one.count)
        lc_scheduler->fault("lanes of a warpgroup multiply different matrices");
    }
    one.products[done].compute(all, one.products[done].a, one.products[done].b);
  }
  for (int lane = 0; lane < 32; ++lane) {
    LcSums<T, N>& s = *all[lane];
    for (int k = done; k < s.count; ++k) s.products[k - done] = s.products[k];
    s.count -= done;
    if (done && s.count == 0) __builtin_memcpy(s.now, s.kept, sizeof s.now);
  }
}
template <int LEFT, class T, int N>
static inline void lc_products_wait(LcSums<T, N>& s) {
  s.left = LEFT;
  lc_scheduler->full_warp_exchange(&s, lc_finish_products<T, N>);
}

template <int N>
static inline void lc_give_registers() {}
template <int N>
static inline void lc_take_registers() {}
