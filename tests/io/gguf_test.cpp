// Every field that a GGUF header may have is read, and a wrong file gives an Error and nothing worse.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <random>

#include "data.h"
#include "gguf_writer.h"
#include "lightcone/base/error.h"
#include "lightcone/io/checkpoints/gguf.h"
#include "lightcone/models/llama/llama.h"
#include "lightcone/passes/passes.h"

using namespace lc;

namespace {

// Options without a compiler: the interpreter runs the model, and no compiler is started.
LlamaOptions plainly() { return {.compiler = Compiler()}; }

Llama load(const std::string& bytes) {
  const TempDir dir;
  spit(dir / "x.gguf", bytes);
  return Llama::load(dir / "x.gguf", plainly());
}

// Returns the Error for these bytes, or "".
std::string refusal(const std::string& bytes) {
  try {
    load(bytes);
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}
std::string refusal(const std::function<void(Gguf&)>& change) {
  Gguf g = tiny_llama();
  change(g);
  return refusal(g.bytes());
}

std::string refused(const std::function<void()>& f) {
  try {
    f();
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

#define EXPECT_SAYS(text, words)                                                          \
  do {                                                                                    \
    const std::string said = text;                                                        \
    EXPECT_NE(said.find(words), std::string::npos) << "'" << said << "' lacks " << words; \
  } while (false)

std::string replaced(std::string s, const std::string& from, const std::string& to) {
  const std::size_t at = s.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return s.replace(at, from.size(), to);
}

// The offset of a tensor in its header, at an unaligned address.
class Offset {
 public:
  Offset(std::string& bytes, const std::string& name) {
    const std::size_t rank_at = bytes.find(name) + name.size();
    std::uint32_t rank;
    std::memcpy(&rank, bytes.data() + rank_at, 4);
    at_ = bytes.data() + rank_at + 4 + 8 * rank + 4;
  }
  std::uint64_t get() const {
    std::uint64_t v;
    std::memcpy(&v, at_, 8);
    return v;
  }
  void set(std::uint64_t v) { std::memcpy(at_, &v, 8); }

 private:
  char* at_;
};

std::vector<float> logits(const Llama& m) {
  LlamaSession s(m);
  const auto l = s.feed(std::vector<int>{1, 4, 5});
  return {l.begin(), l.end()};
}

}  // namespace

TEST(Gguf, ATinyModelRuns) {
  EXPECT_EQ(refusal(tiny_llama().bytes()), "");
  const Llama m = load(tiny_llama_with_tokens().bytes());
  const auto l = logits(m);
  ASSERT_EQ(l.size(), 6u);
  for (float x : l) EXPECT_TRUE(std::isfinite(x));
}

// Splits a model as llama.cpp's gguf-split does: the first file has all metadata.
std::vector<Gguf> split(const Gguf& whole, std::uint32_t parts) {
  std::vector<Gguf> all(parts);
  all[0].metadata = whole.metadata;
  std::uint32_t k = 0;
  for (const auto& [name, t] : whole.tensors) all[k++ % parts].tensors[name] = t;
  for (std::uint32_t p = 0; p < parts; ++p) {
    all[p].metadata["split.no"] = p, all[p].metadata["split.count"] = parts;
    all[p].metadata["split.tensors.count"] = static_cast<std::uint32_t>(whole.tensors.size());
  }
  return all;
}
std::string part_name(std::size_t k, std::size_t parts) {
  return "tiny-0000" + std::to_string(k) + "-of-0000" + std::to_string(parts) + ".gguf";
}

TEST(Gguf, AModelInSeveralFilesIsReadWhole) {
  const Gguf whole = tiny_llama_with_tokens();
  const TempDir dir;
  spit(dir / "whole.gguf", whole.bytes());
  std::filesystem::create_directory(dir / "parts");
  const auto parts = split(whole, 3);
  for (std::size_t k = 0; k < 3; ++k) spit(dir / ("parts/" + part_name(k + 1, 3)), parts[k].bytes());
  const Weights one = Weights::open(dir / "whole.gguf");
  for (const std::string& path : {std::string("parts"), "parts/" + part_name(1, 3), "parts/" + part_name(3, 3)})
    for (const bool map : {true, false}) {
      const Weights w = Weights::open(dir / path, {.map = map});
      ASSERT_EQ(w.tensors().size(), one.tensors().size()) << path;
      for (const auto& [name, t] : one.tensors()) {
        EXPECT_EQ(w.at(name).shape, t.shape);
        EXPECT_EQ(Weights::read(w.at(name)), Weights::read(t)) << name;
      }
      EXPECT_EQ(w.gguf()->text("general.architecture"), "llama");
      EXPECT_EQ(load_tokenizer(w.gguf()->file->path())->vocabulary().pieces.size(), 6u);
    }
  EXPECT_EQ(load_tokenizer(dir / ("parts/" + part_name(2, 3)))->vocabulary().pieces.size(), 6u);
  const Llama a = Llama::load(dir / "whole.gguf", plainly()), b = Llama::load(dir / "parts", plainly());
  EXPECT_EQ(LlamaConfig::from(one).vocab, LlamaConfig::from(Weights::open(dir / "parts")).vocab);
}

TEST(Gguf, PartsOfAModelAreAllThereAndOfOneModel) {
  const Gguf whole = tiny_llama();
  const auto opened = [&](const std::function<void(std::vector<Gguf>&)>& change, std::size_t missing = 9) {
    const TempDir dir;
    auto parts = split(whole, 3);
    change(parts);
    for (std::size_t k = 0; k < 3; ++k)
      if (k != missing) spit(dir / part_name(k + 1, 3), parts[k].bytes());
    try {
      Weights::open(dir / part_name(1, 3));
      return std::string("read");
    } catch (const Error& e) {
      return std::string(e.what());
    }
  };
  EXPECT_EQ(opened([](auto&) {}), "read");
  EXPECT_SAYS(opened([](auto&) {}, 2), part_name(3, 3));
  EXPECT_SAYS(opened([](auto&) {}, 0), part_name(1, 3));
  EXPECT_SAYS(opened([](auto& p) { std::swap(p[1], p[2]); }), "does not say that it is part 2 of 3");
  EXPECT_SAYS(opened([](auto& p) { p[1].metadata["split.count"] = 4u; }), "does not say that it is part 2 of 3");
  EXPECT_SAYS(opened([](auto& p) { p[2].metadata.clear(); }), "does not say that it is part 3 of 3");
  EXPECT_SAYS(opened([](auto& p) { p[2].tensors.erase(p[2].tensors.begin()); }),
              "have 10 tensors, and 11 were written");
  EXPECT_SAYS(opened([](auto& p) { p[2].tensors.insert(*p[0].tensors.begin()); }), "is in another part of the model");
  EXPECT_SAYS(opened([](auto& p) { p[0].metadata["split.count"] = 2000000000u; }),
              "part 1 of a model in 2000000000 files");
  // for a part under another name, or in memory, the other parts cannot be found
  EXPECT_SAYS(refusal(split(whole, 3)[0].bytes()), "called NAME-00001-of-0000N.gguf");
  const std::string bytes = split(whole, 3)[0].bytes();
  try {
    Weights::open(MappedFile::view(part_name(1, 3), std::as_bytes(std::span(bytes))));
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_SAYS(e.what(), "part 1 of a model in 3 files");
  }
}

TEST(Gguf, BigEndianFilesAreNamed) {
  std::string bytes = tiny_llama().bytes();
  for (const std::size_t at : {4, 8, 16}) std::reverse(bytes.begin() + at, bytes.begin() + at + (at == 4 ? 4 : 8));
  EXPECT_SAYS(refusal(bytes), "a GGUF file for big-endian machines: gguf_convert_endian.py");
}

TEST(Gguf, OtherArchitecturesAreNamed) {
  for (const char* name : {"gemma3", "bert", "mamba", "clip"})
    EXPECT_SAYS(refusal([&](Gguf& g) { g.metadata["general.architecture"] = name; }),
                std::string("a model of architecture '") + name + "' is not of the Llama family");
}

// Checkpoints of other programs are recognized by their first bytes, whatever their name.
TEST(Checkpoints, OfOtherProgramsAreNamed) {
  using namespace std::string_literals;
  const std::string zip = "PK\3\4"s + std::string(26, '\0'), rest(200, 'x');
  const std::string onnx =
      "\x08\x08\x12\x07pytorch\x1a\x03"
      "2.1\x3a\xc8\x01"s +
      rest;
  const std::pair<std::string, const char*> files[] = {
      {std::string(257, 'x') + "ustar" + rest + rest, "an archive of tar"},
      {"\x80\x04\x95"s + rest, "a pickle"},
      {onnx, "an ONNX model"},
      {onnx.substr(0, 40), "an ONNX model"},
      {"\x08\x07\x42\x04\x0a\x00\x10\x0c\x3a\x02\x0a\x00"s, "an ONNX model"},
      {zip + "weights.npy" + rest, "read_npz()"},
      {"\x93NUMPY\1\0"s + rest, "read_npy()"},
      {zip + "model.weights.h5" + rest, "a model of Keras"},
      {zip + rest, "a zip archive"},
      {"\x89HDF\r\n\x1a\n"s + rest, "an HDF5 file"},
      {"\x1c\0\0\0TFL3"s + rest, "TensorFlow Lite"},
      {"lmgg"s + rest, "before GGUF"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n", "git lfs pull"},
      {"\x1f\x8b\x08"s + rest, "compressed by gzip"},
      {"<!DOCTYPE html><html>" + rest, "a web page"}};
  const TempDir dir;
  for (const auto& [bytes, words] : files)
    for (const char* name : {"model.onnx", "model.bin", "model.pt", "model.safetensors", "model.gguf"}) {
      spit(dir / name, bytes);
      EXPECT_SAYS(refused([&] { Weights::open(dir / name); }), words);
      EXPECT_SAYS(refused([&] { Weights::open(dir / name); }), name);
      std::filesystem::remove(dir / name);
    }
  spit(dir / "pytorch_model.bin", zip + "archive/data.pkl" + rest);  // torch_test.cpp reads whole ones
  EXPECT_SAYS(refused([&] { Weights::open(dir.path.string()); }), "not a zip archive that can be read");
  EXPECT_SAYS(refused([&] { load_tokenizer(dir / "pytorch_model.bin"); }), "torch.save()");
  // files of supported formats that begin with the same bytes
  std::string llama2c(28, '\0');
  llama2c[0] = '\x80', llama2c[1] = 2;  // width 640
  spit(dir / "stories.bin", llama2c);
  EXPECT_SAYS(refused([&] { Weights::open(dir / "stories.bin"); }), "not a checkpoint this library knows");
  const std::string header = "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}";
  std::string tensors(8, '\0');
  const std::uint64_t size = 0x088b1f;  // the first bytes of a gzip file
  std::memcpy(tensors.data(), &size, 8);
  spit(dir / "a.safetensors", tensors + header + std::string(size - header.size(), ' ') + "x");
  EXPECT_EQ(Weights::open(dir / "a.safetensors").tensors().size(), 1u);
}

TEST(Gguf, TensorsLieApartAlignedAndOnce) {
  const std::string good = tiny_llama().bytes();
  std::string bad = good;
  Offset(bad, "blk.0.attn_k.weight").set(Offset(bad, "blk.0.attn_q.weight").get() + 32);
  EXPECT_SAYS(refusal(bad), "overlap");
  bad = good;
  Offset(bad, "blk.0.attn_k.weight").set(Offset(bad, "blk.0.attn_k.weight").get() + 4);
  EXPECT_SAYS(refusal(bad), "is not aligned to 32");
  bad = good;
  Offset(bad, "blk.0.attn_k.weight").set(std::uint64_t{1} << 62);
  EXPECT_SAYS(refusal(bad), "past the end of the file");
  EXPECT_SAYS(refusal(replaced(good, "blk.0.attn_k.weight", "blk.0.attn_q.weight")),
              "two tensors are called 'blk.0.attn_q.weight'");
  EXPECT_SAYS(refusal(replaced(good, "llama.block_count", "llama.context_len")), "no llama.block_count");
  Gguf twice = tiny_llama();
  twice.metadata["llama.block_kount"] = 1u;
  EXPECT_SAYS(refusal(replaced(twice.bytes(), "llama.block_kount", "llama.block_count")), "is given twice");
}

// Floats at unaligned addresses are copied to aligned memory; the results are the same.
TEST(Gguf, MisalignedWeightsAreNotReadInPlace) {
  const Llama plain = load(tiny_llama().bytes());
  EXPECT_EQ(plain.converted_bytes(), 0u);
  int copied = 0;
  for (int more = 0; more < 4; ++more) {
    Gguf g = tiny_llama();
    g.alignment = 1;
    g.metadata["general.name"] = std::string(static_cast<std::size_t>(more), 'x');
    const Llama m = load(g.bytes());
    EXPECT_TRUE(m.converted_bytes() == 0 || m.converted_bytes() == m.weight_bytes());
    copied += m.converted_bytes() > 0;
    EXPECT_EQ(logits(m), logits(plain));
  }
  EXPECT_EQ(copied, 3);  // one of the four alignments is good
}

TEST(Llama, ATransposedWeightIsRefused) {
  for (const char* name : {"blk.0.ffn_gate.weight", "blk.0.ffn_down.weight", "blk.0.attn_k.weight"})
    EXPECT_SAYS(refusal([&](Gguf& g) { std::swap(g.tensors[name].first[0], g.tensors[name].first[1]); }),
                "the model needs");
}

TEST(Llama, TheEmbeddingTableHasARowForEachToken) {
  const auto table = [](std::vector<std::uint64_t> shape, std::size_t n) {
    return refusal([&](Gguf& g) { g.tensors["token_embd.weight"] = {shape, std::vector<float>(n)}; });
  };
  EXPECT_SAYS(table({}, 1), "not a row for each token");
  EXPECT_SAYS(table({8}, 8), "not a row for each token");
  EXPECT_SAYS(table({8, 0}, 0), "not a row for each token");
  EXPECT_SAYS(table({8, 2, 3}, 48), "not a row for each token");
  Gguf g = tiny_llama_with_tokens();
  g.tensors["token_embd.weight"] = {{8, 5}, std::vector<float>(40)};
  EXPECT_SAYS(refusal(g.bytes()), "5 rows for 6 tokens");
}

TEST(Llama, NumbersOfAHeaderThatMakeNoModel) {
  const double wrong[] = {0, -1, -1e-9, kNaN, INFINITY, -INFINITY};
  const std::pair<const char*, const char*> keys[] = {
      {"llama.attention.layer_norm_rms_epsilon", "epsilon"},
      {"llama.rope.freq_base", "base of RoPE"},
      {"llama.rope.scaling.factor", "factor of the RoPE scaling"},
  };
  for (const auto& key : keys)
    for (double v : wrong) EXPECT_SAYS(refusal([&](Gguf& g) { g.metadata[key.first] = v; }), key.second);
  for (double v : {0.0, -0.5, 1e300, -1e300, 4.5, 2.0, 4294967300.0, kNaN})
    EXPECT_SAYS(refusal([&](Gguf& g) { g.metadata["llama.rope.dimension_count"] = v; }), "dimensions is not supported");
  for (const char* key : {"llama.block_count", "llama.attention.head_count", "llama.context_length",
                          "llama.attention.key_length", "llama.embedding_length"})
    for (double v : {0.0, kNaN, 1e300, -1.0, 0.5})
      EXPECT_SAYS(refusal([&](Gguf& g) { g.metadata[key] = v; }), "makes no");
  EXPECT_SAYS(refusal([&](Gguf& g) {
                g.metadata.erase("llama.rope.dimension_count");
                g.metadata["llama.attention.key_length"] = 1e9;
              }),
              "cannot be rotated");
  for (float v : {0.0f, NAN, -1.0f, INFINITY})
    EXPECT_SAYS(refusal([&](Gguf& g) { g.tensors["rope_freqs.weight"] = {{2}, {1, v}}; }), "frequency of RoPE");
  // without scaling, its factor is ignored
  EXPECT_EQ(refusal([](Gguf& g) {
              g.metadata["llama.rope.scaling.type"] = "none", g.metadata["llama.rope.scaling.factor"] = 0.0f;
            }),
            "");
}

TEST(Llama, TheConfigSaysWhatEndsAText) {
  const Llama m = load(tiny_llama().bytes());
  for (int id = 0; id < 6; ++id) EXPECT_EQ(m.ends(id), id == 2) << id;
  EXPECT_FALSE(m.has_tokenizer());
  for (double none : {-1.0, 1e300, -1e300, static_cast<double>(NAN), 2.5}) {
    Gguf g = tiny_llama();
    g.metadata["tokenizer.ggml.eos_token_id"] = none;
    EXPECT_TRUE(load(g.bytes()).config().eos.empty()) << none;
  }
}

TEST(Llama, AMemoryLimitIsKeptBeforeAnythingIsAllocated) {
  const TempDir dir;
  spit(dir / "x.gguf", tiny_llama().bytes());
  LlamaOptions o = plainly();
  o.memory_limit = 1 << 20;
  EXPECT_NO_THROW(Llama::load(dir / "x.gguf", o));
  o.context = 1 << 24;
  try {
    Llama::load(dir / "x.gguf", o);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_SAYS(e.what(), "ask for a smaller context");
  }
}

// Headers with a few wrong bytes, and with extreme numbers: loading gives a model or an Error.
TEST(Llama, NoHeaderCrashesIt) {
  const std::string whole = tiny_llama_with_tokens().bytes();
  const std::size_t header = whole.find("token_embd.weight") + 60;
  std::mt19937 random(5);
  const double odd[] = {0, -1, 1e300, -1e300, NAN, INFINITY, 2147483648.0, 4294967295.0, 9.3e18, 0.5, 7};
  int loaded = 0;
  const auto attempt = [&](const std::string& bytes) {
    try {
      const auto file = MappedFile::view("a test", std::as_bytes(std::span(bytes)));
      const Llama m = Llama::load(Weights::open(file), plainly());
      if (m.has_tokenizer()) m.tokenizer().decode(m.tokenizer().encode("a a"));
      LlamaSession(m).feed(3);
      ++loaded;
    } catch (const Error&) {
    }
  };
  for (int i = 0; i < 1500; ++i) {
    std::string bytes = whole;
    for (unsigned k = 0; k <= random() % 3; ++k)
      bytes[random() % header] = static_cast<char>(random() % 4 ? random() : random() % 3);
    attempt(bytes);
  }
  for (const auto& [key, value] : tiny_llama_with_tokens().metadata)
    for (double v : odd) {
      Gguf g = tiny_llama_with_tokens();
      if (auto* list = std::get_if<std::vector<double>>(&g.metadata[key])) list->back() = v;
      else g.metadata[key] = v;
      attempt(g.bytes());
    }
  for (const auto& [name, tensor] : tiny_llama().tensors)
    for (const std::vector<std::uint64_t>& shape :
         {std::vector<std::uint64_t>{}, {0}, {8, 0}, {0, 8}, {1, 1, 1}, {8, 10}, {std::uint64_t{1} << 40}}) {
      Gguf g = tiny_llama_with_tokens();
      g.tensors[name].first = shape;
      attempt(g.bytes());
    }
  EXPECT_GT(loaded, 20);  // harmless changes
}

// Files of save_gguf() are read back. It refuses tensors that ggml could not read.
TEST(SaveGguf, IsReadBack) {
  const TempDir dir;
  const std::vector<float> w{1, 2, 3, 4, 5, 6};
  const std::vector<std::uint16_t> half{f32_to_bf16(1.5f), f32_to_bf16(-2)};
  const TensorToSave tensors[] = {{"w", DType::F32, {2, 3}, std::as_bytes(std::span(w))},
                                  {"none", DType::F32, {0}, {}},
                                  {"h", DType::BF16, {2}, std::as_bytes(std::span(half))}};
  save_gguf(dir / "x.gguf", tensors,
            {{"a.u", std::uint32_t{7}},
             {"a.i", std::int32_t{-7}},
             {"a.f", 0.5f},
             {"a.b", true},
             {"a.s", std::string("text")},
             {"a.ss", std::vector<std::string>{"x", ""}},
             {"a.fs", std::vector<float>{1, -2}},
             {"a.is", std::vector<std::int32_t>{3}}});
  const GgufFile g = read_gguf(dir / "x.gguf");
  EXPECT_EQ(g.version, 3u);
  EXPECT_EQ(g.integer("a.u"), 7);
  EXPECT_EQ(g.integer("a.i"), -7);
  EXPECT_EQ(g.number("a.f"), 0.5);
  EXPECT_EQ(g.flag("a.b"), true);
  EXPECT_EQ(g.text("a.s"), "text");
  EXPECT_EQ(*g.strings("a.ss"), (std::vector<std::string_view>{"x", ""}));
  EXPECT_EQ((*g.numbers("a.fs"))[1], -2);
  EXPECT_EQ((*g.numbers("a.is"))[0], 3);
  const Weights r = Weights::open(dir / "x.gguf");
  EXPECT_EQ(r.at("w").shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(Weights::read(r.at("w")), w);
  EXPECT_EQ(Weights::read(r.at("h")), (std::vector<float>{1.5f, -2}));
}

TEST(SaveGguf, Refusals) {
  const TempDir dir;
  const std::vector<float> w{1, 2};
  const auto bytes = std::as_bytes(std::span(w));
  const auto refused = [&](const TensorToSave& t, const GgufFields& f = {}) {
    try {
      save_gguf(dir / "x.gguf", std::span(&t, 1), f);
      return std::string("no error");
    } catch (const Error& e) {
      EXPECT_TRUE(std::filesystem::is_empty(dir.path));
      return std::string(e.what());
    }
  };
  EXPECT_NE(refused({"w", DType::F32, {3}, bytes}).find("its shape needs 12"), std::string::npos);
  EXPECT_NE(refused({"w", DType::Bool, {8}, bytes}).find("GGUF has no type bool"), std::string::npos);
  EXPECT_NE(refused({std::string(64, 'w'), DType::F32, {2}, bytes}).find("at most 63 bytes"), std::string::npos);
  EXPECT_NE(refused({"w", DType::F32, {1, 1, 1, 1, 2}, bytes}).find("at most 4 axes"), std::string::npos);
  EXPECT_NE(refused({"w", DType::F32, {2}, bytes}, {{"k", true}, {"k", false}}).find("twice"), std::string::npos);
}
