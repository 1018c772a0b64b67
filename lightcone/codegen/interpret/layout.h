// How a kernel is gone through by vectors: where each value stands, which loops are run in chunks, and where the
// numbers of a chunk lie.
#pragma once

#include "lightcone/macros_off.h"

#include <array>
#include <vector>

#include "lightcone/codegen/interpret/indices.h"

namespace lc::codegen {

// Numbers that an instruction computes at once, more or less: enough that finding out what it is takes little of the
// time, few enough that a kernel's values lie in the first-level cache.
inline constexpr std::int64_t kChunk = 256;

// A value as it is read in a loop within its own: repeated for the lanes there.
struct Import {
  int value, slot;
  bool once;  // computed outside of all loops, and so once for all
};

struct Layout {
  explicit Layout(const Kernel& k);
  // How many iterations make a chunk, at most, where iterations [begin, end) of the first loop are run.
  void choose_chunks(const Indices& sizes, std::int64_t begin, std::int64_t end);

  int parent(int loop) const { return loop < 0 ? -1 : place.loops[static_cast<std::size_t>(loop)].parent; }
  int slot(int value, int loop);   // of a value as it is read there
  int common(int a, int b) const;  // the innermost loop around both

  const Kernel& k;
  LoopPositions place;
  std::vector<int> home;                                       // the loop of each value
  std::vector<std::array<int, 3>> operands;                    // slots of a, b, c
  std::vector<std::vector<Import>> imports;                    // of each loop
  std::vector<std::vector<const CachedValue*>> cached_values;  // of each value
  std::vector<int> fed;                                        // slot of what each reduction is fed with
  std::vector<int> owner;                                      // the loop that has each row in each lane
  int stored = -1;                                             // slot of the result where it is stored
  struct Slot {
    DType dtype;
    int loop;
  };
  std::vector<Slot> slots;
  std::vector<std::int64_t> most;    // iterations of a chunk of each loop
  std::vector<std::int64_t> extent;  // of each loop

  std::int64_t most_lanes(int loop) const;

 private:
  void walk(const Block& b, int loop, int depth);
  void keep_single();
  std::int64_t within(int loop) const;
  std::int64_t wanted(int loop, std::int64_t room) const;

  std::vector<bool> single_;  // loops that are run step by step
};

}  // namespace lc::codegen
#include "lightcone/macros_on.h"
