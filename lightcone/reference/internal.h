// Internal declarations shared by the files of the reference.
#pragma once

#include <cmath>
#include <span>

#include "lightcone/core/composite.h"
#include "lightcone/reference/interpreter.h"
#include "lightcone/reference/samples.h"

namespace lc {

using i64 = std::int64_t;
using Integers = std::vector<i64>;

inline i64 wrapped(DType t, i64 v) {
  i64 raw = 0;
  store_i64(&raw, t, 0, v);
  return load_i64(&raw, t, 0);
}
inline i64 whole(DType t, double v) {  // float to integer conversion
  i64 raw = 0;
  store_f64(&raw, t, 0, v);
  return load_i64(&raw, t, 0);
}
inline double rounded(DType t, double v, Rounding r) {
  if (t == DType::F64 || (r == Rounding::Wide && t == DType::F32)) return v;
  if (t == DType::F32) return static_cast<double>(static_cast<float>(v));
  std::uint64_t raw = 0;
  store_f64(&raw, t, 0, v);
  return load_f64(&raw, t, 0);
}

struct AxisView {  // an axis of a tensor as outer x length x inner
  i64 outer = 1, length, inner = 1;
  AxisView(const Integers& s, int axis) : length(s[static_cast<std::size_t>(axis)]) {
    for (int i = 0; i < axis; ++i) outer *= s[static_cast<std::size_t>(i)];
    for (std::size_t i = static_cast<std::size_t>(axis) + 1; i < s.size(); ++i) inner *= s[i];
  }
  std::size_t at(i64 o, i64 k, i64 i) const { return static_cast<std::size_t>((o * length + k) * inner + i); }
  template <class F>
  void each(const F& f) const {
    for (i64 o = 0; o < outer; ++o)
      for (i64 k = 0; k < length; ++k)
        for (i64 i = 0; i < inner; ++i) f(o, k, i);
  }
};

// Settings of an evaluation. `noise` is the seed of the samples; 0 evaluates without samples.
struct EvalConfig {
  Rounding rounding = Rounding::Wide;
  std::uint64_t noise = 0;
  double products = 0;  // see interpret()
  std::uint64_t bits(std::size_t k) const { return noise_bits(noise, k); }
};

inline Sampled sampled(const Value& v, std::size_t k) {
  return {v.at(k), is_float(v.dtype) ? 0 : v.i[k], v.shift.empty() ? nullptr : v.shift[k].data()};
}

using Operands = std::span<const Value* const>;
Value composite(const Node& n, Operands in, const Integers& shape, const Bindings& env, const EvalConfig& config);
// Interprets a graph. Inputs may carry samples; results keep theirs.
Results interpret_samples(const Graph& g, const std::map<std::string, Value>& inputs, const EvalConfig& config);

struct Factor {
  const Value* value;
  Access at;  // over the axes of the product
};
// Sums the product of two floating factors over one axis, reading their elements in place. The result is bit-identical
// to a product followed by a sum, without memory for the product.
Value sum_of_products(const Node& sum, Factor a, Factor b, const Integers& shape, const EvalConfig& config);

// Runs a loop step by step. A loop that only carries states ends once a step changes none of them.
std::vector<Value> looped(const LoopBody& body, Operands in, const EvalConfig& config);

}  // namespace lc
