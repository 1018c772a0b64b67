// A GGUF checkpoint of the Llama family with random weights. Speed depends on the shapes and the storage only; for
// comparing answers, the numbers are scaled so that every matrix keeps the variance of its input.
#include <array>
#include <filesystem>
#include <fstream>
#include <random>

#include "workload.h"

namespace lc::bench {
namespace {

using Bytes = std::vector<std::uint8_t>;

struct Dims {
  std::uint32_t vocab, hidden, ffn, layers, heads, kv_heads, context, experts = 0, chosen = 0;
};
Dims dims(const std::string& model) {
  if (model == "tinyllama") return {32000, 2048, 5632, 22, 32, 4, 2048};
  if (model == "stories15m") return {32000, 288, 768, 6, 6, 6, 1024};
  if (model == "mixtral-2-layers") return {32000, 4096, 14336, 2, 32, 8, 4096, 8, 2};  // Mixtral 8x7B has 32
  throw Error("bench", "no model is called " + model);
}

// ggml's number of a type, its block, and ggml's number of a file of that type.
struct Type {
  std::uint32_t type;
  std::size_t elements, bytes;
  std::uint32_t file;
};
Type type_of(const std::string& name) {
  if (name == "f32") return {0, 1, 4, 0};
  if (name == "f16") return {1, 1, 2, 1};
  if (name == "q4_0") return {2, 32, 18, 2};
  if (name == "q8_0") return {8, 32, 34, 7};
  if (name == "q4_k") return {12, 256, 144, 14};
  if (name == "bf16") return {30, 1, 2, 32};
  throw Error("bench", "no storage is called " + name);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : next_(seed) {}
  std::uint64_t bits() {  // splitmix64
    std::uint64_t z = next_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-52 - 1; }  // [-1, 1), variance 1/3

 private:
  std::uint64_t next_;
};

void put_f16(std::uint8_t* p, double v) {
  const std::uint16_t h = f64_to_f16(v);
  std::memcpy(p, &h, 2);
}

// Returns `count` weights of standard deviation `deviation` in blocks of the type. The quants are uniform. A block's
// sign is random, so that formats with an asymmetric range (Q4_0: -8 to 7) have a mean of zero, too.
Bytes weights(const std::string& storage, std::size_t count, double deviation, Random& random) {
  const Type t = type_of(storage);
  Bytes out(count / t.elements * t.bytes);
  if (t.elements == 1) {
    const DType dtype = storage == "f16" ? DType::F16 : storage == "bf16" ? DType::BF16 : DType::F32;
    for (std::size_t i = 0; i < count; ++i) store_f64(out.data(), dtype, i, random.unit() * deviation * std::sqrt(3.0));
    return out;
  }
  for (std::size_t at = 0; at < out.size(); at += 8) {
    const std::uint64_t r = random.bits();
    std::memcpy(out.data() + at, &r, std::min<std::size_t>(8, out.size() - at));
  }
  for (std::size_t at = 0; at < out.size(); at += t.bytes) {
    std::uint8_t* block = out.data() + at;
    const double sign = random.bits() & 1 ? 1 : -1;
    if (storage == "q8_0") put_f16(block, sign * deviation / 73.9);  // quants of -128 to 127
    if (storage == "q4_0") put_f16(block, sign * deviation / 4.64);  // quants of -8 to 7
    if (storage == "q4_k") {
      // value = d * scale * q - dmin * min; scale and min are 6 bits, uniform: both terms have the same mean
      put_f16(block, sign * deviation / 225.0);
      put_f16(block + 2, sign * deviation / 225.0 * 7.5);
    }
  }
  return out;
}

class Writer {
 public:
  explicit Writer(const std::string& path) : out_(path, std::ios::binary) {}
  template <class T>
  void raw(T v) {
    out_.write(reinterpret_cast<const char*>(&v), sizeof v);
  }
  void text(std::string_view s) {
    raw(static_cast<std::uint64_t>(s.size()));
    out_.write(s.data(), static_cast<std::streamsize>(s.size()));
  }
  void key(std::string_view name, std::uint32_t type) {
    text(name);
    raw(type);
  }
  void u32(std::string_view name, std::uint32_t v) { key(name, 4), raw(v); }
  void f32(std::string_view name, float v) { key(name, 6), raw(v); }
  void string(std::string_view name, std::string_view v) { key(name, 8), text(v); }
  void array(std::string_view name, std::uint32_t element, std::uint64_t count) {
    key(name, 9);
    raw(element);
    raw(count);
  }
  void bytes(const Bytes& b) {
    out_.write(reinterpret_cast<const char*>(b.data()), static_cast<std::streamsize>(b.size()));
  }
  void align() {
    while (out_.tellp() % 32 != 0) out_.put(0);
  }
  bool good() const { return out_.good(); }
  void close() { out_.close(); }

 private:
  std::ofstream out_;
};

struct Entry {
  std::string name, storage;
  std::size_t rows, columns;  // rows 0: a vector
  std::size_t matrices = 1;   // above 1: so many of them in one tensor
  std::size_t count() const { return std::max<std::size_t>(rows, 1) * columns * matrices; }
  std::vector<std::size_t> extents() const {
    std::vector<std::size_t> e{columns};
    if (rows) e.push_back(rows);
    if (matrices > 1) e.push_back(matrices);
    return e;
  }
  std::size_t bytes() const {
    const Type t = type_of(storage);
    return count() / t.elements * t.bytes;
  }
};

std::vector<Entry> entries(const Dims& d, const std::string& quant) {
  std::vector<Entry> e;
  // rows that are no multiple of the block (288 in blocks of 256) fall back as llama.cpp's own quantiser does
  const auto matrix = [&](const std::string& name, std::size_t rows, std::size_t columns, std::size_t matrices = 1) {
    e.push_back({name, columns % type_of(quant).elements == 0 ? quant : "q8_0", rows, columns, matrices});
  };
  const std::string each = d.experts ? "_exps.weight" : ".weight";
  const std::size_t networks = std::max<std::size_t>(d.experts, 1);
  const std::size_t kv = d.hidden / d.heads * d.kv_heads;
  matrix("token_embd.weight", d.vocab, d.hidden);
  for (std::uint32_t i = 0; i < d.layers; ++i) {
    const std::string at = str_cat("blk.", i, ".");
    e.push_back({at + "attn_norm.weight", "f32", 0, d.hidden});
    matrix(at + "attn_q.weight", d.hidden, d.hidden);
    matrix(at + "attn_k.weight", kv, d.hidden);
    matrix(at + "attn_v.weight", kv, d.hidden);
    matrix(at + "attn_output.weight", d.hidden, d.hidden);
    e.push_back({at + "ffn_norm.weight", "f32", 0, d.hidden});
    if (d.experts) e.push_back({at + "ffn_gate_inp.weight", "f32", d.experts, d.hidden});
    matrix(at + "ffn_gate" + each, d.ffn, d.hidden, networks);
    matrix(at + "ffn_up" + each, d.ffn, d.hidden, networks);
    matrix(at + "ffn_down" + each, d.hidden, d.ffn, networks);
  }
  e.push_back({"output_norm.weight", "f32", 0, d.hidden});
  matrix("output.weight", d.vocab, d.hidden);
  return e;
}

// Writes the smallest vocabulary that readers accept: three special pieces, the 256 bytes, and made-up words.
void tokenizer(Writer& w, std::uint32_t vocab) {
  w.string("tokenizer.ggml.model", "llama");
  w.array("tokenizer.ggml.tokens", 8, vocab);
  for (std::uint32_t i = 0; i < vocab; ++i) {
    char byte[8];
    std::snprintf(byte, sizeof byte, "<0x%02X>", (i - 3) & 0xFF);
    w.text(i == 0 ? "<unk>" : i == 1 ? "<s>" : i == 2 ? "</s>" : i < 259 ? byte : str_cat("w", i));
  }
  w.array("tokenizer.ggml.scores", 6, vocab);
  for (std::uint32_t i = 0; i < vocab; ++i) w.raw(i < 259 ? 0.0f : -static_cast<float>(i));
  w.array("tokenizer.ggml.token_type", 5, vocab);
  for (std::uint32_t i = 0; i < vocab; ++i) w.raw(std::int32_t{i == 0 ? 2 : i < 3 ? 3 : i < 259 ? 6 : 1});
  w.u32("tokenizer.ggml.bos_token_id", 1);
  w.u32("tokenizer.ggml.eos_token_id", 2);
  w.u32("tokenizer.ggml.unknown_token_id", 0);
}

}  // namespace

void write_model(const Json& w) {
  const auto model = w.at("model").get<std::string>(), quant = w.at("quant").get<std::string>();
  const std::string path = w.at("path").get<std::string>(), part = path + ".part";
  const Dims d = dims(model);
  const std::vector<Entry> all = entries(d, quant);
  Writer f(part);
  f.raw(std::uint32_t{0x46554747});  // "GGUF"
  f.raw(std::uint32_t{3});
  f.raw(static_cast<std::uint64_t>(all.size()));
  f.raw(std::uint64_t{d.experts ? 23u : 21u});  // metadata keys
  f.string("general.architecture", "llama");
  f.string("general.name", "random " + model);
  f.u32("general.file_type", type_of(quant).file);
  f.u32("llama.block_count", d.layers);
  f.u32("llama.context_length", d.context);
  f.u32("llama.embedding_length", d.hidden);
  f.u32("llama.feed_forward_length", d.ffn);
  f.u32("llama.attention.head_count", d.heads);
  f.u32("llama.attention.head_count_kv", d.kv_heads);
  f.u32("llama.rope.dimension_count", d.hidden / d.heads);
  f.u32("llama.vocab_size", d.vocab);
  f.f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  f.f32("llama.rope.freq_base", 10000);
  f.u32("general.quantization_version", 2);
  if (d.experts) f.u32("llama.expert_count", d.experts), f.u32("llama.expert_used_count", d.chosen);
  tokenizer(f, d.vocab);  // seven keys
  std::uint64_t offset = 0;
  for (const Entry& e : all) {
    f.text(e.name);
    f.raw(static_cast<std::uint32_t>(e.extents().size()));
    for (const std::size_t n : e.extents()) f.raw(static_cast<std::uint64_t>(n));
    f.raw(type_of(e.storage).type);
    f.raw(offset);
    offset += (e.bytes() + 31) / 32 * 32;
  }
  for (const Entry& e : all) {
    f.align();
    Random random(seed_of(e.name));
    if (e.rows) {
      const double deviation = e.name == "token_embd.weight" ? 1 : 1 / std::sqrt(static_cast<double>(e.columns));
      f.bytes(weights(e.storage, e.count(), deviation, random));
    } else {
      Bytes b(e.bytes());
      for (std::size_t i = 0; i < e.columns; ++i) store_f64(b.data(), DType::F32, i, 1 + 0.1 * random.unit());
      f.bytes(b);
    }
  }
  f.align();
  f.close();
  if (!f.good()) throw Error("bench", "cannot write " + part);
  std::filesystem::rename(part, path);
}

}  // namespace lc::bench
