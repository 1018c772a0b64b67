// ReferenceRule: evaluates a composite in the reference if its definition is inexact or too slow.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "lightcone/core/composite.h"
#include "lightcone/reference/interpreter.h"

namespace lc {

struct Evaluation {
  const Node& node;
  std::span<const Value* const> in;        // whole values, with the shapes passed to infer()
  const std::vector<std::int64_t>& shape;  // shape of the result; for several see `node.results`
  const Bindings& sizes;
  Rounding rounding;
  // If not 0, the seed of samples. A result with sampled operands, or one that rounds, must then have samples
  // (samples.h); without them it counts as exact.
  std::uint64_t noise;
  double products;  // as in interpret()
};

struct ReferenceRule {
  std::function<std::vector<Value>(const Evaluation&)> evaluate;
};

}  // namespace lc
