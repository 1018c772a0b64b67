// How the work of attention is divided on an accelerator. A thread block takes a tile of rows (queries of all heads
// that share their keys) and walks over tiles of keys. Its threads form a grid of `teams` x `lanes`: a thread owns some
// rows of its team, and for these rows the scores of some keys and some columns of the result.
//
// Cost, predicted and not measured:
// - Many rows, heads of 128, 32 rows x 64 keys, 128 threads: each key of a row takes 256 multiply-adds, and each 16 of
//   them two reads of 16 bytes from shared memory, so f32 arithmetic is the bound. K and V are read from memory once
//   every 32 rows: 32 operations a byte of f32, 64 of bf16. Shared: 16 KiB of queries, 8.5 of keys or values, 9 of
//   weights; 6 blocks an SM of 228 KiB.
// - Many rows by tensor cores, heads of 128, 64 rows x 64 keys, 128 threads: a tile of keys takes 1 M multiply-adds in
//   512 instructions, some 1000 cycles of a multiprocessor of Hopper's, for 32 KB of keys and values in bf16, 32 bytes
//   a cycle; they read 96 KB of shared memory, 96 bytes a cycle. Shared: 17 KB of queries, 17 of keys or values.
// - Few rows (one token, a group of 4 heads), 4 rows x 128 keys: K and V are read once, 512 bytes a key of bf16, with
//   2048 multiply-adds and about 20 reads of shared memory by a warp: 25 bytes a cycle and SM, while the memory of an
//   H200 gives about 18. Shared: 2 KiB of queries, 17 of keys or values, 4 of weights; 9 blocks an SM.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "lightcone/codegen/simt/dialect.h"
#include "lightcone/lowering/attention.h"

namespace lc::backends::gpu {

// The properties of a device on which a tile depends.
struct AttentionTarget {
  codegen::simt::Language language;
  int threads;  // threads of a block, at most
  int warp;     // threads that exchange registers
  std::int64_t shared;
  bool cores = false;  // products may be of bf16, by tensor cores
};

inline constexpr int kMostHead = 256;  // elements of a key or of a value
inline bool is_head(const Dim& d) { return d.constant() && *d.constant() >= 1 && *d.constant() <= kMostHead; }
inline constexpr int kStep = 32;                         // elements of a head in shared memory at once, at most
inline constexpr std::int64_t kStaticShared = 48 << 10;  // the limit of CUDA for arrays that a text declares
inline constexpr int kCorePad = 8;  // between rows of u16 in shared memory, so that eight rows use all banks
inline int round_up(int n, int multiple) { return (n + multiple - 1) / multiple * multiple; }
inline constexpr std::int64_t kFewRows = 64;  // up to this many rows the keys are split over thread blocks
inline constexpr std::int64_t kSplitKeys = 256, kMostSplits = 64;

struct AttentionTile {
  int rows, keys;
  int teams, lanes;
  int step;            // elements of a key that are in shared memory at once
  int columns;         // columns of the result that a thread owns
  int span;            // values that are in shared memory at once
  bool cores = false;  // fragments of tensor cores: a warp has 16 rows, a thread two of them
  int core_depth = 0;  // if cores: elements of a key, padded

  int threads() const { return teams * lanes; }
  // Thread blocks that must fit a multiprocessor, so that one computes while the other waits. Small blocks fit anyway.
  int resident() const { return threads() > 128 ? 2 : 1; }
  int my_rows() const { return rows / teams; }
  int my_keys() const { return keys / lanes; }
  int side() const { return cores ? 2 : columns < 4 ? columns : 4; }  // adjacent columns of a thread
  int key_side() const { return cores ? 2 : my_keys(); }
  int row_step() const { return cores ? 8 : 1; }  // from one row of a thread to its next
  int depth(int head) const { return (head + step - 1) / step * step; }
  int pitch() const { return keys + 4; }  // pitch of keys in shared memory, where they are adjacent
  int weight_pitch() const { return rows % 8 == 0 ? rows + 4 : rows; }
  int chunk() const;          // elements of shared memory for keys or values
  int parts(int warp) const;  // partial results of a row that go through shared memory in a reduction over lanes
};

// Returns nullopt if the device has not enough threads or memory for the heads.
std::optional<AttentionTile> tile_of_many_rows(const lowering::Attention& a, const AttentionTarget& target);
// Returns nullopt in the same case. The tile takes 16 rows or fewer.
std::optional<AttentionTile> tile_of_few_rows(const lowering::Attention& a, const AttentionTarget& target);

// Returns how many elements of a key are read at once.
int key_vector(const lowering::Attention& a, const AttentionTile& t);
// Returns how many elements of a value are read at once.
int value_vector(const lowering::Attention& a, const AttentionTile& t);
// Returns how many keys of a step's mask are read at once, with their bits then in shared memory. 1: the step has no
// such mask, or each thread reads what its scores need.
int mask_vector(const lowering::Attention& a, std::size_t step);

Dim rows_of(const lowering::Attention& a);
Dim batches_of(const lowering::Attention& a);

// The keys of a split, and how many splits that makes. Both depend on the number of keys alone, so that a result has
// the same bits on any device.
struct KeySplits {
  std::int64_t keys, count;
};
KeySplits split_keys(std::int64_t keys, const AttentionTile& tile);

}  // namespace lc::backends::gpu
