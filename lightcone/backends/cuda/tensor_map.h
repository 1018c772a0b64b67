// The driver's tensor maps: what a kernel's copies of boxes take as an argument.
#pragma once

#include <cstdint>
#include <span>

#include "lightcone/backends/cuda/library.h"
#include "lightcone/backends/gpu/device/device.h"

namespace lc::nvidia {

inline constexpr std::size_t kMapWords = 16;  // of 64 bits
inline constexpr std::size_t kMostMaps = 2;   // of a start

// Writes the map of what lies at `address`. An Error for what the driver takes for none.
void encode(const Driver& driver, const gpu::TileMap& m, api::Address address, std::span<std::uint64_t, kMapWords> to);

}  // namespace lc::nvidia
