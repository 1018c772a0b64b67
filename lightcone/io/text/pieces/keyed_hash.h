// SipHash-2-4 (Aumasson and Bernstein 2012) with a random key per process, so that no file can be made with words that
// fall into one bucket of a hash table.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>

namespace lc {

// The key of a hash.
struct HashKey {
  std::uint64_t first, second;
  static const HashKey& of_process() {
    static const HashKey key = [] {
      std::random_device random;
      const auto word = [&] { return static_cast<std::uint64_t>(random()) << 32 | random(); };
      return HashKey{word(), word()};
    }();
    return key;
  }
};

inline std::uint64_t siphash(std::string_view s, const HashKey& key) {
  std::uint64_t a = key.first ^ 0x736f6d6570736575, b = key.second ^ 0x646f72616e646f6d,
                c = key.first ^ 0x6c7967656e657261, d = key.second ^ 0x7465646279746573;
  const auto rounds = [&](int n) {
    for (; n > 0; --n) {
      a += b, b = std::rotl(b, 13) ^ a, a = std::rotl(a, 32);
      c += d, d = std::rotl(d, 16) ^ c;
      a += d, d = std::rotl(d, 21) ^ a;
      c += b, b = std::rotl(b, 17) ^ c, c = std::rotl(c, 32);
    }
  };
  const auto mix = [&](std::uint64_t word) { d ^= word, rounds(2), a ^= word; };
  std::size_t at = 0;
  for (; at + 8 <= s.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, s.data() + at, 8);
    mix(word);
  }
  std::uint64_t last = static_cast<std::uint64_t>(s.size()) << 56;
  for (int shift = 0; at < s.size(); ++at, shift += 8)
    last |= static_cast<std::uint64_t>(static_cast<unsigned char>(s[at])) << shift;
  mix(last);
  c ^= 0xff;
  rounds(4);
  return a ^ b ^ c ^ d;
}

}  // namespace lc
