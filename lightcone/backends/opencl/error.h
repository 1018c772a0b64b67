// Failures of OpenCL as Errors.
#pragma once

#include <string>
#include <string_view>

#include "lightcone/backends/opencl/api.h"
#include "lightcone/base/error.h"

namespace lc::backends::opencl {

std::string code_name(api::Int code);  // "CL_OUT_OF_RESOURCES (-5)"

// Throws Error "opencl: <who> cannot <doing>: <code>", with advice.
[[noreturn]] void fail(api::Int code, std::string_view who, std::string_view doing);
// Throws the same if the code is not kSuccess.
inline void take(api::Int code, std::string_view who, std::string_view doing) {
  if (code != api::kSuccess) fail(code, who, doing);
}

}  // namespace lc::backends::opencl
