// Numbers become ggml's blocks: the same bits as ggml's where there is one way to round, and no larger error than
// ggml's where scales are chosen. GGUF files with blocks, and the metadata of others, are written and read back.
#include "lightcone/io/checkpoints/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "data.h"
#include "error_of.h"
#include "lightcone/io/checkpoints/gguf.h"
#include "lightcone/io/checkpoints/save.h"
#include "lightcone/io/checkpoints/weights.h"
#include "paths.h"

namespace lc {
namespace {

// As tools/make_quant_goldens.py makes them.
std::vector<float> numbers() {
  std::uint32_t state = 1;
  std::vector<float> v;
  for (int k = 0; k < 512; ++k) {
    std::int64_t total = 0;
    for (int j = 0; j < 4; ++j) state = state * 1664525u + 1013904223u, total += state >> 16;
    v.push_back(static_cast<float>(static_cast<double>(total - 131070) / 65536 * std::ldexp(1.0, k / 16 % 5 - 2)));
  }
  for (int k = 0; k < 512; ++k) v.push_back(v[static_cast<std::size_t>(k)] + 0.5f);
  v.resize(1024 + 256, 0.0f);
  v.resize(1024 + 512, 0.75f);
  return v;
}

std::vector<std::byte> blocks_of(QuantFormat f, const std::vector<float>& v) {
  std::vector<std::byte> b(v.size() / static_cast<std::size_t>(info(f).elements) *
                           static_cast<std::size_t>(info(f).bytes));
  quantize(f, v, b);
  return b;
}
std::vector<float> values_of(QuantFormat f, const std::vector<std::byte>& b) {
  std::vector<float> v(b.size() / static_cast<std::size_t>(info(f).bytes) * static_cast<std::size_t>(info(f).elements));
  dequantize_gguf(info(f).ggml, b.data(), static_cast<std::int64_t>(v.size()), v.data());
  return v;
}
double error_of_values(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
  return std::sqrt(sum / static_cast<double>(a.size()));
}

// ggml's blocks, by the name of the format.
std::map<std::string, std::vector<std::byte>> goldens() {
  std::map<std::string, std::vector<std::byte>> all;
  std::ifstream file(std::string(paths::kSource) + "/tests/goldens/quants.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name, hex;
    words >> name >> hex;
    for (std::size_t k = 0; name != "#" && k + 1 < hex.size(); k += 2)
      all[name].push_back(static_cast<std::byte>(std::stoi(hex.substr(k, 2), nullptr, 16)));
  }
  return all;
}

// Formats without a choice of scales.
bool is_plain(QuantFormat f) {
  using enum QuantFormat;
  return f == Q4_0 || f == Q4_1 || f == Q5_0 || f == Q5_1 || f == Q8_0 || f == TQ1_0 || f == TQ2_0 || f == MXFP4;
}

TEST(Quantize, PlainFormatsHaveGgmlsBitsAndOthersNoLargerError) {
  const auto wanted = goldens();
  ASSERT_EQ(wanted.size(), 15u);
  const std::vector<float> v = numbers();
  for (const QuantInfo& q : kQuantFormats) {
    if (!can_quantize(q.format)) continue;
    const auto golden = wanted.find(std::string(q.ggml_name));
    ASSERT_NE(golden, wanted.end()) << q.name;
    const std::vector<std::byte> b = blocks_of(q.format, v);
    if (is_plain(q.format)) {
      EXPECT_TRUE(b == golden->second) << q.name;
    }
    const double ours = error_of_values(v, values_of(q.format, b)),
                 theirs = error_of_values(v, values_of(q.format, golden->second));
    EXPECT_LE(ours, theirs) << q.name;
    EXPECT_GT(theirs, 0) << q.name;
  }
}

// Q8_0 by hand: the largest magnitude, 127, has the code 127, and d is 1 as f16, 0x3c00. Q4_0: -8 has the code 0, d
// is 1.
TEST(Quantize, WholeNumbersStay) {
  std::vector<float> v(32);
  for (int k = 0; k < 32; ++k) v[static_cast<std::size_t>(k)] = static_cast<float>(k * 4 - 127);
  const auto q8 = blocks_of(QuantFormat::Q8_0, v);
  EXPECT_EQ(q8[0], std::byte{0x00});
  EXPECT_EQ(q8[1], std::byte{0x3c});
  EXPECT_EQ(q8[2], std::byte{0x81});  // -127
  EXPECT_EQ(values_of(QuantFormat::Q8_0, q8), v);
  for (int k = 0; k < 32; ++k) v[static_cast<std::size_t>(k)] = static_cast<float>(k % 16 - 8);
  const auto q4 = blocks_of(QuantFormat::Q4_0, v);
  EXPECT_EQ(q4[2], std::byte{0x00});  // values 0 and 16 are -8, code 0
  EXPECT_EQ(q4[17], std::byte{0xff});
  EXPECT_EQ(values_of(QuantFormat::Q4_0, q4), v);
}

// Numbers that a format has are found again: what was decoded from blocks is encoded with next to no error.
TEST(Quantize, WhatBlocksHoldIsFoundAgain) {
  const auto wanted = goldens();
  for (const QuantInfo& q : kQuantFormats) {
    if (!can_quantize(q.format)) continue;
    const std::vector<float> v = values_of(q.format, wanted.at(std::string(q.ggml_name)));
    double size = 0;
    for (const float x : v) size += x * x;
    size = std::sqrt(size / static_cast<double>(v.size()));
    EXPECT_LE(error_of_values(v, values_of(q.format, blocks_of(q.format, v))), 0.03 * size) << q.name;
  }
}

TEST(Quantize, ZerosAndVerySmallNumbersStayFinite) {
  for (const QuantInfo& q : kQuantFormats) {
    if (!can_quantize(q.format)) continue;
    for (const float size : {0.0f, 1e-42f, 1e-36f, 1e-9f, 60000.0f}) {
      std::vector<float> v(256);
      for (std::size_t k = 0; k < v.size(); ++k) v[k] = size * (k % 3 == 0 ? 1.0f : k % 3 == 1 ? -0.5f : 0.25f);
      for (const float x : values_of(q.format, blocks_of(q.format, v))) {
        ASSERT_TRUE(std::isfinite(x)) << q.name << " " << size;
        ASSERT_LE(std::fabs(x), 1.2f * size + 1e-6f) << q.name << " " << size;
      }
    }
  }
}

TEST(Quantize, SaysWhatIsWrong) {
  std::vector<std::byte> to(18);
  const std::vector<float> v(32, 1.0f);
  EXPECT_EQ(error_of([&] { quantize(QuantFormat::IQ2_S, v, to); }),
            "quantize: blocks of IQ2_S are read and not written");
  EXPECT_EQ(error_of([&] { quantize(QuantFormat::Q4_0, std::span(v).first(31), to); }),
            "quantize: 31 values are no whole blocks of 32, or 18 bytes are not those of their blocks");
  std::vector<float> bad = v;
  bad[3] = NAN;
  EXPECT_EQ(error_of([&] { quantize(QuantFormat::Q4_0, bad, to); }),
            "quantize: the value nan has no place in a block: scales have 16 bits");
}

TEST(Quantize, GgufHasBlocksAndTheMetadataOfAnotherFile) {
  const TempDir folder;
  const std::vector<float> v = numbers();
  const std::vector<std::byte> b = blocks_of(QuantFormat::Q4_K, v);
  const std::vector<TensorToSave> tensors{{"w", DType::U8, {6, 256}, b, QuantFormat::Q4_K}};
  save_gguf(folder / "a.gguf", tensors, {{"general.name", std::string("a")}, {"list", std::vector<float>{1, 2}}});
  const Weights a = Weights::open(folder / "a.gguf");
  EXPECT_EQ(a.at("w").type, "Q4_K");
  EXPECT_EQ(Weights::read(a.at("w")), values_of(QuantFormat::Q4_K, b));
  ASSERT_EQ(a.gguf()->stored.size(), 2u);
  EXPECT_EQ(a.gguf()->stored[0].first, "general.name");
  GgufFields fields;
  for (const auto& [key, bytes] : a.gguf()->stored) fields.emplace_back(std::string(key), GgufStored{bytes});
  save_gguf(folder / "b.gguf", tensors, fields);
  EXPECT_EQ(read_text_file(folder / "b.gguf"), read_text_file(folder / "a.gguf"));
  EXPECT_EQ(error_of([&] { save_safetensors(folder / "c.safetensors", tensors); }),
            "save_safetensors: 'w' is in blocks of Q4_K, which GGUF alone has");
  const std::vector<TensorToSave> short_rows{{"w", DType::U8, {12, 128}, b, QuantFormat::Q4_K}};
  EXPECT_EQ(error_of([&] { save_gguf(folder / "d.gguf", short_rows, {}); }),
            "save_gguf: 'w' has rows that are no whole blocks of 256");
}

}  // namespace
}  // namespace lc
