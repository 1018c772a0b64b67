// load_model() passes over nothing: keys of config.json, weights and shapes that it does not know are Errors that name
// them, and what is nearest.
#include "lightcone/models/load/load_model.h"

#include <algorithm>

#include "error_of.h"
#include "lightcone/composites/composites.h"
#include "tiny_models.h"

using namespace lc;

namespace {

using nlohmann::json;

// A small BERT, its config.json and its weights.
struct Case {
  json config, tensors;
  Case() {
    const json cases = json::parse(slurp(std::string(paths::kSource) + "/tests/goldens/encoders.json"));
    for (const json& c : cases)
      if (c["config"]["architectures"][0] == "BertForTokenClassification") config = c["config"], tensors = c["tensors"];
  }
  std::string error(const LoadModelOptions& o = {}) const {
    const test::FormulaFolder folder(config, tensors);
    std::string what = error_of([&] { load_model(folder.path(), o); });
    for (std::size_t at; (at = what.find(folder.path())) != what.npos;)
      what.replace(at, folder.path().size(), "FOLDER");
    return what;
  }
  json& tensor(const std::string& name) {
    for (json& t : tensors)
      if (t[0] == name) return t;
    throw std::runtime_error(name);
  }
};

TEST(LoadModel, KeysThatMayChangeTheResultAreNamed) {
  const auto with = [](const char* key, const json& value) {
    Case c;
    c.config[key] = value;
    return c.error();
  };
  EXPECT_EQ(
      with("layer_norm_ep", 1e-5),
      "load_model: FOLDER: config.json: layer_norm_ep is 1e-05, and no key of this name is known "
      "of bert (the nearest is layer_norm_eps); if it changes nothing of what the model computes, name it among the "
      "keys to ignore");
  EXPECT_PRED2(contains, with("position_embedding_type", "relative_key"),
               "position_embedding_type is 'relative_key', and only 'absolute' is supported");
  EXPECT_PRED2(contains, with("hidden_act", "gelo"), "the activation 'gelo' is not known; the nearest is gelu");
  EXPECT_PRED2(contains, with("is_decoder", true), "is_decoder is true, which is not supported");
  EXPECT_PRED2(contains, with("pruned_heads", json{{"0", {1}}}), "pruned_heads is {...}");
  EXPECT_PRED2(contains, with("quantization_config", json{{"bits", 8}}), "weights quantised by '' are not supported");
  EXPECT_PRED2(contains, with("num_attention_heads", 3), "3 attention heads do not divide a width of 8");
  EXPECT_PRED2(contains, with("num_hidden_layers", 1000), "1000 layers, and 39 weights");
  EXPECT_PRED2(contains, with("num_hidden_layers", 1000000000), "1000000000 layers are more than the 16384");
  EXPECT_PRED2(contains, with("hidden_size", -8), "hidden_size is -8, and not a whole number from 1 to 1e+09");
  EXPECT_PRED2(contains, with("layer_norm_eps", 0), "layer_norm_eps is 0");
  EXPECT_PRED2(contains, with("model_type", "berd"), "model_type 'berd' is not known; the nearest is bert");
  EXPECT_PRED2(contains, with("architectures", {"BertForMaskedLN"}), "the nearest is BertForMaskedLM");
  // these say nothing, or nothing that counts
  EXPECT_EQ(with("transformers_version", "9.9"), "no error");
  EXPECT_EQ(with("hidden_dropout_prob", 0.5), "no error");
  EXPECT_EQ(with("some_feature", false), "no error");
  EXPECT_EQ(with("_my_note", "text"), "no error");
  Case c;
  c.config["my_key"] = 3;
  EXPECT_EQ(c.error({.ignore = {"my_key"}}), "no error");
  c.config.erase("vocab_size");
  EXPECT_PRED2(contains, c.error(), "there is no vocab_size");
}

TEST(LoadModel, WeightsThatAreMissingUnknownOrOfAnotherShapeAreNamed) {
  Case c;
  c.tensor("bert.encoder.layer.1.output.dense.bias")[0] = "bert.encoder.layer.1.output.dens.bias";
  EXPECT_EQ(c.error(),
            "load_model: FOLDER: there is no weight 'bert.encoder.layer.1.output.dense.bias'; of the "
            "weights that are not known, 'bert.encoder.layer.1.output.dens.bias' is nearest");
  c = Case();
  c.tensors.push_back({"bert.encoder.layer.1.gate.weight", {8}});
  EXPECT_PRED2(contains, c.error(),
               "the weight 'bert.encoder.layer.1.gate.weight' is no part of a BertForTokenClassification");
  c = Case();
  c.config["num_hidden_layers"] = 1;
  EXPECT_PRED2(contains, c.error(), "the weight 'bert.encoder.layer.1.attention.output.LayerNorm.bias' is no part of");
  c = Case();
  c.config["num_hidden_layers"] = 3;
  EXPECT_PRED2(contains, c.error(), "there is no weight 'bert.encoder.layer.2.attention.self.query.weight'");
  c = Case();
  c.config["vocab_size"] = 16;
  EXPECT_PRED2(contains, c.error(),
               "'bert.embeddings.word_embeddings.weight' has the shape [17, 8], and config.json wants [16, 8]");
  c = Case();  // a head for another task is no fault
  c.tensors.push_back({"cls.seq_relationship.weight", {2, 8}});
  c.tensors.push_back({"bert.embeddings.position_ids", {1, 12}});
  EXPECT_EQ(c.error(), "no error");
}

// Names of the two parameters of a norm in checkpoints of 2018.
TEST(LoadModel, GammaAndBetaAreWeightAndBias) {
  Case c;
  c.tensor("bert.embeddings.LayerNorm.weight")[0] = "bert.embeddings.LayerNorm.gamma";
  c.tensor("bert.embeddings.LayerNorm.bias")[0] = "bert.embeddings.LayerNorm.beta";
  EXPECT_EQ(c.error(), "no error");
}

// Weights stay as they are stored: halves and blocks of GGUF's kinds have the results of their values.
TEST(LoadModel, WeightsStayAsTheyAreStored) {
  Case c;
  const test::FormulaFolder folder(c.config, c.tensors);
  const Weights plain = Weights::open(folder.path());
  for (const DType type : {DType::F16, DType::BF16, DType::F8E4M3FN}) {
    const test::FormulaFolder narrow(c.config, c.tensors);
    std::vector<std::vector<std::byte>> bytes;
    std::vector<TensorToSave> all;
    for (const auto& [name, t] : plain.tensors()) {
      Value v = read_value(t.bytes.data(), DType::F32, t.shape);
      v.dtype = type;
      write_value(v, bytes.emplace_back(v.size() * size_of(type)).data());
      all.push_back({name, type, t.shape, {}});
    }
    for (std::size_t k = 0; k < all.size(); ++k) all[k].bytes = bytes[k];
    save_safetensors(narrow.folder / "model.safetensors", all);
    const LoadedModel m = load_model(narrow.path());
    const test::AllGiven given{{"input_ids", {{1, 3}, {2, 7, 11}}},
                               {"attention_mask", {{1, 3}, {1, 1, 1}}},
                               {"token_type_ids", {{1, 3}, {0, 0, 1}}}};
    const auto exact = test::by_reference(m, given, {{"batch", 1}, {"length", 3}});
    const auto fast = test::by_cpu(m, given, {{"batch", 1}, {"length", 3}});
    EXPECT_LT(test::farthest(exact.at("logits"), fast.at("logits")), 1e-4) << name(type);
    const NodeId stored = m.graph().size();
    std::size_t narrowed = 0;
    for (NodeId id = 0; id < stored; ++id) narrowed += m.graph()[id].parameter && m.graph()[id].dtype == type;
    EXPECT_EQ(narrowed, plain.tensors().size()) << name(type);
  }
}

// Devices find the attention of every layer as one operation.
TEST(LoadModel, AttentionIsAComposite) {
  Case c;
  const test::FormulaFolder folder(c.config, c.tensors);
  const LoadedModel m = load_model(folder.path());
  std::size_t found = 0;
  for (NodeId id = 0; id < m.graph().size(); ++id) found += is(m.graph()[id], builtin::attention());
  EXPECT_EQ(found, 2u);
}

TEST(LoadModel, Outputs) {
  Case c;
  EXPECT_PRED2(contains, c.error({.outputs = {{"logit"}}}), "has no output 'logit'; it has logits, hidden");
  EXPECT_PRED2(contains, c.error({.batch = 0}), "LoadModelOptions::batch is 0");
}

// A type that a user adds is opened as the library's own, and a known one stays what it is.
TEST(LoadModel, RegisteredTypes) {
  Case c;
  c.config["model_type"] = "berta";
  EXPECT_PRED2(contains, c.error(), "model_type 'berta' is not known; the nearest is bert");
  register_model("berta", [](const Weights&, const ConfigFile& config, const LoadModelOptions&) -> LoadedModel {
    config.fail("it was asked for a ", config.text("model_type"));
  });
  EXPECT_PRED2(contains, c.error(), "it was asked for a berta");
  const std::vector<std::string_view> types = loadable_model_types();
  EXPECT_EQ(std::ranges::count(types, "berta"), 1);
  const ModelLoader none;
  EXPECT_EQ(error_of([&] { register_model("berta", none); }),
            "register_model: a type of models needs a name and a function");
  for (const char* known : {"bert", "llama", "berta"})
    EXPECT_PRED2(contains, error_of([&] {
                   register_model(known, [](const Weights&, const ConfigFile&, const LoadModelOptions&) -> LoadedModel {
                     throw Error("", "");
                   });
                 }),
                 str_cat("model_type '", known, "' is known already"));
}

}  // namespace
