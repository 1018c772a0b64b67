// The story model in fewer bits predicts its reference text as well as documented, and its greedy text leaves it where
// documented.
#include <algorithm>
#include <cmath>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lightcone/llm/sampler.h"
#include "lightcone/lowering/types/half_precision.h"
#include "lightcone/lowering/types/int8.h"
#include "lightcone/models/llama/llama.h"
#include "lightcone/passes/passes.h"
#include "on_device.h"
#include "paths.h"

using namespace lc;

namespace {

const std::string kFolder = std::string(paths::kSource) + "/models/story/";

std::vector<int> reference_text() {
  return nlohmann::json::parse(std::ifstream(kFolder + "reference.json"))["ids"].get<std::vector<int>>();
}
Llama story(const Compiler& type) {
  return Llama::load(kFolder + "story.gguf",
                     {.all_logits = true, .compiler = generic() | type | test::device({.threads = 1})});
}

// Returns the mean negative log likelihood per token of the text.
double nll(const Llama& m, const std::vector<int>& ids) {
  LlamaSession s(m);
  const auto logits = s.feed(ids);
  const auto vocab = static_cast<std::size_t>(m.config().vocab);
  double total = 0;
  for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
    const auto row = logits.subspan(i * vocab, vocab);
    double most = row[0], sum = 0;
    for (const float x : row) most = std::max(most, static_cast<double>(x));
    for (const float x : row) sum += std::exp(x - most);
    total += most + std::log(sum) - row[static_cast<std::size_t>(ids[i + 1])];
  }
  return total / static_cast<double>(ids.size() - 1);
}

// Returns how many tokens of the text the model generates by itself.
std::size_t told(const Llama& m, const std::vector<int>& text) {
  LlamaSession s(m);
  llm::Sampler pick({});
  std::size_t k = 1;
  while (k < text.size() && pick(s.feed(text[k - 1])) == text[k]) ++k;
  return k;
}

}  // namespace

TEST(StoryTypes, TellTheReferenceText) {
  const std::vector<int> text = reference_text();
  const double exact = nll(story({}), text);
  struct Case {
    const char* name;
    Compiler type;
    double worse;            // greatest loss increase, nats per token
    std::size_t told, kept;  // least number of tokens; greatest number of weight bytes
  };
  constexpr std::size_t kWeights = 1771200;
  const Case cases[] = {{"f16", half(), 1e-3, text.size(), 0},
                        {"bf16", half(DType::BF16), 5e-3, text.size(), 0},
                        {"int8", int8(), 5e-3, text.size(), kWeights * 102 / 100},
                        {"int8 in groups of 32", int8({.group = 32}), 5e-3, text.size(), kWeights * 115 / 100},
                        {"int8 in groups of 64", int8({.group = 64}), 5e-3, 20, kWeights * 112 / 100}};
  for (const Case& c : cases) {
    const Llama m = story(c.type);
    EXPECT_EQ(m.program().interpreted(), 0u) << c.name;
    EXPECT_LT(std::abs(nll(m, text) - exact), c.worse) << c.name;
    EXPECT_GE(told(m, text), c.told) << c.name;
    if (c.kept == 0) continue;
    EXPECT_LT(m.program().plan().prepared_bytes, c.kept) << c.name;
  }
}
