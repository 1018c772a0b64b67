#include <cmath>

#include "lightcone/ops/audio/audio.h"
#include "lightcone/ops/complex/fft.h"
#include "lightcone/ops/internal.h"

namespace lc::audio {

namespace {

// Slaney's scale has 15 mels below 1000 Hz, and 27 for a factor of 6.4 above.
constexpr double kBreakMel = 15, kBreakHertz = 1000, kHertzPerMel = 200.0 / 3;
const double kLogStep = std::log(6.4) / 27;

double mel_of(double hertz, MelScale scale) {
  if (scale == MelScale::Htk) return 2595 * std::log10(1 + hertz / 700);
  return hertz < kBreakHertz ? hertz / kHertzPerMel : kBreakMel + std::log(hertz / kBreakHertz) / kLogStep;
}
Tensor hertz_of(const Tensor& mel, MelScale scale) {
  if (scale == MelScale::Htk) return (exp(mel * (std::log(10.0) / 2595)) - 1.0) * 700.0;
  return where(mel < kBreakMel, mel * kHertzPerMel, exp((mel - kBreakMel) * kLogStep) * kBreakHertz);
}

Tensor in_float(const Operand& x) { return x->dtype() == DType::F64 ? x.tensor : prim::cast(x, DType::F32); }

}  // namespace

Tensor mel_filters(GraphOf in, const MelOptions& o, DType dtype) {
  const OpScope scope("mel_filters", in.at);
  const double top = o.f_max == 0 ? o.sample_rate / 2 : o.f_max;
  if (!(o.f_min >= 0) || !(top > o.f_min) || !(o.sample_rate > 0))
    throw Error("mel_filters", str_cat("frequencies from ", o.f_min, " to ", top, " Hz of a sample rate of ",
                                       o.sample_rate, " Hz: they are positive and in order"));
  if (o.n_fft < 1 || o.n_mels < 1) throw Error("mel_filters", str_cat(o.n_mels, " filters for frames of ", o.n_fft));
  const std::int64_t n = o.n_mels, bins = o.n_fft / 2 + 1;
  const double low = mel_of(o.f_min, o.scale), step = (mel_of(top, o.scale) - low) / static_cast<double>(n + 1);
  const Tensor corner = hertz_of(arange(in, Dim(n + 2), DType::F64) * step + low, o.scale).unsqueeze(1);
  const Tensor from = corner.slice(0, 0, n), middle = corner.slice(0, 1, n + 1), to = corner.slice(0, 2, n + 2);
  const Tensor hertz = arange(in, Dim(bins), DType::F64) * (o.sample_rate / static_cast<double>(o.n_fft));
  const Tensor rising = (hertz - from) / (middle - from), falling = (to - hertz) / (to - middle);
  const Tensor triangle = relu(minimum(rising, falling));
  return prim::contiguous(prim::cast(o.slaney_norm ? triangle * (2.0 / (to - from)) : triangle, dtype));
}

Tensor mel_spectrogram(Operand a, const MelSpectrogramOptions& o) {
  const OpScope scope("mel_spectrogram", a.at);
  const Tensor x = in_float(a);
  const std::int64_t length = o.win_length ? o.win_length : o.mel.n_fft, hop = o.hop_length ? o.hop_length : length / 2;
  if (length < 1 || hop < 1) throw Error("mel_spectrogram", "win_length and hop_length are at least 1");
  const Tensor window = fft::hann_window(x, length, true, x.dtype());
  const Complex z =
      fft::stft(x, {.n_fft = o.mel.n_fft, .hop_length = hop, .center = o.center, .pad_mode = o.pad_mode}, window);
  Tensor power = o.power == 1 ? abs(z) : z.real * z.real + z.imag * z.imag;
  if (o.normalized) {
    const Tensor energy = sum(window * window);
    power = power / (o.power == 1 ? sqrt(energy) : energy);
  }
  if (o.power != 1 && o.power != 2) power = pow(power, o.power / 2);
  return matmul(mel_filters(x, o.mel, x.dtype()), power);
}

Tensor whisper_log_mel(Operand a, std::int64_t n_mels) {
  const OpScope scope("whisper_log_mel", a.at);
  const MelOptions mel{.n_mels = n_mels, .scale = MelScale::Slaney, .slaney_norm = true};
  Tensor power = mel_spectrogram(a, {.mel = mel, .hop_length = 160});
  power = narrow(power, -1, 0, power.extent(-1) - 1);  // Whisper drops the last frame
  const Tensor level = log10(clamp_min(power, 1e-10));
  return (maximum(level, amax(level, {-2, -1}, true) - 8.0) + 4.0) / 4.0;
}

Tensor amplitude_to_db(Operand a, double multiplier, double amin, double reference, std::optional<double> top_db) {
  const OpScope scope("amplitude_to_db", a.at);
  const Tensor x = in_float(a);
  const Tensor level = log10(clamp_min(x, amin)) * multiplier - multiplier * std::log10(std::max(reference, amin));
  if (!top_db) return level;
  if (x.rank() < 2)
    throw Error("amplitude_to_db", str_cat("a spectrogram is [.., frequencies, frames], not ", str(x.shape())));
  const Axes item = x.rank() == 2 ? Axes{-2, -1} : Axes{-3, -2, -1};
  return maximum(level, amax(level, item, true) - *top_db);
}

namespace {

// The matrix [count, n] of the first `count` cosines of a transform of n elements.
Tensor cosines(const Tensor& x, std::int64_t count, std::int64_t n, bool ortho) {
  Graph& g = x.graph();
  const Shape s{count, n};
  // The angle is pi / (2 n) times a whole number, which is reduced before it is rounded.
  const Dim k = Dim::index(0, count), turns = k * (Dim::index(1, n) * 2 + 1) % Dim(4 * n);
  const auto size = static_cast<double>(n);
  const Tensor c = cos(g.index(s, turns, DType::F64) * (std::acos(-1.0) / (2 * size)));
  if (!ortho) return prim::contiguous(prim::cast(c * 2.0, x.dtype()));
  const Tensor first = g.index(s, less(k, Dim(1)), DType::F64);
  return prim::contiguous(
      prim::cast(c * (std::sqrt(2 / size) - first * (std::sqrt(2 / size) - std::sqrt(1 / size))), x.dtype()));
}
std::int64_t length(const Tensor& x, int axis, const char* op) {
  if (x.rank() == 0) throw Error(op, "a scalar has no axis");
  const std::int64_t n = detail::known(x.extent(axis), op);
  if (n < 1) throw Error(op, str_cat("an axis of ", str(x.shape()), " is empty"));
  return n;
}

}  // namespace

Tensor dct(Operand a, int axis, bool ortho) {
  const OpScope scope("dct", a.at);
  const Tensor x = movedim(in_float(a), axis, -1);
  const std::int64_t n = length(x, -1, "dct");
  return movedim(linear(x, cosines(x, n, n, ortho)), -1, axis);
}

Tensor idct(Operand a, int axis, bool ortho) {
  const OpScope scope("idct", a.at);
  const Tensor x = movedim(in_float(a), axis, -1);
  const std::int64_t n = length(x, -1, "idct");
  const Tensor y = matmul(x, cosines(x, n, n, ortho));
  // x_j = (X_0 / 2 + X_1 cos .. ) / n, and the matrix has 2 cos.
  const Tensor plain = (y - narrow(x, -1, 0, 1)) / (2.0 * static_cast<double>(n));
  return movedim(ortho ? y : plain, -1, axis);
}

Tensor mfcc(Operand a, const MfccOptions& o) {
  const OpScope scope("mfcc", a.at);
  const std::int64_t mels = o.spectrogram.mel.n_mels;
  if (o.n_mfcc < 1 || o.n_mfcc > mels)
    throw Error("mfcc", str_cat(o.n_mfcc, " coefficients of ", mels, " mel filters: there are 1 to ", mels));
  const Tensor mel = mel_spectrogram(a, o.spectrogram);
  const Tensor level = o.log_mels ? log(mel + 1e-6) : amplitude_to_db(mel);
  return matmul(cosines(level, o.n_mfcc, mels, true), level);
}

}  // namespace lc::audio
