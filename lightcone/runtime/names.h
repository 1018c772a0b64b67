// What an Error says where a name is asked for that is not there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lc {

// "it has a, b, c and 4 more": at most ten of the names, nearest to the wanted one in spelling first. "" for no names.
std::string names_near(std::string_view wanted, std::vector<std::string_view> have);

// "a, b and 4 more": of names that may come from a file at most five, cut, and nothing in them that moves a cursor.
std::string listed(const std::vector<std::string>& names);

// Parameters for which there is no tensor among the given ones: which those are, or what stands before all of the names
// there ("module.", where a wrapper was saved).
std::string missing_among(const std::vector<std::string>& missing, const std::vector<std::string>& given);

}  // namespace lc
