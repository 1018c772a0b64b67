#include "lightcone/backends/cpu/conv/register_filters.h"

#include <algorithm>

#include "lightcone/backends/cpu/conv/nhwc_bf16.h"
#include "lightcone/backends/cpu/products/rounding.h"
#include "lightcone/device/parallel.h"

namespace lc::backends::cpu {

using i64 = std::int64_t;

// Steps are blocks of 32 channels, and of each block all window positions; for few channels they are rows of a window.
RegisterFilters::RegisterFilters(const PackedFilters& f, const ConvTilesTable& t)
    : f_(f), t_(t), strips_(ceil_div(f.rows, 32)), steps_(f.depth / 16) {
  taps_.push_back(0);
  for (std::size_t i = 0; i + (f.narrow ? 2 : 1) < f.sums.size(); ++i) {
    std::vector<i64> all;
    for (const i64 at : taps_)
      for (i64 n = 0; n < f.sums[i][0]; ++n) all.push_back(at + n * f.sums[i][1]);
    taps_ = std::move(all);
  }
}

void RegisterFilters::pack_step(const std::byte* stored, i64 strip, i64 step, std::byte* to) const {
  const auto [channels, channel_step] = f_.sums.back();
  const i64 taps = static_cast<i64>(taps_.size()), rows = std::min<i64>(32, f_.rows - strip * 32);
  i64 at[32];
  for (i64 i = 0; i < 32; ++i) {  // numbers of the step; of a narrow window four channels of eight pixels
    const i64 channel = f_.narrow ? i % NarrowWindow::kChannels : step / taps * 32 + i;
    const i64 pixel = f_.narrow ? i / NarrowWindow::kChannels : 0;
    const bool there = channel < channels && (!f_.narrow || pixel < f_.sums[1][0]);
    at[i] = there ? channel * channel_step + (f_.narrow ? pixel * f_.sums[1][1] : 0) : kNoChannel;
  }
  const i64 first = f_.offset + strip * 32 * f_.row + taps_[static_cast<std::size_t>(step % taps)];
  const auto pack = f_.stored == WeightType::BF16  ? t_.filters_bf16
                    : f_.stored == WeightType::F16 ? t_.filters_f16
                                                   : t_.filters_f32;
  pack(stored + first * unit_bytes(f_.stored), at, f_.row, rows, to);
}

void RegisterFilters::pack(const void* stored, std::byte* to, Parallel& parallel) const {
  struct Job {
    const RegisterFilters& f;
    const std::byte* stored;
    std::byte* to;
    i64 parts;
  } job{*this, static_cast<const std::byte*>(stored), to, ceil_div(steps_, kPart)};
  const auto task = [](void* arg, int number, int) {
    const Job& j = *static_cast<const Job*>(arg);
    const i64 strip = number / j.parts, first = number % j.parts * kPart;
    for (i64 step = first; step < std::min(j.f.steps_, first + kPart); ++step)
      j.f.pack_step(j.stored, strip, step, j.to + (strip * j.f.steps_ + step) * kStep);
  };
  parallel.run(static_cast<int>(strips_ * job.parts), task, &job);
}

}  // namespace lc::backends::cpu
