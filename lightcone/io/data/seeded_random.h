// Random numbers as a function of a key, the same on every platform and in every order of use.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace lc {

// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014), with a state computed
// from all numbers of the key.
class SeededRandom {
 public:
  explicit SeededRandom(std::initializer_list<std::uint64_t> key) {
    for (std::uint64_t k : key) state_ = mix(state_ + kGolden) ^ k;
    state_ = mix(state_);
  }
  // Returns 64 random bits.
  std::uint64_t operator()() { return mix(state_ += kGolden); }
  // Returns an integer from 0 to n - 1, uniformly distributed. n is at least 1.
  std::uint64_t below(std::uint64_t n) {
    const std::uint64_t uneven = (0 - n) % n;  // 2^64 mod n: draws below it are rejected
    std::uint64_t v;
    do v = (*this)();
    while (v < uneven);
    return v % n;
  }
  double uniform() { return static_cast<double>((*this)() >> 11) * 0x1p-53; }  // in [0, 1), with 53 bits

 private:
  static constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15u;
  static constexpr std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  std::uint64_t state_ = 0;
};

// Returns the numbers 0 to n - 1 in a uniformly random order (Fisher and Yates; Knuth, "The Art of Computer
// Programming" 2, algorithm 3.4.2P). It is not the order of torch.randperm.
inline std::vector<std::int64_t> random_permutation(std::int64_t n, SeededRandom random) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  for (std::size_t i = order.size(); i > 1; --i) {
    const std::size_t k = random.below(i);
    const std::int64_t last = order[i - 1];
    order[i - 1] = order[k];
    order[k] = last;
  }
  return order;
}

}  // namespace lc
