// Random graphs over everything the core offers: primitives, composites, views, dtypes, symbolic sizes, state, NaN,
// infinities and empty tensors. One generator tests every pass and device.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lightcone/core/graph.h"
#include "lightcone/reference/interpreter.h"

namespace lc {

struct RandomGraphOptions {
  int nodes = 12;               // approximate number of operations
  std::int64_t elements = 600;  // maximum per tensor
  bool structured = true;       // gather, scatter, sort, quantised weights
  bool symbols = true;          // a symbolic extent "n"
  bool floats_only = false;     // only f32 and f64
};
// Generates a graph. The same seed gives the same graph.
Graph random_graph(std::uint64_t seed, const RandomGraphOptions& o = {});

// Draws values for every input of a graph. If `wild`, they include NaN, infinities, zeros of both signs, huge and tiny
// numbers.
std::map<std::string, Value> random_inputs(const Graph& g, const Bindings& env, std::uint64_t seed, bool wild = true);
// Like random_inputs(), but scaled so that values stay near one in a network of any depth: inputs of products with a
// computed value are divided by the root of the number of terms (parameters in preference to other inputs), arguments
// of roots and logarithms are positive, indices are in range, and block formats have scales typical of weights.
std::map<std::string, Value> fitting_inputs(const Graph& g, const Bindings& env, std::uint64_t seed, bool wild);
// Draws a number for every symbol of a graph.
Bindings random_bindings(const Graph& g, std::uint64_t seed);

}  // namespace lc
