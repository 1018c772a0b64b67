// System calls that fail on purpose. The linker redirects the calls of the library's own objects to these wrappers
// (--wrap, CMakeLists.txt). Until a fault is armed they only pass calls on.
#pragma once

#include <initializer_list>

namespace failing {

enum class Fault {
  None,
  Interrupted,  // EINTR, from calls that may wait
  NoSpace,      // ENOSPC, from calls that create or extend a file
  InputOutput,  // EIO, from all calls
  Resources,    // no descriptors, memory or processes left
  Short,        // reads or writes half of the bytes
  Killed        // SIGKILL before a call, after it, or in the middle of a write
};
inline constexpr std::initializer_list<Fault> kErrors = {Fault::Interrupted, Fault::NoSpace, Fault::InputOutput,
                                                         Fault::Resources, Fault::Short};
const char* name(Fault f);

// Arms the fault for the n-th call, from now on, that can suffer it. With n = 0 no call fails; calls are counted.
void arm(Fault f, long n);
// Disarms the fault and returns how many such calls there were since arm().
long disarm();

}  // namespace failing
