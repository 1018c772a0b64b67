// Encoders of text: "bert" is BERT, DistilBERT, RoBERTa or XLM-RoBERTa, whose positions begin at row 0 in these files.
#include "lightcone/models/gguf/gguf_config.h"

namespace lc::gguf {
namespace {

constexpr double kRank = 4;  // llama.cpp's number for the head of a cross-encoder

void write_distilbert(const GgufMetadata& m, ConfigText& c) {
  c.set("model_type", "distilbert").set("architectures", std::vector<std::string>{"DistilBertModel"});
  c.set("dim", m.size("embedding_length")).set("n_layers", m.size("block_count"));
  c.set("n_heads", m.size("attention.head_count")).set("hidden_dim", m.size("feed_forward_length"));
}

void write_bert(const GgufMetadata& m, ConfigText& c) {
  if (m.number("pooling_type", 0) == kRank || m.has_tensor("cls.output.weight"))
    m.fail("it scores pairs of texts (pooling_type is rank), and of GGUF files encoders alone are supported");
  if (m.flag("attention.causal", false)) m.fail("bert.attention.causal is true, which is not supported");
  c.set("vocab_size", m.extent("token_embd.weight", 0));
  c.set("max_position_embeddings", m.extent("position_embd.weight", 0));
  const StoredTensor* types = m.weights().find("token_types.weight");
  if (types) {
    c.set("model_type", "bert").set("architectures", std::vector<std::string>{"BertModel"});
    c.set("type_vocab_size", types->shape.size() > 1 ? types->shape.front() : 1);
    c.set("hidden_size", m.size("embedding_length")).set("num_hidden_layers", m.size("block_count"));
    c.set("num_attention_heads", m.size("attention.head_count"));
    c.set("intermediate_size", m.size("feed_forward_length"));
    c.set("layer_norm_eps", m.number("attention.layer_norm_epsilon", 1e-12));
  } else {
    write_distilbert(m, c);
    m.neutral({"attention.layer_norm_epsilon"});
  }
  m.neutral({"context_length", "vocab_size", "attention.head_count_kv", "pooling_type"});
}

}  // namespace

const std::vector<Translation> kEncoders{{"bert", write_bert}};

}  // namespace lc::gguf
