// Random graphs over everything the core offers: the twelve, composites, views, dtypes, symbolic
// sizes, state, NaN, infinities and empty tensors. One generator tests every pass and device.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lightcone/core/graph.h"
#include "lightcone/reference/interpreter.h"

namespace lc {

struct RandomGraphOptions {
  int nodes = 12;               // operations, about
  std::int64_t elements = 600;  // of one tensor, at most
  bool structured = true;       // gather, scatter, sort, quantised weights
  bool symbols = true;          // a symbolic extent "n"
  bool floats_only = false;     // f32 and f64 alone
};
// The same seed gives the same graph.
Graph random_graph(std::uint64_t seed, const RandomGraphOptions& o = {});

// Values for every input and numbers for every symbol of a graph. `wild` mixes in NaN, infinities,
// zeros of both signs, huge and tiny numbers.
std::map<std::string, Value> random_inputs(const Graph& g, const Bindings& env, std::uint64_t seed, bool wild = true);
// The same, scaled to the graph, so that what flows through a network of any depth stays about one: what is summed in
// products with something computed is divided by the root of the number of terms (weights of a parameter before the
// values beside them), what a root or logarithm is taken of is positive, an index chooses a place that there is, block
// formats have scales of weights.
std::map<std::string, Value> fitting_inputs(const Graph& g, const Bindings& env, std::uint64_t seed, bool wild);
Bindings random_bindings(const Graph& g, std::uint64_t seed);

}  // namespace lc
