// A map from texts to numbers, with a hash that files cannot attack.
#pragma once

#include <cstddef>
#include <string_view>
#include <unordered_map>

#include "lightcone/io/text/pieces/keyed_hash.h"

namespace lc {

// The hash of StringMap. Keys are views, and their texts must outlive the map. No file can choose texts that make it
// slow.
struct StringHash {
  std::size_t operator()(std::string_view s) const { return siphash(s, HashKey::of_process()); }
};
using StringMap = std::unordered_map<std::string_view, int, StringHash>;
// Bytes per key of a StringMap or a similar index.
constexpr std::size_t kIndexBytes = 72;

}  // namespace lc
