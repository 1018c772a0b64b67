// What a compiler of Metal would say of a text, as far as clang for C++ can: its syntax, and that pointers say in which
// address space they point (`device`, `threadgroup`, `constant`), which running it on a CPU does not show.
#pragma once

#include <string>

namespace lc::test {

bool can_check_msl();  // Is there a clang?
// What is wrong, as a compiler prints it; "" when nothing is.
std::string check_msl(const std::string& text);

}  // namespace lc::test
