// Is an object file whole? One that was cut is not refused by whoever loads it, but ends the process.
#pragma once

#include <link.h>

#include <cstring>
#include <string_view>
#include <utility>

namespace lc::backends::cpu {

// ELF of this machine's word size and of this type (ET_DYN, ET_REL), with all its parts inside `bytes`.
bool whole_elf(std::string_view bytes, int type);

}  // namespace lc::backends::cpu
