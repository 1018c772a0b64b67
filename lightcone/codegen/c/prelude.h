// The functions that generated C calls.
#pragma once

#include <string_view>

namespace lc::ir {

std::string_view c_prelude();  // put before every unit

}  // namespace lc::ir
