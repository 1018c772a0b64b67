// Samples: what rounding may do to a result, found by doing it.
//
// The judge computes every value in f64 and, beside it, kSamples times more as an implementation in the node's own
// type might: after each operation that rounds, a sample is moved by a random part of a few units in the last place,
// and its own numbers go through what follows. This is Monte Carlo arithmetic (D. S. Parker, "Monte Carlo Arithmetic",
// UCLA CSD-970002, 1997), the random rounding of J. Vignes' CESTAC ("A stochastic arithmetic for reliable scientific
// computation", Mathematics and Computers in Simulation 35, 1993) around an f64 centre. How far the samples stray is
// the error bound. It costs a fixed number of evaluations of the graph, errors that are the same in two places cancel
// there as they really do (x - max(x), a sum and its terms), and independent ones grow as the root of their number:
// intervals, which this replaces, lose both and grow by the width of every layer.
//
// It is a bound with a confidence, not a proof. Samples stray by 4 to 8 times the unit roundoff where arithmetic may
// by one. A right answer is called wrong when its error is more than `slack` (4) times that of the farthest of eight
// samples: for normal errors an eighth to a fiftieth as large, eight draws that all lie near zero, once in 10^8 to
// 10^13 values.
//
// Where a function jumps (a comparison, a remainder, a cast to whole numbers) within kReach times the samples'
// spread, half of them take one side and half the other. What does not depend on the side after all (relu written
// with a comparison) stays decided; what does strays as far as the sides lie apart, and is undecided.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "lightcone/core/graph.h"

namespace lc {

inline constexpr int kSamples = 8;
inline constexpr double kReach = 4;

// How far each sample of one element is from its value. NaN: nothing is known. An infinity: the sample is infinite.
using Deviations = std::array<double, kSamples>;
inline constexpr Deviations kNoDeviation = {};
inline constexpr Deviations kUnknown = {kNaN, kNaN, kNaN, kNaN, kNaN, kNaN, kNaN, kNaN};

// Random bits for element k of a node or an edge: the same for the same seed.
inline std::uint64_t noise_bits(std::uint64_t seed, std::uint64_t k) {
  std::uint64_t z = seed + (k + 1) * 0x9E3779B97F4A7C15u;  // splitmix64
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

struct Sampled {  // an operand at one element
  double x = 0;
  std::int64_t i = 0;         // of an integer
  const double* s = nullptr;  // its samples' shifts; null: exact
};

inline bool exact(const Deviations& s) { return s == kNoDeviation; }
double spread(const double* s);                 // the farthest, infinite where one is unknown; of null 0
double deviation(double sample, double value);  // a shift
double deviation(std::int64_t sample, std::int64_t value);
double largest(DType t);

// How far the samples of y = f(x) are because those of the operands are; `i` is y where that is an integer.
Deviations carried(const Node& n, DType operands, std::span<const Sampled> x, double y, std::int64_t i,
                   std::uint64_t bits);
Deviations converted(DType from, DType to, const Sampled& x, double y, std::int64_t i, std::uint64_t bits);

// What rounding adds: an implementation may differ from y by about `unit` times the magnitude.
void round_samples(DType t, double unit, double y, double magnitude, std::uint64_t bits, Deviations& s);
bool rounds(Op op);  // false: it gives one of its operands as it is
double unit_of(Op op, DType t);
// A sum's magnitude is that of its terms, and the root of the squares of the partial sums: what adding them one after
// the other does (N. J. Higham and T. Mary, "A new approach to probabilistic rounding error analysis", SIAM J. Sci.
// Comput. 41, 2019), whatever order an implementation takes.
double unit_of_sum(DType t);
// Every implementation adds more than kLongSum terms by blocks (docs/accuracy.md): partial sums are those of one block
// of kSumBlock terms, and those of at most kBlockSums blocks.
inline constexpr std::size_t kLongSum = 1 << 14, kSumBlock = 512, kBlockSums = 32;
inline double part_of_block_sums(std::size_t length) {
  return std::min(1.0, static_cast<double>(kBlockSums * kSumBlock) / static_cast<double>(length));
}
// An infinite sum of which this term is one: how much it takes it the other way. When all that overflows by itself,
// the sum is NaN in some order and infinite in another.
double opposing(double sum, double term);
bool overflows(DType t, double magnitude);

// A value that is computed again for another reader may be rounded otherwise there, or not at all: a multiplication
// is fused with the addition behind it. Moves the samples of an inexact operand.
void reread(DType t, double x, std::uint64_t bits, Deviations& s);
void perturb(double size, std::uint64_t bits, Deviations& s);  // by up to this

}  // namespace lc
