// WAV files of every kind and FLAC files read as Python's audioop and libsndfile read them, what write_wav() writes is
// read back, and damaged or foreign files are an Error with a sentence. Whisper's features of a real recording are
// those of its own code.
#include "lightcone/io/audio/audio.h"

#include <gtest/gtest.h>
#include <cmath>

#include "data.h"
#include "error_of.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/io/data/readers.h"
#include "lightcone/ops/audio/audio.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "unhex.h"
#include "zip_writer.h"

using namespace lc;
using made::little;
using test::unhex;

namespace {

Audio read(const std::string& bytes, const ReadOptions& o = {}) {
  return read_audio(*MappedFile::view("sound", std::as_bytes(std::span(bytes))), o);
}
std::vector<float> samples(const std::string& bytes) {
  const Audio a = read(bytes);
  const std::span<const float> v = a.samples.values<float>();
  return {v.begin(), v.end()};
}
void expect(const std::string& bytes, const std::string& sentence, const ReadOptions& o = {}) {
  EXPECT_EQ(error_of([&] { read(bytes, o); }), "load: sound: " + sentence);
}

std::string chunk(const std::string& id, const std::string& content) {
  return id + little(content.size(), 4) + content + std::string(content.size() % 2, '\0');
}
std::string riff(const std::string& chunks) { return "RIFF" + little(4 + chunks.size(), 4) + "WAVE" + chunks; }
std::string format(unsigned tag, unsigned channels, unsigned bits) {
  const unsigned frame = channels * bits / 8;
  return little(tag, 2) + little(channels, 2) + little(8000, 4) + little(8000 * frame, 4) + little(frame, 2) +
         little(bits, 2);
}
std::string wav(unsigned tag, unsigned channels, unsigned bits, const std::string& data) {
  return riff(chunk("fmt ", format(tag, channels, bits)) + chunk("data", data));
}
std::string extensible(unsigned tag, unsigned channels, unsigned bits) {
  return format(0xFFFE, channels, bits) + little(22, 2) + little(bits, 2) + little(0, 4) + little(tag, 2) +
         unhex("000000001000800000aa00389b71");
}
using V = std::vector<float>;

// Made with libsndfile 1.2: 120 frames of two channels at 8 kHz, (37 k^2) mod 4001 - 2000 and 5 k - 300.
const char* const kFlac =
    "664c614300000022100010000000de0000de01f402f00000007857bd08d24e8a888f42adc1c6c4b9c0ec84000028200000007265666572656e"
    "6365206c6962464c414320312e342e3320323032333036323300000000fff864980077081002da8ed07619ab2d19fc7f6371399d09c879e27f"
    "6d86f39724b57a6bf1424a2dc7f2974f178db4c0150f737a363a353c58b6d3c82662df7c6309035bd176acbf506515691af75a7df5955d377b"
    "228d35c0b66de42f2e7683c19ee2e13610a66fa06b4e5bb91175cd95f03822fdc78bf1ada0352bd66f61f476929a440defd2a7728159fb2c8b"
    "146e621b9ca9e91d2b8894c42db74b54aa653e245aa172b0291faed536de7227d8fcaee4f9262936ca765e5131ef13601a17f09e2938117f02"
    "9fda9fdb2007ffffffffffffffffffffffffffffe0deaf";

#define NEEDS_FLAC() \
  if (!can_read_flac()) GTEST_SKIP() << "lightcone::io was built without a decoder for FLAC"

}  // namespace

TEST(Wav, EveryEncoding) {
  EXPECT_EQ(samples(wav(1, 1, 8, unhex("0080ff"))), (V{-1, 0, 127.0f / 128}));
  EXPECT_EQ(samples(wav(1, 1, 16, unhex("00800100ff7f"))), (V{-1, 1 / 32768.0f, 32767 / 32768.0f}));
  EXPECT_EQ(samples(wav(1, 1, 24, unhex("000080010000ffff7f"))), (V{-1, 0x1p-23f, 1 - 0x1p-23f}));
  EXPECT_EQ(samples(wav(1, 1, 32, unhex("0000008000000040"))), (V{-1, 0.5f}));
  EXPECT_EQ(samples(wav(3, 1, 32, unhex("0000c03f000000c0"))), (V{1.5f, -2}));  // floats may exceed 1
  EXPECT_EQ(samples(wav(3, 1, 64, unhex("000000000000f83f"))), (V{1.5f}));
  // Python 3.11: audioop.alaw2lin() and ulaw2lin() of these codes.
  const std::string codes = unhex("00012a557f809cd5ff");
  const std::vector<int> a{-5504, -5248, -32256, -8, -848, 5504, 3264, 8, 848};
  const std::vector<int> mu{-32124, -31100, -5372, -716, 0, 32124, 9852, 716, 0};
  for (const auto& [tag, want] : {std::pair{6u, a}, std::pair{7u, mu}}) {
    const V got = samples(wav(tag, 1, 8, codes));
    for (std::size_t k = 0; k < want.size(); ++k) EXPECT_EQ(got[k] * 32768, static_cast<float>(want[k])) << tag << k;
  }
}

// Channels come first; chunks of odd length are followed by a byte, and others than samples are skipped.
TEST(Wav, ChannelsAndChunks) {
  const std::string data = unhex("000100020003000400050006");
  const Audio two = read(riff(chunk("LIST", "odd") + chunk("fmt ", extensible(1, 2, 16)) + chunk("fact", "1234") +
                              chunk("data", data) + chunk("id3 ", "x")));
  EXPECT_EQ(two.samples.shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(two.sample_rate, 8000);
  const V want{256, 768, 1280, 512, 1024, 1536};
  for (std::size_t k = 0; k < want.size(); ++k) EXPECT_EQ(two.samples.values<float>()[k] * 32768, want[k]);
  EXPECT_EQ(read(wav(1, 300, 8, std::string(300, '\x80'))).samples.shape, (std::vector<std::int64_t>{300, 1}));
  EXPECT_EQ(read(wav(1, 2, 16, "")).samples.shape, (std::vector<std::int64_t>{2, 0}));
  // a size that was never filled in, and one of 64 bits
  const std::string head = chunk("fmt ", format(1, 1, 16)), open = "data" + little(0xFFFFFFFF, 4);
  EXPECT_EQ(samples(riff(head + open + data)).size(), 6u);
  const std::string sizes = chunk("ds64", little(0, 8) + little(4, 8) + little(2, 8) + little(0, 4));
  EXPECT_EQ(samples("RF64" + little(0xFFFFFFFF, 4) + "WAVE" + sizes + head + open + data).size(), 2u);
}

TEST(Wav, DamagedAndForeignFiles) {
  const std::string bad = "not a sound WAV file: ";
  const std::string good = wav(1, 1, 16, "1234");
  expect(good.substr(0, 44), bad + "the chunk \"data\" has 4 bytes, and 0 follow");
  expect(good.substr(0, 36), bad + "there is no chunk \"data\"");
  expect(good.substr(0, 12), bad + "there is no chunk \"fmt \"");
  expect(wav(1, 1, 16, "123"), bad + "its 3 bytes of samples are no whole number of frames of 2 bytes");
  expect(wav(1, 0, 16, ""), bad + "0 channels and 8000 samples a second");
  expect(riff(chunk("fmt ", "short") + chunk("data", "")), bad + "the chunk \"fmt \" has 5 bytes, and it needs 16");
  expect(riff(chunk("fmt ", format(1, 1, 16).replace(12, 1, "\7")) + chunk("data", "")),
         bad + "1 samples of 16 bits take 2 bytes, not 7");
  expect(wav(1, 1, 12, ""),
         "a WAV file with PCM of 12 bits; PCM has 8, 16, 24 or 32, floats 32 or 64, and A-law and mu-law 8");
  expect(wav(2, 1, 8, ""), "a WAV file with samples in Microsoft's ADPCM; PCM, floats, A-law and mu-law are read");
  expect(wav(999, 1, 8, ""), "a WAV file with samples in format 999; PCM, floats, A-law and mu-law are read");
  expect(riff(chunk("fmt ", extensible(1, 1, 16).replace(30, 1, "x")) + chunk("data", "")),
         "a WAV file with samples of an unknown subformat");
  const std::string end = ", which is not read; convert it to WAV or FLAC";
  expect("ID3\4" + std::string(20, 'x'), "the format is MP3" + end);
  expect(unhex("fffb9064") + std::string(20, 'x'), "the format is MP3" + end);
  expect(unhex("fff15080") + std::string(20, 'x'), "the format is AAC" + end);
  expect("OggS" + std::string(20, 'x'), "the format is Ogg (Vorbis, Opus, or FLAC inside)" + end);
  expect("1234ftypM4A ", "the format is MP4 (AAC, ALAC)" + end);
  expect("hello", "neither a WAV nor a FLAC file");
  ReadOptions small;
  small.memory = 1000;
  EXPECT_PRED2(contains, error_of([&] { read(wav(1, 1, 8, std::string(2000, '\0')), small); }), "1000");
}

TEST(Flac, AnswersAsLibsndfileDoes) {
  NEEDS_FLAC();
  const Audio a = read(unhex(kFlac));
  EXPECT_EQ(a.samples.shape, (std::vector<std::int64_t>{2, 120}));
  EXPECT_EQ(a.sample_rate, 8000);
  for (int k = 0; k < 120; ++k) {
    EXPECT_EQ(a.samples.values<float>()[static_cast<std::size_t>(k)] * 32768,
              static_cast<float>(k * k * 37 % 4001 - 2000));
    EXPECT_EQ(a.samples.values<float>()[static_cast<std::size_t>(120 + k)] * 32768, static_cast<float>(5 * k - 300));
  }
  std::string unknown = unhex(kFlac);
  unknown[25] = 0;  // how many samples there are
  EXPECT_EQ(read(unknown).samples.bytes, a.samples.bytes);
}

TEST(Flac, DamagedFiles) {
  NEEDS_FLAC();
  const std::string good = unhex(kFlac), bad = "not a sound FLAC file: ";
  const auto changed = [&](std::size_t at, char to) { return std::string(good).replace(at, 1, 1, to); };
  expect(good.substr(0, 42), bad + "it says 120 samples of each channel, and has 0");
  expect("fLaC", bad + "it ends before its samples");
  expect(changed(200, 'x'), bad + "the CRC of a frame is another");
  expect(changed(30, 'x'), bad + "the MD5 of its samples is another");
  expect(changed(25, 'y'), bad + "it says 121 samples of each channel, and has 120");
  expect(changed(25, 'w'), bad + "it says 119 samples of each channel, and has more");
  expect(changed(22, 1), bad + "it says 16777336 samples of each channel, which its 308 bytes cannot hold");
  EXPECT_NE(error_of([&] { read(good.substr(0, 200)); }), "no error");
}

TEST(WriteWav, IsReadBack) {
  const TempDir folder;
  Array a = Array::zeros(DType::F32, {2, 3});
  const V values{-1, 0.25f, 1.5f, 1 / 32768.0f, -3, 0};
  std::copy(values.begin(), values.end(), a.values<float>().begin());
  write_wav(folder / "pcm.wav", a, 44100);
  const Audio pcm = read_audio(folder / "pcm.wav");
  EXPECT_EQ(pcm.sample_rate, 44100);
  EXPECT_EQ(V(pcm.samples.values<float>().begin(), pcm.samples.values<float>().end()),
            (V{-1, 0.25f, 32767 / 32768.0f, 1 / 32768.0f, -1, 0}));
  write_wav(folder / "float.wav", a, 8000, WavFormat::Float32);
  EXPECT_EQ(read_audio(folder / "float.wav").samples.bytes, a.bytes);
  // Python's module wave writes these 46 bytes.
  write_wav(folder / "one.wav", Array::of<float>({1}, V{0.5f}), 8000);
  EXPECT_EQ(slurp(folder / "one.wav"),
            unhex("524946462600000057415645666d74201000000001000100401f0000803e000002001000646174610200000000"
                  "40"));
  EXPECT_PRED2(contains, error_of([&] { write_wav(folder / "x", Array::of<float>({1}, V{NAN}), 8000); }),
               "a sample is NaN, which 16 bits cannot hold");
  EXPECT_EQ(error_of([&] { write_wav(folder / "x", a, 0); }), "write_wav: a sample rate of 0 Hz");
  EXPECT_EQ(error_of([&] {
              write_wav(folder / "x", Array::zeros(DType::F64, {1, 1}), 1);
            }),
            "write_wav: samples are f32 [channels, frames] or [frames], not f64 with 2 axes");
  EXPECT_FALSE(std::filesystem::exists(folder / "x"));
}

// A real recording: 24-bit numbers as libsndfile 1.2 reads them.
TEST(Flac, ARecording) {
  NEEDS_FLAC();
  NEEDS_DATA("audio/jfk.flac");
  const Audio a = read_audio(data("audio/jfk.flac"));
  ASSERT_EQ(a.samples.shape, (std::vector<std::int64_t>{2, 485100}));
  EXPECT_EQ(a.sample_rate, 44100);
  const std::span<const float> v = a.samples.values<float>();
  double sum = 0;
  for (const float s : v) sum += s * 0x1p23;
  EXPECT_EQ(sum, 111449439);
  EXPECT_EQ(v[200000] * 0x1p23f, -17924);
  EXPECT_EQ(v[485100 + 200002] * 0x1p23f, 17927);
}

TEST(Whisper, FeaturesOfARecording) {
  NEEDS_DATA("audio/jfk_16k.wav");
  const Audio a = read_audio(data("audio/jfk_16k.wav"));
  ASSERT_EQ(a.sample_rate, 16000);
  const std::int64_t n = a.samples.shape[1];
  Graph g;
  const Tensor x = g.input("x", {n});
  g.output("features", audio::whisper_log_mel(pad(x, {0, static_cast<int>(480000 - n)})));
  g.output("filters", audio::mel_filters(g, {.n_mels = 80, .scale = audio::MelScale::Slaney, .slaney_norm = true}));
  const Program p = compile(g, generic() | cpu({.threads = 2}));
  Context run(p);
  const std::vector<float> got = run.set("x", a.samples.values<float>()).run().get("features");
  ASSERT_EQ(run.shape("features"), (std::vector<std::int64_t>{80, 3000}));
  const std::vector<float> want = npy_f32(slurp(data("audio/whisper_logmel80_jfk.npy")));  // [80, 1200], the beginning
  double worst = 0;
  for (std::size_t m = 0; m < 80; ++m)
    for (std::size_t k = 0; k < 1200; ++k)
      worst = std::max<double>(worst, std::abs(got[m * 3000 + k] - want[m * 1200 + k]));
  RecordProperty("worst", std::to_string(worst));
  EXPECT_LT(worst, 5e-5);
  const Arrays filters = read_npz(data("audio/whisper_mel_filters.npz"));
  const std::vector<float> mine = run.get("filters");
  const std::span<const float> theirs = filters.at("mel_80").values<float>();
  ASSERT_EQ(mine.size(), theirs.size());
  for (std::size_t k = 0; k < mine.size(); ++k) EXPECT_NEAR(mine[k], theirs[k], 1e-8);
}

// From 44.1 kHz and two channels to Whisper's 16 kHz: the recording that was converted by another program's filter.
TEST(Whisper, ARecordingResampled) {
  NEEDS_FLAC();
  NEEDS_DATA("audio/jfk.flac");
  const Audio a = read_audio(data("audio/jfk.flac")), b = read_audio(data("audio/jfk_16k.wav"));
  Graph g;
  const Tensor x = g.input("x", {2, a.samples.shape[1]});
  g.output("y", audio::resample(mean(x, {0}), 44100, 16000));
  const Program p = compile(g, generic() | cpu({.threads = 2}));
  Context run(p);
  const std::vector<float> got = run.set("x", a.samples.values<float>()).run().get("y");
  const std::span<const float> want = b.samples.values<float>();
  ASSERT_EQ(got.size(), want.size());
  double off = 0, all = 0;
  for (std::size_t k = 0; k < got.size(); ++k) off += (got[k] - want[k]) * (got[k] - want[k]), all += want[k] * want[k];
  EXPECT_LT(off, 1e-4 * all) << off / all;
}
