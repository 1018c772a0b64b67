// Maps a kernel's loops to a grid of threads: the schedule of kernel IR for accelerators.
//
// The first `rows` output loops are distributed over the grid; each of their iterations is a row. One thread computes a
// row, or `threads` threads share it: they run its reductions and its other output loops in parallel and combine their
// partial results in a fixed order. This order does not depend on the number of thread blocks or processors, so results
// have the same bits on any grid.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lightcone/codegen/kernel_ir.h"
#include "lightcone/codegen/simt/dialect.h"

namespace lc::codegen::simt {

struct GridLimits {
  int group = 1024;                // most threads per block
  int warp = 1;                    // threads that can exchange registers; 1: none
  std::int64_t shared = 32 << 10;  // bytes of shared memory per block
};

struct Grid {
  int rows = 0;          // output loops that are distributed over the grid
  int threads = 1;       // threads per row
  int rows_a_group = 1;  // rows per thread block
  bool across = false;   // neighbouring threads have neighbouring rows instead of sharing one
  int vector = 1;        // contiguous elements that a thread reads and writes at once along the innermost loop
  bool wide = false;     // indices need 64 bits
  int group_threads() const { return threads * rows_a_group; }
};

// Chooses the grid. Caches rows in shared memory if threads share rows and it avoids reading them again.
Grid schedule(Kernel& k, const GridLimits& limits);
// Returns the number of thread blocks of a launch. `k` is the kernel as schedule() left it.
Dim groups(const Kernel& k, const Grid& grid);

// Returns the kernel's text. Its parameters are the operands, the result and the numbers k.sizes.
std::string render(const Kernel& k, const Grid& grid, std::string_view name, Language language, int warp);

// An elementwise kernel of two loops as straight-line code for one element, inside of another kernel that has just
// computed the element of one operand.
struct Inlined {
  std::string row, column;                       // expressions of the two loop indices
  int made = -1;                                 // the operand that is not in memory
  std::string value;                             // expression of its element
  std::function<std::string(std::size_t)> size;  // expression of each of Kernel::sizes
  std::function<std::string(int)> operand;       // pointer to each other operand
};
struct InlinedLines {
  std::string text, result;  // definitions, and the expression of the value to store
};
InlinedLines render_inlined(const Kernel& k, const Inlined& at, bool wide, Language language);

}  // namespace lc::codegen::simt
