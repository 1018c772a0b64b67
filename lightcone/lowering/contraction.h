// Contractions: products of two tensors summed over an axis. Which of the axes are rows, columns, batch or summed is
// read off the strides of the two factors, so one analysis finds matrix products, batched ones, vector products and
// attention scores, whatever the order of their axes. What computes them, and in which arithmetic, is a device's
// choice.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "lightcone/lowering/factors.h"
#include "lightcone/lowering/weight_type.h"
#include "lightcone/passes/compiler.h"

namespace lc::lowering {

// C[axes] = sum over k of A[axes, k] * B[axes, k].
struct Contraction {
  struct Axis {
    Dim extent;
    Dim a, b, c;  // strides in elements; c is 0 for the summed axis
  };
  std::vector<Axis> axes;  // of the result, outermost first; the last one is the columns, which B has and A has not
  Axis k;
  Dim a_offset, b_offset;
  WeightType type = WeightType::F32;  // of B as it is stored: a cast or dequantisation is left to the kernel
  NodeId a_node = 0, b_node = 0;
  bool to_f32 = false;  // exact sums of bytes, wanted in f32
};
// "[64, 784] x [784, 128]": both factors as matrices, batches before them. `others`: the columns of more products of
// the same rows, "[64, 784] x [784, 128 + 128]".
std::string shapes_of(const Contraction& c, const std::vector<Dim>& others = {});
std::optional<Contraction> match_contraction(const Graph& g, const Factors& f);

// Copies factors whose strides cannot be told, so that match_contraction() finds the product. `taken`: what the device
// computes in another way, as convolutions.
Graph prepare_contractions(const Graph& g, PassLog& log,
                           const std::function<bool(const Graph&, const Factors&)>& taken);

}  // namespace lc::lowering
