// The functions that generated C calls.
#pragma once

#include <string_view>

namespace lc::codegen {

std::string_view c_prelude();  // precedes every compilation unit
// Returns the part for integers and bool, which is shared with the C dialects of GPUs. It requires LC (placed before
// each function) and the types u8 to u64.
std::string_view whole_number_functions();
// Returns the part for 8-bit floats, also shared. It requires lc_bits and lc_float in addition.
std::string_view f8_functions();

}  // namespace lc::codegen
