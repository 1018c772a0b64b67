#include "lightcone/io/checkpoints/weights.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <set>

#include "lightcone/base/error.h"
#include "lightcone/io/checkpoints/gguf.h"
#include "lightcone/io/checkpoints/quants.h"
#include "lightcone/io/checkpoints/torch/torch_file.h"
#include "lightcone/io/checkpoints/weights_internal.h"
#include "lightcone/io/mapped_file.h"
#include "lightcone/io/printable.h"

namespace lc {

namespace fs = std::filesystem;

std::int64_t StoredTensor::elements() const {
  const std::optional<std::int64_t> n = io::elements_of(shape);
  if (!n) throw Error("load", "a tensor whose shape is larger than any memory");
  return *n;
}

StoredTensor::operator ArrayView() const {
  ArrayView view{dtype.value_or(DType::U8), shape, bytes};
  if (!dtype && !quant)
    throw Error("load", str_cat("a tensor of type ", printable(type), " is read with Weights::read()"));
  if (quant) view.shape.back() = view.shape.back() / info(*quant).elements * info(*quant).bytes;
  return view;
}

void io::take_tensor(Budget& budget, std::size_t name, std::size_t rank) {
  budget.take(sizeof(StoredTensor) + 112 + 2 * name + 16 * rank);
}

// Reader of llama2.c's format: seven i32 (dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len), then
// f32 tensors in a fixed order. If vocab_size is negative, the classifier has its own matrix.
class Llama2cReader {
 public:
  Llama2cReader(Weights& w, const MappedFile& file, Budget& budget) : w_(w), file_(file), budget_(budget) {}
  void read();

 private:
  void tensor(const std::string& name, std::vector<std::int64_t> shape);
  void each_layer(const std::string& name, std::vector<std::int64_t> shape);
  Weights& w_;
  const MappedFile& file_;
  Budget& budget_;
  std::size_t at_ = 28;
};

void Llama2cReader::tensor(const std::string& name, std::vector<std::int64_t> shape) {
  StoredTensor t{.shape = std::move(shape), .type = "F32", .bytes = {}, .dtype = DType::F32};
  const std::size_t n = static_cast<std::size_t>(t.elements()) * 4;
  if (n > file_.bytes().size() - at_) throw file_error("load", file_.path(), "truncated: it ends inside ", name);
  io::take_tensor(budget_, name.size(), t.shape.size());
  t.bytes = file_.bytes().subspan(at_, n);
  at_ += n;
  if (!name.empty()) w_.tensors_.emplace(name, std::move(t));
}

void Llama2cReader::each_layer(const std::string& name, std::vector<std::int64_t> shape) {
  for (std::int32_t i = 0; i < w_.llama2c_[2]; ++i) tensor(str_cat("model.layers.", i, ".", name, ".weight"), shape);
}

void Llama2cReader::read() {
  w_.llama2c_.resize(7);
  std::memcpy(w_.llama2c_.data(), file_.bytes().data(), 28);
  const auto& h = w_.llama2c_;
  const std::int64_t dim = h[0], hidden = h[1], heads = h[3], kv_heads = h[4],
                     vocab = std::abs(static_cast<std::int64_t>(h[5])), context = h[6];
  const bool sane = dim > 0 && dim <= 1 << 20 && hidden > 0 && hidden <= 1 << 22 && h[2] > 0 && h[2] <= 1000 &&
                    heads > 0 && heads <= dim && kv_heads > 0 && heads % kv_heads == 0 && dim % heads == 0 &&
                    vocab > 0 && vocab <= 1 << 24 && context > 0 && context <= 1 << 24;
  if (!sane)
    throw file_error("load", file_.path(),
                     "not a checkpoint this library knows (GGUF, safetensors, PyTorch's or llama2.c .bin)");
  const std::int64_t kv = dim / heads * kv_heads;
  tensor("model.embed_tokens.weight", {vocab, dim});
  each_layer("input_layernorm", {dim});
  each_layer("self_attn.q_proj", {dim, dim});
  each_layer("self_attn.k_proj", {kv, dim});
  each_layer("self_attn.v_proj", {kv, dim});
  each_layer("self_attn.o_proj", {dim, dim});
  each_layer("post_attention_layernorm", {dim});
  each_layer("mlp.gate_proj", {hidden, dim});
  each_layer("mlp.down_proj", {dim, hidden});
  each_layer("mlp.up_proj", {hidden, dim});
  tensor("model.norm.weight", {dim});
  tensor("", {context, dim / heads});  // cosines and sines stored by older versions
  if (h[5] < 0) tensor("lm_head.weight", {vocab, dim});
  if (at_ != file_.bytes().size())
    throw file_error("load", file_.path(), file_.bytes().size() - at_, " bytes too many for its header");
}

class GgufWeightsReader {
 public:
  GgufWeightsReader(Weights& w, Budget& budget) : w_(w), budget_(budget) {}
  // `on_disk` is true if the path is that of a file, next to which other parts may be.
  void read(std::shared_ptr<const MappedFile> file, bool on_disk);

 private:
  void add(const GgufFile& g);
  void other_parts(const GgufFile& first, std::int64_t parts);
  Weights& w_;
  Budget& budget_;
};

void GgufWeightsReader::add(const GgufFile& g) {
  const auto bytes = g.file->bytes();
  for (const GgufTensor& t : g.tensors) {
    io::take_tensor(budget_, t.name.size(), t.shape.size());
    StoredTensor s{
        .shape = t.shape, .type = std::string(ggml_type_name(t.type)), .bytes = bytes.subspan(t.offset, t.bytes)};
    s.ggml = static_cast<int>(t.type);
    if (const GgmlType* type = ggml_type(t.type)) s.dtype = type->dtype, s.quant = type->quant;
    if (!w_.tensors_.emplace(t.name, std::move(s)).second)
      throw file_error("load", g.file->path(), "tensor ", in_quotes(t.name), " is in another part of the model, too");
  }
  w_.files_.push_back(g.file);
}

void GgufWeightsReader::read(std::shared_ptr<const MappedFile> file, bool on_disk) {
  auto g = std::make_shared<GgufFile>(io::read_gguf(std::move(file), budget_));
  add(*g);
  w_.format_ = "GGUF";
  w_.gguf_ = g;
  const std::int64_t parts = g->integer("split.count").value_or(1), number = g->integer("split.no").value_or(0);
  if (parts <= 1) return;
  if (!on_disk || number != 0 || io::gguf_part(g->file->path(), 1) != g->file->path() ||
      io::parts_of_gguf(g->file->path()) != parts)
    throw file_error("load", g->file->path(), "part ", number + 1, " of a model in ", parts,
                     " files: they are read together, from one folder, and called NAME-00001-of-0000N.gguf");
  other_parts(*g, parts);
}

void GgufWeightsReader::other_parts(const GgufFile& first, std::int64_t parts) {
  for (std::int64_t k = 1; k < parts; ++k) {
    const std::string path = io::gguf_part(first.file->path(), k + 1);
    const GgufFile g = io::read_gguf(w_.options_.map ? MappedFile::open(path) : MappedFile::read(path), budget_);
    if (g.integer("split.count") != parts || g.integer("split.no") != k)
      throw file_error("load", path, "it does not say that it is part ", k + 1, " of ", parts,
                       " of the model whose first part lies beside it");
    add(g);
  }
  const auto all = static_cast<std::int64_t>(w_.tensors_.size());
  if (const auto said = first.integer("split.tensors.count"); said && *said != all)
    throw file_error("load", first.file->path(), "the ", parts, " parts of the model have ", all, " tensors, and ",
                     *said, " were written");
}

namespace {

// Returns the checkpoint file in a directory.
std::string inside(const std::string& folder) {
  constexpr const char* kUsual[] = {"model.safetensors.index.json",
                                    "model.safetensors",
                                    "pytorch_model.bin.index.json",
                                    "pytorch_model.bin",
                                    "diffusion_pytorch_model.safetensors.index.json",
                                    "diffusion_pytorch_model.safetensors"};
  constexpr std::string_view kOthers[] = {".bin", ".pt",   ".pth", ".th",  ".ckpt",
                                          ".pkl", ".onnx", ".h5",  ".npz", ".tflite"};
  if (std::string usual = io::first_in(folder, kUsual); !usual.empty()) return usual;
  std::set<std::string> found, others;
  std::error_code ec;
  for (fs::directory_iterator at(folder, ec), end; !ec && at != end; at.increment(ec)) {
    const fs::path& p = at->path();
    if (p.extension() == ".safetensors" || p.extension() == ".gguf") found.insert(io::first_gguf_part(p.string()));
    else if (std::ranges::find(kOthers, p.extension()) != std::end(kOthers)) others.insert(p.string());
  }
  if (ec) throw file_error("load", folder, "cannot list the folder: ", ec.message());
  if (found.size() == 1) return *found.begin();
  if (found.empty() && others.size() == 1)
    return *others.begin();  // PyTorch's, or the Error of open() names its format
  throw Error("load",
              printable(folder, 500) + (found.empty() && others.empty()
                                            ? " holds no model.safetensors, pytorch_model.bin, shard index or GGUF file"
                                            : " holds several checkpoints: name one of the files"));
}

}  // namespace

namespace {

// Number of digits of a part's number and of the number of parts.
constexpr std::size_t kPartDigits = 5;
constexpr std::string_view kOf = "-of-", kGguf = ".gguf";

// The components of NAME-00002-of-00003.gguf.
struct Part {
  std::string name;
  std::int64_t number = 0, parts = 0;
};
std::optional<Part> part_of(std::string_view path) {
  constexpr std::size_t kTail = 1 + kPartDigits + kOf.size() + kPartDigits + kGguf.size();
  if (path.size() < kTail) return std::nullopt;
  const std::string_view tail = path.substr(path.size() - kTail), number = tail.substr(1, kPartDigits),
                         count = tail.substr(1 + kPartDigits + kOf.size(), kPartDigits);
  if (tail[0] != '-' || !tail.ends_with(kGguf) || tail.substr(1 + kPartDigits, kOf.size()) != kOf) return std::nullopt;
  Part p{std::string(path.substr(0, path.size() - kTail))};
  for (const auto& [digits, to] : {std::pair(number, &p.number), std::pair(count, &p.parts)}) {
    const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), *to);
    if (end.ec != std::errc() || end.ptr != digits.data() + digits.size() || *to < 1) return std::nullopt;
  }
  return p;
}

}  // namespace

std::int64_t io::parts_of_gguf(const std::string& path) {
  const auto p = part_of(path);
  return p ? p->parts : 1;
}
std::string io::gguf_part(const std::string& path, std::int64_t number) {
  const auto p = part_of(path);
  if (!p) return path;
  const auto digits = [](std::int64_t n) {
    std::string s = std::to_string(n);
    return std::string(kPartDigits - std::min(kPartDigits, s.size()), '0') + s;
  };
  return str_cat(p->name, "-", digits(number), kOf, digits(p->parts), kGguf);
}
std::string io::first_gguf_part(const std::string& path) { return gguf_part(path, 1); }

// A dangling link counts as existing, so that opening it gives the reason.
std::string io::first_in(const std::string& folder, std::span<const char* const> names) {
  for (const char* name : names) {
    const fs::path p = fs::path(folder) / name;
    std::error_code ec;
    if (fs::exists(fs::symlink_status(p, ec))) return p.string();
  }
  return "";
}
bool io::is_folder(const std::string& path) {
  std::error_code ec;
  return fs::is_directory(path, ec);
}

Weights Weights::open(std::shared_ptr<const MappedFile> file, const ReadOptions& o) {
  Budget budget(o, file->path());
  return open(std::move(file), o, budget, false);
}

Weights Weights::open(std::shared_ptr<const MappedFile> file, const ReadOptions& o, Budget& budget, bool on_disk) {
  Weights w;
  w.options_ = o;
  w.path_ = file->path();
  const auto bytes = file->bytes();
  if (bytes.size() >= 4 && std::memcmp(bytes.data(), "GGUF", 4) == 0) {
    GgufWeightsReader(w, budget).read(file, on_disk);
    return w;
  }
  if (io::looks_like_torch(bytes)) {
    io::add_torch(w, file, budget);
    return w;
  }
  if (const std::string other = io::foreign_format(bytes); !other.empty()) throw file_error("load", w.path_, other);
  if (bytes.size() < 28) throw file_error("load", w.path_, "too short for a checkpoint (", bytes.size(), " bytes)");
  w.format_ = "llama2.c";
  Llama2cReader(w, *file, budget).read();
  w.files_ = {std::move(file)};
  return w;
}

Weights Weights::of(std::shared_ptr<const MappedFile> file, const std::string& format, std::string config_json,
                    std::map<std::string, StoredTensor, std::less<>> tensors,
                    std::vector<std::shared_ptr<const void>> owners, const ReadOptions& o) {
  Weights w;
  w.options_ = o, w.path_ = file->path(), w.format_ = format, w.config_json_ = std::move(config_json);
  Budget budget(o, w.path_);
  for (const auto& [name, t] : tensors) io::take_tensor(budget, name.size(), t.shape.size());
  w.tensors_ = std::move(tensors), w.owners_ = std::move(owners);
  w.files_ = {std::move(file)};
  return w;
}

Weights Weights::with(std::map<std::string, StoredTensor, std::less<>> tensors,
                      std::vector<std::shared_ptr<const void>> owners) const {
  Weights w = *this;
  w.tensors_ = std::move(tensors);
  w.owners_.insert(w.owners_.end(), owners.begin(), owners.end());
  return w;
}

Weights Weights::open(const std::string& path, const ReadOptions& o) {
  std::error_code ec;
  if (!fs::exists(fs::symlink_status(path, ec))) throw Error("load", str_cat("there is no file ", in_quotes(path)));
  const std::string file = io::is_folder(path) ? inside(path) : io::first_gguf_part(path);
  Budget budget(o, path);
  Weights w;
  w.options_ = o;
  if (file.ends_with(".json")) {
    io::add_shards(w, file, budget);
  } else {
    auto bytes = o.map ? MappedFile::open(file) : MappedFile::read(file);
    const bool torch = io::looks_like_torch(bytes->bytes());
    if (!torch && !file.ends_with(".safetensors") && !io::looks_like_safetensors(bytes->bytes()))
      return open(std::move(bytes), o, budget, true);
    if (torch) io::add_torch(w, bytes, budget);
    else io::add_safetensors(w, bytes, budget);
  }
  w.path_ = path;
  w.read_config(fs::path(file).parent_path().string(), budget);
  return w;
}

// These formats have the sizes of a model in a file beside them, where it is one of Hugging Face's.
void Weights::read_config(const std::string& folder, Budget& budget) {
  constexpr const char* kConfig[] = {"config.json"};
  const std::string config = io::first_in(folder, kConfig);
  if (config.empty()) return;
  config_json_ = read_text_file(config);
  budget.parsed(config_json_.size());
  budget.take(config_json_.size());
}

Weights Weights::part(const std::function<std::optional<std::string>(std::string_view name)>& name) const {
  Weights w = *this;
  w.tensors_.clear();
  for (const auto& [old, t] : tensors_)
    if (std::optional<std::string> now = name(old); now && !w.tensors_.emplace(std::move(*now), t).second)
      throw file_error("load", path_, in_quotes(old), " is there under another name, too");
  return w;
}

Weights Weights::with(std::string config_json, std::map<std::string, NewTensor> tensors) const {
  Weights w = *this;
  w.config_json_ = std::move(config_json);
  const auto kept = std::make_shared<const std::map<std::string, NewTensor>>(std::move(tensors));
  w.owners_.push_back(kept);
  for (const auto& [name, t] : *kept) {
    StoredTensor s{.shape = t.shape, .type = "F32", .bytes = std::as_bytes(std::span(t.values)), .dtype = DType::F32};
    if (s.elements() != std::ssize(t.values))
      throw Error("Weights",
                  str_cat(in_quotes(name), " has ", t.values.size(), " values, and its shape ", s.elements()));
    w.tensors_.insert_or_assign(name, std::move(s));
  }
  return w;
}

const StoredTensor* Weights::find(std::string_view name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : &it->second;
}
const StoredTensor& Weights::at(std::string_view name) const {
  if (const StoredTensor* t = find(name)) return *t;
  throw file_error("load", path_, "there is no tensor ", in_quotes(name));
}
const MappedFile* Weights::file_of(std::span<const std::byte> bytes) const {
  for (const auto& f : files_)
    if (std::less_equal<>()(f->bytes().data(), bytes.data()) &&
        std::less_equal<>()(bytes.data() + bytes.size(), f->bytes().data() + f->bytes().size()))
      return f.get();
  return nullptr;
}
void Weights::release(std::span<const std::byte> bytes) const {
  if (const MappedFile* f = file_of(bytes)) f->release(bytes);
}
void Weights::prefetch(std::span<const std::byte> bytes) const {
  if (const MappedFile* f = file_of(bytes)) f->prefetch(bytes);
}
std::size_t Weights::bytes() const {
  std::size_t n = 0;
  for (const auto& [name, t] : tensors_) n += t.bytes.size();
  return n;
}

std::vector<float> Weights::read(const StoredTensor& t) {
  const bool readable = t.ggml >= 0 ? can_dequantize(static_cast<std::uint32_t>(t.ggml)) : t.dtype.has_value();
  if (!readable) throw Error("load", str_cat("values of type ", printable(t.type, 40), " cannot be read yet"));
  std::vector<float> v(static_cast<std::size_t>(t.elements()));
  if (t.ggml >= 0) {
    dequantize_gguf(static_cast<std::uint32_t>(t.ggml), t.bytes.data(), t.elements(), v.data());
    return v;
  }
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(load_f64(t.bytes.data(), *t.dtype, i));
  return v;
}

std::string read_text_file(const std::string& path, std::size_t limit) {
  const auto f = MappedFile::read(path, limit);
  return {reinterpret_cast<const char*>(f->bytes().data()), f->bytes().size()};
}

}  // namespace lc
