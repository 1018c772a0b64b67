// Rotary positions of GGUF files in the words of config.json.
#include "lightcone/io/printable.h"
#include "lightcone/models/gguf/gguf_config.h"

namespace lc::gguf {
namespace {

// The divisors of each pair's frequency, which lie in a tensor.
std::vector<double> factors_of(const GgufMetadata& m, std::string_view tensor) {
  constexpr std::int64_t kMost = 1 << 16;
  const StoredTensor& t = m.weights().at(tensor);
  if (t.elements() > kMost) m.fail("the tensor ", in_quotes(std::string(tensor)), " has ", t.elements(), " factors");
  const std::vector<float> all = Weights::read(t);
  return {all.begin(), all.end()};
}

double scaling_factor(const GgufMetadata& m) {
  // files of 2023 have the inverse name
  const double f = m.has("rope.scaling.factor") ? m.number("rope.scaling.factor", 1) : m.number("rope.scale_linear", 1);
  m.neutral({"rope.scaling.factor", "rope.scale_linear"});
  return f == 0 ? 1 : f;
}

void write_yarn(const GgufMetadata& m, ConfigText& r, double factor) {
  r.set("rope_type", "yarn").set("factor", factor);
  r.set("original_max_position_embeddings", m.size("rope.scaling.original_context_length"));
  if (m.has("rope.scaling.yarn_attn_factor")) r.set("attention_factor", m.number("rope.scaling.yarn_attn_factor", 1));
  if (m.has("rope.scaling.yarn_beta_fast")) r.set("beta_fast", m.number("rope.scaling.yarn_beta_fast", 32));
  if (m.has("rope.scaling.yarn_beta_slow")) r.set("beta_slow", m.number("rope.scaling.yarn_beta_slow", 1));
  if (const double by = m.number("rope.scaling.yarn_ext_factor", 1); by != 1 && by != -1)
    m.fail("rope.scaling.yarn_ext_factor is ", by, ", and only 1 is supported");
  if (m.number("rope.scaling.attn_factor", 1) != 1)
    m.fail("rope.scaling.attn_factor is ", m.number("rope.scaling.attn_factor", 1),
           " with YaRN, which is not supported");
  if (const double times = m.number("rope.scaling.yarn_log_multiplier", 0); times != 0) {
    // the converter writes a tenth of mscale_all_dim, and DeepSeek's mscale is the same number
    if (m.architecture() != "deepseek2") m.fail("rope.scaling.yarn_log_multiplier is known of deepseek2 alone");
    r.set("mscale", times * 10).set("mscale_all_dim", times * 10);
  }
  if (m.architecture() == "gpt-oss") r.set("truncate", false);  // as its config.json says, and no key of the file
}

// Factors for short and for long texts (Phi 3), or one list for all (Llama 3).
void write_factors(const GgufMetadata& m, ConfigText& r) {
  const bool two = m.has_tensor("rope_factors_short.weight");
  r.set("rope_type", "longrope");
  r.set("short_factor", factors_of(m, two ? "rope_factors_short.weight" : "rope_freqs.weight"));
  r.set("long_factor", factors_of(m, two ? "rope_factors_long.weight" : "rope_freqs.weight"));
  const std::int64_t length = m.size("context_length");
  const std::int64_t original = two ? m.size("rope.scaling.original_context_length", length) : length;
  r.set("original_max_position_embeddings", original);
  if (!two) r.set("attention_factor", 1.0);
  else if (m.has("rope.scaling.attn_factor")) r.set("attention_factor", m.number("rope.scaling.attn_factor", 1));
}

}  // namespace

ConfigText rope_of(const GgufMetadata& m, std::int64_t head, double theta) {
  ConfigText r;
  r.set("rope_theta", m.number("rope.freq_base", theta));
  if (const std::int64_t turned = m.size("rope.dimension_count", head); turned != head) {
    if (turned > head) m.fail("rope.dimension_count is ", turned, ", and heads have ", head, " elements");
    constexpr double kWithin = 0.25;  // a quotient of two whole numbers is rounded, and this much is cut off again
    r.set("partial_rotary_factor", (static_cast<double>(turned) + kWithin) / static_cast<double>(head));
  }
  const double factor = scaling_factor(m);
  const bool listed = m.has_tensor("rope_freqs.weight") || m.has_tensor("rope_factors_short.weight");
  const std::string type = m.text("rope.scaling.type", listed ? "longrope" : factor != 1 ? "linear" : "none");
  if (type == "yarn" && !listed) write_yarn(m, r, factor);
  else if (type == "linear" && !listed) r.set("rope_type", "linear").set("factor", factor);
  else if (listed && factor == 1 && (type == "longrope" || type == "none" || type == "linear")) write_factors(m, r);
  else if (type == "none" && !listed) r.set("rope_type", "default");
  else
    m.fail("rope.scaling.type ", in_quotes(type), listed ? " with a tensor of factors" : "",
           " is not supported (none, linear and yarn are, and longrope with tensors of factors)");
  m.neutral({"rope.scaling.finetuned", "rope.scaling.original_context_length", "rope.scaling.attn_factor"});
  return r;
}

void write_rope(const GgufMetadata& m, ConfigText& c, std::int64_t head, double theta) {
  c.set("rope_parameters", rope_of(m, head, theta));
}

}  // namespace lc::gguf
