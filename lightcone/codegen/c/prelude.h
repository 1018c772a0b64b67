// The functions that generated C calls.
#pragma once

#include <string_view>

namespace lc::codegen {

std::string_view c_prelude();  // put before every unit
// The part of it about integers and bool, which C for GPUs shares. Wants LC, which stands before a function, and u8 to
// u64.
std::string_view whole_number_functions();
// That about floats of 8 bits, the same. Wants lc_bits and lc_float, too.
std::string_view f8_functions();

}  // namespace lc::codegen
