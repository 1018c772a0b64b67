// The device of a rank: the simulated driver whose context is current. A process may have several drivers, each a copy
// of the library with a device of its own.
#pragma once
#include "driver/library_work.h"

namespace lc::simulators::nccl {

struct Device {
  int (*call)() = nullptr;                                 // fake_cuda_library_call
  int (*work)(void*, const cuda::LibraryWork*) = nullptr;  // fake_cuda_library_work
  friend bool operator==(const Device&, const Device&) = default;
  explicit operator bool() const { return work != nullptr; }
};

// Returns a Device that is false if no driver, or more than one, has a current context in this thread.
Device current_device();

}  // namespace lc::simulators::nccl
