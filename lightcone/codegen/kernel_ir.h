// The kernel IR: a loop nest with named accumulators that computes one tensor.
//
// A kernel is built by pulling an output index back through the views of everything fused into it (build.cpp). Each
// value is in the scope of the innermost loop it depends on, so work shared by a row is done once per row. Offsets are
// Dims over loop symbols: no division remains that splitting a loop can remove. Reductions have a fixed number of
// lanes, so every renderer, instruction set and thread count adds in the same order.
#pragma once

#include "lightcone/macros_off.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lightcone/codegen/machine.h"
#include "lightcone/core/graph.h"

namespace lc::codegen {

inline constexpr int kLanes = 16;

enum class Code : std::uint8_t {
  Constant,     // value
  Index,        // the integer `offset` over loop symbols
  Load,         // buffer[offset] if valid, else 0
  GatherLoad,   // buffer[offset + a * stride] if valid and 0 <= a < extent, else 0
  Apply,        // op(a, b, c)
  MulAdd,       // a * b + c of f32 or f64, rounded once if the processor can
  Convert,      // a in another dtype
  Accumulator,  // final value of reduction `buffer`, in this dtype
  CachedRow,    // element `offset` of cached row `buffer`
};

// One value. Registers hold f16 and bf16 as f32, already rounded to the narrow type.
struct Instr {
  Code code = Code::Constant;
  DType dtype = DType::F32;
  double value = 0;
  Dim offset = 0, valid = 1, stride = 0, extent = 0;
  int buffer = 0;
  Op op = Op::Input;
  int a = -1, b = -1, c = -1;
  friend bool operator==(const Instr& x, const Instr& y);  // compares floats by their bits
};

struct Loop;
struct Item {  // a value or a loop, in program order
  bool is_loop;
  int id;
  friend bool operator==(const Item&, const Item&) = default;
};
struct Block {
  std::vector<Item> items;
  friend bool operator==(const Block&, const Block&) = default;
};
struct Loop {
  int index = 0;       // number as in Dim::index
  std::string symbol;  // name of that index
  Dim extent;
  Block body;
  bool lanes = false;  // kLanes iterations run together in vector lanes
  int depth = 0;
  int reduction = -1;     // the accumulator that this loop feeds; -1: an output loop
  int parent = -1;        // the enclosing loop; -1: none
  std::int64_t step = 1;  // above 1: a loop over tiles, whose symbol is the first index of a tile
  int tile = -1;          // a loop inside of a tile: the loop over these tiles; -1: none
  // After this many steps, a power of two, the partial sums of the reduction are added to second accumulators and start
  // again at zero (blocks.cpp); 0: never. With lanes, one step covers all lanes.
  std::int64_t block = 0;
  friend bool operator==(const Loop&, const Loop&) = default;
};
// Returns a loop over [0, extent).
inline Loop loop_over(int index, const Dim& extent) {
  return {.index = index, .symbol = Dim::index_name(index), .extent = extent, .body = {}};
}
// Returns the loop's index as a Dim.
inline Dim symbol(const Loop& l) { return Dim::index(l.index, l.extent); }
// Returns how often the loop's body runs per run of the enclosing loop, counting a loop over tiles as one.
inline Dim times(const Loop& l) { return l.step > 1 ? Dim(1) : l.extent; }

// Halves are summed in f32, and the sum is rounded once.
inline DType accumulated(DType t) { return is_narrow(t) ? DType::F32 : t; }
struct Reduction {
  Op op;                       // SumReduce or MaxReduce
  DType dtype;                 // type of the accumulator
  int outer_loop, inner_loop;  // the accumulator is initialised before outer_loop and updated in inner_loop
  int value;                   // the value that is accumulated
  friend bool operator==(const Reduction&, const Reduction&) = default;
};

// Local memory of the kernel for values that several loops over one row need and one of them computes (rows.cpp).
struct Row {
  DType dtype;
  std::int64_t elements;
  int copies = 1;  // a power of two: rows of the result in flight at once (pipeline_rows.cpp)
  friend bool operator==(const Row&, const Row&) = default;
};
struct CachedValue {  // `value` is also written to element `at` of `row`
  int value, row;
  Dim at;
  friend bool operator==(const CachedValue&, const CachedValue&) = default;
};

// A tile of an operand that is strided along the innermost loop, stored transposed (tile.cpp). Loads address tile t as
// buffer number buffers.size() + t.
struct Tile {
  int buffer;                    // the operand
  DType dtype;                   // element type of the operand
  Dim offset;                    // offset of the operand at the innermost loop and the one around it
  Dim origin;                    // the same offset at the first elements of both tiles
  Dim stride;                    // stride of the operand along the innermost loop; along the other one it is 1
  int across;                    // the loop around the innermost one; the tile is filled before it begins
  std::int64_t pitch, elements;  // row pitch and size of the tile, in elements
  friend bool operator==(const Tile&, const Tile&) = default;
};

// A prefetch of buffer[offset] in each step of a loop.
struct Prefetch {
  int loop;  // loop that prefetches in each step
  int buffer;
  Dim offset;     // offset over the symbols of the loop and its enclosing loops
  int level = 1;  // cache level to fetch into
  friend bool operator==(const Prefetch&, const Prefetch&) = default;
};

// A kernel: it computes one tensor from operand buffers.
struct Kernel {
  std::string name;  // "k_<content hash>"
  std::vector<Instr> instrs;
  std::vector<Loop> loops;  // output loops come first, outermost first
  std::vector<Reduction> reductions;
  std::vector<Row> rows;
  std::vector<CachedValue> cached_values;
  std::vector<Tile> tiles;
  Block top;
  int output_loops = 0;
  int result = -1;       // the value that is stored
  Dim store_offset = 0;  // offset over the symbols of the output loops
  DType dtype = DType::F32;
  std::vector<DType> buffers;      // element types of the operand buffers
  std::vector<std::string> sizes;  // user symbols, in the order of `n`
  // Set if the result may be larger than the caches (stream.cpp). n[sizes.size()] then tells whether it has more than
  // `stream` bytes; if so, it is written with non-temporal stores, and the next operands are prefetched.
  bool streams = false;
  std::int64_t stream = 0;
  bool fence = true;  // after non-temporal stores; a loop inside of another kernel's task leaves that to the kernel
  std::vector<Prefetch> ahead;
  // The loop over rows that is software-pipelined (pipeline_rows.cpp): in one step, stage s processes row r - s, where
  // the stages are the loops in its body. -1: none.
  int pipelined = -1;
  double work = 0;  // rough operations per output element
};

// A stage of the pipelined loop: values computed once per row, and the loop after them.
struct Stage {
  std::vector<int> values;
  int loop;
};
std::vector<Stage> stages(const Kernel& k);
// Returns the values between stages that a stage's loop or another stage reads.
std::set<int> live_between_stages(const Kernel& k);
// Returns the number of rows, a power of two, for which they are kept.
int ring_size(const Kernel& k);
// Bytes that a kernel keeps on the stack for cached rows, and for transposed tiles, without evicting its operands from
// the L2 cache.
inline std::int64_t kept_bytes(const Machine& m) { return std::clamp<std::int64_t>(m.l2 / 16, 32 << 10, 64 << 10); }
inline std::int64_t tile_bytes(const Machine& m) { return kept_bytes(m) / 2 * 3; }

// Returns the divisor of a remainder by a constant power of two from 1 on. The quotient is exact then, or below 1, and
// what its whole part leaves is the remainder: loops need no fmod(), which has no vectors.
std::optional<double> exact_divisor(const Kernel& k, const Instr& i);

// Turns sums of a product into MulAdds. No other place does so: compilers may not contract, because they would only if
// the product had no other use; the same expression would then have other bits in another loop, and a value would
// differ from its own maximum.
void fuse_products(Kernel& k);

// Most numbers of f32 that are added in sequence; a longer sum is a sum of blocks.
inline constexpr std::int64_t kBlock = 64;
// Returns Loop::block for a loop of at most `most_steps` steps, each of which adds at most `added` numbers, and updates
// `added` to the longest sequence that may remain after the loop.
std::int64_t block_of(std::int64_t most_steps, std::int64_t& added);
// Sets the blocks of all loops that may be long.
void block_sums(Kernel& k);
// Returns true if a loop of this reduction has blocks.
bool blocked(const Kernel& k, int reduction);
// Caches values that several loops over one row compute identically: the first loop computes and stores them, using at
// most `most_bytes`.
void keep_rows(Kernel& k, std::int64_t most_bytes);
// Reads operands that are strided along the innermost loop by square tiles of `side` elements. With 0, the side follows
// from the caches, and tiling is used only if it pays.
void tile_loops(Kernel& k, std::int64_t side, const Machine& m);
// Writes a result that may have more than the machine's `stream` bytes with non-temporal stores.
void stream_result(Kernel& k, const Machine& m);

// Pipelines the loops over a row, so that the last one writes while the first one reads another row. Call it after
// stream_result().
void pipeline_rows(Kernel& k, const Machine& m);

}  // namespace lc::codegen
#include "lightcone/macros_on.h"
