// Texts looked up by a hash whose key no file can know.
#pragma once

#include <cstddef>
#include <string_view>
#include <unordered_map>

#include "lightcone/io/text/pieces/keyed_hash.h"

namespace lc {

// Lookup by words, the first of equal keys; what the keys refer to must outlive it. No file can choose words that make
// it slow.
struct StringHash {
  std::size_t operator()(std::string_view s) const { return siphash(s, HashKey::of_process()); }
};
using StringMap = std::unordered_map<std::string_view, int, StringHash>;
// What an index, like this one, takes for each of its keys.
constexpr std::size_t kIndexBytes = 72;

}  // namespace lc
