// Compiled kernels on disk: in a folder only we can write to, each sealed with its checksum.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "lightcone/backends/cpu/jit.h"

namespace lc::host {

std::string env(const char* name);  // "" when it is not set

std::string content_hash(std::initializer_list<std::string_view> parts);
// What machine code depends on besides the text: the compiler's file and the processor.
std::string identity(const std::string& compiler);

// "" when there is no folder to be had.
std::string cache_folder(const JitOptions& options);
// "" when it is not there or torn.
std::string kept_object(const std::string& folder, const std::string& name);
void keep_object(const std::string& folder, const std::string& name, const std::string& object);

}  // namespace lc::host
