// System calls that fail on purpose, in turn. The linker sends those that the library's own objects make through here
// (--wrap, CMakeLists.txt); until something is armed they only pass.
#pragma once

#include <initializer_list>

namespace failing {

enum class Fault {
  None,
  Interrupted,  // EINTR, by whatever may wait
  NoSpace,      // ENOSPC, by whatever makes or lengthens a file
  InputOutput,  // EIO, by all of them
  Resources,    // no descriptors, memory or processes left
  Short,        // half of what was to be read or written
  Killed        // SIGKILL before, in the middle of (what writes), or after a call
};
inline constexpr std::initializer_list<Fault> kErrors = {Fault::Interrupted, Fault::NoSpace, Fault::InputOutput,
                                                         Fault::Resources, Fault::Short};
const char* name(Fault f);

// The n-th call from now on that this fault can befall suffers it, and no other. n = 0: none of them.
void arm(Fault f, long n);
// How many such calls there were since then.
long disarm();

}  // namespace failing
