// Samples: error bounds found by perturbing every rounded result.
//
// The reference computes every value in f64, and kSamples times more as an implementation in the node's own type might:
// after each operation that rounds, a sample is moved by a random part of a few units in the last place, and later
// operations use the moved number. This is Monte Carlo arithmetic (D. S. Parker, "Monte Carlo Arithmetic", UCLA
// CSD-970002, 1997), the random rounding of J. Vignes' CESTAC ("A stochastic arithmetic for reliable scientific
// computation", Mathematics and Computers in Simulation 35, 1993) around an f64 centre. The spread of the samples is
// the error bound. It costs a fixed number of evaluations of the graph. Correlated errors cancel as they really do (x -
// max(x), a sum and its terms), and independent ones grow as the root of their number; interval arithmetic loses both
// and grows by the width of every layer.
//
// The bound is statistical, not proved. Samples move by 4 to 8 times the unit roundoff where arithmetic may err by one.
// A correct value is rejected if its error exceeds `slack` (4) times that of the farthest of eight samples: for normal
// errors an eighth to a fiftieth as large, eight draws all near zero occur once in 10^8 to 10^13 values.
//
// If a function is discontinuous (a comparison, a remainder, a cast to integers) within kReach times the samples'
// spread, half of them take each branch. A result that does not depend on the branch (relu written with a comparison)
// stays decided; otherwise the spread is the gap between the branches, and the result is undecided.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "lightcone/core/graph.h"

namespace lc {

inline constexpr int kSamples = 8;
inline constexpr double kReach = 4;

// Deviation of each sample of an element from its value. NaN: unknown. Infinity: the sample is infinite.
using Deviations = std::array<double, kSamples>;
inline constexpr Deviations kNoDeviation = {};
inline constexpr Deviations kUnknown = {kNaN, kNaN, kNaN, kNaN, kNaN, kNaN, kNaN, kNaN};

// Random bits for element k of a node or an edge, deterministic for a seed.
inline std::uint64_t noise_bits(std::uint64_t seed, std::uint64_t k) {
  std::uint64_t z = seed + (k + 1) * 0x9E3779B97F4A7C15u;  // splitmix64
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

struct Sampled {  // one element of an operand
  double x = 0;
  std::int64_t i = 0;         // the value of an integer
  const double* s = nullptr;  // deviations of its samples; null: exact
};

inline bool exact(const Deviations& s) { return s == kNoDeviation; }
double spread(const double* s);                 // the largest magnitude; infinite if one is unknown; 0 for null
double deviation(double sample, double value);  // sample - value; NaN if undefined
double deviation(std::int64_t sample, std::int64_t value);
double largest(DType t);

// Deviations of y = f(x) caused by those of the operands; `i` is y if that is an integer.
Deviations carried(const Node& n, DType operands, std::span<const Sampled> x, double y, std::int64_t i,
                   std::uint64_t bits);
Deviations converted(DType from, DType to, const Sampled& x, double y, std::int64_t i, std::uint64_t bits);

// Adds the rounding of y itself: an implementation may differ by about `unit` times the magnitude.
void round_samples(DType t, double unit, double y, double magnitude, std::uint64_t bits, Deviations& s);
bool rounds(Op op);  // false: the result is one of the operands
double unit_of(Op op, DType t);
// A sum's magnitude is the sum of its terms' magnitudes plus the root of the sum of squared partial sums. It models
// sequential summation (N. J. Higham and T. Mary, "A new approach to probabilistic rounding error analysis", SIAM J.
// Sci. Comput. 41, 2019) and is used for any order an implementation takes.
double unit_of_sum(DType t);
// Every implementation adds more than kLongSum terms in blocks (docs/accuracy.md). Partial sums are then those of one
// block of kSumBlock terms, and those of at most kBlockSums blocks.
inline constexpr std::size_t kLongSum = 1 << 14, kSumBlock = 512, kBlockSums = 32;
inline double part_of_block_sums(std::size_t length) {
  const double part = static_cast<double>(kBlockSums * kSumBlock) / static_cast<double>(length);
  return part < 1 ? part : 1;
}
// The magnitude that a term adds against an infinite sum, else 0. If these alone overflow, the sum is NaN in some order
// and infinite in another.
double opposing(double sum, double term);
bool overflows(DType t, double magnitude);

// Moves the samples of an inexact operand: a value recomputed for another reader may be rounded differently or not at
// all, e.g. if a multiplication is fused with the following addition.
void reread(DType t, double x, std::uint64_t bits, Deviations& s);
void perturb(double size, std::uint64_t bits, Deviations& s);  // by up to `size`

}  // namespace lc
