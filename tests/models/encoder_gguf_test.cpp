// GGUF files of encoders compute what the folders of transformers compute, and give vectors by their pooling.
#include <set>

#include "error_of.h"
#include "lightcone/io/checkpoints/save.h"
#include "lightcone/models/files/weight_table.h"
#include "lightcone/models/sentence/sentence_encoder.h"
#include "tiny_models.h"

using namespace lc;

namespace {

using Names = std::vector<std::pair<std::string, std::string>>;

// The names that llama.cpp's converter writes (gguf-py/gguf/tensor_mapping.py).
const Names kNames{
    {"embeddings.word_embeddings", "token_embd"},
    {"embeddings.position_embeddings", "position_embd"},
    {"embeddings.token_type_embeddings", "token_types"},
    {"embeddings.LayerNorm", "token_embd_norm"},
    {"encoder.layer.#.attention.self.query", "blk.#.attn_q"},
    {"encoder.layer.#.attention.self.key", "blk.#.attn_k"},
    {"encoder.layer.#.attention.self.value", "blk.#.attn_v"},
    {"encoder.layer.#.attention.output.dense", "blk.#.attn_output"},
    {"encoder.layer.#.attention.output.LayerNorm", "blk.#.attn_output_norm"},
    {"encoder.layer.#.intermediate.dense", "blk.#.ffn_up"},
    {"encoder.layer.#.output.dense", "blk.#.ffn_down"},
    {"encoder.layer.#.output.LayerNorm", "blk.#.layer_output_norm"},
    {"transformer.layer.#.attention.q_lin", "blk.#.attn_q"},
    {"transformer.layer.#.attention.k_lin", "blk.#.attn_k"},
    {"transformer.layer.#.attention.v_lin", "blk.#.attn_v"},
    {"transformer.layer.#.attention.out_lin", "blk.#.attn_output"},
    {"transformer.layer.#.sa_layer_norm", "blk.#.attn_output_norm"},
    {"transformer.layer.#.ffn.lin1", "blk.#.ffn_up"},
    {"transformer.layer.#.ffn.lin2", "blk.#.ffn_down"},
    {"transformer.layer.#.output_layer_norm", "blk.#.layer_output_norm"},
};

// Writes a folder as the converter does: without poolers and heads, positions from `first` on, one type of tokens
// squeezed.
void convert(const nlohmann::json& c, const std::string& folder, const std::string& to, std::uint32_t pooling,
             std::int64_t first = 0) {
  const auto number = [&](const char* key, const char* other) {
    return c.value(key, c.value(other, std::uint32_t{0}));
  };
  const Weights w = Weights::open(folder);
  std::vector<TensorToSave> tensors;
  for (const auto& [name, t] : w.tensors()) {
    std::string_view plain = name;
    for (const std::string_view prefix : {"bert.", "roberta.", "distilbert."})
      if (plain.starts_with(prefix)) plain.remove_prefix(prefix.size());
    for (const auto& [theirs, ours] : kNames) {
      const auto found = rewritten(plain, theirs, ours);
      if (!found) continue;
      TensorToSave s{*found, DType::F32, t.shape, t.bytes};
      if (*found == "position_embd.weight") {
        s.bytes = s.bytes.subspan(static_cast<std::size_t>(first * s.shape[1]) * sizeof(float)), s.shape[0] -= first;
      }
      std::erase(s.shape, 1);
      tensors.push_back(s);
    }
  }
  GgufFields fields{{"general.architecture", std::string("bert")},
                    {"bert.block_count", number("num_hidden_layers", "n_layers")},
                    {"bert.context_length", number("max_position_embeddings", "")},
                    {"bert.embedding_length", number("hidden_size", "dim")},
                    {"bert.feed_forward_length", number("intermediate_size", "hidden_dim")},
                    {"bert.attention.head_count", number("num_attention_heads", "n_heads")},
                    {"bert.attention.layer_norm_epsilon", static_cast<float>(c.value("layer_norm_eps", 1e-12))},
                    {"bert.attention.causal", false},
                    {"bert.pooling_type", pooling},
                    {"tokenizer.ggml.model", std::string("bert")},
                    {"tokenizer.ggml.token_type_count", std::uint32_t{2}}};
  std::vector<std::string> pieces{"[PAD]",
                                  "[UNK]",
                                  "[CLS]",
                                  "[SEP]",
                                  "\xE2\x96\x81"
                                  "a",
                                  "\xE2\x96\x81"
                                  "cat",
                                  "\xE2\x96\x81"
                                  "sat"};
  while (pieces.size() < static_cast<std::size_t>(number("vocab_size", "")))
    pieces.push_back(
        "\xE2\x96\x81"
        "w" +
        std::to_string(pieces.size()));
  fields.emplace_back("tokenizer.ggml.tokens", pieces);
  fields.emplace_back("tokenizer.ggml.bos_token_id", std::uint32_t{2});
  fields.emplace_back("tokenizer.ggml.eos_token_id", std::uint32_t{3});
  fields.emplace_back("tokenizer.ggml.seperator_token_id", std::uint32_t{3});
  fields.emplace_back("tokenizer.ggml.unknown_token_id", std::uint32_t{1});
  save_gguf(to, tensors, fields);
}

nlohmann::json cases() {
  return nlohmann::json::parse(slurp(std::string(paths::kSource) + "/tests/goldens/encoders.json"));
}

// BERT and DistilBERT without padding, whose hidden states their folders give, too (encoder_test holds those against
// transformers); RoBERTa's positions begin at 0 in these files.
TEST(EncoderGguf, HiddenStates) {
  int seen = 0;
  for (const auto& c : cases()) {
    const std::set<std::string> kinds{"bert", "roberta", "camembert", "xlm-roberta", "distilbert"};
    if (!kinds.contains(c["config"]["model_type"].get<std::string>())) continue;  // llama.cpp calls no others bert
    if (c["config"].value("hidden_act", c["config"].value("activation", "gelu")) != "gelu")
      continue;  // no key of the file says it
    const test::FormulaFolder folder(c["config"], c["tensors"]);
    const bool roberta = c["config"]["model_type"] != "bert" && c["config"]["model_type"] != "distilbert";
    const std::string path = folder.folder / "model.gguf";
    convert(c["config"], folder.path(), path, 1, roberta ? c["config"]["pad_token_id"].get<std::int64_t>() + 1 : 0);
    const LoadedModel own = load_model(folder.folder / "model.safetensors"), m = load_model(path);
    const std::vector<double> ids{5, 7, 11, 4, 6, 9, 8, 12}, ones(8, 1);
    test::AllGiven given{{"input_ids", {{1, 8}, ids}}, {"attention_mask", {{1, 8}, ones}}};
    test::AllGiven theirs = given;
    if (m.inputs.contains("token_type_ids")) given["token_type_ids"] = {{1, 8}, {0, 0, 0, 0, 1, 1, 1, 1}};
    if (own.inputs.contains("token_type_ids")) theirs["token_type_ids"] = {{1, 8}, {0, 0, 0, 0, 1, 1, 1, 1}};
    const Bindings sizes{{"batch", 1}, {"length", 8}};
    if (own.limits.at("length") < 8 || m.limits.at("length") < 8) continue;
    const auto want = test::by_reference(own, theirs, sizes).at("hidden");
    EXPECT_LT(test::farthest(test::by_reference(m, given, sizes).at("hidden"), want), 1e-5) << own.architecture;
    EXPECT_LT(test::farthest(test::by_cpu(m, given, {{"batch", 1}, {"length", 8}}).at("hidden"), want), 1e-4);
    ++seen;
  }
  EXPECT_GE(seen, 3);
}

// pooling_type says which tokens count; a file needs nothing beside it, and what lies there says nothing of it.
TEST(EncoderGguf, Vectors) {
  for (const auto& c : cases()) {
    if (c["config"]["model_type"] != "bert" || c["config"]["hidden_act"] != "gelu") continue;
    const test::FormulaFolder folder(c["config"], c["tensors"]);
    spit(folder.folder / "modules.json", "nonsense");
    const std::vector<std::string> texts{"a cat sat", "cat"};
    for (const std::uint32_t pooling : {1U, 2U, 3U}) {
      const std::string path = folder.folder / "model.gguf";
      convert(c["config"], folder.path(), path, pooling);
      const SentenceEncoder e = SentenceEncoder::load(path, {.compiler = generic() | cpu({.threads = 1})});
      const std::vector<float> got = e.embed(texts);
      const test::AllGiven given{{"input_ids", {{1, 5}, {2, 4, 5, 6, 3}}},
                                 {"attention_mask", {{1, 5}, std::vector<double>(5, 1)}},
                                 {"token_type_ids", {{1, 5}, std::vector<double>(5, 0)}}};
      const auto hidden = test::by_cpu(load_model(path), given, {{"batch", 1}, {"length", 5}}).at("hidden");
      const std::size_t width = hidden.size() / 5;
      for (std::size_t k = 0; k < width; ++k) {
        double mean = 0;
        for (std::size_t t = 0; t < 5; ++t) mean += hidden[t * width + k] / 5;
        const double want = pooling == 1 ? mean : pooling == 2 ? hidden[k] : hidden[4 * width + k];
        EXPECT_NEAR(got[k], want, 1e-4) << pooling;
      }
    }
    convert(c["config"], folder.path(), folder.folder / "rank.gguf", 4);
    EXPECT_PRED2(contains, error_of([&] { SentenceEncoder::load(folder.folder / "rank.gguf"); }),
                 "only 0 to 3 give vectors");
    return;
  }
}

}  // namespace
