// Counter-based random words: Philox 4x32-10. builtin::random_bits() adds them to a graph (composites/composites.h).
//
// J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011: ten
// rounds of multiplications and exclusive ors map a 128-bit counter and a 64-bit key to four 32-bit words. Blocks are
// independent, so every device and every thread computes the same words by itself.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace lc {

struct Philox {
  using Block = std::array<std::uint32_t, 4>;
  using Key = std::array<std::uint32_t, 2>;
  static constexpr int kRounds = 10;
  static constexpr std::uint32_t kMultiplier[2] = {0xD2511F53u, 0xCD9E8D57u};  // for words 0 and 2 of the counter
  static constexpr std::uint32_t kWeyl[2] = {0x9E3779B9u, 0xBB67AE85u};        // added to the key after each round

  static constexpr Block words(Block c, Key k) {
    for (int round = 0; round < kRounds; ++round) {
      const std::uint64_t p = std::uint64_t{kMultiplier[0]} * c[0], q = std::uint64_t{kMultiplier[1]} * c[2];
      c = {static_cast<std::uint32_t>(q >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(q),
           static_cast<std::uint32_t>(p >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(p)};
      k = {k[0] + kWeyl[0], k[1] + kWeyl[1]};
    }
    return c;
  }
  // Returns the counter of a block in a step.
  static constexpr Block counter(std::uint64_t block, std::int64_t step) {
    const auto s = static_cast<std::uint64_t>(step);
    return {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), static_cast<std::uint32_t>(s),
            static_cast<std::uint32_t>(s >> 32)};
  }
  // Returns the key of a stream. For one seed all streams have different keys, and for one stream all seeds have,
  // because the mixer (the finaliser of splitmix64, applied twice) is invertible.
  static constexpr Key key(std::int64_t seed, std::int64_t stream) {
    const auto mix = [](std::uint64_t z) {
      z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
      z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
      return z ^ (z >> 31);
    };
    const std::uint64_t from_seed = mix(static_cast<std::uint64_t>(seed) + 0x9E3779B97F4A7C15u);
    const std::uint64_t k = mix(from_seed + static_cast<std::uint64_t>(stream));
    return {static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32)};
  }
};

// Hashes a name to a stream (FNV-1a). The result is negative, so it differs from the streams 0, 1, 2, ...
constexpr std::int64_t random_stream(std::string_view name) {
  std::uint64_t h = 0xCBF29CE484222325u;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return static_cast<std::int64_t>(h | std::uint64_t{1} << 63);
}

}  // namespace lc
