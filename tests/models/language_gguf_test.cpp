// GGUF files of every architecture compute what the folders of transformers compute that they were made of.
#include "lightcone/models/language/language_model.h"

#include <cstring>
#include <set>

#include "error_of.h"
#include "gguf_converter.h"
#include "lightcone/io/checkpoints/gguf.h"

using namespace lc;

namespace {

using test::AllGiven;
using test::by_cpu;
using test::by_reference;
using test::Converter;
using test::Json;
using test::numbers_of;

const std::vector<double> kTexts{2, 7, 11, 4, 16, 5, 9, 3, 8, 6, 12, 0, 0, 0, 0, 0, 13, 1, 15, 10, 4};
const Bindings kSizes{{"batch", 3}, {"length", 7}};

Json cases() { return Json::parse(slurp(std::string(paths::kSource) + "/tests/goldens/languages.json")); }

// What no key of a GGUF file says: returns true if a config.json was changed for it.
bool fit_for_gguf(Json& c) {
  const Json before = c;
  const std::string type = c["model_type"];
  if (type == "gpt2")
    c["activation_function"] = "gelu_new", c["scale_attn_by_inverse_layer_idx"] = false, c["scale_attn_weights"] = true;
  if (type == "qwen2") c["use_sliding_window"] = false, c["layer_types"] = nullptr, c["sliding_window"] = nullptr;
  if (type == "phi") c["qk_layernorm"] = false;
  if (type == "gemma2") c["query_pre_attn_scalar"] = 6;  // what llama.cpp makes of it: the width of a head
  if (type == "gemma3_text") c["query_pre_attn_scalar"] = 6;
  if (type == "qwen2_moe") c["norm_topk_prob"] = false;
  if (type == "olmoe") c["clip_qkv"] = nullptr;
  if (type == "deepseek_v2") {
    if (c["rope_parameters"].contains("mscale"))
      c["rope_parameters"]["mscale"] = c["rope_parameters"]["mscale_all_dim"];
    if (c["rope_parameters"]["rope_type"] != "yarn") c["rope_parameters"].erase("mscale");
  }
  if (c.contains("rope_parameters") && c["rope_parameters"].value("rope_type", "") == "dynamic")
    c["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 10000.0}};
  if (c.contains("rope_parameters")) c["rope_parameters"].erase("truncate");
  if (type == "gpt_oss") c["rope_parameters"]["truncate"] = false;
  return c != before;
}

bool has_gguf(const Json& c) {
  const std::string name = c["config"]["architectures"][0];
  const bool words = name.ends_with("ForCausalLM") || name.ends_with("LMHeadModel");
  const bool alibi = c["config"].value("alibi", false), all_heads = c["config"].value("multi_query", true) == false;
  return words && test::kArchitectures.contains(c["config"]["model_type"]) && !alibi && !all_heads;
}

TEST(LanguageGguf, EveryArchitecture) {
  std::size_t k = 0, equal = 0;
  for (auto& c : cases()) {
    const std::string what = str_cat(c["config"]["architectures"][0].get<std::string>(), " of case ", k++);
    if (!has_gguf(c)) continue;
    const bool differs = fit_for_gguf(c["config"]);
    auto& tensors = c["tensors"];
    for (std::size_t t = tensors.size(); t-- > 0;)  // llama.cpp has no norms of Phi's heads
      if (tensors[t][0].get<std::string>().find("self_attn.") != std::string::npos &&
          tensors[t][0].get<std::string>().find("_layernorm.") != std::string::npos &&
          c["config"]["model_type"] == "phi")
        tensors.erase(t);
    const test::FormulaFolder folder(c["config"], tensors, test::NormWeights::OneAxis);
    const TempDir to;
    const std::string path = to / "model.gguf";
    try {
      Converter(c["config"], folder.path()).write(path);
      const std::vector<double> ones(kTexts.size(), 1);
      const std::vector<double> shown = differs ? ones : numbers_of(c["mask"]);
      const AllGiven given{{"input_ids", {{3, 7}, kTexts}}, {"attention_mask", {{3, 7}, shown}}};
      const auto masked = [&](std::vector<double> v) {  // rows of padding mean nothing
        for (std::size_t i = 0; i < v.size(); ++i) v[i] *= shown[i / (v.size() / shown.size())];
        return v;
      };
      const LoadedModel m = load_model(path);
      const std::vector<double> want =
          differs ? by_reference(load_model(folder.path()), given, kSizes).at("logits") : numbers_of(c["logits"]);
      equal += differs ? 0 : 1;
      EXPECT_LT(test::farthest(masked(by_reference(m, given, kSizes).at("logits")), want), 1e-5)
          << what << " by the reference";
      EXPECT_LT(test::farthest(masked(by_cpu(m, given, {{"batch", 3}, {"length", 7}}).at("logits")), want), 1e-4)
          << what;
    } catch (const std::exception& e) {
      ADD_FAILURE() << what << ": " << e.what();
    }
  }
  EXPECT_GE(equal, 20u);  // as many are held against transformers itself
}

// Configurations of transformers' classes of which tools/make_language_goldens.py has no case.
Json mamba() {
  return {{"config",
           {{"architectures", {"MambaForCausalLM"}},
            {"model_type", "mamba"},
            {"vocab_size", 17},
            {"hidden_size", 8},
            {"num_hidden_layers", 2},
            {"state_size", 3},
            {"time_step_rank", 2},
            {"expand", 2},
            {"conv_kernel", 4},
            {"layer_norm_epsilon", 1e-5}}},
          {"tensors", [] {
             Json all;
             const auto add = [&](const std::string& name, const std::vector<int>& shape) {
               all.push_back({name, shape});
             };
             add("backbone.embeddings.weight", {17, 8}), add("backbone.norm_f.weight", {8});
             for (const std::string l : {"backbone.layers.0.", "backbone.layers.1."}) {
               add(l + "norm.weight", {8}), add(l + "mixer.in_proj.weight", {32, 8});
               add(l + "mixer.conv1d.weight", {16, 1, 4}), add(l + "mixer.conv1d.bias", {16});
               add(l + "mixer.x_proj.weight", {8, 16}), add(l + "mixer.dt_proj.weight", {16, 2});
               add(l + "mixer.dt_proj.bias", {16}), add(l + "mixer.A_log", {16, 3}), add(l + "mixer.D", {16});
               add(l + "mixer.out_proj.weight", {8, 16});
             }
             return all;
           }()}};
}

// A Mixtral of which every row is whole blocks of 256.
Json wide_mixtral() {
  Json all;
  const auto add = [&](const std::string& name, const std::vector<int>& shape) { all.push_back({name, shape}); };
  add("model.embed_tokens.weight", {17, 256}), add("model.norm.weight", {256}), add("lm_head.weight", {17, 256});
  const std::string l = "model.layers.0.", e = l + "block_sparse_moe.experts.";
  add(l + "input_layernorm.weight", {256}), add(l + "post_attention_layernorm.weight", {256});
  add(l + "self_attn.q_proj.weight", {64, 256}), add(l + "self_attn.k_proj.weight", {32, 256});
  add(l + "self_attn.v_proj.weight", {32, 256}), add(l + "self_attn.o_proj.weight", {256, 64});
  add(l + "block_sparse_moe.gate.weight", {3, 256});
  for (int k = 0; k < 3; ++k)
    for (const char* part : {".w1.weight", ".w2.weight", ".w3.weight"}) add(e + std::to_string(k) + part, {256, 256});
  return {{"config",
           {{"architectures", {"MixtralForCausalLM"}},
            {"model_type", "mixtral"},
            {"vocab_size", 17},
            {"hidden_size", 256},
            {"intermediate_size", 256},
            {"num_hidden_layers", 1},
            {"num_attention_heads", 4},
            {"num_key_value_heads", 2},
            {"head_dim", 16},
            {"max_position_embeddings", 16},
            {"rms_norm_eps", 1e-5},
            {"num_local_experts", 3},
            {"num_experts_per_tok", 2},
            {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 10000.0}}}}},
          {"tensors", all}};
}

// The tensors of a file as floats under their own names, in a second file.
void write_floats(const std::string& from, const std::string& to) {
  const Weights w = Weights::open(from);
  std::list<std::vector<float>> kept;
  std::vector<TensorToSave> tensors;
  GgufFields fields;
  for (const auto& [key, value] : w.gguf()->stored) fields.emplace_back(std::string(key), GgufStored{value});
  for (const auto& [name, t] : w.tensors())
    tensors.push_back({name, DType::F32, t.shape, std::as_bytes(std::span(kept.emplace_back(Weights::read(t))))});
  save_gguf(to, tensors, fields);
}

const AllGiven kThree{{"input_ids", {{3, 7}, kTexts}}, {"attention_mask", {{3, 7}, std::vector<double>(21, 1)}}};

TEST(LanguageGguf, Mamba) {
  const Json c = mamba();
  const test::FormulaFolder folder(c["config"], c["tensors"], test::NormWeights::OneAxis);
  const std::string path = folder.folder / "model.gguf";
  Converter(c["config"], folder.path()).write(path);
  const auto want = by_reference(load_model(folder.folder / "model.safetensors"), kThree, kSizes).at("logits");
  EXPECT_LT(test::farthest(by_reference(load_model(path), kThree, kSizes).at("logits"), want), 1e-5);
}

// Blocks stay as they are stored, in experts, too: the logits are those of the numbers that the blocks hold.
TEST(LanguageGguf, QuantisedExperts) {
  const Json c = wide_mixtral();
  const test::FormulaFolder folder(c["config"], c["tensors"], test::NormWeights::OneAxis);
  for (const QuantInfo& f : kQuantFormats) {
    const QuantFormat format = f.format;
    if (!can_quantize(format)) continue;
    const std::string path = folder.folder / "blocks.gguf", floats = folder.folder / "floats.gguf";
    Converter(c["config"], folder.path()).write(path, true, format);
    write_floats(path, floats);
    const LoadedModel m = load_model(path);
    const StoredTensor* experts = m.weights.find("layers.0.experts.gate");
    ASSERT_TRUE(experts && experts->quant == format);
    const std::map<std::string, std::int64_t> sizes{{"batch", 3}, {"length", 7}};
    const auto want = by_cpu(load_model(floats), kThree, sizes).at("logits");
    double largest = 0;
    for (const double x : want) largest = std::fmax(largest, std::fabs(x));
    EXPECT_LT(test::farthest(by_cpu(m, kThree, sizes).at("logits"), want), 1e-4 * std::fmax(1, largest))
        << info(format).name;
    bool stored = false;  // the graph's own input for the experts are the blocks
    for (NodeId id = 0; id < m.graph().size(); ++id)
      stored |= m.graph()[id].name == "layers.0.experts.gate" && m.graph()[id].dtype == DType::U8;
    EXPECT_TRUE(stored);
  }
}

// Old layouts: a tensor for each expert, and one matrix for keys and values of latent attention; a cache gives what
// the whole graph gives.
TEST(LanguageGguf, OlderFilesAndCaches) {
  for (auto& c : cases()) {
    const std::string type = c["config"]["model_type"];
    if (!has_gguf(c) || (!type.starts_with("deepseek") && type != "mixtral" && type != "falcon" && type != "gpt_oss"))
      continue;
    fit_for_gguf(c["config"]);
    const test::FormulaFolder folder(c["config"], c["tensors"], test::NormWeights::OneAxis);
    const std::string path = folder.folder / "new.gguf", old = folder.folder / "old.gguf";
    Converter(c["config"], folder.path()).write(path);
    Converter(c["config"], folder.path()).write(old, false);
    const auto want = by_reference(load_model(path), kThree, kSizes).at("logits");
    EXPECT_LT(test::farthest(by_reference(load_model(old), kThree, kSizes).at("logits"), want), 1e-6) << type;
    const LanguageModel m = LanguageModel::load(
        path, {.context = 12, .chunk = 2, .all_logits = true, .compiler = generic() | cpu({.threads = 1})});
    const auto session = m.session();
    std::vector<double> got;
    for (std::size_t at = 0; at < 7; ++at)
      for (const float x : session->feed(static_cast<int>(kTexts[at]))) got.push_back(x);
    EXPECT_LT(test::farthest(got, {want.begin(), want.begin() + std::ssize(got)}), 1e-4) << type;
  }
}

// The tiny checkpoints that transformers made, as GGUF files.
TEST(LanguageGguf, TinyModels) {
  NEEDS_DATA(test::kTiny + "gptneox.safetensors");
  for (const char* name :
       {"gptneox", "gptj", "falcon_mq", "starcoder2", "phi", "phi3", "llama", "qwen2", "qwen3", "smollm2", "gemma",
        "gemma3", "granite", "granitemoe", "olmo2", "mixtral", "deepseek_v2", "mamba", "mistral"}) {
    const test::TinyFolder folder(name);
    const Json answers = test::tiny_answers(str_cat(name, "_logits")),
               config = Json::parse(slurp(folder.folder / "config.json"));
    const std::string path = folder.folder / "model.gguf";
    try {
      Converter(config, folder.folder / "model.safetensors").write(path);
      const std::vector<double> ids = numbers_of(answers["sequences"]);
      const std::int64_t rows = std::ssize(answers["sequences"]), length = std::ssize(ids) / rows;
      const AllGiven given{{"input_ids", {{rows, length}, ids}},
                           {"attention_mask", {{rows, length}, std::vector<double>(ids.size(), 1)}}};
      const auto got = by_reference(load_model(path), given, {{"batch", rows}, {"length", length}}).at("logits");
      EXPECT_LT(test::farthest(got, numbers_of(answers["logits"])), 1e-5) << name;
    } catch (const std::exception& e) {
      ADD_FAILURE() << name << ": " << e.what();
    }
  }
}

// What a file says and no model does is named, with the nearest that is known.
TEST(LanguageGguf, WhatIsNotKnownIsNamed) {
  Json c;
  for (const auto& each : cases())
    if (each["config"]["model_type"] == "mixtral") c = each;
  const test::FormulaFolder folder(c["config"], c["tensors"], test::NormWeights::OneAxis);
  const auto with = [&](const std::string& key, const GgufField& value) {
    Converter made(c["config"], folder.path());
    made.fields.emplace_back(key, value);
    const std::string path = folder.folder / "changed.gguf";
    made.write(path);
    return error_of([&] { load_model(path); });
  };
  EXPECT_EQ(with("general.name", std::string("any")), "no error");
  EXPECT_PRED2(contains, with("llama.rope.freq_bass", 1.0F), "the nearest is llama.rope.freq_base)");
  EXPECT_PRED2(contains, with("llama.attn_logit_softcapping", 30.0F), "supported without it alone");
  EXPECT_PRED2(contains, with("general.type", std::string("adapter")), "general.type is 'adapter'");
  EXPECT_PRED2(contains, with("llama.rope.scaling.type", std::string("spiral")), "'spiral' is not supported");
  EXPECT_PRED2(contains, with("llama.expert_weights_scale", 2.0F), "no key of this name is known of llama");
}

// Every number of the metadata may be any other: the file is another model or an Error, and asks for no more memory or
// time than its size justifies.
TEST(LanguageGguf, AnyNumberIsAModelOrAnError) {
  std::set<std::string> seen;
  std::size_t errors = 0;
  for (auto& c : cases()) {
    if (!has_gguf(c) || !seen.insert(c["config"]["model_type"]).second) continue;
    fit_for_gguf(c["config"]);
    const test::FormulaFolder folder(c["config"], c["tensors"], test::NormWeights::OneAxis);
    const std::string path = folder.folder / "model.gguf";
    Converter made(c["config"], folder.path());
    made.write(path);
    const std::string whole = slurp(path);
    for (const auto& [key, value] : made.fields) {
      if (!std::holds_alternative<std::uint32_t>(value) && !std::holds_alternative<float>(value)) continue;
      const std::size_t at = whole.find(key) + key.size() + sizeof(std::uint32_t);  // behind the type
      for (const std::uint32_t n : {0U, 1U, 65536U, 999999999U, 0xffffffffU}) {
        std::string changed = whole;
        std::memcpy(changed.data() + at, &n, sizeof n);
        const auto file = MappedFile::view("x.gguf", std::as_bytes(std::span(changed)));
        errors += error_of([&] { load_model(Weights::open(file)); }) == "no error" ? 0 : 1;
      }
    }
  }
  EXPECT_GT(errors, 500u);
}

}  // namespace
