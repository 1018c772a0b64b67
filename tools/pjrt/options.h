// CompileOptionsProto, of which only the number of devices is used.
#pragma once

#include <string_view>

namespace lc::backends::pjrt::api {

// Throws Failure for options that cannot be read, and for programs of several replicas or partitions.
void check_options(std::string_view proto);

}  // namespace lc::backends::pjrt::api
