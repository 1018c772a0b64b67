// Attention as a kernel computes it: what it reads, by strides, and the steps between its two products. It is made of
// builtin::attention(), or found by structure in graphs that spell it out (imported ones):
//   SumReduce(softmax(scores) * V) with scores = steps(SumReduce(Q * K)).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lightcone/core/graph.h"
#include "lightcone/formats/cache_type.h"
#include "lightcone/passes/compiler.h"

namespace lc::lowering {

inline constexpr int kAttentionSteps = 4;  // most steps between the two products
inline constexpr int kAttentionAxes = 8;   // most axes of the result

// One operation on a score between the first product and the softmax.
struct AttentionStep {
  enum Kind : std::uint8_t {
    Scale,  // score * value
    Shift,  // score + value
    Bias,   // score + a number read from memory
    Mask,   // select(condition read from memory, score, value); `keep` gives the polarity
  };
  Kind kind = Scale;
  float value = 0;
  bool keep = true;      // Mask: the condition under which a score is kept
  std::int64_t key = 0;  // stride between keys, in elements
};

// The part of an attention that does not depend on sizes: how a score is computed, and how keys and values are stored.
struct AttentionScores {
  CacheType k_type = CacheType::F32, v_type = CacheType::F32;
  float scale = 1;           // factor of Q * K, applied before the steps
  float exponent = 1;        // weights are softmax weights to base 2: 2^(exponent * score), normalised
  int steps = 0, skips = 0;  // from step `skips` on, all steps are masks with -inf, so a masked score ends as -inf
  std::array<AttentionStep, kAttentionSteps> step;
};

// Extents, offsets (`*_at`) and strides in elements: as expressions (T = Dim), or as numbers for one run. `depth` is
// the length of a query and a key, `width` the length of a value.
template <class T>
struct AttentionLayout {
  struct Axis {
    T extent = 0, q = 0, k = 0, v = 0, k_scale = 0, v_scale = 0, out = 0;
    std::array<T, kAttentionSteps> step = {};
  };
  T keys = 0, depth = 0, width = 0;
  T q_at = 0, q_depth = 0, k_at = 0, k_key = 0, k_depth = 0, v_at = 0, v_key = 0, v_width = 0;
  T k_scale_at = 0, k_scale_key = 0, v_scale_at = 0, v_scale_key = 0;
  std::array<T, kAttentionSteps> step_at = {}, step_key = {};
  std::array<Axis, kAttentionAxes> axis = {};

  template <class F>
  void each(const F& f) {
    for (T* t : {&keys, &depth, &width, &q_at, &q_depth, &k_at, &k_key, &k_depth, &v_at, &v_key, &v_width, &k_scale_at,
                 &k_scale_key, &v_scale_at, &v_scale_key})
      f(*t);
    for (T& t : step_at) f(t);
    for (T& t : step_key) f(t);
    for (Axis& a : axis) {
      for (T* t : {&a.extent, &a.q, &a.k, &a.v, &a.k_scale, &a.v_scale, &a.out}) f(*t);
      for (T& t : a.step) f(t);
    }
  }
};

struct Attention {
  AttentionLayout<Dim> layout;
  int batches = 0, axes = 0;  // the first `batches` axes index keys or values, the remaining ones are rows
  AttentionScores scores;
  // Q, K, V, the scales, then what the steps read. An operand whose view is not the identity has to be copied first.
  std::vector<Edge> operands;
  int k_scale = 0, v_scale = 0;                   // indices into `operands`; 0 means no scale
  std::array<int, kAttentionSteps> operand = {};  // index into `operands` for each step
};
// Returns the shape of the queries and the number of keys: "attention [2, 3, seq, 64] over past + seq".
std::string describe(const Attention& a);
// Matches attention whose result is node `id`. `uses` comes from Graph::uses(): attention whose scores have another
// reader is not matched.
std::optional<Attention> match_attention(const Graph& g, const std::vector<int>& uses, NodeId id);

// A device's kernel for one attention. A null `kernel` means that the device has none; the graph then computes the
// attention from its operations.
struct NamedKernel {
  std::shared_ptr<const Kernel> kernel;
  std::string name;
};
using AttentionKernels = std::function<NamedKernel(const Graph& g, NodeId result, Attention match)>;
using AttentionFusion = Graph (*)(const Graph& g, PassLog& log, const AttentionKernels& kernels);
// Replaces every attention composite for which `kernels` returns a kernel by a kernel node; the others stay.
Graph fuse_attention(const Graph& g, PassLog& log, const AttentionKernels& kernels);
// Replaces every attention that is spelled out, and for which `kernels` returns a kernel.
Graph fuse_matched_attention(const Graph& g, PassLog& log, const AttentionKernels& kernels);
bool is_attention(const Node& n);  // true for an attention composite

}  // namespace lc::lowering
