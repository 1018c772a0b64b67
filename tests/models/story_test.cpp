// The model inside the command against an f64 reference written in another language.
#include <cmath>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lightcone/models/llama/llama.h"
#include "lightcone/models/llama/sampler.h"
#include "lightcone/passes/passes.h"

using namespace lc;
using Json = nlohmann::json;

TEST(Story, GreedyTextAndLogits) {
  const std::string folder = std::string(LIGHTCONE_SOURCE) + "/models/story/";
  const Json want = Json::parse(std::ifstream(folder + "reference.json"));
  const auto ids = want["ids"].get<std::vector<int>>();
  ASSERT_GT(ids.size(), 50u);
  for (int threads : {1, 2}) {
    const Llama m = Llama::load(folder + "story.gguf", {.threads = threads});
    EXPECT_EQ(m.tokenizer().decode(ids), want["text"].get<std::string>());
    LlamaSession s(m);
    Sampler pick({});
    std::vector<int> have = m.tokenizer().encode("");
    while (have.size() < ids.size()) have.push_back(pick(s.feed(have.back())));
    EXPECT_EQ(have, ids);
    s.reset();
    const auto logits = s.feed(ids);  // all at once: the same answer as one by one
    const auto last = want["last_logits"].get<std::vector<float>>();
    ASSERT_EQ(logits.size(), last.size());
    for (std::size_t i = 0; i < last.size(); ++i) EXPECT_NEAR(logits[i], last[i], 2e-3) << i;
  }
}

TEST(Story, APrimopsOnlyDeviceTellsIt) {
  const std::string folder = std::string(LIGHTCONE_SOURCE) + "/models/story/";
  const Json want = Json::parse(std::ifstream(folder + "reference.json"));
  auto ids = want["ids"].get<std::vector<int>>();
  ids.resize(12);
  const Llama m =
      Llama::load(folder + "story.gguf", {.context = 16, .chunk = 1, .compiler = generic() | primitives_only()});
  LlamaSession s(m);
  Sampler pick({});
  std::vector<int> have{1};
  while (have.size() < ids.size()) have.push_back(pick(s.feed(have.back())));
  EXPECT_EQ(have, ids);
}
