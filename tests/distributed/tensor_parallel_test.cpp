// tensor_parallel(): language models of every architecture that several ranks hold together say what one rank says.
#include "lightcone/llm/generate.h"
#include "lightcone/llm/ranks.h"
#include "lightcone/models/language/language_model.h"
#include "lightcone/models/llama/llama.h"

#include <mutex>

#include "error_of.h"
#include "gguf_converter.h"
#include "lightcone/distributed/sharding/strategies.h"
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
    part[static_cast<std::size_t>(c.rank())] =
        static_cast<double>(parameter_bytes(mine.program())) / static_cast<double>(parameter_bytes(whole.program()));
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

// Two or four ranks in turn, of 25 architectures with their variants: heads, networks, experts and words are divided,
// and what is not is whole.
TEST(TensorParallel, EveryArchitecture) {
  std::map<std::string, double> parts;
  int n = 2;
  for (Json& c : Json::parse(slurp(std::string(paths::kSource) + "/tests/goldens/languages.json"))) {
    const std::string name = c["config"]["architectures"][0];
    if (!name.ends_with("ForCausalLM") && !name.ends_with("LMHeadModel")) continue;
    with_words(c, 20);
    const test::FormulaFolder folder(c["config"], c["tensors"], test::NormWeights::OneAxis);
    const double part = compare<LanguageModel, LanguageModelOptions>(folder.path(), n, name);
    // widths of 5, 6 and 7 of experts, which four ranks do not divide
    const bool odd = name.starts_with("Deepseek") || name.starts_with("Qwen2Moe") || name.starts_with("Qwen3Moe");
    const bool recurrent = name.starts_with("Rwkv") || name.starts_with("Mamba2");
    EXPECT_TRUE(odd || recurrent || part < (n == 2 ? 0.55 : 0.36)) << name << " " << n << ": " << part;
    auto& most = parts[str_cat(name, " ", n)];
    most = std::max(most, part);
    n = 6 - n;
  }
  EXPECT_GE(parts.size(), 25U);
}

TEST(TensorParallel, TinyModels) {
  NEEDS_DATA(test::kTiny + "gptneox.safetensors");
  int n = 2;
  for (const char* name :
       {"gptneox", "gptj", "opt", "falcon_mq", "starcoder2", "phi", "phi3", "llama", "mistral", "qwen2", "qwen3",
        "smollm2", "gemma", "gemma3", "granite", "olmo2", "mixtral", "granitemoe", "deepseek_v2"}) {
    const test::TinyFolder folder(name);
    n = 6 - n;
    try {
      compare<LanguageModel, LanguageModelOptions>(folder.path(), n, name);
    } catch (const Error& e) {
      ADD_FAILURE() << name << ": " << e.what();
    }
  }
}

// Files with blocks of 32 and of 256 elements: rows are divided, and columns between blocks, as far as there are some.
TEST(TensorParallel, QuantisedFiles) {
  Json c = {{"config",
             {{"model_type", "llama"},
              {"architectures", {"LlamaForCausalLM"}},
              {"hidden_size", 512},
              {"intermediate_size", 512},
              {"num_attention_heads", 4},
              {"num_key_value_heads", 4},
              {"num_hidden_layers", 1},
              {"rms_norm_eps", 1e-5},
              {"max_position_embeddings", 32},
              {"hidden_act", "silu"},
              {"tie_word_embeddings", false},
              {"vocab_size", 32}}},
            {"tensors", Json::array()}};
  const auto add = [&](const std::string& name, std::vector<int> shape) { c["tensors"].push_back({name, shape}); };
  add("model.embed_tokens.weight", {32, 512});
  const std::string layer = "model.layers.0.";
  for (const char* part : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                           "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})
    add(layer + part + ".weight", {512, 512});
  add(layer + "input_layernorm.weight", {512}), add(layer + "post_attention_layernorm.weight", {512});
  add("model.norm.weight", {512}), add("lm_head.weight", {32, 512});
  const test::FormulaFolder folder(c["config"], c["tensors"], test::NormWeights::OneAxis);
  for (const QuantFormat format : {QuantFormat::Q8_0, QuantFormat::Q4_K}) {
    const std::string path = folder.folder / str_cat(info(format).name, ".gguf"), what(info(format).name);
    test::Converter(c["config"], folder.folder / "model.safetensors").write(path, true, format);
    EXPECT_LT((compare<Llama, LlamaOptions>(path, 2, what)), 0.52) << what;
    const double quarter = compare<LanguageModel, LanguageModelOptions>(path, 4, what);
    // two blocks of 256 in a row are no four parts
    if (format == QuantFormat::Q8_0) EXPECT_LT(quarter, 0.27);
    else EXPECT_GT(quarter, 0.3);
  }
}

// The model of this repository, quantised caches included.
TEST(TensorParallel, StoryModel) {
  const std::string path = str_cat(paths::kSource, "/models/story/story.gguf");
  for (const DType cache : {DType::F32, DType::I8})
    EXPECT_LT((compare<Llama, LlamaOptions>(path, 2, "story", {.context = 64, .kv_cache = cache})), 0.55);
}

// A mesh of two axes, another model on one rank, and ranks that nothing is divided by, are Errors on each rank.
TEST(TensorParallel, Mistakes) {
  const std::string path = str_cat(paths::kSource, "/models/story/story.gguf");
  const auto load = [&](const Collectives& c, std::int64_t context) {
    loaded<Llama>(path, LlamaOptions{.context = context}, c);
  };
  for (const std::string& e : run_ranks(Mesh({{"data", 1}, {"model", 2}}), [&](const Collectives& c) { load(c, 64); }))
    EXPECT_PRED2(contains, e, "is divided along one axis");
  for (const std::string& e : run_ranks(Mesh({{"model", 2}}), [&](const Collectives& c) { load(c, 64 + c.rank()); }))
    EXPECT_PRED2(contains, e, "ranks differ in the model");
  for (const std::string& e : run_ranks(Mesh({{"model", 7}}), [&](const Collectives& c) { load(c, 64); }))
    EXPECT_PRED2(contains, e, "there is nothing in this graph that 7 ranks can divide");
}

// Parts of a stored tensor: rows lie in the file, columns are a copy, and blocks are never cut.
TEST(TensorParallel, PartsOfStoredTensors) {
  std::vector<float> values(24);
  for (std::size_t k = 0; k < values.size(); ++k) values[k] = static_cast<float>(k);
  const StoredTensor whole{{4, 6}, "F32", std::as_bytes(std::span(values)), DType::F32};
  const StoredPart rows = part_of(whole, 0, 2, 1), columns = part_of(whole, 1, 3, 1);
  EXPECT_FALSE(rows.copy);
  EXPECT_EQ(rows.tensor.bytes.data(), whole.bytes.data() + 48);
  EXPECT_EQ(Weights::read(rows.tensor), (std::vector<float>{12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}));
  EXPECT_EQ(columns.tensor.shape, (std::vector<std::int64_t>{4, 2}));
  EXPECT_EQ(Weights::read(columns.tensor), (std::vector<float>{2, 3, 8, 9, 14, 15, 20, 21}));
  EXPECT_PRED2(contains, error_of([&] { part_of(whole, 1, 4, 0); }), "no axis 1 of 4 equal parts");
  EXPECT_PRED2(contains, error_of([&] { part_of(whole, 2, 2, 0); }), "no axis 2");
  std::vector<std::byte> blocks(2 * 3 * 34);
  const StoredTensor quantised{{2, 96}, "Q8_0", blocks, {}, QuantFormat::Q8_0};
  EXPECT_EQ(part_of(quantised, 1, 3, 2).tensor.shape, (std::vector<std::int64_t>{2, 32}));
  EXPECT_PRED2(contains, error_of([&] { part_of(quantised, 1, 2, 0); }), "of whole blocks");
}

}  // namespace
