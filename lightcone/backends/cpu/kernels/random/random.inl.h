// Philox 4x32-10, compiled for each instruction set, LANES blocks at a time. Each 32-bit word has a lane of 64 bits
// with an arbitrary upper half: a multiplication reads the lower halves of its factors and fills both halves, and upper
// halves are shifted down where they are needed.
#include <cstring>

#include "lightcone/backends/cpu/kernels/abi/random_abi.h"
#include "lightcone/backends/cpu/kernels/vectors/entry.inl.h"
#include "lightcone/random/random_bits.h"
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(NEON)
#include <arm_neon.h>
#endif

namespace lc::backends::cpu {
namespace {

typedef std::uint64_t Lanes __attribute__((vector_size(LANES * 8)));
typedef std::uint64_t LanesStored __attribute__((vector_size(LANES * 8), aligned(4), may_alias));

inline Lanes splat(std::uint64_t v) { return Lanes{} + v; }

// Multiplies the lower halves.
inline Lanes product(Lanes a, std::uint32_t by) {
#if LANES == 8
  return reinterpret_cast<Lanes>(_mm512_mul_epu32(reinterpret_cast<__m512i>(a), _mm512_set1_epi64(by)));
#elif LANES == 4
  return reinterpret_cast<Lanes>(_mm256_mul_epu32(reinterpret_cast<__m256i>(a), _mm256_set1_epi64x(by)));
#elif defined(__x86_64__)
  return reinterpret_cast<Lanes>(_mm_mul_epu32(reinterpret_cast<__m128i>(a), _mm_set1_epi64x(by)));
#elif defined(NEON)
  return reinterpret_cast<Lanes>(vmull_n_u32(vmovn_u64(reinterpret_cast<uint64x2_t>(a)), by));
#else
  return (a & 0xFFFFFFFFu) * by;
#endif
}

inline void store(std::int32_t* to, Lanes v) { *reinterpret_cast<LanesStored*>(to) = v; }

// Interleaves the words of the blocks to their order in memory.
inline void store_blocks(const Lanes (&c)[4], std::int32_t* to) {
  const Lanes low = splat(0xFFFFFFFFu);
  const Lanes a = (c[0] & low) | (c[1] << 32), b = (c[2] & low) | (c[3] << 32);
#if LANES == 8
  store(to, __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11));
  store(to + 16, __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15));
#elif LANES == 4
  store(to, __builtin_shufflevector(a, b, 0, 4, 1, 5));
  store(to + 8, __builtin_shufflevector(a, b, 2, 6, 3, 7));
#else
  store(to, __builtin_shufflevector(a, b, 0, 2));
  store(to + 4, __builtin_shufflevector(a, b, 1, 3));
#endif
}

struct Keys {
  Lanes even[Philox::kRounds], odd[Philox::kRounds];
  explicit Keys(const std::uint32_t (&key)[2]) {
    std::uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < Philox::kRounds; ++round, k0 += Philox::kWeyl[0], k1 += Philox::kWeyl[1])
      even[round] = splat(k0), odd[round] = splat(k1);
  }
};

// Computes the blocks with these numbers.
inline void some_blocks(const Keys& k, std::uint64_t step, Lanes number, std::int32_t* to) {
  Lanes c[4] = {number, number >> 32, splat(step), splat(step >> 32)};
  for (int round = 0; round < Philox::kRounds; ++round) {
    const Lanes p = product(c[0], Philox::kMultiplier[0]), q = product(c[2], Philox::kMultiplier[1]);
    c[0] = (q >> 32) ^ c[1] ^ k.even[round], c[1] = q;
    c[2] = (p >> 32) ^ c[3] ^ k.odd[round], c[3] = p;
  }
  store_blocks(c, to);
}

void blocks(const RandomBlocks& r, std::int64_t words, std::int32_t* to) {
  const Keys keys(r.key);
  Lanes number = splat(r.first);
  for (int i = 0; i < LANES; ++i) number[i] += static_cast<std::uint64_t>(i);
  std::int64_t k = 0;
  for (; k + 4 * LANES <= words; k += 4 * LANES, number += LANES) some_blocks(keys, r.step, number, to + k);
  if (k == words) return;
  std::int32_t rest[4 * LANES];
  some_blocks(keys, r.step, number, rest);
  std::memcpy(to + k, rest, static_cast<std::size_t>(words - k) * sizeof rest[0]);
}

}  // namespace

extern "C" void LC_ENTRY(random_blocks)(const RandomBlocks* r, std::int64_t words, std::int32_t* to) {
  blocks(*r, words, to);
}

const RandomTable TABLE = {LC_ENTRY(random_blocks)};

}  // namespace lc::backends::cpu
