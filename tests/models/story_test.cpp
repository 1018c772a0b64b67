// The story model inside the command agrees with an f64 reference written in another language.
#include <cmath>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lightcone/llm/sampler.h"
#include "lightcone/models/llama/llama.h"
#include "lightcone/passes/passes.h"
#include "paths.h"

using namespace lc;
using Json = nlohmann::json;

TEST(Story, GreedyTextAndLogits) {
  const std::string folder = std::string(paths::kSource) + "/models/story/";
  const Json want = Json::parse(std::ifstream(folder + "reference.json"));
  const auto ids = want["ids"].get<std::vector<int>>();
  ASSERT_GT(ids.size(), 50u);
  for (int threads : {1, 2}) {
    const Llama m = Llama::load(folder + "story.gguf", {.threads = threads});
    EXPECT_EQ(m.tokenizer().decode(ids), want["text"].get<std::string>());
    LlamaSession s(m);
    llm::Sampler pick({});
    std::vector<int> have = m.tokenizer().encode("");
    while (have.size() < ids.size()) have.push_back(pick(s.feed(have.back())));
    EXPECT_EQ(have, ids);
    s.reset();
    const auto logits = s.feed(ids);  // all tokens at once give the same result as one by one
    const auto last = want["last_logits"].get<std::vector<float>>();
    ASSERT_EQ(logits.size(), last.size());
    for (std::size_t i = 0; i < last.size(); ++i) EXPECT_NEAR(logits[i], last[i], 2e-3) << i;
  }
}

// A session shares ownership of its model, so the Llama it was made from may be moved or destroyed.
TEST(Story, ASessionOutlivesTheHandleItWasMadeFrom) {
  const std::string file = std::string(paths::kSource) + "/models/story/story.gguf";
  const LlamaOptions small{.context = 16, .chunk = 4, .threads = 1};
  const auto logits_of = [](LlamaSession& s) {
    const std::span<const float> logits = s.feed(std::vector<int>{1, 300, 301});
    return std::vector<float>(logits.begin(), logits.end());
  };
  LlamaSession of_temporary(Llama::load(file, small));
  const std::vector<float> want = logits_of(of_temporary);
  EXPECT_EQ(of_temporary.room(), 13);

  auto model = std::make_unique<Llama>(Llama::load(file, small));
  LlamaSession first(*model);
  const Llama moved = std::move(*model);
  EXPECT_EQ(model->shape().context, 16);  // a moved-from Llama is still usable
  LlamaSession second(moved);
  model.reset();
  LlamaSession third = std::move(second);
  EXPECT_EQ(logits_of(first), want);
  EXPECT_EQ(logits_of(third), want);
}

TEST(Story, APrimopsOnlyDeviceTellsIt) {
  const std::string folder = std::string(paths::kSource) + "/models/story/";
  const Json want = Json::parse(std::ifstream(folder + "reference.json"));
  auto ids = want["ids"].get<std::vector<int>>();
  ids.resize(12);
  const Llama m =
      Llama::load(folder + "story.gguf", {.context = 16, .chunk = 1, .compiler = generic() | primitives_only()});
  LlamaSession s(m);
  llm::Sampler pick({});
  std::vector<int> have{1};
  while (have.size() < ids.size()) have.push_back(pick(s.feed(have.back())));
  EXPECT_EQ(have, ids);
}
