// Random tensors as nodes of a graph, with the names of torch and torch.distributions.
//
//   Random rng(g, 42);
//   const Tensor noisy = x + rng.normal(x.shape()) * 0.1;
//   const Tensor y = rng.dropout(noisy, 0.1);
//
// A number is a function of four things: the seed, the stream (one a draw), the step (one a run) and the place of its
// element. So every run draws new numbers, two draws of one run never are the same, and seed and step are all there is
// to save. The words of 32 bits below everything are the same on every device and for any number of threads
// (random/random_bits.h says which they are); so is what is whole or a whole number of 2^-24: uniform(shape),
// bernoulli(), randint(), permutation(), the mask of dropout(). The others are functions of such numbers in f32, which
// a device computes as exactly as it computes everything (docs/accuracy.md).
#pragma once

#include <cstdint>
#include <set>
#include <string_view>

#include "lightcone/core/tensor.h"

namespace lc {

// Raw words, i32 of `shape`: all 2^32 patterns, as signed numbers. `step` is i64 []. It is a function of its arguments
// alone, and equal calls are one node. Philox 4x32-10: element e in row-major order is word e % 4 of the block with the
// counter ((e / 4) mod 2^32, e / 4 / 2^32, step mod 2^32, step / 2^32) under a key made of seed and stream.
Tensor random_bits(Operand step, Shape shape, std::int64_t seed, std::int64_t stream = 0);

// Where random tensors of a graph come from: torch.Generator.
//
// It adds a state to the graph, i64 [] with this name, that holds the number of runs so far: 0 in a new context, one
// more after each run. Context::get_i64(name) saves it, Program::load() or Context::set() brings it back, and the same
// numbers follow.
//
// Each draw has a stream of its own: 0, 1, 2, ... in the order of the calls, or the one of a name, which does not
// change when other draws are added before it. A name that was used already is an Error: both would draw the same
// words. Two of these with one seed draw the same numbers, too. Shapes may be symbolic; floats are f32.
class Random {
 public:
  using At = SourceLocation;
  explicit Random(Graph& g, std::int64_t seed, std::string_view state = "random.step", const At& at = At::current());
  Random(const Random&) = delete;
  Random& operator=(const Random&) = delete;

  std::int64_t seed() const { return seed_; }
  const Tensor& step() const { return step_; }

  // Raw words, i32.
  Tensor bits(Shape shape, std::string_view stream = {}, const At& at = At::current());

  // torch.Tensor.uniform_: [low, high), of 2^24 places; low where both are the same f32. Error where high < low, or one
  // or their difference is not finite in f32.
  Tensor uniform(Shape shape, double low = 0, double high = 1, std::string_view stream = {},
                 const At& at = At::current());
  // torch.normal, by G. E. P. Box and M. E. Muller (Ann. Math. Stat. 29, 1958) from two words an element. Nothing is
  // farther than 6.66 std from the mean. Error where std is negative.
  Tensor normal(Shape shape, double mean = 0, double std = 1, std::string_view stream = {},
                const At& at = At::current());
  // torch.nn.init.trunc_normal_: a normal distribution of which only [low, high] is left (infinities: all of it), by
  // the inverse of the distribution (M. J. Wichura, algorithm AS 241, PPND7). Error where low < high does not hold, std
  // is not positive, or [low, high] begins more than 4 std from the mean: too little of the distribution is there.
  Tensor truncated_normal(Shape shape, double mean = 0, double std = 1, double low = -2, double high = 2,
                          std::string_view stream = {}, const At& at = At::current());
  // True with probability p, a multiple of 2^-24 from above: never for 0, always for 1. Error for p outside [0, 1].
  Tensor bernoulli(Shape shape, double p, std::string_view stream = {}, const At& at = At::current());
  // torch.bernoulli: 0 and 1 in the type of `p`, a floating tensor of probabilities; NaN gives 0. It has no derivative.
  Tensor bernoulli(Operand p, std::string_view stream = {});
  // torch.randint: i64 in [low, high). Up to 2^31 numbers: one word times their count, the upper half; none of n
  // numbers is more than n / 2^32 of itself likelier than it should be. Above: 63 bits modulo the count, n / 2^63.
  // Error where high <= low, or for 2^63 numbers and more.
  Tensor randint(std::int64_t low, std::int64_t high, Shape shape, std::string_view stream = {},
                 const At& at = At::current());
  // torch.distributions.Categorical(logits=logits).sample(): [..., classes] -> i64 [...], the place of the largest
  // logit + Gumbel noise (E. J. Gumbel, 1954; C. J. Maddison et al., "A* sampling", NIPS 2014). Logits need no
  // normalisation; -infinity is never chosen beside a number; NaN is. Error without an axis or for integers.
  Tensor categorical(Operand logits, std::string_view stream = {});
  // torch.randperm: i64 [n], the order of 64 random bits each; of equal ones the first is first.
  Tensor permutation(Dim n, std::string_view stream = {}, const At& at = At::current());
  // torch.nn.functional.dropout while training: x times a mask of 0 (with probability p) and 1 / (1 - p). Derivatives
  // read the same mask. p = 0 gives x, p = 1 gives x * 0. Error for p outside [0, 1] and for integers.
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
