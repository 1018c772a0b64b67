// Sounds of any rate and number of channels as Whisper takes them.
#include <algorithm>
#include <numeric>

#include "lightcone/models/whisper/log_mel.h"
#include "lightcone/models/whisper/whisper.h"
#include "lightcone/ops/audio/audio.h"
#include "lightcone/runtime/default_compiler.h"

namespace lc {
namespace {

constexpr std::int64_t kMargin = 8;        // periods of both rates; the filters reach over less than seven
constexpr std::int64_t kAtOnce = 1 << 19;  // samples that are resampled at once

std::vector<float> mono(const Audio& a) {
  const std::int64_t channels = a.samples.shape.at(0), n = a.samples.shape.at(1);
  const auto* x = reinterpret_cast<const float*>(a.samples.bytes.data());
  std::vector<float> out(static_cast<std::size_t>(n));
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t k = 0; k < n; ++k) out[static_cast<std::size_t>(k)] += x[c * n + k];
  for (float& v : out) v /= static_cast<float>(std::max<std::int64_t>(channels, 1));
  return out;
}

// Resamples part by part, so that memory does not grow with the length beyond the samples themselves.
std::vector<float> resampled(const std::vector<float>& x, std::int64_t rate, const Compiler& compiler) {
  const std::int64_t common = std::gcd(rate, kWhisperRate), from = rate / common, to = kWhisperRate / common;
  const std::int64_t periods = std::max<std::int64_t>(1, kAtOnce / from), n = std::ssize(x);
  Graph g;
  audio::resample(g.input("x", {(periods + 2 * kMargin) * from}), rate, kWhisperRate).retrieve("y");
  Context run(compile(g, compiler));
  std::vector<float> part(static_cast<std::size_t>((periods + 2 * kMargin) * from)), out;
  out.reserve(static_cast<std::size_t>((n + from - 1) / from * to + periods * to));
  for (std::int64_t begin = 0; begin < n; begin += periods * from) {
    for (std::int64_t k = 0; k < std::ssize(part); ++k) {
      const std::int64_t at = begin - kMargin * from + k;
      part[static_cast<std::size_t>(k)] = at >= 0 && at < n ? x[static_cast<std::size_t>(at)] : 0;
    }
    const std::vector<float> y = run.set("x", part).run().get("y");
    out.insert(out.end(), y.begin() + kMargin * to, y.begin() + (kMargin + periods) * to);
  }
  out.resize(static_cast<std::size_t>((n * to + from - 1) / from));
  return out;
}

}  // namespace

std::vector<float> sound_for_whisper(const Audio& a, const std::optional<Compiler>& compiler) {
  if (a.sample_rate < 1) throw Error("sound_for_whisper", str_cat("a rate of ", a.sample_rate, " samples a second"));
  if (a.samples.shape.size() != 2 || a.samples.dtype != DType::F32)
    throw Error("sound_for_whisper", "samples are f32 [channels, frames], as read_audio() returns them");
  std::vector<float> x = mono(a);
  if (a.sample_rate == kWhisperRate || x.empty()) return x;
  return resampled(x, a.sample_rate, compiler ? *compiler : default_compiler());
}

}  // namespace lc
