// VHLO's operations: what their properties are called, and what StableHLO calls them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/stablehlo/module.h"

namespace lc::stablehlo {

// In the order in which a file has them; none for an operation that has no properties, or is not known.
std::vector<std::string_view> properties_of(std::string_view versioned);

// "dot_general_v2" to "dot_general".
std::string_view without_version(std::string_view versioned);

// The attributes as StableHLO's text has them: numbers in lists, dimension numbers in structs, without those that say
// that there is nothing. What the text makes of axes that are known, lists of splats, is paid for by the caller: see
// kLongestList.
void arrange_attributes(Operation& op);

inline constexpr std::int64_t kLongestList = 4096;

}  // namespace lc::stablehlo
