#include "lightcone/models/llama/llama_config.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

#include "lightcone/core/dim.h"
#include "lightcone/io/checkpoints/gguf.h"
#include "lightcone/io/json_internal.h"
#include "lightcone/io/printable.h"
#include "lightcone/llm/gguf.h"

namespace lc {
namespace {

using io::Json;

// Scaling of RoPE beyond the context of training (rope_scaling of Hugging Face).
struct Scaling {
  std::string type = "default";
  double factor = 1, low = 1, high = 4, original = 8192;
};

void positive(double v, const char* what, const Weights& w) {
  if (!(v > 0 && std::isfinite(v))) throw file_error("load", w.path(), what, " is ", v, ", not a positive number");
}

double rope_speed(double theta, std::int64_t pair, std::int64_t head_dim) {
  return std::pow(theta, -2.0 * static_cast<double>(pair) / static_cast<double>(head_dim));
}

// Radians per position of each pair. With llama3 scaling, the frequencies of long wavelengths are divided by the
// factor, those of short wavelengths are kept, and those between are interpolated (transformers' modeling_rope_utils,
// "llama3").
std::vector<double> frequencies(const Weights& w, std::int64_t head_dim, double theta, const Scaling& s) {
  if (head_dim < 1 || head_dim > 1 << 16 || head_dim % 2 != 0)
    throw file_error("load", w.path(), "heads of size ", head_dim, " cannot be rotated");
  positive(theta, "the base of RoPE", w);
  if (s.type != "default") positive(s.factor, "the factor of the RoPE scaling", w);  // for other types files may hold 0
  std::vector<double> f;
  for (std::int64_t i = 0; i < head_dim / 2; ++i) {
    double speed = rope_speed(theta, i, head_dim);
    if (s.type == "linear") speed /= s.factor;
    if (s.type == "llama3") {
      const double wavelength = 2 * std::numbers::pi / speed;
      const double blend = (s.original / wavelength - s.low) / (s.high - s.low);
      speed = wavelength > s.original / s.low    ? speed / s.factor
              : wavelength < s.original / s.high ? speed
                                                 : (1 - blend) * speed / s.factor + blend * speed;
    }
    f.push_back(speed);
  }
  return f;
}

// Ignores values that are not valid ids: files write -1 for "none".
void add_token(std::vector<int>& ids, double id) {
  if (id >= 0 && id <= 1e9 && id == std::floor(id)) ids.push_back(static_cast<int>(id));
}

// Reader of config.json. A field may be missing or null; a field of a wrong type is an Error.
class JsonConfig {
 public:
  explicit JsonConfig(const Weights& w)
      : path_(w.path()), budget_(w.options(), path_), text_(w.config_json(), path_ + ": config.json", budget_) {
    j_ = text_.root();
    if (!j_.is(Json::Kind::Object)) fail("it is not an object");
    if (const Json inner = member(j_, "text_config", Json::Kind::Object, "an object"); !inner.absent()) j_ = inner;
  }
  std::optional<double> number(const char* key) const { return number(j_, key); }
  std::string text(const char* key) const { return std::string(member(j_, key, Json::Kind::String, "a text").text()); }
  bool flag(const char* key, bool otherwise) const {
    return member(j_, key, Json::Kind::Bool, "true or false").flag().value_or(otherwise);
  }
  Scaling scaling() const;
  std::vector<int> eos() const;
  std::optional<double> theta() const {
    if (const auto t = number("rope_theta")) return t;
    return number(member(j_, "rope_parameters", Json::Kind::Object, "an object"), "rope_theta");
  }

 private:
  template <class... Ts>
  [[noreturn]] void fail(const Ts&... what) const {
    throw file_error("load", path_, "config.json: ", what...);
  }
  Json member(const Json& j, std::string_view key, Json::Kind kind, const char* words) const {
    const Json m = j[key];
    if (!m.absent() && !m.is(kind)) fail(key, " is not ", words);
    return m;
  }
  std::optional<double> number(const Json& j, std::string_view key) const {
    const Json m = j[key];
    if (!m.absent() && !m.number()) fail(key, " is not a number");
    return m.number();
  }
  const std::string& path_;
  Budget budget_;
  io::JsonDocument text_;
  Json j_;
};

Scaling JsonConfig::scaling() const {
  Scaling s;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json r = member(j_, key, Json::Kind::Object, "an object");
    if (r.absent()) continue;
    for (const char* k : {"type", "rope_type"})
      if (const Json type = member(r, k, Json::Kind::String, "a text"); !type.absent()) s.type = type.text();
    s.factor = number(r, "factor").value_or(1);
    s.low = number(r, "low_freq_factor").value_or(1);
    s.high = number(r, "high_freq_factor").value_or(4);
    s.original = number(r, "original_max_position_embeddings").value_or(8192);
  }
  if (s.type != "default" && s.type != "linear" && s.type != "llama3")
    fail("RoPE scaling of type ", in_quotes(s.type), " is not supported (default, linear and llama3 are)");
  return s;
}

std::vector<int> JsonConfig::eos() const {
  std::vector<int> ids;
  const auto add = [&](const Json& id) {
    if (!id.absent() && !id.number()) fail("eos_token_id is not a number, or a list of them");
    if (id.number()) add_token(ids, *id.number());
  };
  const Json e = j_["eos_token_id"];
  if (!e.is(Json::Kind::Array)) add(e);
  if (e.is(Json::Kind::Array))
    for (const auto& [unnamed, id] : e) add(id);
  return ids;
}

std::int64_t whole(double v, const std::string& what, const std::string& path) {
  if (!(v >= 1 && v <= 1e9) || v != std::floor(v))
    throw file_error("load", path, what, " is ", v, ", which makes no model");
  return static_cast<std::int64_t>(v);
}

LlamaConfig from_json(const Weights& w) {
  const JsonConfig j(w);
  const std::string type = j.text("model_type");
  if (!type.empty() && type != "llama" && type != "mistral" && type != "qwen2" && type != "qwen3")
    throw file_error("load", w.path(), "a model of type ", in_quotes(type),
                     " is not of the Llama family (llama, mistral, qwen2, qwen3)");
  const auto need = [&](const char* key) {
    const auto v = j.number(key);
    if (!v) throw file_error("load", w.path(), "config.json has no ", key);
    return whole(*v, key, w.path());
  };
  LlamaConfig c;
  c.vocab = need("vocab_size"), c.hidden = need("hidden_size"), c.intermediate = need("intermediate_size");
  c.layers = need("num_hidden_layers"), c.heads = need("num_attention_heads");
  c.kv_heads = j.number("num_key_value_heads") ? need("num_key_value_heads") : c.heads;
  c.head_dim = j.number("head_dim") ? need("head_dim") : c.hidden / c.heads;
  c.context = j.number("max_position_embeddings") ? need("max_position_embeddings") : 2048;
  c.eps = j.number("rms_norm_eps").value_or(1e-6);
  c.rope_theta = j.theta().value_or(10000);
  c.rope_frequencies = frequencies(w, c.head_dim, c.rope_theta, j.scaling());
  if (j.number("sliding_window") && j.flag("use_sliding_window", type != "qwen2" && type != "qwen3"))
    c.window = need("sliding_window");
  c.eos = j.eos();
  if (const std::string act = j.text("hidden_act"); !act.empty() && act != "silu")
    throw file_error("load", w.path(), "the activation ", in_quotes(act), " is not of the Llama family (silu)");
  return c;
}

LlamaConfig from_gguf(const Weights& w) {
  const GgufFile& g = *w.gguf();
  const std::string arch = g.text("general.architecture").value_or("");
  if (arch != "llama" && arch != "mistral" && arch != "qwen2" && arch != "qwen3")
    throw file_error("load", w.path(), "a model of architecture ", in_quotes(arch),
                     " is not of the Llama family (llama, mistral, qwen2, qwen3); its tensors can be read "
                     "(Weights::open()), for a graph of your own");
  const auto number = [&](const std::string& key) { return g.number(arch + "." + key); };
  const auto need = [&](const std::string& key) {
    const auto v = number(key);
    if (!v) throw file_error("load", w.path(), "the GGUF header has no ", arch, ".", key);
    return whole(*v, key, w.path());
  };
  LlamaConfig c;
  c.hidden = need("embedding_length"), c.intermediate = need("feed_forward_length");
  c.layers = need("block_count"), c.heads = need("attention.head_count");
  c.kv_heads = number("attention.head_count_kv") ? need("attention.head_count_kv") : c.heads;
  c.head_dim = number("attention.key_length") ? need("attention.key_length") : c.hidden / c.heads;
  c.context = need("context_length");
  c.vocab = llm::gguf_vocabulary(w);
  c.eps = number("attention.layer_norm_rms_epsilon").value_or(1e-5);
  c.rope_theta = number("rope.freq_base").value_or(10000);
  c.rope_interleaved = arch == "llama" || arch == "mistral";  // other architectures have Hugging Face's order
  if (const auto n = number("rope.dimension_count"); n && *n != static_cast<double>(c.head_dim))
    throw file_error("load", w.path(), "rotating ", *n, " of ", c.head_dim, " dimensions is not supported");
  Scaling s;
  if (const auto t = g.text(arch + ".rope.scaling.type"); t && *t != "none") s.type = *t;
  s.factor = number("rope.scaling.factor").value_or(1);
  if (s.type != "default" && s.type != "linear")
    throw file_error("load", w.path(), "RoPE scaling of type ", in_quotes(s.type), " is not supported (linear is)");
  c.rope_frequencies = frequencies(w, c.head_dim, c.rope_theta, s);
  if (const StoredTensor* f = w.find("rope_freqs.weight")) {  // Llama 3.1 and later: a divisor per pair
    if (f->elements() != static_cast<std::int64_t>(c.rope_frequencies.size()))  // checked before it is unpacked
      throw file_error("load", w.path(), "rope_freqs.weight has ", f->elements(), " values, ",
                       c.rope_frequencies.size(), " are needed");
    const std::vector<float> by = Weights::read(*f);
    for (std::size_t i = 0; i < by.size(); ++i) c.rope_frequencies[i] /= static_cast<double>(by[i]);
  }
  if (c.rope_interleaved && w.find("blk.0.attn_q_norm.weight"))
    throw file_error("load", w.path(), "a model of architecture ", in_quotes(arch),
                     " with norms of queries (blk.0.attn_q_norm.weight), which qwen3 has, is not supported");
  if (number("attention.sliding_window").value_or(0) > 0) c.window = need("attention.sliding_window");
  if (const auto e = g.number("tokenizer.ggml.eos_token_id")) add_token(c.eos, *e);
  return c;
}

LlamaConfig from_llama2c(const Weights& w) {
  const auto h = w.llama2c();
  LlamaConfig c;
  c.hidden = h[0], c.intermediate = h[1], c.layers = h[2], c.heads = h[3], c.kv_heads = h[4];
  c.vocab = std::abs(static_cast<std::int64_t>(h[5])), c.context = h[6], c.head_dim = c.hidden / c.heads;
  c.rope_interleaved = true;
  c.rope_frequencies = frequencies(w, c.head_dim, c.rope_theta, {});
  c.eos = {1, 2};  // run.c stops at BOS as well
  return c;
}

}  // namespace

LlamaConfig LlamaConfig::from(const Weights& w) {
  const bool described_beside = !w.gguf() && w.llama2c().empty();
  if (described_beside && w.config_json().empty())
    throw file_error("load", w.path(), "a ", w.format(), " model needs its config.json beside it");
  LlamaConfig c = w.gguf() ? from_gguf(w) : described_beside ? from_json(w) : from_llama2c(w);
  if (c.heads % c.kv_heads != 0)
    throw file_error("load", w.path(), c.kv_heads, " key heads do not divide ", c.heads, " query heads");
  positive(c.eps, "the epsilon of the norms", w);
  for (double f : c.rope_frequencies) positive(f, "a frequency of RoPE", w);
  return c;
}

LlamaConfig LlamaConfig::tinyllama() {
  LlamaConfig c{.vocab = 32000,
                .hidden = 2048,
                .intermediate = 5632,
                .layers = 22,
                .heads = 32,
                .kv_heads = 4,
                .head_dim = 64,
                .context = 2048,
                .rope_frequencies = {},
                .eos = {2}};
  for (std::int64_t i = 0; i < c.head_dim / 2; ++i)
    c.rope_frequencies.push_back(rope_speed(c.rope_theta, i, c.head_dim));
  return c;
}

}  // namespace lc
