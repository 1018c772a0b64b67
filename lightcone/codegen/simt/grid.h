// How a kernel's loops lie on a grid of threads: the schedule of kernel IR for accelerators.
//
// The first `rows` output loops are spread over the grid: each of their iterations is a row. A row is one thread's, or
// `threads` of them share it: they go through its reductions and through its other output loops side by side, and fold
// what each has summed in a fixed order. Neither the number of groups nor of processors has a part in it, so that
// results have the same bits on any grid.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lightcone/codegen/kernel_ir.h"
#include "lightcone/codegen/simt/dialect.h"

namespace lc::codegen::simt {

struct GridLimits {
  int group = 1024;                // threads of a group, at most
  int warp = 1;                    // threads that exchange registers; 1: none can
  std::int64_t shared = 32 << 10;  // bytes that a group may share
};

struct Grid {
  int rows = 0;          // output loops that are spread over the grid
  int threads = 1;       // of a row
  int rows_a_group = 1;  // the threads of a group are both multiplied
  bool across = false;   // neighbouring threads have neighbouring rows, and not the same one
  int vector = 1;        // elements side by side that a thread reads and writes at once along the innermost loop
  bool wide = false;     // indices need 64 bits
  int group_threads() const { return threads * rows_a_group; }
};

// Chooses the grid, and keeps rows in shared memory where threads share them and that saves reading them again.
Grid schedule(Kernel& k, const GridLimits& limits);
// The groups of a launch. `k` as schedule() left it.
Dim groups(const Kernel& k, const Grid& grid);

// The kernel as text. Its parameters: the operands, the result, and k.sizes as numbers.
std::string render(const Kernel& k, const Grid& grid, std::string_view name, Language language, int warp);

// An elementwise kernel of two loops, without a loop: for one element, in the midst of another kernel that has just
// made what one of the operands would be.
struct Inlined {
  std::string row, column;                       // the indices of the loops
  int made = -1;                                 // the operand that is not in memory,
  std::string value;                             // and its element
  std::function<std::string(std::size_t)> size;  // of Kernel::sizes
  std::function<std::string(int)> operand;       // the pointer to one
};
struct InlinedLines {
  std::string text, result;  // definitions, and the expression of what is to be stored
};
InlinedLines render_inlined(const Kernel& k, const Inlined& at, bool wide, Language language);

}  // namespace lc::codegen::simt
