// lightcone convert: the tensors of a file in another format or in other types.
#include <algorithm>
#include <filesystem>
#include <future>
#include <list>
#include <map>
#include <vector>

#include "command.h"
#include "commands.h"
#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/base/error.h"
#include "lightcone/inspection/inspect.h"
#include "lightcone/io/checkpoints/gguf.h"
#include "lightcone/io/checkpoints/quantize.h"
#include "lightcone/io/checkpoints/save.h"
#include "lightcone/io/data/readers.h"
#include "lightcone/io/printable.h"
#include "lightcone/io/utf8.h"
#include "lightcone/llm/stored.h"
#include "lightcone/onnx/onnx.h"

namespace lc::tool {
namespace {

constexpr std::size_t kLongestText = 65536;  // bytes of one text of the metadata

// The number that GGUF's general.file_type has for files whose matrices are mostly of a type (llama.cpp's
// llama_ftype); -1: none.
int file_type(const ConvertOptions& o) {
  using enum QuantFormat;
  if (!o.blocks) return !o.type ? -1 : *o.type == DType::F32 ? 0 : *o.type == DType::F16 ? 1 : 32;
  constexpr std::pair<QuantFormat, int> kNumbers[] = {
      {Q4_0, 2},  {Q4_1, 3},  {Q8_0, 7},    {Q5_0, 8},    {Q5_1, 9},   {Q2_K, 10},  {Q3_K, 11}, {Q4_K, 14},
      {Q5_K, 16}, {Q6_K, 18}, {IQ4_NL, 25}, {IQ4_XS, 30}, {TQ1_0, 36}, {TQ2_0, 37}, {MXFP4, 38}};
  for (const auto& [format, number] : kNumbers)
    if (format == *o.blocks) return number;
  return -1;
}

// What a format with blocks of 256 gives way to where rows are no multiple of that, as in llama.cpp.
QuantFormat smaller_blocks(QuantFormat f) {
  using enum QuantFormat;
  switch (f) {
    case Q2_K:
    case Q3_K:
    case TQ1_0:
    case TQ2_0:
    case IQ4_XS: return IQ4_NL;
    case Q4_K: return Q5_0;
    case Q5_K: return Q5_1;
    case Q6_K: return Q8_0;
    default: return f;
  }
}

bool has(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view p) { return name.find(p) != name.npos; });
}
bool is_embedding(std::string_view name) { return has(name, {"embd", "embed", "wte.", "wpe."}); }
bool is_norm(std::string_view name) { return has(name, {"norm", "ln_", "layernorm"}); }

// What is to be written, and what owns its bytes.
class Conversion {
 public:
  explicit Conversion(const ConvertOptions& o) : o_(o) {}
  void read();
  void write() const;
  void report() const;

 private:
  struct Source {
    std::string name;
    StoredTensor tensor;
  };
  void read_checkpoint();
  void convert(const Source& s);
  std::optional<QuantFormat> blocks_for(const Source& s);
  void put_blocks(const Source& s, QuantFormat f);
  void put_stored(const Source& s, DType type);
  void add_metadata(const std::string& key, const std::string& text);
  GgufFields gguf_fields() const;
  bool to(std::string_view extension) const { return o_.out.ends_with(extension); }
  const ConvertOptions& o_;
  Weights weights_;
  Arrays arrays_;
  std::vector<OnnxProgram::Weight> initializers_;
  std::vector<Source> sources_;
  std::list<std::vector<std::byte>> converted_;
  std::vector<TensorToSave> tensors_;
  std::map<std::string, std::string> metadata_;
  std::size_t in_smaller_blocks_ = 0, without_blocks_ = 0;
};

// ---- what becomes of a tensor ---------------------------------------------------------------------

// The format of blocks that a tensor gets, nullopt for one that stays as it is: what is no matrix, norms and
// embeddings, and rows that no block divides.
std::optional<QuantFormat> Conversion::blocks_for(const Source& s) {
  const auto named = [&](const std::vector<std::string>& words) {
    return std::ranges::any_of(words, [&](const std::string& w) { return s.name.find(w) != s.name.npos; });
  };
  const bool number = !s.tensor.dtype || is_float(*s.tensor.dtype);
  if (!number || s.tensor.shape.size() < 2 || named(o_.keep)) return std::nullopt;
  if (!named(o_.also) && (is_norm(s.name) || is_embedding(s.name))) return std::nullopt;
  for (const QuantFormat f : {*o_.blocks, smaller_blocks(*o_.blocks)})
    if (s.tensor.shape.back() % info(f).elements == 0) {
      in_smaller_blocks_ += f != *o_.blocks;
      return f;
    }
  ++without_blocks_;
  return std::nullopt;
}

void Conversion::put_blocks(const Source& s, QuantFormat f) {
  const std::vector<float> values = Weights::read(s.tensor);
  const auto each = static_cast<std::size_t>(info(f).elements), bytes = static_cast<std::size_t>(info(f).bytes);
  const std::size_t blocks = values.size() / each;
  converted_.emplace_back(blocks * bytes);
  const std::span<std::byte> to = converted_.back();
  const auto threads = static_cast<std::size_t>(std::max(backends::cpu::available_cores(), 1));
  const std::size_t part = (blocks + threads - 1) / threads;
  std::vector<std::future<void>> parts;
  for (std::size_t at = 0; at < blocks; at += part) {
    const std::size_t n = std::min(part, blocks - at);
    parts.push_back(std::async(std::launch::async, [&, at, n] {
      quantize(f, std::span(values).subspan(at * each, n * each), to.subspan(at * bytes, n * bytes));
    }));
  }
  try {
    for (auto& p : parts) p.get();
  } catch (const Error& e) {
    throw file_error("convert", o_.model, in_quotes(s.name), ": ", e.problem());
  }
  tensors_.push_back({s.name, DType::U8, s.tensor.shape, to, f});
}

void Conversion::put_stored(const Source& s, DType type) {
  converted_.push_back(llm::stored_as(Weights::read(s.tensor), type));
  tensors_.push_back({s.name, type, s.tensor.shape, converted_.back()});
}

void Conversion::convert(const Source& s) {
  const StoredTensor& t = s.tensor;
  if (!t.dtype && t.ggml < 0)
    throw file_error("convert", o_.model, in_quotes(s.name), " is stored as ", t.type, ", which cannot be converted");
  if (o_.blocks)
    if (const auto f = blocks_for(s)) {
      if (t.quant != f) return put_blocks(s, *f);
    }
  if (t.quant && !o_.type && to(".gguf")) {
    tensors_.push_back({s.name, DType::U8, t.shape, t.bytes, t.quant});
    return;
  }
  const bool in_blocks = t.quant.has_value() || !t.dtype;
  if (in_blocks && !o_.type)
    throw file_error("convert", o_.model, in_quotes(s.name), " is stored as ", t.type,
                     ", which GGUF alone has: --type f32, f16 or bf16 converts it");
  if (in_blocks || (o_.type && is_float(*t.dtype) && *t.dtype != *o_.type)) put_stored(s, *o_.type);
  else tensors_.push_back({s.name, *t.dtype, t.shape, t.bytes});
}

// ---- files ----------------------------------------------------------------------------------------

// Texts that are not UTF-8 have no place in a file of JSON.
void Conversion::add_metadata(const std::string& key, const std::string& text) {
  const auto valid = [](std::string_view s) {
    for (std::size_t at = 0, n = 0; at < s.size(); at += n)
      if (n = utf8_length(s, at); n == 0) return false;
    return true;
  };
  metadata_[valid(key) ? key : printable(key)] = valid(text) ? text : printable(text, kLongestText);
}

void Conversion::read_checkpoint() {
  weights_ = open_model(o_.model);
  for (const auto& [name, t] : weights_.tensors()) sources_.push_back({name, t});
  for (const auto& [key, text] : weights_.metadata()) add_metadata(key, text);
  if (!weights_.gguf()) return;
  for (const auto& [key, value] : weights_.gguf()->metadata)
    if (!std::holds_alternative<GgufNumbers>(value) && !std::holds_alternative<std::vector<std::string_view>>(value))
      add_metadata(key, std::holds_alternative<std::string_view>(value) ? std::string(std::get<std::string_view>(value))
                                                                        : str(value));
  // GGUF's own order, which llama.cpp's tools keep
  std::map<std::string_view, std::size_t> place;
  for (const GgufTensor& t : weights_.gguf()->tensors) place.emplace(t.name, place.size());
  std::ranges::stable_sort(sources_, {}, [&](const Source& s) {
    const auto at = place.find(s.name);
    return at == place.end() ? place.size() : at->second;
  });
}

void Conversion::read() {
  const FileFormat format = o_.model == "builtin" ? FileFormat::Gguf : file_format(o_.model);
  switch (format) {
    case FileFormat::Npz:
      arrays_ = read_npz(o_.model);
      for (const auto& [name, a] : arrays_)
        sources_.push_back(
            {name, {.shape = a.shape, .type = std::string(lc::name(a.dtype)), .bytes = a.bytes, .dtype = a.dtype}});
      break;
    case FileFormat::Onnx:
      for (const auto& w : read_onnx_weights(o_.model)) initializers_.push_back(w.aligned());
      for (const auto& w : initializers_)
        sources_.push_back({w.name,
                            {.shape = w.view.shape,
                             .type = std::string(lc::name(w.view.dtype)),
                             .bytes = w.view.bytes,
                             .dtype = w.view.dtype}});
      break;
    case FileFormat::Gguf:
    case FileFormat::Safetensors:
    case FileFormat::PyTorch:
    case FileFormat::Llama2c: read_checkpoint(); break;
    default: throw file_error("convert", o_.model, "is ", name(format), ", which has no tensors with names");
  }
  Progress progress;
  for (std::size_t k = 0; k < sources_.size(); ++k) {
    progress.show("converting", static_cast<double>(k) / static_cast<double>(sources_.size()), sources_[k].name);
    convert(sources_[k]);
  }
}

// The metadata of GGUF: what another GGUF file has stays to the byte, so that programs run the file as they ran that
// one.
GgufFields Conversion::gguf_fields() const {
  GgufFields fields;
  if (!weights_.gguf()) {
    for (const auto& [key, text] : metadata_) fields.emplace_back(key, text);
    return fields;
  }
  const int type = file_type(o_);
  for (const auto& [key, bytes] : weights_.gguf()->stored) {
    if (key == "general.alignment" || key.starts_with("split.")) continue;  // that file's own
    if (type >= 0 && (key == "general.file_type" || key == "general.quantization_version")) continue;
    fields.emplace_back(std::string(key), GgufStored{bytes});
  }
  if (type < 0) return fields;
  fields.emplace_back("general.file_type", static_cast<std::uint32_t>(type));
  if (o_.blocks) fields.emplace_back("general.quantization_version", std::uint32_t{2});
  return fields;
}

void Conversion::write() const {
  if (to(".safetensors")) return save_safetensors(o_.out, tensors_, metadata_);
  if (to(".npz")) return save_npz(o_.out, tensors_);
  save_gguf(o_.out, tensors_, gguf_fields());
}

void Conversion::report() const {
  std::size_t bytes = 0;
  std::map<std::string_view, std::size_t> types;
  for (const TensorToSave& t : tensors_) {
    bytes += t.bytes.size();
    ++types[t.quant ? info(*t.quant).name : lc::name(t.dtype)];
  }
  std::string list;
  for (const auto& [type, n] : types) list += str_cat(list.empty() ? "" : ", ", n, " ", type);
  std::string s = str_cat(printable(o_.out, 500), ": ", tensors_.size(), " tensors, ",
                          human_bytes(static_cast<double>(bytes)), list.empty() ? "" : " (" + list + ")", "\n");
  if (in_smaller_blocks_)
    s += str_cat("the rows of ", in_smaller_blocks_, " tensors are no multiple of ", info(*o_.blocks).elements,
                 ": they are ", info(smaller_blocks(*o_.blocks)).name, "\n");
  if (without_blocks_)
    s += str_cat("the rows of ", without_blocks_, " tensors are no multiple of a block: they stay as they are\n");
  write_stdout(s);
}

// Refuses what cannot be before anything is read.
void check(const ConvertOptions& o) {
  const std::string extension = std::filesystem::path(o.out).extension().string();
  if (extension != ".safetensors" && extension != ".npz" && extension != ".gguf")
    throw Error("convert",
                str_cat(in_quotes(o.out), " ends in none of .safetensors, .npz and .gguf, which say what it is to be"));
  if (!o.blocks) return;
  if (extension != ".gguf")
    throw Error("convert", str_cat(info(*o.blocks).name, " is a format of blocks, which GGUF alone has: FILE.gguf"));
  if (can_quantize(*o.blocks)) return;
  std::string all;
  for (const QuantInfo& q : kQuantFormats)
    if (can_quantize(q.format)) all += str_cat(all.empty() ? "" : ", ", q.name);
  throw Error("convert",
              str_cat(info(*o.blocks).name, " is read and not written; the block formats written are ", all));
}

}  // namespace

void convert(const ConvertOptions& o) {
  check(o);
  Conversion c(o);
  c.read();
  c.write();
  c.report();
}

}  // namespace lc::tool
