// How attention's keys and values are stored.
#pragma once

#include <cstdint>

namespace lc {

// I8 keys and values may come with one scale per key.
enum class CacheType : std::uint8_t { F32, F16, BF16, I8 };
constexpr std::int64_t cache_bytes(CacheType t) { return t == CacheType::F32 ? 4 : t == CacheType::I8 ? 1 : 2; }

}  // namespace lc
