// Random tensors as nodes of a graph, with the names of torch and torch.distributions.
//
//   Random rng(g, 42);
//   const Tensor noisy = x + rng.normal(x.shape()) * 0.1;
//   const Tensor y = rng.dropout(noisy, 0.1);
//
// A number is a function of the seed, the stream (one per draw), the step (one per run) and the index of its element.
// So every run draws new numbers, two draws of one run never coincide, and seed and step are the whole state to save.
// The underlying 32-bit words are identical on every device and for any number of threads (random/random_bits.h defines
// them). So are integers and multiples of 2^-24: uniform(shape), bernoulli(), randint(), permutation(), the mask of
// dropout(). The others are functions of such numbers in f32, with the device's usual accuracy (docs/accuracy.md).
#pragma once

#include <cstdint>
#include <set>
#include <string_view>

#include "lightcone/core/tensor.h"

namespace lc {

// Raw words, i32 of `shape`: all 2^32 patterns, as signed numbers. `step` is an i64 scalar. The result depends only on
// the arguments, and equal calls are one node. Philox 4x32-10: element e in row-major order is word e % 4 of the block
// with the counter ((e / 4) mod 2^32, e / 4 / 2^32, step mod 2^32, step / 2^32) and a key derived from seed and stream.
Tensor random_bits(Operand step, Shape shape, std::int64_t seed, std::int64_t stream = 0);

// A source of random tensors for a graph: torch.Generator.
//
// It adds an i64 scalar state with this name, which counts runs: 0 in a new context, one more after each run.
// Context::get_i64(name) saves it, and Program::load() or Context::set() restores it; the same numbers follow.
//
// Each draw has its own stream: 0, 1, 2, ... in the order of calls, or one given by a name, which does not change when
// other draws are added. Reusing a name throws Error, because both draws would be equal. Two Random objects with one
// seed draw equal numbers. Shapes may be symbolic; floats are f32.
class Random {
 public:
  using At = SourceLocation;
  explicit Random(Graph& g, std::int64_t seed, std::string_view state = "random.step", const At& at = At::current());
  Random(const Random&) = delete;
  Random& operator=(const Random&) = delete;

  std::int64_t seed() const { return seed_; }
  const Tensor& step() const { return step_; }

  // Draws raw words, i32.
  Tensor bits(Shape shape, std::string_view stream = {}, const At& at = At::current());

  // torch.Tensor.uniform_: uniform in [low, high), from 2^24 values; low if both are the same f32. Throws Error if high
  // < low, or if a bound or their difference is not finite in f32.
  Tensor uniform(Shape shape, double low = 0, double high = 1, std::string_view stream = {},
                 const At& at = At::current());
  // torch.normal, by G. E. P. Box and M. E. Muller (Ann. Math. Stat. 29, 1958) from two words per element. Values stay
  // within 6.66 std of the mean. Throws Error if std is negative.
  Tensor normal(Shape shape, double mean = 0, double std = 1, std::string_view stream = {},
                const At& at = At::current());
  // torch.nn.init.trunc_normal_: a normal distribution truncated to [low, high] (which may be infinite), by inverting
  // its distribution function (M. J. Wichura, algorithm AS 241, PPND7). Throws Error unless low < high and std > 0, and
  // if [low, high] begins more than 4 std from the mean, where too little of the distribution is left.
  Tensor truncated_normal(Shape shape, double mean = 0, double std = 1, double low = -2, double high = 2,
                          std::string_view stream = {}, const At& at = At::current());
  // True with probability p, rounded up to a multiple of 2^-24: never for 0, always for 1. Throws Error if p is outside
  // [0, 1].
  Tensor bernoulli(Shape shape, double p, std::string_view stream = {}, const At& at = At::current());
  // torch.bernoulli: 0 and 1 in the type of `p`, a floating tensor of probabilities; NaN gives 0. It has no gradient.
  Tensor bernoulli(Operand p, std::string_view stream = {});
  // torch.randint: i64 in [low, high). For up to 2^31 numbers, the upper half of one word times the count: no number is
  // more likely than it should be by more than n / 2^32 of its probability. Above, 63 bits modulo the count, n / 2^63.
  // Throws Error if high <= low, and for 2^63 or more numbers.
  Tensor randint(std::int64_t low, std::int64_t high, Shape shape, std::string_view stream = {},
                 const At& at = At::current());
  // torch.distributions.Categorical(logits=logits).sample(): [..., classes] -> i64 [...], the index of the largest
  // logit + Gumbel noise (E. J. Gumbel, 1954; C. J. Maddison et al., "A* sampling", NIPS 2014). Logits need not be
  // normalised. A logit of -infinity is never chosen over a number; NaN is. Throws Error for scalars and integers.
  Tensor categorical(Operand logits, std::string_view stream = {});
  // torch.randperm: i64 [n], sorted by 64 random bits each; ties keep their order.
  Tensor permutation(Dim n, std::string_view stream = {}, const At& at = At::current());
  // torch.nn.functional.dropout in training: multiplies x by a mask of 0 (with probability p) and 1 / (1 - p).
  // Derivatives use the same mask. p = 0 returns x, p = 1 returns x * 0. Throws Error for p outside [0, 1] and for
  // integers.
  Tensor dropout(Operand x, double p = 0.5, std::string_view stream = {});

 private:
  Tensor draw(Shape shape, std::string_view stream);
  Tensor of_two_words(const Shape& shape, std::string_view stream, Tensor* second);

  std::int64_t seed_;
  Tensor step_;
  std::int64_t next_ = 0;
  std::set<std::int64_t> named_;
};

}  // namespace lc
