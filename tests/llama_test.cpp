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

struct Case {
  const char* model;
  const char* file;
  const char* logits;  // the reference's suffix: case number, or a quantised variant
  double tolerance;
};
class Checkpoint : public testing::TestWithParam<Case> {};

}  // namespace

TEST(Llama, EveryFormatGivesTheReferenceTextAndLogits) {
  NEEDS_DATA("llm/stories260K");
  const struct {
    const char *model, *file;
  } cases[] = {{"stories260K", "stories260K.bin"}, {"stories260K", "gguf/stories260K-F32.gguf"}, {"stories260K", "hf"}, {"babyllama361", "babyllama361.bin"}};
  for (const auto& [model, file] : cases) {
    const std::string base = std::string("llm/") + model + "/";
    const Json want = expected(model);
    const Llama m = Llama::load(data(base + file), {.all_logits = true, .threads = 2, .tokenizer = data(base + "tokenizer.bin")});
    EXPECT_EQ(m.program().interpreted(), 0u);
    for (std::size_t i = 0; i < want["cases"].size(); ++i) {
      const Json& c = want["cases"][i];
      const auto ids = c["ids"].get<std::vector<int>>();
      EXPECT_EQ(m.tokenizer().encode(c["text"].get<std::string>()), ids);
      LlamaSession s(m);
      near(s.feed(ids), npy_f32(slurp(data(base + "expected/" + c["logits"].get<std::string>()))), 2e-4, base + file);
    }
    const Llama last = Llama::load(data(base + file), {.threads = 1});
    for (const Json& c : want["cases"]) {
      const auto all = c["greedy_ids"].get<std::vector<int>>();
      EXPECT_EQ(greedy(last, c["ids"].get<std::vector<int>>(), all.size()), all) << file;
    }
  }
}
