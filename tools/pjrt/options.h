// CompileOptionsProto, of which one thing counts here: for how many devices a program is.
#pragma once

#include <string_view>

namespace lc::backends::pjrt::api {

// A Failure for options that cannot be read, and for programs of several replicas or partitions.
void check_options(std::string_view proto);

}  // namespace lc::backends::pjrt::api
