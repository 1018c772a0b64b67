// Real checkpoints in every format against logits and texts computed in f64 by another program.
#include "lightcone/models/llama.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "data.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/models/sampler.h"
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
  Sampler pick({});
  int next = pick(s.feed(ids));
  ids.push_back(next);
  while (ids.size() < length && next != 1 && next != 2) ids.push_back(next = pick(s.feed(next)));
  return ids;
}

// Mean negative log likelihood of a text, from the logits of all its tokens.
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
      if (!std::filesystem::exists(data(file))) continue;  // the collection leaves some out
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
  for (std::int64_t chunk : {7, 64}) {  // the cache gives the same answer in any pieces
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
      ASSERT_TRUE(info(g[id].op).primitive || info(g[id].op).kind == Kind::Leaf) << info(g[id].op).name;
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

TEST(Sampler, FiltersAndSeeds) {
  const std::vector<float> logits{1, 3, 2, std::nanf(""), 3};
  EXPECT_EQ(Sampler({})(logits), 1);
  EXPECT_EQ(Sampler({.temperature = 1, .top_k = 1})(logits), 1);
  EXPECT_EQ(Sampler({.temperature = 1, .top_p = 1e-9})(logits), 1);
  EXPECT_EQ(Sampler({.repetition_penalty = 10})(logits, std::vector<int>{1, 4}), 2);
  Sampler a({.temperature = 0.7, .seed = 5}), b({.temperature = 0.7, .seed = 5});
  std::vector<int> count(5);
  for (int i = 0; i < 4000; ++i) {
    const int id = a(logits);
    EXPECT_EQ(id, b(logits));
    ++count[static_cast<std::size_t>(id)];
  }
  EXPECT_EQ(count[3], 0);  // a NaN is never chosen
  EXPECT_NEAR(count[1], count[4], 300);
  const double ratio = static_cast<double>(count[2]) / count[1];
  EXPECT_NEAR(ratio, std::exp(-1 / 0.7), 0.04);
  Sampler min_p({.temperature = 1, .min_p = 0.9});
  for (int i = 0; i < 100; ++i) EXPECT_NE(min_p(logits), 2);
  EXPECT_THROW(Sampler({.temperature = -1}), Error);
  EXPECT_THROW(Sampler({.top_p = 0}), Error);
}
