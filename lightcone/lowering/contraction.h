// Contractions: products of two tensors summed over an axis. The strides of the two factors tell which axes are rows,
// columns, batch or summed, so one analysis finds matrix products, batched products, matrix-vector products and
// attention scores, in any order of axes. The device chooses the kernel and its arithmetic.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "lightcone/formats/weight_type.h"
#include "lightcone/lowering/factors.h"
#include "lightcone/passes/compiler.h"

namespace lc::lowering {

// C[axes] = sum over k of A[axes, k] * B[axes, k].
struct Contraction {
  struct Axis {
    Dim extent;
    Dim a, b, c;  // strides in elements; c is 0 for the summed axis
  };
  std::vector<Axis> axes;  // axes of the result, outermost first; the last one holds the columns, which only B has
  Axis k;
  Dim a_offset, b_offset;
  WeightType type = WeightType::F32;  // storage type of B; the kernel does the cast or dequantisation
  NodeId a_node = 0, b_node = 0;
  bool to_f32 = false;  // I8 only: the exact integer sum is converted to f32
};
// Returns both factors as matrices with batch axes first: "[64, 784] x [784, 128]". `others` lists the columns of
// further products that share the rows: "[64, 784] x [784, 128 + 128]".
std::string shapes_of(const Contraction& c, const std::vector<Dim>& others = {});
// Returns whether all rows of A have one distance in memory. The others are several products, each of few rows.
bool rows_follow(const Contraction& c);
// Matches a sum of products in which both factors are read by strides. Returns nullopt if there are none, or if both
// factors have the innermost axis of the result.
std::optional<Contraction> match_contraction(const Graph& g, const Factors& f);

// Copies factors that are not read by strides, so that match_contraction() finds the product. `taken` returns true for
// products that the device computes by other means, such as convolutions.
Graph prepare_contractions(const Graph& g, PassLog& log,
                           const std::function<bool(const Graph&, const Factors&)>& taken);

}  // namespace lc::lowering
