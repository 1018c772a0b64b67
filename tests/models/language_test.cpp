// Decoder-only language models that load_model() reads compute what transformers computed of the same files.
#include "lightcone/models/language/language_model.h"

#include "error_of.h"
#include "tiny_models.h"

using namespace lc;

namespace {

using test::AllGiven;
using test::by_cpu;
using test::by_reference;
using test::numbers_of;

AllGiven texts_of(const nlohmann::json& sequences) {
  const std::vector<double> ids = numbers_of(sequences);
  const std::int64_t rows = std::ssize(sequences), length = std::ssize(ids) / rows;
  return {{"input_ids", {{rows, length}, ids}},
          {"attention_mask", {{rows, length}, std::vector<double>(ids.size(), 1)}}};
}

// Compares logits with what is expected, within 1e-5 by the reference and 1e-4 by cpu().
void expect_logits(const LoadedModel& m, const AllGiven& given, const std::vector<double>& want,
                   const std::string& what) {
  const auto& shape = given.at("input_ids").shape;
  const std::map<std::string, std::int64_t> sizes{{"batch", shape[0]}, {"length", shape[1]}};
  EXPECT_LT(test::farthest(by_reference(m, given, {sizes.begin(), sizes.end()}).at("logits"), want), 1e-5) << what;
  EXPECT_LT(test::farthest(by_cpu(m, given, sizes).at("logits"), want), 1e-4) << what;
}

constexpr const char* kTinyModels[] = {"gptneox", "gptj",       "opt",   "falcon_mq", "starcoder2", "phi",   "phi3",
                                       "llama",   "mistral",    "qwen2", "qwen3",     "smollm2",    "gemma", "gemma3",
                                       "granite", "granitemoe", "olmo2", "mixtral",   "deepseek_v2"};

TEST(Language, TinyModels) {
  NEEDS_DATA(test::kTiny + "gptneox.safetensors");
  for (const char* name : kTinyModels) {
    const test::TinyFolder folder(name);
    const nlohmann::json answers = test::tiny_answers(str_cat(name, "_logits"));
    try {
      const LoadedModel m = load_model(folder.path());
      expect_logits(m, texts_of(answers["sequences"]), numbers_of(answers["logits"]), name);
    } catch (const Error& e) {
      ADD_FAILURE() << name << ": " << e.what();
    }
  }
}

// The model with a cache has the logits of the whole graph, fed token by token and in chunks of two sizes.
TEST(Language, CachesChangeNothing) {
  NEEDS_DATA(test::kTiny + "gptneox.safetensors");
  for (const char* name : kTinyModels) {
    const test::TinyFolder folder(name);
    const nlohmann::json answers = test::tiny_answers(str_cat(name, "_logits"));
    const std::vector<int> text = answers["sequences"][0].get<std::vector<int>>();
    const std::vector<double> want = numbers_of(answers["logits"][0]);
    const LanguageModel m = LanguageModel::load(
        folder.path(), {.chunk = 5, .all_logits = true, .compiler = generic() | cpu({.threads = 1})});
    for (const std::size_t step : {std::size_t{1}, std::size_t{3}, text.size()}) {
      const auto session = m.session();
      std::vector<double> got;
      for (std::size_t at = 0; at < text.size(); at += step) {
        const auto now = std::span(text).subspan(at, std::min(step, text.size() - at));
        for (const float x : session->feed(now)) got.push_back(x);
      }
      EXPECT_LT(test::farthest(got, want), 1e-4) << name << " by " << step;
    }
    const LanguageModel last = LanguageModel::load(folder.path(), {.compiler = generic() | cpu({.threads = 1})});
    const auto session = last.session();
    const auto logits = session->feed(text);
    const std::vector<double> end(want.end() - std::ssize(logits), want.end());
    EXPECT_LT(test::farthest({logits.begin(), logits.end()}, end), 1e-4) << name;
  }
}

// GPT-2 as safetensors, as PyTorch's file, and as two of these with an index.
TEST(Language, Gpt2InEveryFormat) {
  NEEDS_DATA(test::kTiny + "gpt2.safetensors");
  const nlohmann::json answers = test::tiny_answers("gpt2_logits");
  const std::vector<std::vector<std::pair<std::string, std::string>>> formats{
      {{"gpt2.safetensors", "model.safetensors"}},
      {{"gpt2.bin", "pytorch_model.bin"}},
      {{"gpt2-00001-of-00002.bin", "tiny_gpt2-00001-of-00002.bin"},
       {"gpt2-00002-of-00002.bin", "tiny_gpt2-00002-of-00002.bin"},
       {"gpt2.bin.index.json", "pytorch_model.bin.index.json"}}};
  for (const auto& files : formats) {
    const TempDir folder;
    for (const auto& [from, to] : files) std::filesystem::copy_file(data(test::kTiny + from), folder / to);
    spit(folder / "config.json",
         R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_layer": 2, "n_head": 2, "n_embd": 8,
             "n_positions": 16, "vocab_size": 11})");
    const LoadedModel m = load_model(folder.path.string());
    expect_logits(m, texts_of(answers["sequences"]), numbers_of(answers["logits"]), files.front().first);
  }
}

// Small models of every architecture and of most of its variants, with weights by a formula, of which
// tools/make_language_goldens.py asked transformers in f64: windows shorter than the text, stretched rotations, routers,
// layouts, heads, and padding on both sides. Those that continue texts do so with a cache, too.
class LanguageGoldens : public testing::Test {
 protected:
  static nlohmann::json cases() {
    return nlohmann::json::parse(slurp(std::string(paths::kSource) + "/tests/goldens/languages.json"));
  }
  static std::string name_of(const nlohmann::json& c, std::size_t k) {
    return str_cat(c["config"]["architectures"][0].get<std::string>(), " of case ", k);
  }
};

const std::vector<double> kTexts{2, 7, 11, 4, 16, 5, 9, 3, 8, 6, 12, 0, 0, 0, 0, 0, 13, 1, 15, 10, 4};

TEST_F(LanguageGoldens, WholeTexts) {
  std::size_t k = 0;
  for (const auto& c : cases()) {
    const test::FormulaFolder folder(c["config"], c["tensors"]);
    const std::string what = name_of(c, k++);
    const std::vector<double> shown = numbers_of(c["mask"]);
    const AllGiven given{{"input_ids", {{3, 7}, kTexts}}, {"attention_mask", {{3, 7}, shown}}};
    try {
      const LoadedModel m = load_model(folder.path());
      const std::string output = m.outputs.contains("logits") ? "logits" : "hidden";
      const std::vector<double> want = numbers_of(c["logits"]);
      const auto masked = [&](std::vector<double> v) {  // rows of padding mean nothing
        if (v.size() % shown.size() == 0)
          for (std::size_t i = 0; i < v.size(); ++i) v[i] *= shown[i / (v.size() / shown.size())];
        return v;
      };
      const auto exact = by_reference(m, given, {{"batch", 3}, {"length", 7}});
      EXPECT_LT(test::farthest(masked(exact.at(output)), want), 1e-5) << what << " by the reference";
      const auto fast = by_cpu(m, given, {{"batch", 3}, {"length", 7}});
      EXPECT_LT(test::farthest(masked(fast.at(output)), want), 1e-4) << what;
    } catch (const Error& e) {
      ADD_FAILURE() << what << ": " << e.what();
    }
  }
}

// The first text by a decoder: one token, then two at a time.
TEST_F(LanguageGoldens, WithCaches) {
  std::size_t k = 0;
  for (const auto& c : cases()) {
    const std::string what = name_of(c, k++);
    const std::size_t vocab = c["config"]["vocab_size"], length = 7;
    if (c["logits"].size() != kTexts.size() * vocab) continue;  // classifiers continue nothing
    const test::FormulaFolder folder(c["config"], c["tensors"]);
    const std::vector<double> all = numbers_of(c["logits"]);
    const std::vector<double> want(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(length * vocab));
    const auto original = c["config"].value("original_max_position_embeddings", 16);  // LongRoPE looks at the context
    const LanguageModel m = LanguageModel::load(folder.path(), {.context = original < 7 ? 16 : std::min(original, 12),
                                                                .chunk = 2,
                                                                .all_logits = true,
                                                                .compiler = generic() | cpu({.threads = 1})});
    const auto session = m.session();
    std::vector<double> got;
    for (std::size_t at = 0; at < length; at += at == 0 ? 1 : 3) {
      const std::vector<int> now(kTexts.begin() + static_cast<std::ptrdiff_t>(at),
                                 kTexts.begin() + static_cast<std::ptrdiff_t>(std::min(length, at == 0 ? 1 : at + 3)));
      for (const float x : session->feed(now)) got.push_back(x);
    }
    EXPECT_LT(test::farthest(got, want), 1e-4) << what;
  }
}

TEST(Language, Classifier) {
  NEEDS_DATA(test::kTiny + "gpt2_seqcls.safetensors");
  const test::TinyFolder folder("gpt2_seqcls");
  const nlohmann::json answers = test::tiny_answers("gpt2_seqcls_logits");
  const LoadedModel m = load_model(folder.path());
  EXPECT_EQ(m.labels, (std::vector<std::string>{"neg", "neu", "pos"}));
  expect_logits(m, texts_of(answers["sequences"]), numbers_of(answers["logits"]), "gpt2_seqcls");
}

}  // namespace
