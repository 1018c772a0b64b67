// Decoder-only language models that load_model() reads compute what transformers computed of the same files.
#include "lightcone/models/language/language_model.h"

#include <list>

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

constexpr const char* kTinyModels[] = {"gptneox", "gptj",       "opt",   "falcon_mq", "starcoder2",  "phi",   "phi3",
                                       "llama",   "mistral",    "qwen2", "qwen3",     "smollm2",     "gemma", "gemma3",
                                       "granite", "granitemoe", "olmo2", "mixtral",   "deepseek_v2", "mamba"};

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

// Tokens that were dropped have no influence, though the states of Mamba hold them.
TEST(Language, DroppedTokensAreForgotten) {
  NEEDS_DATA(test::kTiny + "mamba.safetensors");
  for (const char* name : {"mamba", "gptj"}) {
    const test::TinyFolder folder(name);
    const LanguageModel m =
        LanguageModel::load(folder.path(), {.chunk = 2, .compiler = generic() | cpu({.threads = 1})});
    const auto one = m.session(), other = m.session();
    one->feed(std::vector<int>{1, 6, 10, 4, 9, 2, 7});
    one->truncate(3);
    one->feed(5);
    const auto got = one->feed(8), want = other->feed(std::vector<int>{1, 6, 10, 5, 8});
    EXPECT_LT(test::farthest({got.begin(), got.end()}, {want.begin(), want.end()}), 1e-5) << name;
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
// tools/make_language_goldens.py asked transformers in f64: windows shorter than the text, stretched rotations,
// routers, layouts, heads, and padding on both sides. Those that continue texts do so with a cache, too.
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
    const test::FormulaFolder folder(c["config"], c["tensors"], test::NormWeights::OneAxis);
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

// A recurrence over many blocks of rows at once gives what it gives token by token, also where the text is one of a
// batch with padding at its begin.
TEST_F(LanguageGoldens, RecurrencesOfLongTexts) {
  for (auto c : cases()) {
    const std::string type = c["config"]["model_type"];
    if (type != "mamba" && type != "mamba2" && type != "rwkv") continue;
    if (type == "rwkv") c["config"]["context_length"] = 512;
    const test::FormulaFolder folder(c["config"], c["tensors"], test::NormWeights::OneAxis);
    constexpr std::int64_t kLength = 300;
    // padding is no text without words where a projection has a bias, which the convolution reads, in transformers too
    const std::int64_t padding = c["config"].value("use_bias", false) ? 0 : 20;
    std::vector<int> text;
    std::vector<double> ids(static_cast<std::size_t>(padding), 0), shown = ids;
    for (int k = 0; k < kLength; ++k) {
      text.push_back((7 * k + k * k / 5) % 17);
      ids.push_back(text.back()), shown.push_back(1);
    }
    const LoadedModel m = load_model(folder.path());
    const std::vector<double> whole =
        by_cpu(m, {{"input_ids", {{1, kLength + padding}, ids}}, {"attention_mask", {{1, kLength + padding}, shown}}},
               {{"batch", 1}, {"length", kLength + padding}})
            .at("logits");
    const LanguageModel step = LanguageModel::load(
        folder.path(), {.context = 512, .chunk = 1, .all_logits = true, .compiler = generic() | cpu({.threads = 1})});
    const auto session = step.session();
    std::vector<double> got;
    for (const int id : text)
      for (const float x : session->feed(id)) got.push_back(x);
    const std::vector<double> want(whole.end() - std::ssize(got), whole.end());
    EXPECT_LT(test::farthest(got, want), 1e-4) << type;
  }
}

// What config.json says and the model does not do is an Error that names it; sizes cannot ask for more than the file
// has.
TEST_F(LanguageGoldens, WhatIsNotKnownIsNamed) {
  nlohmann::json llama, deepseek, mamba2;
  for (const auto& c : cases()) {
    if (c["config"]["model_type"] == "llama" && llama.is_null()) llama = c;
    if (c["config"]["model_type"] == "deepseek_v3") deepseek = c;
    if (c["config"]["model_type"] == "mamba2" && mamba2.is_null()) mamba2 = c;
  }
  const auto with = [](nlohmann::json c, const char* key, const nlohmann::json& value) {
    c["config"][key] = value;
    const test::FormulaFolder folder(c["config"], c["tensors"], test::NormWeights::OneAxis);
    return error_of([&] { load_model(folder.path()); });
  };
  EXPECT_EQ(with(llama, "use_cache", true), "no error");
  EXPECT_PRED2(contains, with(llama, "rms_norm_epz", 1e-5), "(the nearest is rms_norm_eps)");
  EXPECT_PRED2(contains, with(llama, "rope_parameters", {{"rope_type", "spiral"}}), "'spiral' is not known");
  EXPECT_PRED2(contains, with(llama, "rope_parameters", {{"rope_type", "linear"}, {"factor", 2}, {"turns", 3}}),
               "rope_parameters.turns is 3");
  EXPECT_PRED2(contains, with(llama, "hidden_act", "sillu"), "the nearest is silu");
  EXPECT_PRED2(contains, with(llama, "num_key_value_heads", 3), "3 heads of keys do not divide 4 heads");
  EXPECT_PRED2(contains, with(llama, "num_hidden_layers", 3), "there is no weight 'model.layers.2.");
  EXPECT_PRED2(contains, with(llama, "num_hidden_layers", 1), "is no part of a LlamaForCausalLM");
  EXPECT_PRED2(contains, with(llama, "attention_bias", false),
               "self_attn.k_proj.bias' is no part of a LlamaForCausalLM");
  EXPECT_PRED2(contains, with(llama, "head_dim", 1000000000), "more than the 65536 that are supported");
  EXPECT_PRED2(contains, with(llama, "architectures", {"LlamaForCausalLN"}), "the nearest is LlamaForCausalLM");
  EXPECT_PRED2(contains, with(deepseek, "n_routed_experts", 1000000000), "1000000000 experts, and");
  EXPECT_PRED2(contains, with(deepseek, "scoring_func", "softmax"), "only 'sigmoid' is supported");
  EXPECT_PRED2(contains, with(mamba2, "n_groups", 3), "3 groups do not divide 4 heads");
  EXPECT_PRED2(contains, with(mamba2, "head_dim", 5), "4 heads of 5 channels are no 32 channels");
  EXPECT_PRED2(contains, with(mamba2, "time_step_limit", {2.0, 1.0}), "time_step_limit is no least and most step");
  EXPECT_PRED2(contains, with(deepseek, "topk_group", 9), "9 of 4 groups of 8 experts cannot be chosen");
}

// The first text by a decoder: one token, then two at a time.
TEST_F(LanguageGoldens, WithCaches) {
  std::size_t k = 0;
  for (const auto& c : cases()) {
    const std::string what = name_of(c, k++);
    const std::size_t vocab = c["config"]["vocab_size"], length = 7;
    if (c["logits"].size() != kTexts.size() * vocab) continue;  // classifiers continue nothing
    const test::FormulaFolder folder(c["config"], c["tensors"], test::NormWeights::OneAxis);
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

// GPT-OSS stores its experts as MXFP4: floats of 4 bits (E2M1), two in a byte, with a power of two for 32 of them (Open
// Compute Project, "Microscaling formats", 2023). The same numbers as floats give the same logits.
TEST(Language, ExpertsInFourBits) {
  const std::int64_t experts = 3, width = 32, inner = 32;
  const nlohmann::json config{{"architectures", {"GptOssForCausalLM"}},
                              {"model_type", "gpt_oss"},
                              {"vocab_size", 11},
                              {"hidden_size", width},
                              {"intermediate_size", inner},
                              {"num_hidden_layers", 1},
                              {"num_attention_heads", 2},
                              {"num_key_value_heads", 1},
                              {"head_dim", 16},
                              {"num_local_experts", experts},
                              {"num_experts_per_tok", 2},
                              {"max_position_embeddings", 16},
                              {"rope_scaling", {{"rope_type", "default"}}},
                              {"quantization_config", {{"quant_method", "mxfp4"}}}};
  const auto layer = [](const std::string& name) { return "model.layers.0." + name; };
  nlohmann::json tensors;
  const auto add = [&](const std::string& name, const std::vector<std::int64_t>& shape) {
    tensors.push_back(nlohmann::json::array({name, shape}));
  };
  add("model.embed_tokens.weight", {11, width}), add("lm_head.weight", {11, width}), add("model.norm.weight", {width});
  add(layer("input_layernorm.weight"), {width}), add(layer("post_attention_layernorm.weight"), {width});
  add(layer("self_attn.sinks"), {2});
  add(layer("mlp.router.weight"), {experts, width}), add(layer("mlp.router.bias"), {experts});
  add(layer("mlp.experts.gate_up_proj_bias"), {experts, 2 * inner});
  add(layer("mlp.experts.down_proj_bias"), {experts, width});
  for (const auto& [part, rows] : {std::pair{"q", 32}, {"k", 16}, {"v", 16}, {"o", 32}}) {
    add(layer(str_cat("self_attn.", part, "_proj.weight")), {rows, width});
    add(layer(str_cat("self_attn.", part, "_proj.bias")), {rows});
  }
  const test::FormulaFolder floats(config, tensors, test::NormWeights::OneAxis),
      blocks(config, tensors, test::NormWeights::OneAxis);
  const Weights common = Weights::open(floats.path());
  std::vector<TensorToSave> plain, narrow;
  for (const auto& [name, t] : common.tensors()) {
    plain.push_back({name, DType::F32, t.shape, t.bytes});
    narrow.push_back(plain.back());
  }
  constexpr float kFp4[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
  std::list<std::vector<std::byte>> bytes;
  std::list<std::vector<float>> values;
  for (const auto& [part, out, in] : {std::tuple{"gate_up_proj", 2 * inner, width}, {"down_proj", width, inner}}) {
    auto& b = bytes.emplace_back();
    auto& s = bytes.emplace_back();
    auto& v = values.emplace_back(static_cast<std::size_t>(experts * in * out));
    for (std::int64_t e = 0; e < experts; ++e)
      for (std::int64_t o = 0; o < out; ++o)
        for (std::int64_t block = 0; block < in / 32; ++block) {
          const int scale = 123 + static_cast<int>((e + o + block) % 3);
          s.push_back(static_cast<std::byte>(scale));
          for (std::int64_t j = 0; j < 32; ++j) {
            const int code = static_cast<int>((7 * e + 3 * o + 5 * j + o * j) % 16);
            if (j % 2 == 0) b.push_back(static_cast<std::byte>(code));
            else b.back() |= static_cast<std::byte>(code << 4);
            const float x = std::ldexp(kFp4[code % 8] * (code < 8 ? 1.0F : -1.0F), scale - 127);
            v[static_cast<std::size_t>((e * in + block * 32 + j) * out + o)] = x;  // [experts, in, out]
          }
        }
    const std::string name = layer(str_cat("mlp.experts.", part));
    narrow.push_back({name + "_blocks", DType::U8, {experts, out, in / 32, 16}, b});
    narrow.push_back({name + "_scales", DType::U8, {experts, out, in / 32}, s});
    plain.push_back({name, DType::F32, {experts, in, out}, std::as_bytes(std::span(v))});
  }
  save_safetensors(blocks.folder / "model.safetensors", narrow);
  save_safetensors(blocks.folder / "plain.safetensors", plain);
  const TempDir whole;
  std::filesystem::copy_file(blocks.folder / "plain.safetensors", whole / "model.safetensors");
  std::filesystem::copy_file(blocks.folder / "config.json", whole / "config.json");
  std::filesystem::remove(blocks.folder / "plain.safetensors");
  const AllGiven given{{"input_ids", {{1, 5}, {3, 1, 4, 1, 10}}}, {"attention_mask", {{1, 5}, {1, 1, 1, 1, 1}}}};
  const std::vector<double> want =
      by_reference(load_model(whole.path.string()), given, {{"batch", 1}, {"length", 5}}).at("logits");
  expect_logits(load_model(blocks.path()), given, want, "mxfp4");
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
