// Generators of safetensors with index and config.json, and of tokenizer.json.
#include <nlohmann/json.hpp>

#include "mutator.h"

namespace fuzz {
namespace {

using Json = nlohmann::ordered_json;
const std::string kSpace = "\xE2\x96\x81";

void string(Mutator& l, std::string& s, const std::string& text) {
  s += '"';
  for (char c : text) {
    if (c == '"' || c == '\\') s += '\\';
    if (static_cast<unsigned char>(c) < 32) s += "\\u00" + std::string(1, "01"[c / 16]) + "0123456789abcdef"[c % 16];
    else s += c;
  }
  if (!l.lies()) s += '"';
}

void instead(Mutator& l, std::string& s) {
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

// Writes the value as text. Each of its parts may be replaced, omitted or duplicated.
void write(Mutator& l, std::string& s, const Json& j) {
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
std::string written(Mutator& l, const Json& j) {
  std::string s;
  write(l, s, j);
  return s;
}

std::string shard(Mutator& l, const std::vector<std::pair<std::string, std::vector<int>>>& tensors) {
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

Json config(Mutator& l) {
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

Json text_pattern(Mutator& l) {
  return l.draw(2) ? Json{{"String", l.draw(2) ? " " : "a"}}
                   : Json{{"Regex", l.draw(2) ? "\\s+" : "\\p{N}{1,3}| ?\\p{L}+|\\s+"}};
}

std::string base64(const std::string& bytes) {
  constexpr const char* kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    for (held += 8; held >= 6; held -= 6) out += kDigits[bits >> (held - 6) & 63];
  }
  if (held > 0) out += kDigits[bits << (6 - held) & 63];
  return out + std::string((4 - out.size() % 4) % 4, '=');
}

// Each function below returns a random component of its kind.
Json normalizer(Mutator& l) {
  switch (l.draw(12)) {
    case 9: return {{"type", "Precompiled"}, {"precompiled_charsmap", base64(charsmap(l))}};
    case 10: return {{"type", l.draw(2) ? "NFD" : "NFKD"}};
    case 11: return {{"type", "ByteLevel"}};
    case 0: return {{"type", "Replace"}, {"pattern", text_pattern(l)}, {"content", kSpace}};
    case 1: return {{"type", "Prepend"}, {"prepend", kSpace}};
    case 2:
      return {{"type", "BertNormalizer"},
              {"clean_text", true},
              {"handle_chinese_chars", true},
              {"strip_accents", nullptr},
              {"lowercase", l.draw(2) == 0}};
    case 3: return {{"type", "Strip"}, {"strip_left", true}, {"strip_right", l.draw(2) == 0}};
    case 4: return {{"type", "NFKC"}};
    case 5: return {{"type", "Lowercase"}};
    case 6: return {{"type", "Nmt"}};
    case 7: return {{"type", "StripAccents"}};
    default: return {{"type", "NFC"}};
  }
}
Json pre_tokenizer(Mutator& l) {
  static constexpr const char* kBehaviors[] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext",
                                               "Contiguous"};
  switch (l.draw(10)) {
    case 8: return {{"type", "Whitespace"}};
    case 9: return {{"type", "FixedLength"}, {"length", 2}};
    case 0:
      return {{"type", "Split"},
              {"pattern", text_pattern(l)},
              {"behavior", kBehaviors[l.draw(5)]},
              {"invert", l.draw(2) == 0}};
    case 1: return {{"type", "Digits"}, {"individual_digits", l.draw(2) == 0}};
    case 2: return {{"type", "ByteLevel"}, {"add_prefix_space", l.draw(2) == 0}, {"use_regex", l.draw(2) == 0}};
    case 3:
      return {{"type", "Metaspace"},
              {"replacement", kSpace},
              {"prepend_scheme", l.draw(2) ? "first" : "always"},
              {"split", l.draw(2) == 0}};
    case 4: return {{"type", "Punctuation"}, {"behavior", kBehaviors[l.draw(5)]}};
    case 5: return {{"type", "BertPreTokenizer"}};
    case 6: return {{"type", l.draw(2) ? "UnicodeScripts" : "WhitespaceSplit"}};
    default: return {{"type", "CharDelimiterSplit"}, {"delimiter", "b"}};
  }
}
Json decoder(Mutator& l) {
  switch (l.draw(9)) {
    case 6: return {{"type", "CTC"}, {"pad_token", "a"}, {"word_delimiter_token", "b"}, {"cleanup", l.draw(2) == 0}};
    case 7: return {{"type", "BPEDecoder"}, {"suffix", "b"}};
    case 8: return {{"type", "Fuse"}};
    case 0: return {{"type", "ByteLevel"}};
    case 1: return {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
    case 2: return {{"type", "Metaspace"}, {"replacement", kSpace}};
    case 3: return {{"type", "Strip"}, {"content", " "}, {"start", l.draw(3)}, {"stop", l.draw(3)}};
    case 4: return {{"type", "Replace"}, {"pattern", text_pattern(l)}, {"content", "x"}};
    default: return {{"type", "ByteFallback"}};
  }
}
Json some(Mutator& l, const char* list, Json (*one)(Mutator&)) {
  Json all = Json::array();
  for (std::uint64_t n = l.draw(3); n-- > 0;) all.push_back(one(l));
  return l.draw(2) ? Json{{"type", "Sequence"}, {list, all}} : one(l);
}
Json post_processor(Mutator& l) {
  if (l.draw(2))
    return {{"type", l.draw(2) ? "BertProcessing" : "RobertaProcessing"}, {"cls", {"<s>", 1}}, {"sep", {"</s>", 2}}};
  const Json special = {{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
             a = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  return {{"type", "TemplateProcessing"},
          {"single", Json::array({special, a})},
          {"pair", Json::array({special, a, {{"Sequence", {{"id", "B"}, {"type_id", 1}}}}})},
          {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {1}}, {"tokens", {"<s>"}}}}}}};
}

Json model(Mutator& l) {
  const std::uint64_t kind = l.draw(4);
  const Json vocab = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}, {"<0x41>", 3}, {kSpace, 4}, {"a", 5}, {"b", 6}, {"ab", 7}};
  if (kind == 0)
    return {{"type", "BPE"},
            {"byte_fallback", l.draw(2) == 0},
            {"ignore_merges", l.draw(2) == 0},
            {"fuse_unk", l.draw(2) == 0},
            {"unk_token", "<unk>"},
            {"vocab", vocab},
            {"merges", l.draw(2) ? Json::array({"a b"}) : Json::array({Json::array({"a", "b"})})}};
  if (kind == 1)
    return {{"type", "WordPiece"},
            {"unk_token", "<unk>"},
            {"continuing_subword_prefix", "##"},
            {"max_input_chars_per_word", 100},
            {"vocab", vocab}};
  if (kind == 2) return {{"type", "WordLevel"}, {"unk_token", "<unk>"}, {"vocab", vocab}};
  Json list = Json::array();
  for (std::size_t i = 0; i < vocab.size(); ++i)
    for (const auto& [text, id] : vocab.items())
      if (id == i) list.push_back(Json::array({text, -1.5 * static_cast<double>(i)}));
  return {{"type", "Unigram"}, {"unk_id", 0}, {"byte_fallback", l.draw(2) == 0}, {"vocab", list}};
}

Json tokenizer(Mutator& l) {
  Json j = {{"version", "1.0"}, {"model", model(l)}};
  j["added_tokens"] = Json::array({{{"id", 0}, {"content", "<unk>"}, {"special", true}},
                                   {{"id", 1}, {"content", "<s>"}, {"special", true}, {"lstrip", l.draw(2) == 0}},
                                   {{"id", 2}, {"content", "</s>"}, {"special", true}},
                                   {{"id", 8},
                                    {"content", "<x>"},
                                    {"special", false},
                                    {"single_word", l.draw(2) == 0},
                                    {"normalized", l.draw(2) == 0}}});
  if (l.draw(2)) j["normalizer"] = some(l, "normalizers", normalizer);
  if (l.draw(2)) j["pre_tokenizer"] = some(l, "pretokenizers", pre_tokenizer);
  if (l.draw(2)) j["decoder"] = some(l, "decoders", decoder);
  if (l.draw(2)) j["post_processor"] = some(l, "processors", post_processor);
  if (l.draw(4) == 0)
    j["truncation"] = {{"direction", "Right"},
                       {"max_length", 4},
                       {"strategy", l.draw(2) ? "LongestFirst" : "OnlyFirst"},
                       {"stride", 0}};
  if (l.draw(4) == 0)
    j["padding"] = {{"strategy", l.draw(2) ? Json("BatchLongest") : Json{{"Fixed", 8}}},
                    {"direction", "Left"},
                    {"pad_to_multiple_of", 4},
                    {"pad_id", 0},
                    {"pad_type_id", 0},
                    {"pad_token", "x"}};
  return j;
}

}  // namespace

const std::pair<Shapes, Shapes>& tensors_of_a_llama() {
  static const std::string layer = "model.layers.0.";
  static const std::pair<Shapes, Shapes> both{{{"model.embed_tokens.weight", {8, 16}},
                                               {layer + "input_layernorm.weight", {16}},
                                               {layer + "self_attn.q_proj.weight", {16, 16}},
                                               {layer + "self_attn.k_proj.weight", {8, 16}},
                                               {layer + "self_attn.v_proj.weight", {8, 16}}},
                                              {{layer + "self_attn.o_proj.weight", {16, 16}},
                                               {layer + "post_attention_layernorm.weight", {16}},
                                               {layer + "mlp.gate_proj.weight", {24, 16}},
                                               {layer + "mlp.up_proj.weight", {24, 16}},
                                               {layer + "mlp.down_proj.weight", {16, 24}},
                                               {"model.norm.weight", {16}}}};
  return both;
}

Files make_folder(Mutator& l, const std::string& name, const std::string& extension,
                  std::string (*shard)(Mutator&, const Shapes&)) {
  Files f;
  const auto& [first, second] = tensors_of_a_llama();
  if (l.draw(2)) {
    Json places;
    for (const auto& [tensor, shape] : first) places[tensor] = name + "-1" + extension;
    for (const auto& [tensor, shape] : second) places[tensor] = name + "-2" + extension;
    f.files.emplace_back(name + extension + ".index.json",
                         written(l, {{"metadata", {{"total_size", 1}}}, {"weight_map", places}}));
    f.files.emplace_back(name + "-1" + extension, shard(l, first));
    f.files.emplace_back(name + "-2" + extension, shard(l, second));
  } else {
    Shapes all = second;
    all.insert(all.end(), first.begin(), first.end());
    f.files.emplace_back(name + extension, shard(l, all));
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

Files make_safetensors(Mutator& l) { return make_folder(l, "model", ".safetensors", shard); }

Files make_tokenizer_json(Mutator& l) {
  Files f{{{"tokenizer.json", written(l, tokenizer(l))}}};
  if (l.draw(2))
    f.files.emplace_back("tokenizer_config.json", written(l, {{"bos_token", "<s>"},
                                                              {"eos_token", {{"content", "</s>"}}},
                                                              {"clean_up_tokenization_spaces", l.draw(2) == 0},
                                                              {"x", 1}}));
  return f;
}

}  // namespace fuzz
