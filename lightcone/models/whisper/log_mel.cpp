#include "lightcone/models/whisper/log_mel.h"

#include <algorithm>
#include <limits>

#include "lightcone/ops/audio/audio.h"

namespace lc {
namespace {

constexpr std::int64_t kWindow = 400, kBefore = kWindow / 2;  // samples of a frame, and those before its middle

}  // namespace

std::vector<float> LogMel::window(std::int64_t first, std::int64_t count, std::int64_t length) const {
  std::vector<float> out(static_cast<std::size_t>(mels_ * length));
  const float least = loudest_ - 8;
  count = std::min({count, length, frames_ - first});
  for (std::int64_t m = 0; m < mels_; ++m)
    for (std::int64_t k = 0; k < count; ++k) {
      const std::int64_t frame = first + k;
      const float level = levels_[static_cast<std::size_t>((frame / chunk_ * mels_ + m) * chunk_ + frame % chunk_)];
      out[static_cast<std::size_t>(m * length + k)] = (std::max(level, least) + 4) / 4;
    }
  return out;
}

LogMelProgram::LogMelProgram(std::int64_t mels, std::int64_t length, const Compiler& compiler)
    : mels_(mels), length_(length) {
  Graph g;
  const Tensor x = g.input("samples", {(length - 1) * kSamplesAFrame + kWindow});
  const audio::MelOptions filters{.sample_rate = static_cast<double>(kWhisperRate),
                                  .n_fft = kWindow,
                                  .n_mels = mels,
                                  .scale = audio::MelScale::Slaney,
                                  .slaney_norm = true};
  const Tensor power = audio::mel_spectrogram(x, {.mel = filters, .hop_length = kSamplesAFrame, .center = false});
  log10(clamp_min(power, 1e-10)).retrieve("levels");
  program_ = compile(g, compiler);
}

LogMel LogMelProgram::operator()(std::span<const float> samples) const {
  LogMel out;
  out.mels_ = mels_, out.chunk_ = length_;
  const std::int64_t n = std::ssize(samples);
  out.frames_ = n / kSamplesAFrame;
  out.loudest_ = -std::numeric_limits<float>::infinity();
  Context run(program_);
  std::vector<float> part(static_cast<std::size_t>((length_ - 1) * kSamplesAFrame + kWindow));
  // The frames whose windows reach into the sound; all others hold silence.
  const std::int64_t heard = (n + kBefore) / kSamplesAFrame + 1;
  for (std::int64_t first = 0; first < heard; first += length_) {
    const std::int64_t begin = first * kSamplesAFrame - kBefore;
    for (std::int64_t k = 0; k < std::ssize(part); ++k) {
      const std::int64_t at = begin + k < 0 ? -(begin + k) : begin + k;  // mirrored at the beginning
      part[static_cast<std::size_t>(k)] = at < n ? samples[static_cast<std::size_t>(at)] : 0;
    }
    run.set("samples", part).run();
    const std::vector<float> levels = run.get("levels");
    out.loudest_ = std::max(out.loudest_, *std::ranges::max_element(levels));
    out.levels_.insert(out.levels_.end(), levels.begin(), levels.end());
  }
  return out;
}

}  // namespace lc
