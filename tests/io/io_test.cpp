// Good checkpoints give their values in every format, and damaged ones give an Error.
#include <sys/resource.h>

#include <bit>
#include <cmath>
#include <csignal>
#include <cstring>
#include <random>

#include "data.h"
#include "gguf_writer.h"
#include "lightcone/base/error.h"
#include "lightcone/io/checkpoints/gguf.h"
#include "lightcone/io/checkpoints/quants.h"
#include "lightcone/io/checkpoints/weights.h"

using namespace lc;

namespace {

// Returns the members of a ZIP archive whose entries are not compressed.
std::map<std::string, std::string> stored_zip(const std::string& z) {
  std::map<std::string, std::string> members;
  const auto u16 = [&](std::size_t at) {
    return static_cast<std::size_t>(static_cast<unsigned char>(z[at])) |
           static_cast<std::size_t>(static_cast<unsigned char>(z[at + 1])) << 8;
  };
  const auto u32 = [&](std::size_t at) { return u16(at) | u16(at + 2) << 16; };
  for (std::size_t at = z.find("PK\1\2"); at != std::string::npos; at = z.find("PK\1\2", at + 46)) {
    const std::size_t local = u32(at + 42), size = z.size() > at ? u32(at + 24) : 0;
    members[z.substr(at + 46, u16(at + 28))] = z.substr(local + 30 + u16(local + 26) + u16(local + 28), size);
  }
  return members;
}

std::string lower(std::string s) {
  for (char& c : s) c = static_cast<char>(std::tolower(c));
  return s;
}

// Loads a file and reads every tensor it can; returns the error, or "".
std::string load_everything(const std::string& path) {
  try {
    const Weights w = Weights::open(path);
    for (const auto& [name, t] : w.tensors()) try {
        Weights::read(t);
      } catch (const Error&) {  // a type that cannot be read
      }
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

}  // namespace

TEST(Safetensors, GoodFilesLoadAndDamagedOnesDoNot) {
  NEEDS_DATA("formats/safetensors");
  int good = 0, bad = 0;
  for (const auto& e : std::filesystem::directory_iterator(data("formats/safetensors"))) {
    const std::string name = e.path().filename().string(), error = load_everything(e.path().string());
    const bool ok = name.starts_with("ok_");
    if (!ok && !name.starts_with("bad_")) continue;
    EXPECT_EQ(error.empty(), ok) << name << ": " << error;
    ++(ok ? good : bad);
  }
  EXPECT_GE(good, 4);
  EXPECT_GE(bad, 15);
}

TEST(Safetensors, SaveAndLoad) {
  const TempDir dir;
  const std::vector<float> a{1, -2, 3.5f, NAN, INFINITY, -0.0f};
  const std::vector<std::uint16_t> b{0x3f80, 0x4000};
  const TensorToSave tensors[] = {{"a", DType::F32, {2, 3}, std::as_bytes(std::span(a))},
                                  {"b", DType::BF16, {2}, std::as_bytes(std::span(b))},
                                  {"empty", DType::I64, {0, 4}, {}},
                                  {"scalar", DType::F32, {}, std::as_bytes(std::span(a)).first(4)}};
  save_safetensors(dir / "x.safetensors", tensors, {{"who", "test"}});
  const Weights w = Weights::open(dir / "x.safetensors");
  EXPECT_EQ(w.tensors().size(), 4u);
  EXPECT_EQ(w.metadata().at("who"), "test");
  EXPECT_EQ(w.at("a").shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(std::memcmp(w.at("a").bytes.data(), a.data(), 24), 0);
  EXPECT_EQ(Weights::read(w.at("b")), (std::vector<float>{1, 2}));
  EXPECT_TRUE(w.at("empty").bytes.empty());
  EXPECT_THROW(w.at("c"), Error);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path), {}), 1);  // no other file is left
  EXPECT_THROW(save_safetensors(dir / "no/such/folder/x.safetensors", tensors), Error);
  EXPECT_THROW(save_safetensors(dir.path.string(), tensors), Error);
  const TensorToSave wrong[] = {{"a", DType::F32, {7}, std::as_bytes(std::span(a))}};
  EXPECT_THROW(save_safetensors(dir / "y", wrong), Error);
}

TEST(Safetensors, AFullDiskLeavesTheOldFile) {
  const TempDir dir;
  const std::vector<float> small(4, 1), large(100000, 2);
  const TensorToSave first[] = {{"a", DType::F32, {4}, std::as_bytes(std::span(small))}},
                     second[] = {{"a", DType::F32, {100000}, std::as_bytes(std::span(large))}};
  save_safetensors(dir / "x", first);
  rlimit old;
  getrlimit(RLIMIT_FSIZE, &old);
  const rlimit tight{100000, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tight);
  EXPECT_THROW(save_safetensors(dir / "x", second), Error);
  setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_EQ(Weights::read(Weights::open(dir / "x").at("a")), small);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path), {}), 1);
}

// Malformed shards and headers, written here so that no reference data is needed.
TEST(Safetensors, ShardsAndHeadersAreChecked) {
  const TempDir dir;
  const float one = 1;
  const TensorToSave a[] = {{"a", DType::F32, {1}, std::as_bytes(std::span(&one, 1))}};
  std::filesystem::create_directory(dir / "in");
  save_safetensors(dir / "in/x.safetensors", a);
  save_safetensors(dir / "outside.safetensors", a);
  const auto refuses = [&](const std::string& index, const std::string& words) {
    spit(dir / "in/model.safetensors.index.json", index);
    const std::string error = load_everything(dir / "in");
    EXPECT_NE(error.find(words), std::string::npos) << index << ": " << error;
  };
  spit(dir / "in/model.safetensors.index.json", R"({"weight_map": {"a": "x.safetensors"}})");
  EXPECT_EQ(load_everything(dir / "in"), "");
  refuses(R"({"weight_map": {"a": "../outside.safetensors"}})", "not a plain file name");
  refuses(R"({"weight_map": {"a": ")" + (dir / "outside.safetensors") + R"("}})", "not a plain file name");
  refuses(R"({"weight_map": {"a": "x.safetensors", "b": "x.safetensors"}})", "in no shard");
  refuses(R"({"weight_map": {"a": "missing.safetensors"}})", "missing.safetensors");
  refuses(R"({"weight_map": 1})", "weight_map");
  const auto header = [&](std::string h, std::size_t bytes) {
    std::string f(8, 0);
    f[0] = static_cast<char>(h.size());
    spit(dir / "y.safetensors", f + h + std::string(bytes, 0));
    return load_everything(dir / "y.safetensors");
  };
  const std::string entry = R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  EXPECT_EQ(header("{" + entry + "}", 1), "");
  EXPECT_NE(header("{" + entry + "," + entry + "}", 1).find("twice"), std::string::npos);
}

TEST(Gguf, EveryBlockTypeReadsAsGgmlDoes) {
  NEEDS_DATA("formats/gguf");
  const auto want = stored_zip(slurp(data("formats/gguf/expected_dequantised.npz")));
  const GgufFile g = read_gguf(data("formats/gguf/all_types.gguf"));
  int checked = 0;
  for (const GgufTensor& t : g.tensors) {
    std::int64_t n = 1;
    for (std::int64_t d : t.shape) n *= d;
    std::vector<float> have(static_cast<std::size_t>(n));
    dequantize_gguf(t.type, g.file->bytes().data() + t.offset, n, have.data());
    for (const auto& [name, npy] : want) {
      if (lower(name) != lower(std::string(ggml_type_name(t.type))) + ".npy") continue;
      const std::vector<float> values = npy_f32(npy);
      ASSERT_EQ(values.size(), have.size()) << name;
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(std::bit_cast<std::uint32_t>(have[i]), std::bit_cast<std::uint32_t>(values[i])) << name << " " << i;
      ++checked;
    }
  }
  EXPECT_EQ(checked, 22);
}

// Sixty-four blocks of random bytes of each format have the bits that ggml gives them: dequantize_row_*() of ggml
// commit d99724f2b141, whose floats (every NaN as 0x7fc00000) are hashed by FNV-1a, a word at a time.
TEST(Gguf, BlocksOfAnyBytesHaveTheBitsOfGgml) {
  constexpr std::pair<std::uint32_t, std::uint64_t> kWant[] = {
      {2, 0x5e84f91c3b577725},  {3, 0xce74a79b281e494b},  {6, 0x21aef46069724325},  {7, 0x5718a25a5a9e3fa6},
      {8, 0x10f9bf566c162f65},  {10, 0xbe0192dc2fe1e280}, {11, 0x8c6230f9d76f21a5}, {12, 0xaaada51bbac0ea4a},
      {13, 0x08467073410c945c}, {14, 0x44bcf7a3c3462b37}, {15, 0x67da7ae8402f5894}, {16, 0xf2e03f29400cad3d},
      {17, 0xc266fdc71132bf8d}, {18, 0x6794953e22c06afd}, {19, 0x81a471e55f719ac5}, {20, 0x31224f451d739065},
      {21, 0xbb0109fadb9ce505}, {22, 0x8539897afcca3ed9}, {23, 0xaa9bb388e37fd0fb}, {29, 0x6636d68e146d3505},
      {34, 0xc071cd0605fc6325}, {35, 0xb967562047cc4325}, {39, 0xfeeca607002ec325}, {40, 0x63e1cb0b229b6325},
      {41, 0xadac467eef3de325}, {42, 0x1cc738d4ff2c4325},
  };
  for (const auto& [type, want] : kWant) {
    const GgmlType& t = *ggml_type(type);
    std::vector<std::byte> blocks(64 * static_cast<std::size_t>(t.bytes));
    std::uint32_t seed = 7;
    for (std::byte& b : blocks) b = static_cast<std::byte>((seed = seed * 1664525 + 1013904223) >> 24);
    std::vector<float> have(64 * static_cast<std::size_t>(t.elements));
    dequantize_gguf(type, blocks.data(), static_cast<std::int64_t>(have.size()), have.data());
    std::uint64_t hash = 14695981039346656037u;
    for (const float v : have)
      hash = (hash ^ (std::isnan(v) ? 0x7fc00000u : std::bit_cast<std::uint32_t>(v))) * 1099511628211u;
    EXPECT_EQ(hash, want) << t.name;
  }
}

// Every number is a type that is read, one that ggml has removed, or an unknown one, and the Error names it.
TEST(Gguf, TypesThatAreNotReadAreNamed) {
  const TempDir dir;
  Gguf g;
  g.tensors["xyz"] = {{256}, std::vector<float>(4 * 256)};
  std::string file = g.bytes();
  const std::size_t at = file.find("xyz") + 3 + 4 + 8;
  int known = 0;
  for (std::uint32_t type = 0; type < 48; ++type) {
    std::memcpy(file.data() + at, &type, sizeof type);
    spit(dir / "x.gguf", file);
    const std::string error = load_everything(dir / "x.gguf");
    if (ggml_type(type)) EXPECT_EQ(error, "") << type;
    else EXPECT_NE(error.find("type " + std::to_string(type)), std::string::npos) << error;
    known += ggml_type(type) != nullptr;
    EXPECT_EQ(error.find("has removed") != std::string::npos, was_ggml_type(type)) << error;
  }
  EXPECT_EQ(known, 8 + static_cast<int>(std::size(kQuantFormats)));
}

TEST(Gguf, DamagedFilesGiveErrors) {
  NEEDS_DATA("formats/gguf");
  for (const auto& e : std::filesystem::directory_iterator(data("formats/gguf")))
    if (e.path().filename().string().starts_with("bad_")) {
      EXPECT_NE(load_everything(e.path().string()), "") << e.path();
    }
}

TEST(Files, NoBytesCrashAReader) {
  NEEDS_DATA("formats/gguf");
  const TempDir dir;
  std::mt19937 random(3);
  for (const std::string file :
       {"formats/gguf/all_types.gguf", "llm/stories260K/hf/model.safetensors", "llm/stories260K/stories260K.bin"}) {
    const std::string whole = slurp(data(file));
    for (int i = 0; i < 200; ++i) {
      std::string bytes = i < 50 ? whole.substr(0, whole.size() * static_cast<std::size_t>(i) / 50) : whole;
      if (i >= 50)
        for (int k = 0; k < 5; ++k)
          bytes[random() % std::min<std::size_t>(bytes.size(), 3000)] = static_cast<char>(random());
      spit(dir / "x", bytes);
      load_everything(dir / "x");
    }
  }
  for (const std::string bytes : {"", "G", "GGUF", "{}", "\x08\0\0\0\0\0\0\0{}      "}) {
    spit(dir / "x", bytes);
    EXPECT_NE(load_everything(dir / "x"), "");
  }
  EXPECT_NE(load_everything("/dev/zero"), "");
  EXPECT_NE(load_everything(dir.path.string()), "");
}
