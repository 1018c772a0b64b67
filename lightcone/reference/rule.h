// How the reference evaluates a composite, where its definition in the twelve is not exact or too slow.
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
  std::span<const Value* const> in;        // whole, with the shapes that infer() was asked about
  const std::vector<std::int64_t>& shape;  // of the result; of several, see `node.results`
  const Bindings& sizes;
  Rounding rounding;
  // Not 0: the seed of samples. Then a result whose operands have samples, or which rounds, has some of its own
  // (samples.h); without them it is taken for exact.
  std::uint64_t noise;
  double products;  // as interpret() has it
};

struct ReferenceRule {
  std::function<std::vector<Value>(const Evaluation&)> evaluate;
};

}  // namespace lc
