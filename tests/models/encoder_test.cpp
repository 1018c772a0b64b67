// Encoders of BERT's family that load_model() reads compute what transformers computed of the same files.
#include "lightcone/models/encoder/encoder.h"

#include <algorithm>

#include "error_of.h"
#include "lightcone/models/encoder/text_classifier.h"
#include "tiny_models.h"

using namespace lc;

namespace {

using test::AllGiven;
using test::by_cpu;
using test::by_reference;
using test::numbers_of;

// Compares an output with what is expected, within 1e-5 by the reference and 1e-4 by cpu().
void expect_output(const LoadedModel& m, const AllGiven& given, const std::string& output,
                   const std::vector<double>& want) {
  const auto& shape = given.at("input_ids").shape;
  const std::map<std::string, std::int64_t> sizes{{"batch", shape[0]}, {"length", shape[1]}};
  EXPECT_LT(test::farthest(by_reference(m, given, {sizes.begin(), sizes.end()}).at(output), want), 1e-5)
      << m.architecture << " " << output << " by the reference";
  EXPECT_LT(test::farthest(by_cpu(m, given, sizes).at(output), want), 1e-4) << m.architecture << " " << output;
}

AllGiven inputs_of(const LoadedModel& m, const nlohmann::json& answers) {
  const std::vector<double> ids = numbers_of(answers["sequences"]);
  const std::int64_t rows = std::ssize(answers["sequences"]), length = std::ssize(ids) / rows;
  AllGiven given{{"input_ids", {{rows, length}, ids}},
                 {"attention_mask", {{rows, length}, std::vector<double>(ids.size(), 1)}}};
  if (m.inputs.contains("token_type_ids"))
    given["token_type_ids"] = {{rows, length}, numbers_of(answers["token_types"])};
  return given;
}

TEST(Encoder, HiddenStatesAndPoolers) {
  NEEDS_DATA(test::kTiny + "bert.safetensors");
  for (const char* name : {"bert", "distilbert", "xlmroberta"}) {
    const test::TinyFolder folder(name);
    const nlohmann::json answers = test::tiny_answers(str_cat(name, "_hidden"));
    const LoadedModel m = load_model(folder.path());
    const AllGiven given = inputs_of(m, answers);
    expect_output(m, given, "hidden", numbers_of(answers["hidden"]));
    EXPECT_EQ(m.outputs.contains("pooled"), std::string_view(name) != "distilbert");
    if (m.outputs.contains("pooled")) expect_output(m, given, "pooled", numbers_of(answers["pooler"]));
  }
}

TEST(Encoder, Classifiers) {
  NEEDS_DATA(test::kTiny + "bert_seqcls.safetensors");
  for (const char* name : {"bert_seqcls", "distilbert_seqcls"}) {
    const test::TinyFolder folder(name);
    const nlohmann::json answers = test::tiny_answers(str_cat(name, "_logits"));
    const LoadedModel m = load_model(folder.path());
    EXPECT_EQ(m.labels, (std::vector<std::string>{"neg", "neu", "pos"}));
    expect_output(m, inputs_of(m, answers), "logits", numbers_of(answers["logits"]));
  }
}

// A cross-encoder: one logit for a pair of texts. What the file expects was computed without a mask: padding is seen.
TEST(Encoder, Reranker) {
  NEEDS_DATA(test::kTiny + "bert_reranker.safetensors");
  const test::TinyFolder folder("bert_reranker");
  const nlohmann::json answers = test::tiny_answers("bert_reranker_logits");
  const LoadedModel m = load_model(folder.path());
  const auto length = std::ssize(answers["input_ids"]);
  const std::vector<double> mask(static_cast<std::size_t>(length), 1);
  AllGiven given{{"input_ids", {{1, length}, numbers_of(answers["input_ids"])}},
                 {"attention_mask", {{1, length}, mask}},
                 {"token_type_ids", {{1, length}, numbers_of(answers["token_type_ids"])}}};
  expect_output(m, given, "logits", {answers["logit"].get<double>()});
  for (double& type : given["token_type_ids"].values) type = 0;
  expect_output(m, given, "logits", {answers["logit_all_seg0"].get<double>()});
}

// E5 is a BERT whose vectors of tokens are averaged and then made of length 1; here the test does that. In what the
// file expects, attention sees the padding and the means do not.
TEST(Encoder, MeansOfTokensAreE5s) {
  NEEDS_DATA(test::kTiny + "e5.safetensors");
  const test::TinyFolder folder("e5");
  const nlohmann::json answers = test::tiny_answers("e5_embed");
  const LoadedModel m = load_model(folder.path());
  const std::vector<double> ids = numbers_of(answers["sequences"]);
  const std::size_t rows = answers["sequences"].size(), length = ids.size() / rows;
  const std::vector<std::int64_t> shape{static_cast<std::int64_t>(rows), static_cast<std::int64_t>(length)};
  std::vector<double> mask(ids.size(), 0);
  for (std::size_t r = 0; r < rows; ++r)
    std::fill_n(mask.begin() + static_cast<std::ptrdiff_t>(r * length), answers["real_tokens"][r].get<int>(), 1);
  const AllGiven given{{"input_ids", {shape, ids}},
                       {"attention_mask", {shape, std::vector<double>(ids.size(), 1)}},
                       {"token_type_ids", {shape, std::vector<double>(ids.size(), 0)}}};
  const std::vector<double> hidden = by_reference(m, given, {{"batch", shape[0]}, {"length", shape[1]}}).at("hidden");
  const std::size_t width = hidden.size() / ids.size();
  std::vector<double> means(rows * width);
  for (std::size_t r = 0; r < rows; ++r) {
    double norm = 0;
    for (std::size_t k = 0; k < width; ++k) {
      double& mean = means[r * width + k];
      for (std::size_t t = 0; t < length; ++t) mean += hidden[(r * length + t) * width + k] * mask[r * length + t];
      norm += mean * mean;
    }
    for (std::size_t k = 0; k < width; ++k) means[r * width + k] /= std::sqrt(norm);
  }
  EXPECT_LT(test::farthest(means, numbers_of(answers["embeddings"])), 1e-5);
}

// Small encoders with weights by a formula, of which tools/make_encoder_goldens.py asked transformers in f64.
TEST(Encoder, HeadsAreTransformers) {
  const auto cases = nlohmann::json::parse(slurp(std::string(paths::kSource) + "/tests/goldens/encoders.json"));
  for (const auto& c : cases) {
    const test::FormulaFolder folder(c["config"], c["tensors"]);
    const LoadedModel m = load_model(folder.path());
    EXPECT_EQ(m.architecture, c["config"]["architectures"][0].get<std::string>());
    const std::vector<double> mask{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0};
    AllGiven given{{"input_ids", {{2, 7}, numbers_of(c["ids"])}}, {"attention_mask", {{2, 7}, mask}}};
    if (m.inputs.contains("token_type_ids"))
      given["token_type_ids"] = {{2, 7}, {0, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0}};
    const auto exact = by_reference(m, given, {{"batch", 2}, {"length", 7}});
    const auto fast = by_cpu(m, given, {{"batch", 2}, {"length", 7}});
    for (const auto& [output, values] : c["outputs"].items()) {
      const std::vector<double> want = numbers_of(values);
      const bool of_tokens = want.size() % 14 == 0;
      const auto masked = [&](std::vector<double> v) {  // rows of padding mean nothing
        if (of_tokens)
          for (std::size_t k = 0; k < v.size(); ++k) v[k] *= mask[k / (v.size() / 14)];
        return v;
      };
      EXPECT_LT(test::farthest(masked(exact.at(output)), want), 1e-5) << m.architecture << " " << output;
      EXPECT_LT(test::farthest(masked(fast.at(output)), want), 1e-4) << m.architecture << " " << output;
    }
  }
}

// The published files of Nomic's embeddings have other keys and names than transformers, and queries, keys and values
// in one matrix. The model is the same.
TEST(Encoder, NomicBertOfItsAuthors) {
  const auto cases = nlohmann::json::parse(slurp(std::string(paths::kSource) + "/tests/goldens/encoders.json"));
  const auto one =
      std::ranges::find_if(cases, [](const auto& c) { return c["config"]["architectures"][0] == "NomicBertModel"; });
  ASSERT_NE(one, cases.end());
  const nlohmann::json& sizes = (*one)["config"];
  const test::FormulaFolder plain(sizes, (*one)["tensors"]);
  const test::FormulaFolder theirs({{"model_type", "nomic_bert"},
                                    {"architectures", {"NomicBertModel"}},
                                    {"vocab_size", sizes["vocab_size"]},
                                    {"n_embd", sizes["hidden_size"]},
                                    {"n_head", sizes["num_attention_heads"]},
                                    {"n_layer", sizes["num_hidden_layers"]},
                                    {"n_inner", sizes["intermediate_size"]},
                                    {"n_positions", sizes["max_position_embeddings"]},
                                    {"type_vocab_size", 2},
                                    {"layer_norm_epsilon", 1e-12},
                                    {"activation_function", "swiglu"},
                                    {"rotary_emb_base", 1000},
                                    {"rotary_emb_fraction", 1.0},
                                    {"use_flash_attn", true}},
                                   nlohmann::json::array());
  const Weights w = Weights::open(plain.path());
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"embeddings.LayerNorm", "emb_ln"}, {"self_attn.o_proj", "attn.out_proj"}, {"mlp.up_proj", "mlp.fc11"},
      {"mlp.gate_proj", "mlp.fc12"},      {"mlp.down_proj", "mlp.fc2"},          {"post_attention_layernorm", "norm1"},
      {"post_mlp_layernorm", "norm2"},    {"self_attn.q_proj", "attn.Wqkv"}};
  std::vector<TensorToSave> all;
  std::vector<std::vector<std::byte>> joined(8);
  for (const auto& [name, t] : w.tensors()) {
    if (contains(name, ".k_proj") || contains(name, ".v_proj")) continue;
    std::string renamed = name.starts_with("layers.") ? "encoder." + name : name;
    for (const auto& [from, to] : kNames)
      if (const auto at = renamed.find(from); at != renamed.npos) renamed.replace(at, std::string(from).size(), to);
    TensorToSave& saved = all.emplace_back(TensorToSave{renamed, DType::F32, t.shape, t.bytes});
    if (!contains(name, ".q_proj")) continue;
    std::vector<std::byte>& bytes = joined.at(all.size() % joined.size());
    bytes.clear();
    for (const char* part : {"q_proj", "k_proj", "v_proj"}) {
      std::string of = name;
      const auto part_bytes = w.at(of.replace(of.find("q_proj"), 6, part)).bytes;
      bytes.insert(bytes.end(), part_bytes.begin(), part_bytes.end());
    }
    saved.shape = {3 * t.shape[0], t.shape[1]}, saved.bytes = bytes;
  }
  save_safetensors(theirs.folder / "model.safetensors", all);
  const AllGiven given{{"input_ids", {{1, 5}, {2, 7, 11, 4, 16}}},
                       {"attention_mask", {{1, 5}, {1, 1, 1, 1, 1}}},
                       {"token_type_ids", {{1, 5}, {0, 0, 1, 1, 1}}}};
  const auto hidden = [&](const std::string& path) {
    return by_reference(load_model(path), given, {{"batch", 1}, {"length", 5}}).at("hidden");
  };
  EXPECT_LT(test::farthest(hidden(theirs.path()), hidden(plain.path())), 1e-12);
}

// A classifier that learns on has the weights of transformers' class by their names, and keeps the head of a file that
// is one. Of another head it makes new layers.
TEST(Encoder, ClassifiersLearnOn) {
  const auto cases = nlohmann::json::parse(slurp(std::string(paths::kSource) + "/tests/goldens/encoders.json"));
  std::size_t found = 0;
  for (const auto& c : cases) {
    const std::string architecture = c["config"]["architectures"][0];
    const test::FormulaFolder folder(c["config"], c["tensors"]);
    const Weights w = Weights::open(folder.path());
    if (!architecture.ends_with("ForSequenceClassification")) {
      const std::vector<std::string> classes{"bad", "good"};
      EXPECT_EQ(TextClassifier::of(w, classes, {.lora_rank = 2}).new_layers().back(), "head.out") << architecture;
      continue;
    }
    ++found;
    std::vector<std::string> classes, have, want;
    for (std::size_t k = 0; k < c["config"]["num_labels"]; ++k) classes.push_back(str_cat(k));
    const TextClassifier m = TextClassifier::of(w, classes, {.lora_rank = 2});
    EXPECT_TRUE(m.new_layers().empty()) << architecture;
    for (const llm::ParameterInfo& p : m.parameters()) have.push_back(p.path);
    for (const auto& t : c["tensors"]) want.push_back(t[0]);
    std::ranges::sort(have);
    EXPECT_EQ(have, want) << architecture;
  }
  EXPECT_EQ(found, 6u);
}

// What the file says and the library lacks is named.
TEST(Encoder, Mistakes) {
  const auto cases = nlohmann::json::parse(slurp(std::string(paths::kSource) + "/tests/goldens/encoders.json"));
  const auto error = [&](const char* architecture, const char* key, const nlohmann::json& value) {
    for (const auto& c : cases) {
      if (c["config"]["architectures"][0] != architecture) continue;
      nlohmann::json config = c["config"];
      config[key] = value;
      const test::FormulaFolder folder(config, c["tensors"]);
      return error_of([&] { load_model(folder.path()); });
    }
    return std::string("there is no such case");
  };
  EXPECT_PRED2(contains, error("ModernBertModel", "layer_types", {"full_attention"}),
               "layer_types has 1 entries for 4 layers");
  EXPECT_PRED2(contains, error("ModernBertModel", "layer_types", {"a", "b", "c", "d"}), "layer_types holds 'a'");
  EXPECT_PRED2(contains, error("ModernBertModel", "classifier_pooling", "max"), "only cls and mean are known");
  EXPECT_PRED2(contains, error("ModernBertModel", "num_hidden_layers", 1000000), "layers are more than the");
  EXPECT_PRED2(contains, error("MPNetModel", "relative_attention_num_buckets", 16), "which is not supported");
  EXPECT_PRED2(contains, error("AlbertModel", "num_hidden_groups", 4), "and there are 3 layers");
  EXPECT_PRED2(contains, error("DebertaV2Model", "conv_kernel_size", 3), "a convolution is not supported");
  EXPECT_PRED2(contains, error("DebertaV2Model", "pos_att_type", "p2p"), "only c2p and p2c are known");
  EXPECT_PRED2(contains, error("ElectraModel", "summary_type", "mean"), "only 'first' is supported");
  EXPECT_PRED2(contains, error("NomicBertModel", "head_dim", 3), "are no width of 8");
}

}  // namespace
