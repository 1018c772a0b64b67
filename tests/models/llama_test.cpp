// Real checkpoints in every format give the logits and texts that another program computed in f64.
#include "lightcone/models/llama/llama.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numbers>
#include <set>

#include <nlohmann/json.hpp>

#include "data.h"
#include "error_of.h"
#include "gguf_writer.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/base/error.h"
#include "lightcone/llm/sampler.h"
#include "lightcone/passes/passes.h"

using namespace lc;
using Json = nlohmann::json;

namespace {

Json expected(const std::string& model) { return Json::parse(slurp(data("llm/" + model + "/expected/expected.json"))); }

void near(std::span<const float> have, const std::vector<float>& want, double tolerance, const std::string& what) {
  ASSERT_EQ(have.size(), want.size()) << what;
  ASSERT_FALSE(want.empty());
  double worst = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double e = std::abs(static_cast<double>(have[i]) - static_cast<double>(want[i]));
    if (!(e <= worst)) worst = e;
  }
  EXPECT_LE(worst, tolerance) << what;
}

std::vector<int> greedy(const Llama& m, std::vector<int> ids, std::size_t length) {
  LlamaSession s(m);
  llm::Sampler pick({});
  int next = pick(s.feed(ids));
  ids.push_back(next);
  while (ids.size() < length && next != 1 && next != 2) ids.push_back(next = pick(s.feed(next)));
  return ids;
}

// Returns the mean negative log likelihood of a text, from the logits of all its tokens.
double nll(std::span<const float> logits, const std::vector<int>& ids, std::size_t vocab) {
  double total = 0;
  for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
    const auto row = logits.subspan(i * vocab, vocab);
    double most = row[0], sum = 0;
    for (float x : row) most = std::max(most, static_cast<double>(x));
    for (float x : row) sum += std::exp(static_cast<double>(x) - most);
    total += most + std::log(sum) - static_cast<double>(row[static_cast<std::size_t>(ids[i + 1])]);
  }
  return total / static_cast<double>(ids.size() - 1);
}

std::string base(const std::string& model) { return "llm/" + model + "/"; }

}  // namespace

TEST(Llama, EveryPlainFormatGivesTheReferenceTextAndLogits) {
  NEEDS_DATA("llm/stories260K");
  const std::pair<const char*, const char*> cases[] = {{"stories260K", "stories260K.bin"},
                                                       {"stories260K", "gguf/stories260K-F32.gguf"},
                                                       {"stories260K", "hf"},
                                                       {"babyllama361", "babyllama361.bin"}};
  for (const auto& [model, file] : cases) {
    const Json want = expected(model);
    const Llama m = Llama::load(data(base(model) + file),
                                {.all_logits = true, .threads = 2, .tokenizer = data(base(model) + "tokenizer.bin")});
    EXPECT_EQ(m.program().interpreted(), 0u);
    EXPECT_EQ(m.converted_bytes(), 0u);
    for (const Json& c : want["cases"]) {
      const auto ids = c["ids"].get<std::vector<int>>();
      EXPECT_EQ(m.tokenizer().encode(c["text"].get<std::string>()), ids);
      LlamaSession s(m);
      near(s.feed(ids), npy_f32(slurp(data(base(model) + "expected/" + c["logits"].get<std::string>()))), 2e-4, file);
    }
    const Llama last = Llama::load(data(base(model) + file), {.threads = 1});
    for (const Json& c : want["cases"]) {
      const auto all = c["greedy_ids"].get<std::vector<int>>();
      EXPECT_EQ(greedy(last, c["ids"].get<std::vector<int>>(), all.size()), all) << file;
    }
  }
}

TEST(Llama, EveryGgufTypeGivesTheReferenceText) {
  NEEDS_DATA("llm/stories260K");
  int seen = 0;
  for (const std::string model : {"stories260K", "babyllama361"}) {
    const Json want = expected(model);
    for (const Json& v : want["gguf"]) {
      const std::string file = base(model) + v["file"].get<std::string>();
      if (!std::filesystem::exists(data(file))) continue;  // the data set may be incomplete
      ++seen;
      const Llama m = Llama::load(data(file), {.context = 512, .all_logits = true, .threads = 2});
      EXPECT_EQ(m.converted_bytes(), 0u) << file;
      const auto ids = want["eval"]["ids"].get<std::vector<int>>();
      LlamaSession s(m);
      EXPECT_NEAR(nll(s.feed(ids), ids, static_cast<std::size_t>(m.config().vocab)), v["nll_eval"].get<double>(), 2e-4)
          << file;
      const auto all = v["greedy_ids"].get<std::vector<int>>();
      const auto prompt = m.tokenizer().encode("Once upon a time");
      const Llama last = Llama::load(data(file), {.threads = 1});
      EXPECT_EQ(greedy(last, prompt, all.size()), all) << file;
      EXPECT_EQ(m.tokenizer().decode(all), v["greedy_text"].get<std::string>()) << file;
      if (v.contains("logits")) {
        const std::string name = v["logits"].get<std::string>();
        LlamaSession fresh(m);
        near(fresh.feed(prompt), npy_f32(slurp(data(base(model) + "expected/" + name.substr(0, name.find(' '))))), 3e-4,
             file);
      }
    }
  }
  EXPECT_GE(seen, 7);
}

TEST(Llama, ShardedBf16) {
  NEEDS_DATA("llm/stories260K/hf-bf16-sharded");
  const Json want = expected("stories260K");
  const Llama m = Llama::load(data("llm/stories260K/hf-bf16-sharded"),
                              {.all_logits = true, .tokenizer = data("llm/stories260K/tokenizer.bin")});
  EXPECT_EQ(m.converted_bytes(), 0u);
  const auto ids = want["eval"]["ids"].get<std::vector<int>>();
  LlamaSession s(m);
  EXPECT_NEAR(nll(s.feed(ids), ids, 512), want["eval"]["nll_mean_bf16_weights"].get<double>(), 1e-4);
}

TEST(Llama, SlidingWindowAndRopeBase) {
  NEEDS_DATA("llm/stories260K/hf");
  const Json want = expected("stories260K");
  const auto ids = want["eval"]["ids"].get<std::vector<int>>();
  const TempDir dir;
  std::filesystem::copy(data("llm/stories260K/hf/model.safetensors"), dir / "model.safetensors");
  Json config = Json::parse(slurp(data("llm/stories260K/hf/config.json")));
  config["model_type"] = "mistral";
  config["sliding_window"] = want["mistral_sliding_window"]["window"];
  spit(dir / "config.json", config.dump());
  for (std::int64_t chunk : {7, 64}) {  // the result does not depend on the chunk size
    const Llama m = Llama::load(dir.path, {.chunk = chunk, .all_logits = true});
    LlamaSession s(m);
    near(s.feed(ids), npy_f32(slurp(data("llm/stories260K/expected/logits_eval_sw16.npy"))), 3e-4, "sliding window");
  }
  config["sliding_window"] = nullptr;
  config["rope_theta"] = 1e6;
  spit(dir / "config.json", config.dump());
  const Llama m = Llama::load(dir.path, {.all_logits = true});
  LlamaSession s(m);
  EXPECT_NEAR(nll(s.feed(ids), ids, 512), want["rope_theta_1e6"]["nll_mean"].get<double>(), 1e-4);
}

TEST(Llama, APrimopsOnlyDeviceTellsTheSameStory) {
  NEEDS_DATA("llm/stories260K");
  const Json want = expected("stories260K");
  const Llama m = Llama::load(data("llm/stories260K/stories260K.bin"),
                              {.context = 128, .chunk = 8, .compiler = generic() | primitives_only()});
  const Graph& g = m.program().graph();
  const auto live = g.live();
  for (NodeId id = 0; id < g.size(); ++id)
    if (live[id]) {
      ASSERT_TRUE(info(g[id].op).has(kPrimitive) || info(g[id].op).kind == Kind::Leaf) << info(g[id].op).name;
    }
  const auto all = want["cases"][1]["greedy_ids"].get<std::vector<int>>();
  EXPECT_EQ(greedy(m, want["cases"][1]["ids"].get<std::vector<int>>(), all.size()), all);
}

TEST(Llama, SameBitsForAnyNumberOfThreads) {
  NEEDS_DATA("llm/stories260K");
  const auto ids = expected("stories260K")["eval"]["ids"].get<std::vector<int>>();
  const Llama one = Llama::load(data("llm/stories260K/stories260K.bin"), {.all_logits = true, .threads = 1});
  LlamaSession a(one);
  const auto first = a.feed(ids);
  for (int threads : {2, 3}) {
    const Llama more = Llama::load(data("llm/stories260K/stories260K.bin"), {.all_logits = true, .threads = threads});
    LlamaSession b(more);
    const auto second = b.feed(ids);
    ASSERT_EQ(first.size(), second.size());
    EXPECT_EQ(std::memcmp(first.data(), second.data(), first.size_bytes()), 0) << threads;
  }
}

// Returns the root mean square difference of logits, relative to their root mean square.
double distance(std::span<const float> have, const std::vector<float>& want) {
  double off = 0, square = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double w = want[i], d = static_cast<double>(have[i]) - w;
    off += d * d, square += w * w;
  }
  return std::sqrt(off / square);
}

struct CacheKind {
  DType type;
  double bytes;       // per number, including its share of the scales, for heads of 8
  double most, loss;  // limits: distance of the logits from f32's; change of the mean log likelihood
};
constexpr CacheKind kCaches[] = {{DType::F32, 4, 0, 0},
                                 {DType::F16, 2, 0.001, 5e-4},
                                 {DType::BF16, 2, 0.008, 4e-3},
                                 {DType::I8, 1 + 4.0 / 8, 0.03, 1e-2}};

// The last layer computes one row only, plus all keys and values.
TEST(Llama, TheLastLayerComputesOneRow) {
  const auto work = [](bool all_logits, int layers) {  // flops of the products of a prompt of 64 tokens
    LlamaConfig c;
    c.vocab = 64, c.hidden = 64, c.intermediate = 256, c.layers = layers, c.heads = c.kv_heads = 4, c.head_dim = 16;
    const Graph g = llama_graph(c, {.context = 64, .chunk = 64, .all_logits = all_logits},
                                [](Graph& h, const std::string& path, Shape s) {
                                  return path.ends_with("bias") || path.find("_norm.weight") != path.npos
                                             ? nn::Parameter{}
                                             : nn::parameter(h, path, std::move(s), DType::F32);
                                });
    const Compiled done = transform(g, generic() | cpu({.threads = 1, .compiler = false}));
    std::int64_t flops = 0;
    for (NodeId id = 0; id < done.graph.size(); ++id)
      if (const Node& n = done.graph[id]; n.op == Op::Kernel && n.kernel->name().starts_with("matmul"))
        flops += n.kernel->flops().eval({{"seq", 64}, {"past", 0}});
    return static_cast<double>(flops);
  };
  const std::int64_t square = 2 * 64 * 64, wide = 2 * 64 * 256, head = 2 * 64 * 64;
  const std::int64_t layer = 4 * square + 3 * wide;  // per row
  for (const int layers : {1, 2}) {
    const double all = 64 * (layers * layer + head);
    const double last = 64 * ((layers - 1) * layer + 2 * square) + layer - 2 * square + head;
    EXPECT_NEAR(work(true, layers), all, 0.03 * all) << layers;  // norms run inside products and count, too
    EXPECT_NEAR(work(false, layers), last, 0.03 * last) << layers;
  }
}

// A narrow cache takes the expected bytes and changes the logits by its rounding only.
TEST(Llama, NarrowCaches) {
  NEEDS_DATA("llm/stories260K");
  const std::string file = data("llm/stories260K/stories260K.bin");
  const auto ids = expected("stories260K")["eval"]["ids"].get<std::vector<int>>();
  std::vector<float> exact;
  for (const CacheKind& c : kCaches) {
    const Llama m = Llama::load(file, {.all_logits = true, .kv_cache = c.type, .threads = 2});
    EXPECT_EQ(m.program().interpreted(), 0u);
    const LlamaConfig& f = m.config();
    const auto numbers = static_cast<double>(2 * f.layers * f.kv_heads * m.shape().context * f.head_dim);
    EXPECT_EQ(static_cast<double>(m.program().plan().state_bytes), numbers * c.bytes) << name(c.type);
    LlamaSession s(m);
    const auto logits = s.feed(ids);
    if (exact.empty()) exact.assign(logits.begin(), logits.end());
    const auto vocab = static_cast<std::size_t>(f.vocab);
    const double off = distance(logits, exact), loss = std::abs(nll(logits, ids, vocab) - nll(exact, ids, vocab));
    EXPECT_LE(off, c.most) << name(c.type);
    EXPECT_LE(loss, c.loss) << name(c.type);
    EXPECT_EQ(off > 0, c.type != DType::F32) << "the cache is not narrow";
    std::printf("cache %-4s: logits %.2g of their spread, log likelihood %.2g\n", std::string(name(c.type)).c_str(),
                off, loss);
    const Llama one = Llama::load(file, {.all_logits = true, .kv_cache = c.type, .threads = 1});
    LlamaSession again(one);
    const auto same = again.feed(ids);
    EXPECT_EQ(std::memcmp(logits.data(), same.data(), same.size_bytes()), 0) << "threads change bits";
  }
  EXPECT_THROW(Llama::load(file, {.kv_cache = DType::F64}), Error);
  const Json want = expected("stories260K")["cases"][1];
  const auto text = want["greedy_ids"].get<std::vector<int>>();
  for (const DType t : {DType::F16, DType::BF16})
    EXPECT_EQ(greedy(Llama::load(file, {.kv_cache = t}), want["ids"].get<std::vector<int>>(), text.size()), text);
}

// A narrow cache is expressed in the graph: the interpreter, which has no fused attention, gives the same text.
TEST(Llama, NarrowCachesAreWhatTheGraphSays) {
  NEEDS_DATA("llm/stories260K");
  const std::string file = data("llm/stories260K/stories260K.bin");
  const auto ids = expected("stories260K")["cases"][1]["ids"].get<std::vector<int>>();
  for (const DType t : {DType::F16, DType::BF16, DType::I8}) {
    const Llama fast = Llama::load(file, {.context = 64, .chunk = 8, .kv_cache = t, .threads = 2});
    const Llama judge = Llama::load(file, {.context = 64, .chunk = 8, .kv_cache = t, .compiler = Compiler()});
    LlamaSession a(fast), b(judge);
    int next = ids.back();
    a.feed(ids), b.feed(ids);
    for (int i = 0; i < 12; ++i) {
      const auto want = b.feed(next);
      const auto have = a.feed(next);
      // a number near a rounding boundary may be rounded in either direction
      EXPECT_LE(distance(have, {want.begin(), want.end()}), 0.02) << name(t);
      next = llm::Sampler({})(have);
    }
  }
}

TEST(Llama, WrongFilesAreRefusedInOneSentence) {
  NEEDS_DATA("llm/stories260K");
  const TempDir dir;
  const std::string bin = slurp(data("llm/stories260K/stories260K.bin")),
                    gguf = slurp(data("llm/stories260K/gguf/stories260K-F16.gguf"));
  const auto refuses = [&](const std::string& bytes, const std::string& words) {
    spit(dir / "model", bytes);
    try {
      Llama::load(dir / "model");
      ADD_FAILURE() << "loaded: " << words;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
    }
  };
  refuses(bin.substr(0, bin.size() / 2), "truncated");
  refuses(bin + "x", "too many");
  refuses(gguf.substr(0, gguf.size() - 100), "truncated");
  refuses("hello", "too short");
  refuses(std::string(4096, 'z'), "not a checkpoint");
  EXPECT_THROW(Llama::load(dir / "missing"), Error);
  EXPECT_THROW(Llama::load(data("tokenizers/ggml-vocab-bert-bge.gguf")), Error);
  const Llama m = Llama::load(data("llm/stories260K/stories260K.bin"), {.context = 8});
  LlamaSession s(m);
  EXPECT_THROW(s.feed(std::vector<int>(9, 1)), Error);
  EXPECT_THROW(s.feed(512), Error);
}

// Reads config.json next to a safetensors file. The numbers of rope_scaling are Llama 3.1's.
TEST(LlamaConfig, RopeScalingAndHeadSizes) {
  const TempDir dir;
  const float one = 1;
  const TensorToSave tensors[] = {{"x", DType::F32, {1}, std::as_bytes(std::span(&one, 1))}};
  save_safetensors(dir / "model.safetensors", tensors);
  const auto read = [&](const Json& more) {
    Json j = {{"model_type", "llama"},  {"vocab_size", 8},           {"hidden_size", 4096},   {"intermediate_size", 8},
              {"num_hidden_layers", 1}, {"num_attention_heads", 32}, {"rope_theta", 500000.0}};
    j.update(more);
    spit(dir / "config.json", j.dump());
    return LlamaConfig::from(Weights::open(dir.path.string()));
  };
  const LlamaConfig plain = read(Json::object());
  EXPECT_EQ(plain.head_dim, 128);
  EXPECT_EQ(plain.kv_heads, 32);
  ASSERT_EQ(plain.rope_frequencies.size(), 64u);
  for (std::size_t i = 0; i < 64; ++i)
    EXPECT_NEAR(plain.rope_frequencies[i], std::pow(500000.0, -static_cast<double>(i) / 64), 1e-15);
  const LlamaConfig linear = read({{"rope_scaling", {{"type", "linear"}, {"factor", 4.0}}}});
  const LlamaConfig llama3 = read({{"rope_scaling",
                                    {{"rope_type", "llama3"},
                                     {"factor", 8.0},
                                     {"low_freq_factor", 1.0},
                                     {"high_freq_factor", 4.0},
                                     {"original_max_position_embeddings", 8192}}}});
  int kept = 0, divided = 0, between = 0;
  for (std::size_t i = 0; i < 64; ++i) {
    // rotations within the training context
    const double w = plain.rope_frequencies[i], turns = 8192 * w / (2 * std::numbers::pi);
    EXPECT_NEAR(linear.rope_frequencies[i], w / 4, 1e-15);
    const double want = turns > 4 ? 1 : turns < 1 ? 1.0 / 8 : 1.0 / 8 + (turns - 1) / 3 * (7.0 / 8);
    EXPECT_NEAR(llama3.rope_frequencies[i] / w, want, 1e-12);
    ++(turns > 4 ? kept : turns < 1 ? divided : between);
  }
  EXPECT_GT(kept, 20);
  EXPECT_GT(divided, 20);
  EXPECT_GT(between, 3);
  EXPECT_EQ(read({{"head_dim", 64}}).head_dim, 64);
  EXPECT_EQ(read({{"num_key_value_heads", 8}}).kv_heads, 8);
  EXPECT_EQ(read({{"sliding_window", 16}}).window, 16);
  EXPECT_EQ(read({{"sliding_window", 16}, {"model_type", "qwen2"}}).window, 0);  // Qwen 2 needs use_sliding_window
  EXPECT_EQ(read({{"sliding_window", 16}, {"model_type", "qwen2"}, {"use_sliding_window", true}}).window, 16);
  EXPECT_EQ(read({{"eos_token_id", {2, 7}}}).eos, (std::vector<int>{2, 7}));
  for (const Json& wrong :
       {Json{{"num_key_value_heads", 5}}, Json{{"head_dim", 5}}, Json{{"hidden_size", 0}}, Json{{"hidden_act", "gelu"}},
        Json{{"model_type", "gpt2"}}, Json{{"vocab_size", 1.5}}, Json{{"rope_scaling", {{"type", "yarn"}}}}})
    EXPECT_THROW(read(wrong), Error) << wrong;
}

TEST(LlamaConfig, GgufMetadata) {
  const TempDir dir;
  const auto read = [&](const std::string& arch, const std::function<void(Gguf&)>& change = {}) {
    Gguf g;
    g.metadata["general.architecture"] = arch;
    const std::pair<const char*, std::uint32_t> numbers[] = {{"embedding_length", 32},
                                                             {"feed_forward_length", 8},
                                                             {"block_count", 1},
                                                             {"attention.head_count", 4},
                                                             {"context_length", 16}};
    for (const auto& [key, n] : numbers) g.metadata[arch + "." + key] = n;
    g.tensors["token_embd.weight"] = {{32, 2}, std::vector<float>(64)};
    if (change) change(g);
    spit(dir / "x.gguf", g.bytes());
    return LlamaConfig::from(Weights::open(dir / "x.gguf"));
  };
  const LlamaConfig plain = read("llama");
  EXPECT_EQ(plain.vocab, 2);
  EXPECT_EQ(plain.head_dim, 8);
  EXPECT_EQ(plain.kv_heads, 4);
  EXPECT_EQ(plain.window, 0);
  EXPECT_TRUE(plain.rope_interleaved);
  EXPECT_FALSE(read("qwen2").rope_interleaved);  // only Llama's queries and keys are permuted by the conversion
  EXPECT_FALSE(read("qwen3").rope_interleaved);
  EXPECT_EQ(read("qwen3", [](Gguf& g) { g.metadata["qwen3.attention.key_length"] = 16u; }).head_dim, 16);
  EXPECT_EQ(read("llama", [](Gguf& g) { g.metadata["llama.attention.head_count_kv"] = 2u; }).kv_heads, 2);
  EXPECT_EQ(read("llama", [](Gguf& g) { g.metadata["llama.attention.sliding_window"] = 5u; }).window, 5);
  EXPECT_EQ(read("llama", [](Gguf& g) { g.metadata["tokenizer.ggml.eos_token_id"] = 1u; }).eos, std::vector<int>{1});
  const auto scaled = read("llama", [](Gguf& g) {
    g.metadata["llama.rope.scaling.type"] = "linear";
    g.metadata["llama.rope.scaling.factor"] = 2.0f;
  });
  const auto divided = read("llama", [](Gguf& g) { g.tensors["rope_freqs.weight"] = {{4}, {1, 2, 4, 8}}; });
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_DOUBLE_EQ(scaled.rope_frequencies[i], plain.rope_frequencies[i] / 2);
    EXPECT_DOUBLE_EQ(divided.rope_frequencies[i], plain.rope_frequencies[i] / (1 << i));
  }
  const std::function<void(Gguf&)> wrong[] = {
      [](Gguf& g) { g.metadata["llama.attention.head_count_kv"] = 3u; },
      [](Gguf& g) { g.metadata["llama.attention.key_length"] = 7u; },
      [](Gguf& g) { g.metadata["llama.rope.dimension_count"] = 4u; },
      [](Gguf& g) { g.metadata["llama.rope.scaling.type"] = "yarn"; },
      [](Gguf& g) { g.metadata["llama.block_count"] = 0u; },
      [](Gguf& g) { g.metadata.erase("llama.context_length"); },
      [](Gguf& g) {
        g.tensors["rope_freqs.weight"] = {{3}, {1, 2, 4}};
      },
  };
  for (const auto& change : wrong) EXPECT_THROW(read("llama", change), Error);
  EXPECT_THROW(read("gpt2"), Error);
}

// Optional tensors of the family: biases (Qwen 2), norms of queries and keys (Qwen 3) and a separate head. Neutral
// values do not change the logits, other values do.
TEST(Llama, BiasesNormsAndAHeadOfItsOwn) {
  NEEDS_DATA("llm/stories260K/hf");
  const Weights source = Weights::open(data("llm/stories260K/hf"));
  std::vector<TensorToSave> plain;
  for (const auto& [name, t] : source.tensors()) plain.push_back({name, *t.dtype, t.shape, t.bytes});
  const TempDir dir;
  const auto logits = [&](const std::vector<TensorToSave>& tensors, const Json& change = Json::object()) {
    save_safetensors(dir / "model.safetensors", tensors);
    Json config = Json::parse(slurp(data("llm/stories260K/hf/config.json")));
    config.update(change);
    spit(dir / "config.json", config.dump());
    const Llama m = Llama::load(dir.path.string(), {.threads = 1});
    LlamaSession s(m);
    const auto l = s.feed(std::vector<int>{1, 403, 407, 261});
    return std::vector<float>(l.begin(), l.end());
  };
  const std::vector<float> want = logits(plain);
  const auto distance = [&](const std::vector<float>& have) {
    double d = 0;
    for (std::size_t i = 0; i < want.size(); ++i) d = std::max(d, std::abs(static_cast<double>(have[i] - want[i])));
    return d;
  };
  const std::vector<float> zeros(64, 0), halves(64, 0.5f);
  const std::string at = "model.layers.2.self_attn.";
  const auto with = [&](const std::string& name, std::int64_t n, const std::vector<float>& values) {
    std::vector<TensorToSave> t = plain;
    t.push_back({name, DType::F32, {n}, std::as_bytes(std::span(values)).first(static_cast<std::size_t>(n) * 4)});
    return t;
  };
  for (const auto& [name, n] : {std::pair("q_proj.bias", 64), std::pair("k_proj.bias", 32),
                                std::pair("v_proj.bias", 32), std::pair("o_proj.bias", 64)}) {
    EXPECT_EQ(distance(logits(with(at + name, n, zeros))), 0) << name;
    EXPECT_GT(distance(logits(with(at + name, n, halves))), 1e-3) << name;
  }
  for (const char* name : {"q_norm.weight", "k_norm.weight"})
    EXPECT_GT(distance(logits(with(at + name, 8, halves), {{"model_type", "qwen3"}})), 1e-3) << name;
  // the embedding as a separate head equals the tied model; doubled, it doubles the logits
  const StoredTensor& e = source.at("model.embed_tokens.weight");
  std::vector<float> twice = Weights::read(e);
  for (float& x : twice) x *= 2;
  std::vector<TensorToSave> tied = plain, doubled = plain;
  tied.push_back({"lm_head.weight", DType::F32, e.shape, e.bytes});
  doubled.push_back({"lm_head.weight", DType::F32, e.shape, std::as_bytes(std::span(twice))});
  const std::vector<float> own = logits(tied), large = logits(doubled);
  EXPECT_LT(distance(own), 1e-5);  // not 0: a separate head is packed, and summed in another order
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_EQ(large[i], 2 * own[i]);
  // a tensor of another shape is refused by name
  EXPECT_THROW(logits(with(at + "q_proj.bias", 32, zeros)), Error);
  // so are quantized integers whose scales are separate tensors
  for (const auto& [type, words] :
       {std::pair(DType::I8, "'model.layers.2.self_attn.q_proj.weight' holds whole numbers"),
        std::pair(DType::F8E4M3FN, "'model.layers.2.self_attn.q_proj.weight' holds floats of 8 bits"),
        std::pair(DType::F8E5M2, "(F8_E5M2), not weights")}) {
    std::vector<TensorToSave> codes = plain;
    for (TensorToSave& t : codes)
      if (t.name == at + "q_proj.weight") t.dtype = type, t.bytes = t.bytes.first(64 * 64);
    try {
      logits(codes);
      ADD_FAILURE() << "loaded: " << words;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
    }
  }
}
