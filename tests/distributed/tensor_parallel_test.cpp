// tensor_parallel(): language models of every architecture that several ranks hold together say what one rank says.
#include "lightcone/llm/generate.h"
#include "lightcone/llm/ranks.h"
#include "lightcone/models/language/language_model.h"
#include "lightcone/models/llama/llama.h"

#include <mutex>

#include "error_of.h"
#include "gguf_converter.h"
#include "lightcone/distributed/strategies.h"
#include "ranks.h"
#include "tiny_models.h"

using namespace lc;

namespace {

using test::Json;
using test::run_ranks;

const std::vector<int> kText{2, 7, 3, 4, 6, 5, 9, 1};

// What a decoder says of a text that comes in two parts, and which tokens it continues it by.
struct Said {
  std::vector<float> logits;
  std::vector<int> tokens;
};
Said said_by(const llm::ProgramModel& m, std::span<const int> text = kText) {
  const auto session = m.session();
  Said s;
  const auto first = session->feed(text.first(5));
  s.logits.assign(first.begin(), first.end());
  std::span<const float> last = session->feed(text.subspan(5));
  s.logits.insert(s.logits.end(), last.begin(), last.end());
  llm::Sampler pick({});
  s.tokens = llm::generate(*session, pick, last, {.max_tokens = 5}).tokens;
  const auto after = session->feed(0);
  s.logits.insert(s.logits.end(), after.begin(), after.end());
  return s;
}

std::size_t parameter_bytes(const Program& p) {
  std::size_t n = 0;
  for (NodeId id = 0; id < p.graph().size(); ++id)
    if (p.graph()[id].parameter) n += upper_bytes(p.graph()[id]);
  return n;
}

template <class Model, class Options>
Model loaded(const std::string& path, Options o, const std::optional<Collectives>& ranks) {
  o.compiler = generic() | cpu({.threads = 1});
  o.ranks = ranks;
  return Model::load(path, o);
}

// Compares what ranks say with what one says. Returns the part of the weights that a rank has.
template <class Model, class Options>
double compare(const std::string& path, int n, const std::string& what, const Options& o = {}) {
  const Model whole = loaded<Model>(path, o, {});
  const Said want = said_by(whole);
  std::vector<Said> got(static_cast<std::size_t>(n));
  std::vector<double> part(got.size());
  const auto thrown = run_ranks(Mesh({{"model", n}}), [&](const Collectives& c) {
    const Model mine = loaded<Model>(path, o, c);
    got[static_cast<std::size_t>(c.rank())] = said_by(mine);
    part[static_cast<std::size_t>(c.rank())] = static_cast<double>(parameter_bytes(mine.program())) /
                                               static_cast<double>(parameter_bytes(whole.program()));
  });
  for (std::size_t k = 0; k < got.size(); ++k) {
    EXPECT_EQ(thrown[k], "") << what << ", rank " << k << " of " << n;
    if (!thrown[k].empty()) return 1;
    EXPECT_EQ(got[k].logits, got[0].logits) << what << ": ranks have other bits";
    EXPECT_EQ(got[k].tokens, want.tokens) << what << ", rank " << k << " of " << n;
    double largest = 1;
    for (const float x : want.logits) largest = std::max(largest, std::fabs(static_cast<double>(x)));
    EXPECT_LT(test::farthest({got[k].logits.begin(), got[k].logits.end()}, {want.logits.begin(), want.logits.end()}),
              1e-4 * largest)
        << what << ", rank " << k << " of " << n;
  }
  return part[0];
}

// Makes the vocabulary of a case one that ranks can divide.
void with_words(Json& c, int words) {
  const int before = c["config"]["vocab_size"];
  c["config"]["vocab_size"] = words;
  for (Json& t : c["tensors"])
    for (Json& extent : t[1])
      if (extent == before) extent = words;
}

// Two and four ranks, of 25 architectures with their variants: heads, networks, experts and words are divided, and what
// is not is whole.
TEST(TensorParallel, EveryArchitecture) {
  std::map<std::string, double> parts;
  for (Json& c : Json::parse(slurp(std::string(paths::kSource) + "/tests/goldens/languages.json"))) {
    const std::string name = c["config"]["architectures"][0];
    if (!name.ends_with("ForCausalLM") && !name.ends_with("LMHeadModel")) continue;
    with_words(c, 20);
    const test::FormulaFolder folder(c["config"], c["tensors"], test::NormWeights::OneAxis);
    for (const int n : {2, 4}) {
      const double part = compare<LanguageModel, LanguageModelOptions>(folder.path(), n, name);
      if (std::getenv("LIGHTCONE_SHOW")) std::printf("%s %d %.3f\n", name.c_str(), n, part);
      auto& most = parts[str_cat(name, " ", n)];
      most = std::max(most, part);
    }
  }
  EXPECT_GE(parts.size(), 50U);
}

TEST(TensorParallel, TinyModels) {
  NEEDS_DATA(test::kTiny + "gptneox.safetensors");
  for (const char* name : {"gptneox", "gptj",   "opt",     "falcon_mq", "starcoder2", "phi",        "phi3",
                           "llama",   "mistral", "qwen2",  "qwen3",     "smollm2",    "gemma",      "gemma3",
                           "granite", "olmo2",   "mixtral", "gpt2",     "granitemoe", "deepseek_v2"}) {
    const test::TinyFolder folder(name);
    for (const int n : {2, 4})
      try {
        compare<LanguageModel, LanguageModelOptions>(folder.path(), n, name);
      } catch (const Error& e) {
        ADD_FAILURE() << name << ": " << e.what();
      }
  }
}

}  // namespace
