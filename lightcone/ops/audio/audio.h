// Sound as graph code: mel spectrograms, cepstra and resampling, with the results of torchaudio, librosa and Whisper.
//
// Signals are [.., samples], in f32 or f64 (integers and 16-bit floats are computed in f32); other axes are batch axes.
// Everything is differentiable, compiled with its model and part of an exported program. Filters, windows and matrices
// are computed in f64 once, when a program is compiled. Extents that spectra are computed from must be numbers.
// Spectrograms themselves are fft::stft() and fft::istft() (ops/complex/fft.h); a mono mix of [channels, samples] is
// mean(x, {0}).
#pragma once

#include "lightcone/macros_off.h"

#include <cstdint>
#include <optional>

#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc::audio {

// How frequencies become mels: 2595 log10(1 + f / 700) (HTK), or linear up to 1000 Hz and logarithmic above (Slaney's
// Auditory Toolbox, 1998; the default of librosa and Whisper).
enum class MelScale : std::uint8_t { Htk, Slaney };
struct MelOptions {
  double sample_rate = 16000;   // in Hz
  std::int64_t n_fft = 400;     // length of a frame
  std::int64_t n_mels = 128;    // filters
  double f_min = 0, f_max = 0;  // lowest and highest frequency in Hz; f_max 0: half the sample rate
  MelScale scale = MelScale::Htk;
  bool slaney_norm = false;  // divides each triangle by its width, so that all have one area
};
// Triangular filters [n_mels, n_fft / 2 + 1] for the spectra of n_fft samples: the transpose of
// torchaudio.functional.melscale_fbanks, librosa.filters.mel. Throws Error for frequencies that are not in order.
Tensor mel_filters(GraphOf in, const MelOptions& o, DType dtype = DType::F32);

struct MelSpectrogramOptions {
  MelOptions mel = {};
  std::int64_t win_length = 0;  // length of the Hann window, in the middle of a frame; 0: n_fft
  std::int64_t hop_length = 0;  // 0: half of the window
  double power = 2;             // exponent of the magnitudes, such as 1 or 2
  bool normalized = false;      // divides the spectra by the window's norm
  bool center = true;           // as fft::StftOptions
  PadMode pad_mode = PadMode::Reflect;
};
// [.., samples] -> [.., n_mels, frames]: torchaudio.transforms.MelSpectrogram.
Tensor mel_spectrogram(Operand x, const MelSpectrogramOptions& o = {});
// Whisper's features: 16 kHz, frames of 400 samples every 160, Slaney's filters, log10 of the power down to 8 below the
// largest of each signal, mapped by (v + 4) / 4. [.., samples] -> [.., n_mels, samples / 160]. n_mels is 80, or 128 for
// large-v3. (Whisper takes signals that are padded to 30 s: pad(x, {0, 480000 - samples}).)
Tensor whisper_log_mel(Operand x, std::int64_t n_mels = 80);

// Decibels: multiplier (log10(max(x, amin)) - log10(max(reference, amin))), but not below the largest one of each item
// [channels, frequencies, frames] minus top_db (torchaudio.functional.amplitude_to_DB). The multiplier is 10 for powers
// and 20 for magnitudes.
Tensor amplitude_to_db(Operand x, double multiplier = 10, double amin = 1e-10, double reference = 1,
                       std::optional<double> top_db = 80);

// The discrete cosine transform of type II along an axis of n: 2 sum x_j cos(pi (j + 1/2) k / n), or with `ortho`
// scaled to be orthogonal (scipy.fft.dct). A product with an n x n matrix.
Tensor dct(Operand x, int axis = -1, bool ortho = false);
// The inverse of dct() with the same options (scipy.fft.idct).
Tensor idct(Operand x, int axis = -1, bool ortho = false);

struct MfccOptions {
  std::int64_t n_mfcc = 40;  // coefficients, at most n_mels
  bool log_mels = false;     // log(mel + 1e-6) instead of decibels
  MelSpectrogramOptions spectrogram = {};
};
// Mel-frequency cepstral coefficients, [.., samples] -> [.., n_mfcc, frames]: torchaudio.transforms.MFCC.
Tensor mfcc(Operand x, const MfccOptions& o = {});

struct ResampleOptions {
  int lowpass_filter_width = 6;  // zero crossings of the sinc on each side: more are sharper and slower
  double rolloff = 0.99;         // cutoff frequency, as a share of half the lower rate
};
// Changes the sample rate by a sinc in a Hann window: torchaudio.functional.resample. [.., n] -> [.., ceil(n to /
// from)]; n may be symbolic. The product has a filter for each of the to / gcd(from, to) phases; throws Error for rates
// whose filters would take more than 2^24 numbers, such as 44100 to 22051.
Tensor resample(Operand x, std::int64_t from, std::int64_t to, const ResampleOptions& o = {});

}  // namespace lc::audio
#include "lightcone/macros_on.h"
