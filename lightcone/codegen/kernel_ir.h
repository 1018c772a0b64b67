// The kernel IR: a loop nest with named accumulators that computes one tensor.
//
// A kernel is built by pulling an output index back through the views of everything fused into it
// (build.cpp). Each value stands in the scope of the innermost loop it depends on, so what a row
// shares is computed once a row. Offsets are Dims over loop symbols: no division survives where
// splitting a loop can remove it. Reductions carry an explicit number of lanes, so that the same
// order of additions is used by every renderer, instruction set and thread count.
#pragma once

#include "lightcone/macros_off.h"

#include <algorithm>
#include <cstdint>
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
  Load,         // buffer[offset] where valid, else 0
  GatherLoad,   // buffer[offset + a * stride] where valid and 0 <= a < extent, else 0
  Apply,        // op(a, b, c)
  MulAdd,       // a * b + c of f32 or f64, rounded once where the processor can
  Convert,      // a in another dtype
  Accumulator,  // what reduction `buffer` arrived at, in this dtype
  CachedRow,    // element `offset` of row `buffer`
};

// One value. Registers hold f32 for f16 and bf16, already rounded to the narrow type.
struct Instr {
  Code code = Code::Constant;
  DType dtype = DType::F32;
  double value = 0;
  Dim offset = 0, valid = 1, stride = 0, extent = 0;
  int buffer = 0;
  Op op = Op::Input;
  int a = -1, b = -1, c = -1;
  friend bool operator==(const Instr& x, const Instr& y);  // of numbers that have the same bits
};

struct Loop;
struct Item {  // in order: a value, or a loop
  bool is_loop;
  int id;
  friend bool operator==(const Item&, const Item&) = default;
};
struct Block {
  std::vector<Item> items;
  friend bool operator==(const Block&, const Block&) = default;
};
struct Loop {
  int index = 0;       // of Dim::index,
  std::string symbol;  // and the name of that
  Dim extent;
  Block body;
  bool lanes = false;  // the values of kLanes iterations stand side by side
  int depth = 0;
  int reduction = -1;     // the accumulator this loop feeds, -1 for an output loop
  int parent = -1;        // the loop around it
  std::int64_t step = 1;  // above 1, its symbol says where a tile begins, and another loop goes through the tile:
  int tile = -1;          // this one does, through that of loop `tile`
  // After each so many of its steps, a power of two, the sums of its reduction are added to second ones and begin anew
  // (blocks.cpp); 0: never. With lanes a step is one of all of them.
  std::int64_t block = 0;
  friend bool operator==(const Loop&, const Loop&) = default;
};
inline Loop loop_over(int index, const Dim& extent) {
  return {.index = index, .symbol = Dim::index_name(index), .extent = extent, .body = {}};
}
inline Dim symbol(const Loop& l) { return Dim::index(l.index, l.extent); }
// How often its body runs for each time that what is around it does, tiles taken together.
inline Dim times(const Loop& l) { return l.step > 1 ? Dim(1) : l.extent; }

// Halves are summed in f32, and the sum is rounded once.
inline DType accumulated(DType t) { return is_narrow(t) ? DType::F32 : t; }
struct Reduction {
  Op op;                       // SumReduce or MaxReduce
  DType dtype;                 // of the accumulator
  int outer_loop, inner_loop;  // started before the outer, fed in the inner
  int value;                   // what is accumulated
  friend bool operator==(const Reduction&, const Reduction&) = default;
};

// Memory of the kernel's own for what several loops over one row need and one of them computes (rows.cpp).
struct Row {
  DType dtype;
  std::int64_t elements;
  int copies = 1;  // a power of two: rows of the result that are under way at once (pipeline_rows.cpp)
  friend bool operator==(const Row&, const Row&) = default;
};
struct CachedValue {  // `value` is also written to element `at` of `row`
  int value, row;
  Dim at;
  friend bool operator==(const CachedValue&, const CachedValue&) = default;
};

// A piece of an operand that lies across the innermost loop, turned round (tile.cpp). To loads, tile t is the buffer
// behind the operands' and the tiles before it.
struct Tile {
  int buffer;                    // the operand
  DType dtype;                   // of its elements
  Dim offset;                    // as the innermost loop and the one around it read the operand
  Dim origin;                    // the same where both stand at the first element of their tiles
  Dim stride;                    // of the operand along the innermost loop; along the other one it is 1
  int across;                    // the loop around the innermost one; the tile is filled before it begins
  std::int64_t pitch, elements;  // of the tile's own memory
  friend bool operator==(const Tile&, const Tile&) = default;
};

struct Prefetch {
  int loop;  // fetched at each of its steps
  int buffer;
  Dim offset;     // over the symbols of the loop and of those around it
  int level = 1;  // of the cache
  friend bool operator==(const Prefetch&, const Prefetch&) = default;
};

struct Kernel {
  std::string name;  // "k_<content hash>"
  std::vector<Instr> instrs;
  std::vector<Loop> loops;  // outputs first, outermost first
  std::vector<Reduction> reductions;
  std::vector<Row> rows;
  std::vector<CachedValue> cached_values;
  std::vector<Tile> tiles;
  Block top;
  int output_loops = 0;
  int result = -1;       // value stored
  Dim store_offset = 0;  // over the output loops' symbols
  DType dtype = DType::F32;
  std::vector<DType> buffers;      // element types of the operand buffers
  std::vector<std::string> sizes;  // user symbols, in the order of `n`
  // The result may be larger than the caches (stream.cpp): n[sizes.size()] says whether it has more than `stream`
  // bytes, and then it is written past them, and what is read next is fetched ahead.
  bool streams = false;
  std::int64_t stream = 0;
  std::vector<Prefetch> ahead;
  // Rows pass through their loops as through a pipeline (pipeline_rows.cpp): in a step of this loop the last of the
  // loops in its body is as many rows behind the first as there are loops between. -1: no loop is run so.
  int pipelined = -1;
  double work = 0;  // rough operations an output element
};

// The body of the pipelined loop: what is computed once a row, and the loop behind it.
struct Stage {
  std::vector<int> values;
  int loop;
};
std::vector<Stage> stages(const Kernel& k);
// Values between the loops that another loop reads, or what is behind it; kept for so many rows, a power of two.
std::set<int> live_between_stages(const Kernel& k);
int ring_size(const Kernel& k);
// What kernels keep on the stack without pushing their operands out of the second-level cache: rows that are kept, and
// tiles that are turned round.
inline std::int64_t kept_bytes(const Machine& m) { return std::clamp<std::int64_t>(m.l2 / 16, 32 << 10, 64 << 10); }
inline std::int64_t tile_bytes(const Machine& m) { return kept_bytes(m) / 2 * 3; }

// Sums of a product become MulAdds. That is the only place where it happens: compilers may not fuse them, because they
// would where a product has no other use, and the same expression would have other bits in another loop; then nothing
// equals its own maximum.
void fuse_products(Kernel& k);

// Numbers of f32 that are added one after the other, at most: a longer sum is one of blocks.
inline constexpr std::int64_t kBlock = 64;
// A loop's `block`, where a step brings `added` additions at most; then those that may be left behind the loop.
std::int64_t block_of(std::int64_t most_steps, std::int64_t& added);
// Gives loops that may be long their blocks.
void block_sums(Kernel& k);
bool blocked(const Kernel& k, int reduction);
// What several loops over one row compute alike is computed by the first and kept, in so many bytes at most.
void keep_rows(Kernel& k, std::int64_t most_bytes);
// Operands that lie across the innermost loop are read by tiles of `side` elements a side; 0: of what fits the caches,
// where that pays.
void tile_loops(Kernel& k, std::int64_t side, const Machine& m);
// Lets a result that may have more than the machine's `stream` bytes be written past the caches.
void stream_result(Kernel& k, const Machine& m);

// Lets the last loop over a row write while the first one reads another row. Behind stream_result().
void pipeline_rows(Kernel& k, const Machine& m);

}  // namespace lc::codegen
#include "lightcone/macros_on.h"
