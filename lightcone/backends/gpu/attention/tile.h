// How the work of attention is divided on an accelerator. A group of threads takes a tile of rows (queries of all heads
// that share their keys) and walks over tiles of keys; the threads of a group form a grid of `teams` x `lanes`, where a
// thread owns some rows of its team, and of these rows the scores of some keys and some columns of the result.
//
// What that comes to, predicted and not measured:
// - Many rows, heads of 128, 32 rows x 64 keys, 128 threads: for each key of a row 256 multiply-adds, and for each 16
//   of them two reads of 16 bytes from shared memory: bound by f32 arithmetic. K and V are read from memory once every
//   32 rows: 32 operations a byte of f32, 64 of bf16. Shared: 16 KiB of queries, 8.5 of keys or values, 9 of weights;
//   6 groups an SM of 228 KiB.
// - Many rows by tensor cores, heads of 128, 64 rows x 64 keys, 128 threads: of a tile of keys 1 M multiply-adds in 512
//   instructions, some 1000 cycles of a processor of Hopper's, for 32 KB of keys and values in bf16, 32 bytes a cycle;
//   reads of shared memory are 96 KB for them, 96 bytes a cycle. Shared: 17 KB of queries, 17 of keys or values.
// - Few rows (one token, a group of 4 heads), 4 rows x 128 keys: K and V are read once, 512 bytes a key of bf16, with
//   2048 multiply-adds and about 20 reads of shared memory by a warp: 25 bytes a cycle and SM, while the memory of an
//   H200 gives about 18. Shared: 2 KiB of queries, 17 of keys or values, 4 of weights; 9 groups an SM.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "lightcone/codegen/simt/dialect.h"
#include "lightcone/lowering/attention.h"

namespace lc::backends::gpu {

// What of a device a tile has to know.
struct AttentionTarget {
  codegen::simt::Language language;
  int threads;  // of a group, at most
  int warp;     // threads that exchange registers
  std::int64_t shared;
  bool cores = false;  // may products be of bf16, by tensor cores?
};

inline constexpr int kMostHead = 256;  // numbers of a key or of a value
inline bool is_head(const Dim& d) { return d.constant() && *d.constant() >= 1 && *d.constant() <= kMostHead; }
inline constexpr int kStep = 32;                         // of those, at least so many are in shared memory at once
inline constexpr std::int64_t kStaticShared = 48 << 10;  // what CUDA lets a text declare
inline constexpr int kCorePad = 8;  // between rows of halves in shared memory, so that eight of them are in all banks
inline int round_up(int n, int multiple) { return (n + multiple - 1) / multiple * multiple; }
inline constexpr std::int64_t kFewRows = 64;  // up to so many the keys are split over groups
inline constexpr std::int64_t kSplitKeys = 256, kMostSplits = 64;

struct AttentionTile {
  int rows, keys;
  int teams, lanes;
  int step;            // numbers of a key that are in shared memory at once
  int columns;         // of the result that a thread owns
  int span;            // values that are in shared memory at once
  bool cores = false;  // fragments of tensor cores: a warp has 16 rows, a thread two of them
  int core_depth = 0;  // there: numbers of a key, padded

  int threads() const { return teams * lanes; }
  // Groups that are to fit a multiprocessor: one computes while the other waits. Small ones do so anyway.
  int resident() const { return threads() > 128 ? 2 : 1; }
  int my_rows() const { return rows / teams; }
  int my_keys() const { return keys / lanes; }
  int side() const { return cores ? 2 : columns < 4 ? columns : 4; }  // columns that lie side by side
  int key_side() const { return cores ? 2 : my_keys(); }
  int row_step() const { return cores ? 8 : 1; }  // from a row of a thread to its next
  int depth(int head) const { return (head + step - 1) / step * step; }
  int pitch() const { return keys + 4; }  // of keys in shared memory, where they stand side by side
  int weight_pitch() const { return rows % 8 == 0 ? rows + 4 : rows; }
  int chunk() const;          // numbers of keys or values in shared memory
  int parts(int warp) const;  // partial results of a row that go through shared memory when lanes fold theirs
};

// Null where the device has not enough threads or memory for the heads.
std::optional<AttentionTile> tile_of_many_rows(const lowering::Attention& a, const AttentionTarget& target);
std::optional<AttentionTile> tile_of_few_rows(const lowering::Attention& a, const AttentionTarget& target);

// How many numbers of a key or of a value are read at once.
int key_vector(const lowering::Attention& a, const AttentionTile& t);
int value_vector(const lowering::Attention& a, const AttentionTile& t);
// How many keys of a step's mask are read at once, whose bits are then in shared memory. 1: the step has no such mask,
// or each thread reads what its scores need.
int mask_vector(const lowering::Attention& a, std::size_t step);

Dim rows_of(const lowering::Attention& a);
Dim batches_of(const lowering::Attention& a);

// The keys of a split and how many splits that makes: from the number of keys alone, so that a result has the same bits
// on any device.
struct KeySplits {
  std::int64_t keys, count;
};
KeySplits split_keys(std::int64_t keys, const AttentionTile& tile);

}  // namespace lc::backends::gpu
