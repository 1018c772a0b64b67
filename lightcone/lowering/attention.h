// Attention as it is found in a graph, by structure and the strides of its operands:
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
#include "lightcone/passes/compiler.h"

namespace lc::lowering {

// How keys and values are stored. I8 may come with a scale for each key.
enum class CacheType : std::uint8_t { F32, F16, BF16, I8 };
constexpr std::int64_t cache_bytes(CacheType t) { return t == CacheType::F32 ? 4 : t == CacheType::I8 ? 1 : 2; }

inline constexpr int kAttentionSteps = 4;  // at most, between the two products
inline constexpr int kAttentionAxes = 8;   // at most, of the result

// What happens to a score on its way into the softmax.
struct AttentionStep {
  enum Kind : std::uint8_t {
    Scale,  // times `value`
    Shift,  // plus `value`
    Bias,   // plus a number read from memory
    Mask,   // `value`, where what is read from memory says so
  };
  Kind kind = Scale;
  float value = 0;
  bool keep = true;      // Mask: scores stay where memory holds this
  std::int64_t key = 0;  // stride from a key to the next, in elements
};

// A score on its way into the softmax, and how keys and values are stored: what does not depend on sizes.
struct AttentionScores {
  CacheType k_type = CacheType::F32, v_type = CacheType::F32;
  float scale = 1;           // of a product, before the steps
  float exponent = 1;        // the softmax is of 2^(exponent * score)
  int steps = 0, skips = 0;  // from step `skips` on a masked score stays minus infinity
  std::array<AttentionStep, kAttentionSteps> step;
};

// Extents and strides, as expressions or, for one run, as numbers.
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
  int batches = 0, axes = 0;  // the first axes choose keys or values, the others are rows
  AttentionScores scores;
  std::vector<Edge> operands;    // Q, K, V, scales and what the steps read; a view that is not whole is to be copied
  int k_scale = 0, v_scale = 0;  // operands; 0: none
  std::array<int, kAttentionSteps> operand = {};  // of a step
};
// "attention [2, 3, seq, 64] over past + seq": queries, and how many keys they see.
std::string describe(const Attention& a);
// `uses` as of Graph::uses(): scores that something else reads too are left alone.
std::optional<Attention> match_attention(const Graph& g, const std::vector<int>& uses, NodeId id);

// A device's kernel for it; null where it has none, and then the graph computes what it says.
struct NamedKernel {
  std::shared_ptr<const Kernel> kernel;
  std::string name;
};
using AttentionKernels = std::function<NamedKernel(const Graph& g, NodeId result, Attention match)>;
// Every attention becomes one kernel node.
Graph fuse_attention(const Graph& g, PassLog& log, const AttentionKernels& kernels);

}  // namespace lc::lowering
