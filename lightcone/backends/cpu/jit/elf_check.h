// Validates object files. A truncated file is not refused by the loader but crashes the process.
#pragma once

#include <link.h>

#include <cstring>
#include <string_view>
#include <utility>

namespace lc::backends::cpu {

// Returns whether `bytes` is a complete ELF file of this machine's word size and of type `type` (ET_DYN, ET_REL), with
// all headers, segments and sections inside `bytes`.
bool whole_elf(std::string_view bytes, int type);

}  // namespace lc::backends::cpu
