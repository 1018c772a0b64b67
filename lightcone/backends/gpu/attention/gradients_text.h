// The kernels of attention's derivative as text, one for all languages: probabilities are never in memory, each kernel
// computes those of its tile again from queries and keys.
//
//   finite_text: is all finite in each tile of keys and values? Only a causal mask asks.
//   queries_text: a group of threads takes a block of queries and walks over the keys twice: for what each query's
//   softmax needs (maximum and sum) and the mean of its slopes, which stay in memory for the next kernel, and for dQ.
//   keys_text: a group takes a block of keys of one key head and walks over the queries of all heads that share it, for
//   dK and dV.
//
// Nothing is added up by two groups, so bits depend neither on the grid nor on the order of groups. A walk leaves out
// what a causal mask hides where that is finite: a probability of zero times what is not is NaN. What is not finite in
// a query or its cotangent shows in the mean of the query's slopes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/backends/gpu/attention/tile.h"

namespace lc::backends::gpu {

// q [heads, queries, depth], k [key_heads, keys, depth], v [key_heads, keys, width], g [heads, queries, width]: heads
// with all axes before them.
struct AttentionGradients {
  struct MaskAxis {
    Dim extent, stride;
  };
  Dim heads, key_heads, queries, keys;
  std::int64_t group;  // heads that share a key
  int depth, width;
  float scale;
  bool causal;
  std::vector<MaskAxis> mask;  // of [..., h, s, t]; none: nothing is masked

  Dim rows() const { return heads * queries; }
  std::vector<Dim> symbolic() const;  // the kernels' arguments: what of it is no number
};

// A grid of teams x lanes: the kernel's own rows belong to teams, those it walks over to lanes.
struct GradientsTile {
  int rows, others;  // of a block, and of a tile that it walks over
  int teams, lanes;
  bool cores;        // fragments of tensor cores, what is multiplied rounded to bf16: four lanes, a thread has two rows
  int chunk = 0;     // numbers in shared memory for what is multiplied
  int resident = 1;  // groups that fit a multiprocessor: one computes while the other waits for memory

  int threads() const { return teams * lanes; }
  int my_rows() const { return rows / teams; }
  int my_others() const { return others / lanes; }
  int row_step() const { return cores ? 8 : 1; }  // from a row of a thread to its next
  int step(int head) const;                       // numbers of a row that are in shared memory at once
  int pitch(int head) const;                      // between such rows, so that lanes read different banks
  int columns(int head) const;                    // of a result that a thread owns
  int side(int head) const;                       // of them, those that lie side by side
  std::int64_t shared() const;                    // bytes
  int span(int head) const;                       // rows that are added up from shared memory at once
  int weights_pitch() const { return others + 4; }
  int weights() const;  // numbers in shared memory for probabilities or slopes
};
// Null where the device has not enough threads or memory.
std::optional<GradientsTile> gradients_tile(const AttentionGradients& a, const AttentionTarget& target);

// Three numbers of each query, in three arrays, and behind them one of each tile of keys: 0 where it is finite.
Dim gradients_scratch(const AttentionGradients& a, const GradientsTile& tile);

// Places: k, v, that memory.
std::string finite_text(const AttentionGradients& a, const GradientsTile& tile, codegen::simt::Language l,
                        std::string_view name);
// Places: q, k, v, g, the mask if there is one, dq, that memory.
std::string queries_text(const AttentionGradients& a, const GradientsTile& tile, codegen::simt::Language l,
                         std::string_view name);
// Places: q, k, v, g, the mask, that memory, dk, dv.
std::string keys_text(const AttentionGradients& a, const GradientsTile& tile, codegen::simt::Language l,
                      std::string_view name);

}  // namespace lc::backends::gpu
