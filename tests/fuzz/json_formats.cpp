// Sound safetensors with index and config.json, and tokenizer.json, told through a Liar.
#include <nlohmann/json.hpp>

#include "liar.h"

namespace fuzz {
namespace {

using Json = nlohmann::ordered_json;
const std::string kSpace = "\xE2\x96\x81";

void string(Liar& l, std::string& s, const std::string& text) {
  s += '"';
  for (char c : text) {
    if (c == '"' || c == '\\') s += '\\';
    if (static_cast<unsigned char>(c) < 32) s += "\\u00" + std::string(1, "01"[c / 16]) + "0123456789abcdef"[c % 16];
    else s += c;
  }
  if (!l.lies()) s += '"';
}

void instead(Liar& l, std::string& s) {
  static const std::string kOther[] = {"null",
                                       "true",
                                       "-1",
                                       "0",
                                       "1",
                                       "1e308",
                                       "1e999",
                                       "0.5",
                                       "18446744073709551615",
                                       "9223372036854775807",
                                       "-9223372036854775808",
                                       "10000000",
                                       "\"x\"",
                                       "\"\"",
                                       "[]",
                                       "{}",
                                       "\"\\u001b[2J\"",
                                       "\"\\ud800\"",
                                       "[[]]",
                                       "{\"a\":{\"a\":1}}",
                                       "",
                                       "1.0",
                                       "2147483648"};
  const std::uint64_t which = l.draw(std::size(kOther) + 1);
  s += which < std::size(kOther) ? kOther[which] : std::string(100, '[') + std::string(100, ']');
}

// The value as text. Each of its places may lie: be another value, be missing, be there twice.
void write(Liar& l, std::string& s, const Json& j) {
  if (l.lies()) return instead(l, s);
  if (j.is_string()) return string(l, s, l.word(j.get<std::string>()));
  if (j.is_number_integer()) {
    const std::int64_t v = j.get<std::int64_t>();
    s += std::to_string(static_cast<std::int64_t>(l.number(static_cast<std::uint64_t>(v))));
    return;
  }
  if (!j.is_structured()) {
    s += j.dump();
    return;
  }
  s += j.is_object() ? '{' : '[';
  bool first = true;
  const auto member = [&](const std::string& key, const Json& value) {
    if (!first) s += l.lies() ? "" : ",";
    first = false;
    if (j.is_object()) string(l, s, l.word(key)), s += ':';
    write(l, s, value);
  };
  for (const auto& [key, value] : j.items()) {
    if (l.lies()) continue;
    member(key, value);
    if (l.lies()) member(key, value);
  }
  if (!l.lies()) s += j.is_object() ? '}' : ']';
}
std::string written(Liar& l, const Json& j) {
  std::string s;
  write(l, s, j);
  return s;
}

std::string shard(Liar& l, const std::vector<std::pair<std::string, std::vector<int>>>& tensors) {
  Json header;
  if (l.draw(2)) header["__metadata__"] = {{"format", "pt"}};
  static const std::pair<const char*, int> kTypes[] = {{"F32", 4}, {"F16", 2}, {"BF16", 2}};
  int at = 0;
  for (const auto& [name, shape] : tensors) {
    const auto& [type, each] = kTypes[l.draw(std::size(kTypes))];
    int n = each;
    for (int d : shape) n *= d;
    header[name] = {{"dtype", type}, {"shape", shape}, {"data_offsets", {at, at + n}}};
    at += n;
  }
  std::string text = written(l, header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = l.number(text.size());
  std::string s(reinterpret_cast<const char*>(&length), 8);
  const std::size_t data = l.lies() ? l.draw(static_cast<std::uint64_t>(2 * at + 1)) : static_cast<std::size_t>(at);
  return s + text + std::string(data, '\x2a');
}

Json config(Liar& l) {
  Json c = {
      {"model_type", "llama"},  {"vocab_size", 8},          {"hidden_size", 16},        {"intermediate_size", 24},
      {"num_hidden_layers", 1}, {"num_attention_heads", 2}, {"num_key_value_heads", 1}, {"max_position_embeddings", 16},
      {"rms_norm_eps", 1e-5},   {"hidden_act", "silu"},     {"eos_token_id", {2, 6}},   {"rope_theta", 10000.0}};
  if (l.draw(2))
    c["rope_scaling"] = {{"rope_type", "llama3"},
                         {"factor", 8},
                         {"low_freq_factor", 1},
                         {"high_freq_factor", 4},
                         {"original_max_position_embeddings", 8}};
  if (l.draw(2)) c["head_dim"] = 8;
  if (l.draw(3) == 0) c["sliding_window"] = 4;
  if (l.draw(3) == 0) c = {{"text_config", c}};
  return c;
}

Json tokenizer(Liar& l) {
  Json j = {{"version", "1.0"}};
  const std::uint64_t kind = l.draw(3);
  if (kind == 0) {  // byte-level
    j["added_tokens"] = Json::array({{{"id", 6}, {"content", "<|endoftext|>"}, {"special", true}},
                                     {{"id", 7}, {"content", "<x>"}, {"special", false}}});
    j["pre_tokenizer"] = {
        {"type", "Sequence"},
        {"pretokenizers",
         {{{"type", "Split"}, {"pattern", {{"Regex", "\\p{N}{1,3}| ?\\p{L}+|\\s+"}}}, {"behavior", "Isolated"}},
          {{"type", "Digits"}, {"individual_digits", true}},
          {{"type", "ByteLevel"}, {"use_regex", l.draw(2) == 0}}}}};
    j["normalizer"] = {{"type", "NFC"}};
    j["post_processor"] = {{"type", "TemplateProcessing"},
                           {"single", {{{"SpecialToken", {{"id", "<|endoftext|>"}}}}, {{"Sequence", {{"id", "A"}}}}}}};
    j["model"] = {{"type", "BPE"},
                  {"ignore_merges", l.draw(2) == 0},
                  {"vocab",
                   {{"a", 0},
                    {"b", 1},
                    {"ab", 2},
                    {"\xC4\xA0", 3},
                    {"\xC4\xA0"
                     "ab",
                     4},
                    {"1", 5}}},
                  {"merges", {"a b", Json::array({"\xC4\xA0", "ab"})}}};
  } else if (kind == 1) {  // with byte fallback
    j["added_tokens"] = Json::array({{{"id", 0}, {"content", "<unk>"}, {"special", true}},
                                     {{"id", 1}, {"content", "<s>"}, {"special", true}},
                                     {{"id", 2}, {"content", "</s>"}, {"special", true}}});
    j["normalizer"] = {{"type", "Sequence"},
                       {"normalizers", {{{"type", "Prepend"}, {"prepend", kSpace}}, {{"type", "Replace"}}}}};
    if (l.draw(2)) j["pre_tokenizer"] = {{"type", "Metaspace"}, {"prepend_scheme", "first"}};
    j["model"] = {
        {"type", "BPE"},
        {"byte_fallback", true},
        {"unk_token", "<unk>"},
        {"vocab", {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}, {"<0x41>", 3}, {kSpace, 4}, {"a", 5}, {"b", 6}, {"ab", 7}}},
        {"merges", {"a b"}}};
  } else {
    j["model"] = {
        {"type", "WordPiece"},
        {"unk_token", "[UNK]"},
        {"max_input_chars_per_word", 100},
        {"vocab",
         {{"[UNK]", 0}, {"[CLS]", 1}, {"[SEP]", 2}, {"a", 3}, {"##b", 4}, {"ab", 5}, {"##abc", 6}, {"##c", 7}}}};
    j["post_processor"] = {{"type", "TemplateProcessing"},
                           {"single",
                            {{{"SpecialToken", {{"id", "[CLS]"}}}},
                             {{"Sequence", {{"id", "A"}}}},
                             {{"SpecialToken", {{"id", "[SEP]"}}}}}}};
  }
  return j;
}

}  // namespace

Files make_safetensors(Liar& l) {
  Files f;
  const std::string layer = "model.layers.0.";
  const std::vector<std::pair<std::string, std::vector<int>>> first = {{"model.embed_tokens.weight", {8, 16}},
                                                                       {layer + "input_layernorm.weight", {16}},
                                                                       {layer + "self_attn.q_proj.weight", {16, 16}},
                                                                       {layer + "self_attn.k_proj.weight", {8, 16}},
                                                                       {layer + "self_attn.v_proj.weight", {8, 16}}};
  std::vector<std::pair<std::string, std::vector<int>>> second = {
      {layer + "self_attn.o_proj.weight", {16, 16}}, {layer + "post_attention_layernorm.weight", {16}},
      {layer + "mlp.gate_proj.weight", {24, 16}},    {layer + "mlp.up_proj.weight", {24, 16}},
      {layer + "mlp.down_proj.weight", {16, 24}},    {"model.norm.weight", {16}}};
  if (l.draw(2)) {
    Json places;
    for (const auto& [name, shape] : first) places[name] = "model-1.safetensors";
    for (const auto& [name, shape] : second) places[name] = "model-2.safetensors";
    f.files.emplace_back("model.safetensors.index.json",
                         written(l, {{"metadata", {{"total_size", 1}}}, {"weight_map", places}}));
    f.files.emplace_back("model-1.safetensors", shard(l, first));
    f.files.emplace_back("model-2.safetensors", shard(l, second));
  } else {
    second.insert(second.end(), first.begin(), first.end());
    f.files.emplace_back("model.safetensors", shard(l, second));
  }
  f.files.emplace_back("config.json", written(l, config(l)));
  f.files.emplace_back("tokenizer.json", written(l, tokenizer(l)));
  const std::string chat = "{{ messages }}";
  if (l.draw(2)) f.files.emplace_back("tokenizer_config.json", written(l, {{"chat_template", chat}}));
  else if (l.draw(2))
    f.files.emplace_back(
        "tokenizer_config.json",
        written(l,
                {{"chat_template", {{{"name", "x"}, {"template", ""}}, {{"name", "default"}, {"template", chat}}}}}));
  return f;
}

Files make_tokenizer_json(Liar& l) {
  Files f{{{"tokenizer.json", written(l, tokenizer(l))}}};
  if (l.draw(2))
    f.files.emplace_back("tokenizer_config.json",
                         written(l, {{"bos_token", "<s>"}, {"eos_token", {{"content", "</s>"}}}, {"x", 1}}));
  return f;
}

}  // namespace fuzz
