#include "lightcone/llm/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include <nlohmann/json.hpp>

#include "lightcone/io/atomic_file.h"
#include "lightcone/io/checkpoints/gguf.h"
#include "lightcone/io/checkpoints/save.h"
#include "lightcone/io/mapped_file.h"
#include "lightcone/io/printable.h"
#include "lightcone/llm/gguf.h"
#include "lightcone/llm/stored.h"

namespace lc::llm {
namespace {

namespace fs = std::filesystem;

// Converts a number to 32 bits, the width that is written. Readers accept any width, and every number of a model fits
// into 32 bits. Throws Error otherwise.
template <class To, class From>
To in_32_bits(From v, const std::string& key) {
  using Limits = std::numeric_limits<To>;
  const auto d = static_cast<double>(v);
  if (!(d >= static_cast<double>(Limits::min()) && d <= static_cast<double>(Limits::max())))
    throw Error("save_like", str_cat("'", printable(key, 200), "' is ", v, ", which 32 bits do not hold"));
  return static_cast<To>(v);
}

struct AsField {
  const std::string& key;
  GgufField operator()(std::int64_t v) const {  // sizes and ids are unsigned, as readers require
    if (v < 0) return in_32_bits<std::int32_t>(v, key);
    return in_32_bits<std::uint32_t>(v, key);
  }
  GgufField operator()(std::uint64_t v) const { return in_32_bits<std::uint32_t>(v, key); }
  GgufField operator()(double v) const { return static_cast<float>(v); }
  GgufField operator()(bool v) const { return v; }
  GgufField operator()(std::string_view v) const { return std::string(v); }
  GgufField operator()(const std::vector<std::string_view>& v) const {
    return std::vector<std::string>(v.begin(), v.end());
  }
  GgufField operator()(const GgufNumbers& v) const {
    std::vector<float> numbers(v.size());
    for (std::size_t i = 0; i < v.size(); ++i) numbers[i] = static_cast<float>(v[i]);
    if (v.is_float()) return numbers;
    std::vector<std::int32_t> whole(v.size());
    for (std::size_t i = 0; i < v.size(); ++i) whole[i] = in_32_bits<std::int32_t>(v[i], key);
    return whole;
  }
};

// True for a "tokenizer.ggml.padding_token_id" or the like with a number that means "none". Readers take it for a
// token.
bool names_no_token(const GgufFile& file, const std::string& key, std::int64_t vocabulary) {
  const auto id = key.ends_with("_token_id") ? file.number(key) : std::nullopt;
  return id && !(*id >= 0 && *id < static_cast<double>(vocabulary));
}

// The metadata of the file, except the fields about the storage of its tensors.
GgufFields fields_like(const GgufFile& file, std::int64_t vocabulary, DType type) {
  GgufFields fields;
  for (const auto& [key, value] : file.metadata)
    if (key != "general.file_type" && key != "general.quantization_version" && key != "general.alignment" &&
        !key.starts_with("split.") &&  // a model in several files is written as one
        !names_no_token(file, key, vocabulary))
      fields.emplace_back(key, std::visit(AsField{key}, value));
  fields.emplace_back("general.file_type", gguf_file_type(type));
  return fields;
}

// The parameters of the model, and the further tensors of the file (rope_freqs.weight).
class Tensors {
 public:
  Tensors(const Weights& like, std::span<const ParameterInfo> parameters, const ParameterValues& values, DType type,
          const NameInFile& name) {
    for (const ParameterInfo& p : parameters) {
      const DType stored = p.shape.size() == 2 || !like.gguf() ? type : DType::F32;
      bytes_.push_back(stored_as(values(p.path), stored));
      all.push_back({name(like, p.path), stored, p.shape, bytes_.back()});
    }
    const auto own = static_cast<std::ptrdiff_t>(all.size());
    for (const auto& [other, t] : like.tensors()) {
      const auto same = [&, &other = other](const TensorToSave& s) { return s.name == other; };
      if (std::any_of(all.begin(), all.begin() + own, same)) continue;
      if (!t.dtype) throw file_error("save_like", like.path(), "'", other, "' is no part of the model, and ", t.type);
      all.push_back({other, *t.dtype, t.shape, t.bytes});
    }
  }
  std::vector<TensorToSave> all;

 private:
  std::vector<std::vector<std::byte>> bytes_;
};

constexpr std::string_view kConfig = "config.json";

// The files next to the weights that transformers or this library reads.
constexpr const char* kBeside[] = {
    "config.json",     "generation_config.json",  "tokenizer.json",          "tokenizer_config.json",
    "tokenizer.model", "special_tokens_map.json", "added_tokens.json",       "vocab.json",
    "merges.txt",      "chat_template.jinja",     "chat_template.json",      "tokenizer.bin",
    "vocab.txt",       "sentencepiece.bpe.model", "preprocessor_config.json"};

void classify(nlohmann::ordered_json& j, const ClassifierConfig& c) {
  auto names = nlohmann::ordered_json::object(), numbers = names;
  for (std::size_t k = 0; k < c.labels.size(); ++k) names[std::to_string(k)] = c.labels[k], numbers[c.labels[k]] = k;
  j["architectures"] = nlohmann::ordered_json::array({c.architecture});
  j["id2label"] = names, j["label2id"] = numbers;
  j.erase("num_labels");  // transformers counts id2label
  j["problem_type"] = "single_label_classification";
}

// Updates the dtype in config.json: transformers converts the numbers to that type, whatever type they are stored as.
std::string config_with(std::span<const std::byte> text, DType type, const ClassifierConfig* classifier) {
  const auto* begin = reinterpret_cast<const char*>(text.data());
  auto j = nlohmann::ordered_json::parse(begin, begin + text.size());  // parsed before, as a model
  const char* key = j.contains("dtype") ? "dtype" : "torch_dtype";
  j[key] = type == DType::F32 ? "float32" : type == DType::F16 ? "float16" : "bfloat16";
  if (classifier) classify(j, *classifier);
  return j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

void copy_beside(const Weights& like, const std::string& folder, DType type, const ClassifierConfig* classifier) {
  const fs::path from = fs::is_directory(like.path()) ? fs::path(like.path()) : fs::path(like.path()).parent_path();
  std::error_code wrong;
  fs::create_directories(folder, wrong);
  if (wrong) throw file_error("save_like", folder, "it cannot be made: ", wrong.message());
  if (fs::equivalent(from, folder, wrong))
    throw file_error("save_like", folder, "that is the folder which training began from");
  for (const char* name : kBeside) {
    if (!fs::is_regular_file(from / name, wrong)) continue;
    const auto file = MappedFile::open((from / name).string());
    io::AtomicFile copy("save_like", (fs::path(folder) / name).string());
    if (name == kConfig) copy.write(config_with(file->bytes(), type, classifier));
    else copy.write(file->bytes());
    copy.commit();
  }
}

}  // namespace

std::string gguf_name(const std::string& path) {
  static constexpr std::pair<std::string_view, std::string_view> whole_names[] = {
      {"model.embed_tokens.", "token_embd."}, {"model.norm.", "output_norm."}, {"lm_head.", "output."}};
  for (const auto& [ours, theirs] : whole_names)
    if (path.starts_with(ours)) return str_cat(theirs, path.substr(ours.size()));
  static constexpr std::pair<std::string_view, std::string_view> parts[] = {
      {"input_layernorm", "attn_norm"},    {"post_attention_layernorm", "ffn_norm"},
      {"self_attn.q_proj", "attn_q"},      {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},      {"self_attn.o_proj", "attn_output"},
      {"self_attn.q_norm", "attn_q_norm"}, {"self_attn.k_norm", "attn_k_norm"},
      {"mlp.gate_proj", "ffn_gate"},       {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"}};
  constexpr std::string_view layers = "model.layers.";
  if (!path.starts_with(layers)) return path;
  const std::size_t dot = path.find('.', layers.size()), last = path.rfind('.');
  const std::string number = path.substr(layers.size(), dot - layers.size()),
                    part = path.substr(dot + 1, last - dot - 1);
  for (const auto& [ours, theirs] : parts)
    if (part == ours) return str_cat("blk.", number, ".", theirs, path.substr(last));
  return path;
}

std::string name_in_file(const Weights& w, const std::string& path) { return w.gguf() ? gguf_name(path) : path; }

void save_like(const Weights& like, const std::string& path, std::span<const ParameterInfo> parameters,
               const ParameterValues& values, DType type, const NameInFile& name) {
  require_stored_type("save_like", type);
  if (like.format() == "llama2.c")
    throw file_error("save_like", like.path(),
                     "a llama2.c file has no place for types of weights; save_llama() writes a GGUF file");
  const Tensors tensors(like, parameters, values, type, name);
  if (like.gguf()) return save_gguf(path, tensors.all, fields_like(*like.gguf(), gguf_vocabulary(like), type));
  copy_beside(like, path, type, nullptr);
  save_safetensors((fs::path(path) / "model.safetensors").string(), tensors.all, {{"format", "pt"}});
}

std::string classifier_config(const std::string& config_json, const ClassifierConfig& classifier) {
  auto j = nlohmann::ordered_json::parse(config_json, nullptr, false);
  if (!j.is_object()) throw Error("classifier_config", "the text of config.json is no object of JSON");
  classify(j, classifier);
  return j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

void save_classifier(const Weights& like, const std::string& folder, const ClassifierConfig& classifier,
                     std::span<const ParameterInfo> parameters, const ParameterValues& values, DType type,
                     std::map<std::string, std::string> metadata) {
  require_stored_type("save_classifier", type);
  std::vector<std::vector<std::byte>> bytes;
  std::vector<TensorToSave> tensors;
  for (const ParameterInfo& p : parameters) {
    bytes.push_back(stored_as(values(p.path), type));
    tensors.push_back({p.path, type, p.shape, bytes.back()});
  }
  copy_beside(like, folder, type, &classifier);
  metadata.emplace("format", "pt");
  save_safetensors((fs::path(folder) / "model.safetensors").string(), tensors, metadata);
}

}  // namespace lc::llm
