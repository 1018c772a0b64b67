// VHLO's operations: the names of their properties, and their StableHLO names.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/stablehlo/module.h"

namespace lc::stablehlo {

// Returns the names of an operation's properties in file order; empty for an operation without properties and an
// unknown one.
std::vector<std::string_view> properties_of(std::string_view versioned);

// Converts "dot_general_v2" to "dot_general".
std::string_view without_version(std::string_view versioned);

// Converts attributes to the form of StableHLO's text: numbers in lists, dimension numbers in structs, and no
// attributes that have no effect. The caller pays for expanded lists of splats along known axes: see kLongestList.
void translate_attributes(Operation& op);

inline constexpr std::int64_t kLongestList = 4096;

}  // namespace lc::stablehlo
