// Attention as it is found in a graph: by structure and the strides of its operands.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "lightcone/backends/cpu/attention.h"
#include "lightcone/core/graph.h"
#include "lightcone/runtime/compiler.h"

namespace lc::host {

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

struct AttentionPlan {
  AttentionLayout<Dim> layout;
  int batches = 0, axes = 0;     // the first axes choose keys or values, the others are rows
  AttentionProblem problem;      // what does not depend on sizes
  std::vector<Edge> operands;    // Q, K, V, scales and what the steps read; a view that is not whole is to be copied
  int k_scale = 0, v_scale = 0;  // operands; 0: none
  std::array<int, kAttentionSteps> operand = {};  // of a step
};
// `uses` as of Graph::uses(): scores that something else reads too are left alone.
std::optional<AttentionPlan> match_attention(const Graph& g, const std::vector<int>& uses, NodeId id);
std::shared_ptr<const Kernel> attention_kernel(AttentionPlan plan, std::shared_ptr<Parallel> parallel, Isa isa);

// Every attention becomes one kernel node.
Graph fuse_attention(const Graph& g, const std::shared_ptr<Parallel>& parallel, PassLog& log, Isa isa = detect_isa());

}  // namespace lc::host
