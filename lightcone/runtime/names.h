// What an Error says where a name is asked for that is not there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lc {

// "it has a, b, c and 4 more": at most ten of the names, nearest to the wanted one in spelling first. "" for no names.
std::string names_near(std::string_view wanted, std::vector<std::string_view> have);

}  // namespace lc
