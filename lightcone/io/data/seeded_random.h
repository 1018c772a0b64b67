// Random numbers that follow from a key alone, the same on every platform and in every order of asking.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace lc {

// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014), begun where the numbers
// of the key lead, one after another.
class SeededRandom {
 public:
  explicit SeededRandom(std::initializer_list<std::uint64_t> key) {
    for (std::uint64_t k : key) state_ = mix(state_ + kGolden) ^ k;
    state_ = mix(state_);
  }
  std::uint64_t operator()() { return mix(state_ += kGolden); }
  // A whole number from 0 to n - 1, n at least 1, each as likely as any other.
  std::uint64_t below(std::uint64_t n) {
    const std::uint64_t uneven = (0 - n) % n;  // 2^64 mod n: so many of the smallest draws are drawn again
    std::uint64_t v;
    do v = (*this)();
    while (v < uneven);
    return v % n;
  }
  double uniform() { return static_cast<double>((*this)() >> 11) * 0x1p-53; }  // from [0, 1), 53 bits

 private:
  static constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15u;
  static constexpr std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  std::uint64_t state_ = 0;
};

// The numbers 0 to n - 1 in a random order, each as likely as any other (Fisher and Yates; Knuth, "The Art of Computer
// Programming" 2, algorithm 3.4.2P). Not torch.randperm's.
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
