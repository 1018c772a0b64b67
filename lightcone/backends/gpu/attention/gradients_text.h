// The kernels of attention's gradients as text, one for all languages. Probabilities are never in memory: each kernel
// recomputes those of its tile from queries and keys.
//
//   finite_text: checks each tile of keys and values for non-finite elements. Only a causal mask needs it.
//   queries_text: a thread block takes a block of queries and walks over the keys twice. The first walk computes each
//   query's softmax statistics (maximum and sum) and the mean of its slopes, which stay in memory for the next kernel;
//   the second computes dQ.
//   keys_text: a thread block takes a block of keys of one key head and walks over the queries of all heads that share
//   it, for dK and dV.
//
// No two thread blocks add to one number, so bits depend neither on the grid nor on the order of blocks. A walk skips
// what a causal mask hides if it is finite: a probability of zero times a non-finite number is NaN. A non-finite number
// in a query or its cotangent shows in the mean of the query's slopes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/backends/gpu/attention/tile.h"

namespace lc::backends::gpu {

// q [heads, queries, depth], k [key_heads, keys, depth], v [key_heads, keys, width], g [heads, queries, width], where
// heads are all leading axes together.
struct AttentionGradients {
  struct MaskAxis {
    Dim extent, stride;
  };
  Dim heads, key_heads, queries, keys;
  std::int64_t group;  // query heads that share a key head
  int depth, width;
  float scale;
  bool causal;
  std::vector<MaskAxis> mask;  // strides of [..., h, s, t]; empty: no mask

  Dim rows() const { return heads * queries; }
  std::vector<Dim> symbolic() const;  // the symbolic sizes, which are arguments of the kernels
};

// A thread block as teams x lanes: the kernel's own rows belong to teams, the rows that it walks over to lanes.
struct GradientsTile {
  int rows, others;  // rows of a block, and of a tile that it walks over
  int teams, lanes;
  bool cores;        // tensor cores with factors rounded to bf16: four lanes, two rows a thread
  int chunk = 0;     // elements of shared memory for the factors of products
  int resident = 1;  // blocks that fit a multiprocessor: one computes while the other waits for memory

  int threads() const { return teams * lanes; }
  int my_rows() const { return rows / teams; }
  int my_others() const { return others / lanes; }
  int row_step() const { return cores ? 8 : 1; }  // from one row of a thread to its next
  int step(int head) const;                       // elements of a row that are in shared memory at once
  int pitch(int head) const;                      // between these rows, so that lanes read different banks
  int columns(int head) const;                    // columns of a result that a thread owns
  int side(int head) const;                       // adjacent ones of them
  std::int64_t shared() const;                    // bytes
  int span(int head) const;                       // rows that are added up from shared memory at once
  int weights_pitch() const { return others + 4; }
  int weights() const;  // elements of shared memory for probabilities or slopes
};
// Returns nullopt if the device has not enough threads or memory.
std::optional<GradientsTile> gradients_tile(const AttentionGradients& a, const AttentionTarget& target);

// Returns the bytes of scratch memory for three numbers of each query, in three arrays, followed by one of each tile of
// keys, which is 0 if the tile is finite.
Dim gradients_scratch(const AttentionGradients& a, const GradientsTile& tile);

// Buffers: k, v, scratch.
std::string finite_text(const AttentionGradients& a, const GradientsTile& tile, codegen::simt::Language l,
                        std::string_view name);
// Buffers: q, k, v, g, the mask if there is one, dq, scratch.
std::string queries_text(const AttentionGradients& a, const GradientsTile& tile, codegen::simt::Language l,
                         std::string_view name);
// Buffers: q, k, v, g, the mask if there is one, scratch, dk, dv.
std::string keys_text(const AttentionGradients& a, const GradientsTile& tile, codegen::simt::Language l,
                      std::string_view name);

}  // namespace lc::backends::gpu
