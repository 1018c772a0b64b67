// lightcone convert: the tensors of a checkpoint in another format.
#include <filesystem>
#include <map>
#include <vector>

#include "command.h"
#include "commands.h"
#include "lightcone/base/error.h"
#include "lightcone/io/checkpoints/gguf.h"
#include "lightcone/io/checkpoints/save.h"
#include "lightcone/io/data/readers.h"
#include "lightcone/io/printable.h"
#include "lightcone/io/utf8.h"
#include "lightcone/llm/stored.h"

namespace lc::tool {
namespace {

constexpr std::size_t kLongestText = 65536;  // bytes of one text of the metadata

// What is to be written, and what owns its bytes.
class Conversion {
 public:
  explicit Conversion(const ConvertOptions& o) : o_(o) {}
  void read();
  void write() const;
  void report() const;

 private:
  void add(const std::string& name, const StoredTensor& t);
  void add_metadata(const std::string& key, const std::string& text);
  bool to(std::string_view extension) const { return o_.out.ends_with(extension); }
  const ConvertOptions& o_;
  Weights weights_;
  Arrays arrays_;
  std::vector<std::vector<std::byte>> converted_;
  std::vector<TensorToSave> tensors_;
  std::map<std::string, std::string> metadata_;
};

void Conversion::add(const std::string& name, const StoredTensor& t) {
  if (!t.dtype && t.ggml < 0)
    throw file_error("convert", o_.model, in_quotes(name), " is stored as ", t.type, ", which cannot be converted");
  const bool in_blocks = t.quant.has_value() || !t.dtype;
  if (in_blocks && !o_.type)
    throw file_error("convert", o_.model, in_quotes(name), " is stored as ", t.type,
                     ", which no other format has: --type f32, f16 or bf16 converts it");
  if (in_blocks || (o_.type && is_float(*t.dtype) && *t.dtype != *o_.type)) {
    converted_.push_back(llm::stored_as(Weights::read(t), *o_.type));
    tensors_.push_back({name, *o_.type, t.shape, converted_.back()});
  } else {
    tensors_.push_back({name, *t.dtype, t.shape, t.bytes});
  }
}

// Texts that are not UTF-8 have no place in a file of JSON.
void Conversion::add_metadata(const std::string& key, const std::string& text) {
  const auto valid = [](std::string_view s) {
    for (std::size_t at = 0, n = 0; at < s.size(); at += n)
      if (n = utf8_length(s, at); n == 0) return false;
    return true;
  };
  metadata_[valid(key) ? key : printable(key)] = valid(text) ? text : printable(text, kLongestText);
}

void Conversion::read() {
  if (o_.model.ends_with(".npz")) {
    arrays_ = read_npz(o_.model);
    for (const auto& [name, a] : arrays_)
      add(name, {.shape = a.shape, .type = std::string(lc::name(a.dtype)), .bytes = a.bytes, .dtype = a.dtype});
    return;
  }
  weights_ = open_model(o_.model);
  for (const auto& [name, t] : weights_.tensors()) add(name, t);
  for (const auto& [key, text] : weights_.metadata()) add_metadata(key, text);
  if (weights_.gguf())
    for (const auto& [key, value] : weights_.gguf()->metadata)
      if (!std::holds_alternative<GgufNumbers>(value) && !std::holds_alternative<std::vector<std::string_view>>(value))
        add_metadata(key, std::holds_alternative<std::string_view>(value)
                              ? std::string(std::get<std::string_view>(value))
                              : str(value));
}

void Conversion::write() const {
  if (to(".safetensors")) return save_safetensors(o_.out, tensors_, metadata_);
  if (to(".npz")) return save_npz(o_.out, tensors_);
  GgufFields fields;
  for (const auto& [key, text] : metadata_) fields.emplace_back(key, text);
  save_gguf(o_.out, tensors_, fields);
}

void Conversion::report() const {
  std::size_t bytes = 0;
  for (const TensorToSave& t : tensors_) bytes += t.bytes.size();
  write_stdout(str_cat(printable(o_.out, 500), ": ", tensors_.size(), " tensors, ",
                       human_bytes(static_cast<double>(bytes)), "\n"));
}

}  // namespace

void convert(const ConvertOptions& o) {
  const std::string extension = std::filesystem::path(o.out).extension().string();
  if (extension != ".safetensors" && extension != ".npz" && extension != ".gguf")
    throw Error("convert",
                str_cat(in_quotes(o.out), " ends in none of .safetensors, .npz and .gguf, which say what it is to be"));
  Conversion c(o);
  c.read();
  c.write();
  c.report();
}

}  // namespace lc::tool
