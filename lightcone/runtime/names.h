// Lists of names for error messages about an unknown name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lc {

// Returns "it has a, b, c and 4 more": at most ten of the names, the nearest to `wanted` in spelling first. Returns ""
// if there are no names.
std::string names_near(std::string_view wanted, std::vector<std::string_view> have);

// Returns the name nearest to `wanted` in spelling, the first of several; "" if there are none.
std::string_view nearest_name(std::string_view wanted, const std::vector<std::string_view>& have);

// Returns "a, b and 4 more": at most five names, shortened, with unprintable characters replaced because they may come
// from a file.
std::string listed(const std::vector<std::string>& names);

// Describes the parameters `missing` that have no tensor among `given`: lists them, or names the common prefix of the
// given ones (such as "module." if a wrapper was saved).
std::string missing_among(const std::vector<std::string>& missing, const std::vector<std::string>& given);

}  // namespace lc
