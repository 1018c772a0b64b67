// Plan for interpreting a kernel by vectors: the loop of each value, the loops that run in chunks, and the memory of
// each chunk.
#pragma once

#include "lightcone/macros_off.h"

#include <array>
#include <vector>

#include "lightcone/codegen/interpret/indices.h"

namespace lc::codegen {

// Target number of elements per instruction: enough to amortise the dispatch, few enough that a kernel's values stay in
// the L1 cache.
inline constexpr std::int64_t kChunk = 256;

// A value that is read in a loop inside of its own: it is repeated for the lanes of that loop.
struct Import {
  int value, slot;
  bool once;  // computed outside of all loops, so repeated only once
};

struct Layout {
  explicit Layout(const Kernel& k);
  // Chooses the largest number of iterations per chunk of each loop if iterations [begin, end) of the first loop are
  // run.
  void choose_chunks(const Indices& sizes, std::int64_t begin, std::int64_t end);

  int parent(int loop) const { return loop < 0 ? -1 : place.loops[static_cast<std::size_t>(loop)].parent; }
  int slot(int value, int loop);   // slot of a value as it is read in `loop`
  int common(int a, int b) const;  // the innermost loop around both

  const Kernel& k;
  LoopPositions place;
  std::vector<int> home;                                       // loop of each value
  std::vector<std::array<int, 3>> operands;                    // slots of a, b and c for each value
  std::vector<std::vector<Import>> imports;                    // imports of each loop
  std::vector<std::vector<const CachedValue*>> cached_values;  // cached copies of each value
  std::vector<int> fed;                                        // slot of the value that each reduction accumulates
  std::vector<int> owner;  // loop whose lanes each have their own copy of a row, for each row
  int stored = -1;         // slot of the result where it is stored
  struct Slot {
    DType dtype;
    int loop;
  };
  std::vector<Slot> slots;
  std::vector<std::int64_t> most;    // most iterations per chunk of each loop
  std::vector<std::int64_t> extent;  // extent of each loop

  std::int64_t most_lanes(int loop) const;

 private:
  void walk(const Block& b, int loop, int depth);
  void keep_single();
  std::int64_t within(int loop) const;
  std::int64_t wanted(int loop, std::int64_t room) const;

  std::vector<bool> single_;  // loops that run one iteration at a time
};

}  // namespace lc::codegen
#include "lightcone/macros_on.h"
