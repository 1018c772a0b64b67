// What goes wrong in OpenCL, as an Error.
#pragma once

#include <string>
#include <string_view>

#include "lightcone/backends/opencl/api.h"
#include "lightcone/core/error.h"

namespace lc::backends::opencl {

std::string code_name(api::Int code);  // "CL_OUT_OF_RESOURCES (-5)"

// "opencl: <who> cannot <doing>: <code>", and what to do about it.
[[noreturn]] void fail(api::Int code, std::string_view who, std::string_view doing);
inline void take(api::Int code, std::string_view who, std::string_view doing) {
  if (code != api::kSuccess) fail(code, who, doing);
}

}  // namespace lc::backends::opencl
