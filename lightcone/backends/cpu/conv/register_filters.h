// Filters for tile registers (nhwc_registers.cpp), u16 [strips of 32 filters][steps][2][16][16][2]: packed once, when a
// parameter is loaded, or in each run if they change from run to run, as those of a training step do.
#pragma once

#include <vector>

#include "lightcone/backends/cpu/conv/conv.h"

namespace lc::backends::cpu {

class RegisterFilters {
 public:
  // `f.registers` is set.
  RegisterFilters(const PackedFilters& f, const ConvTilesTable& t);
  // Size of the packed filters in bytes.
  std::int64_t bytes() const { return strips_ * steps_ * kStep; }
  // Packs filters as they are stored.
  void pack(const void* stored, std::byte* to, Parallel& parallel) const;

 private:
  static constexpr std::int64_t kStep = 2048;  // bytes of a step
  static constexpr std::int64_t kPart = 16;    // steps of a task
  void pack_step(const std::byte* stored, std::int64_t strip, std::int64_t step, std::byte* to) const;

  PackedFilters f_;
  const ConvTilesTable& t_;
  std::int64_t strips_, steps_;
  std::vector<std::int64_t> taps_;  // offset of each window position, in the order of steps
};

}  // namespace lc::backends::cpu
