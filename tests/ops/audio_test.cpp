// Sound as graph code: spectra, windows, mel filters, cepstra, cosine transforms and resampling have the values and
// gradients of torch and torchaudio (tests/goldens/audio.txt), and Whisper's features those of its own code.
#include "lightcone/ops/audio/audio.h"

#include <cmath>
#include <sstream>

#include "error_of.h"
#include "lightcone/ops/complex/fft.h"
#include "lightcone/runtime/program.h"
#include "torch_cases.h"

using namespace lc;

namespace {

std::vector<Tensor> parts(const Complex& z) { return {z.real, z.imag}; }

std::vector<Tensor> window_case(Graph& g, const std::string& name) {
  std::vector<Tensor> all;
  for (const int n : {1, 3, 9, 16})
    for (const bool periodic : {true, false})
      all.push_back(name == "hann"       ? fft::hann_window(g, n, periodic, DType::F64)
                    : name == "hamming"  ? fft::hamming_window(g, n, periodic, DType::F64)
                    : name == "blackman" ? fft::blackman_window(g, n, periodic, DType::F64)
                                         : fft::bartlett_window(g, n, periodic, DType::F64));
  return all;
}
std::vector<Tensor> stft_case(const std::string& how, const std::vector<Tensor>& t) {
  if (how == "plain") return parts(fft::stft(t[0], {.n_fft = 15, .hop_length = 4, .center = false}));
  if (how == "both")
    return parts(fft::stft(t[0], {.n_fft = 12, .hop_length = 3, .normalized = true, .onesided = false}, t[1]));
  const PadMode mode = how == "reflect"    ? PadMode::Reflect
                       : how == "constant" ? PadMode::Constant
                       : how == "circular" ? PadMode::Circular
                                           : PadMode::Replicate;
  return parts(fft::stft(t[0], {.n_fft = 16, .hop_length = 5, .pad_mode = mode}, t[1]));
}
std::vector<Tensor> istft_case(const std::string& how, const std::vector<Tensor>& t) {
  const Complex z{t[0], t[1]};
  if (how == "short") return {fft::istft(z, {.n_fft = 16, .hop_length = 7}, t[2], Dim(50))};
  if (how == "long") return {fft::istft(z, {.n_fft = 16, .hop_length = 4, .normalized = true}, t[2], Dim(61))};
  if (how == "edges") return {fft::istft(z, {.n_fft = 16, .hop_length = 5, .center = false}, t[2])};
  if (how == "both") return {fft::istft(z, {.n_fft = 8, .hop_length = 2, .onesided = false}, t[2])};
  return {fft::istft(z, {.n_fft = 16, .hop_length = 4}, t[2])};
}
std::vector<Tensor> mel_case(const std::string& how, const std::vector<Tensor>& t) {
  audio::MelSpectrogramOptions o{.mel = {.sample_rate = 8000, .n_fft = 64, .n_mels = 12}};
  if (how == "window") o.win_length = 50, o.hop_length = 20, o.power = 1, o.normalized = true;
  if (how == "power") o.power = 1.5, o.center = false;
  return {audio::mel_spectrogram(t[0], o)};
}

std::vector<Tensor> built(Graph& g, const std::string& name, const std::vector<Tensor>& t) {
  std::istringstream words(name);
  std::string what, first, second;
  words >> what >> first >> second;
  if (what == "window") return window_case(g, first);
  if (what == "stft") return stft_case(first, t);
  if (what == "istft") return istft_case(first, t);
  if (what == "mel") return mel_case(first, t);
  if (what == "filters")
    return {audio::mel_filters(g,
                               {.n_fft = 64,
                                .n_mels = 10,
                                .f_min = 40,
                                .f_max = 7000,
                                .scale = first == "htk" ? audio::MelScale::Htk : audio::MelScale::Slaney,
                                .slaney_norm = second == "slaney"},
                               DType::F64)};
  if (what == "db" && first == "plain") return {audio::amplitude_to_db(t[0], 20, 1e-2, std::pow(10, -0.5), {})};
  if (what == "db") return {audio::amplitude_to_db(t[0], 10, 1e-10, 1, 20)};
  if (what == "mfcc")
    return {audio::mfcc(t[0], {.n_mfcc = 6,
                               .log_mels = first == "log",
                               .spectrogram = {.mel = {.sample_rate = 8000, .n_fft = 64, .n_mels = 12}}})};
  if (what == "dct") return {audio::dct(t[0], -1, first == "ortho")};
  if (what == "idct") return {audio::idct(t[0], -1, first == "ortho")};
  audio::ResampleOptions o;
  if (name.ends_with("sharp")) o = {.lowpass_filter_width = 16, .rolloff = 0.9};
  return {audio::resample(t[0], std::stoll(first), std::stoll(second), o)};
}

TEST(Audio, AnswersAsTorchaudioDoes) {
  TorchBuilders builders;
  for (const TorchCase& c : torch_cases("audio.txt"))
    builders[c.name] = [name = c.name](Graph& g, const std::vector<Tensor>& t) { return built(g, name, t); };
  EXPECT_GT(builders.size(), 30u);
  hold_against_torch("audio.txt", builders, {.f64 = 1e-11, .slopes = 1e-9, .of_largest = 1}, 40);
}

// A signal whose length is a symbol is resampled and cut to its length.
TEST(Audio, SymbolicLengths) {
  Graph g;
  const Tensor x = g.input("x", {Dim::symbol("n", 1, 1000)}, DType::F64);
  g.output("y", audio::resample(x, 3, 2));
  Program p = compile(g, generic() | test::device());
  Context run(p);
  for (const std::int64_t n : {1, 7, 9}) {
    run.bind("n", n).set("x", std::vector<float>(static_cast<std::size_t>(n), 1)).run();
    EXPECT_EQ(run.shape("y"), (std::vector<std::int64_t>{(2 * n + 2) / 3}));
  }
  EXPECT_NEAR(run.get_f64("y")[3], 1, 0.02);  // a constant stays one
}

// istft() undoes stft() with windows that overlap.
TEST(Audio, InverseStft) {
  Graph g;
  const Tensor x = g.input("x", {400}, DType::F64), window = fft::hann_window(g, 40, true, DType::F64);
  const fft::StftOptions o{.n_fft = 64, .hop_length = 10};
  g.output("y", fft::istft(fft::stft(x, o, window), o, window));
  Value v = make_value(DType::F64, {400});
  for (std::size_t k = 0; k < 400; ++k) v.f[k] = std::sin(0.1 * static_cast<double>(k * k % 97));
  const Value y = interpret(g, {{"x", v}}).outputs.at("y");
  for (std::size_t k = 0; k < 400; ++k) EXPECT_NEAR(y.f[k], v.f[k], 1e-12);
}

TEST(Audio, Mistakes) {
  Graph g;
  const Tensor x = g.input("x", {100}), z = g.input("z", {9, 4});
  const auto expect = [](const std::function<void()>& f, const std::string& sentence) {
    EXPECT_PRED2(contains, error_of(f), sentence);
  };
  expect([&] { audio::resample(x, 44100, 22051); },
         "resample: from 44100 Hz to 22051 Hz there are 22051 filters of 44126 weights, which is too much: take rates "
         "with a larger common divisor");
  expect([&] { audio::resample(x, 0, 8000); }, "resample: from 0 Hz to 8000 Hz: rates are at least 1");
  expect([&] { audio::mel_filters(g, {.f_min = 9000}); },
         "mel_filters: frequencies from 9000 to 8000 Hz of a sample rate of 16000 Hz: they are positive and in order");
  expect([&] { audio::mfcc(x, {.n_mfcc = 200}); }, "mfcc: 200 coefficients of 128 mel filters: there are 1 to 128");
  expect([&] { fft::istft({z, z}, {.n_fft = 20}); }, "istft: [9, 4] are not [.., 11, frames] for n_fft = 20");
}

}  // namespace
