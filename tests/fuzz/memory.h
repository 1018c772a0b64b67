// Counts the memory that a program holds from operator new, and its peak, so that a reader's memory budget can be
// checked.
#pragma once

#include <cstddef>

namespace counted {
std::size_t live();
std::size_t most();  // peak since the last reset
void reset_most();   // sets the peak to live()
}  // namespace counted
