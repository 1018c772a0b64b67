// Runs the threads of a grid, block after block, as fibers on one system thread. A thread runs until it waits at a
// barrier or for its warp, or returns. A thread that never waits costs no switch. The caller must hold a lock, because
// there is one scheduler.
#pragma once
#include <string>

#include "shim/kernel_interface.h"

namespace fibers {

// The order in which blocks, warps and lanes begin. A correct kernel gives the same bits in every order.
constexpr long kForward = 0, kReverse = 1;  // any other number is the seed of a shuffle

struct Grid {
  LcDim3 blocks, threads;
  unsigned dynamic_shared = 0;  // bytes
  long order = kForward;
  bool overlaps = false;  // it may begin before the previous grid has ended, so its threads must wait for that
};

enum class Fault { kNone, kAddress, kMisaligned, kFailed };

struct Outcome {
  Fault fault = Fault::kNone;
  std::string words;  // names the kernel, the thread and its error
};

Outcome run_grid(const LcModule& module, const LcKernel& kernel, void* const* arguments, const Grid& grid);

// Returns the total number of switches between fibers.
unsigned long switches();

}  // namespace fibers
