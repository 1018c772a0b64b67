// How much memory a program has from operator new, and the most it had: counted, so that a reader's promise about it
// can be held to.
#pragma once

#include <cstddef>

namespace counted {
std::size_t live();
std::size_t most();  // since the last reset
void reset_most();   // to what is live now
}  // namespace counted
