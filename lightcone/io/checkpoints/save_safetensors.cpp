// The writer of safetensors: u64 header length, a JSON header, the data.
#include <algorithm>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "lightcone/base/error.h"
#include "lightcone/io/atomic_file.h"
#include "lightcone/io/checkpoints/save.h"
#include "lightcone/io/checkpoints/save_internal.h"
#include "lightcone/io/printable.h"
#include "lightcone/io/shape.h"

namespace lc {
namespace {

constexpr std::size_t kLongestHeader = 100'000'000;  // limit of the reference implementation

struct NameRow {
  DType dtype;
  std::string_view name;
};
// In the order in which the Python library writes tensors: by decreasing alignment.
constexpr NameRow kNames[] = {
    {DType::U64, "U64"}, {DType::I64, "I64"}, {DType::F64, "F64"},          {DType::F32, "F32"},
    {DType::U32, "U32"}, {DType::I32, "I32"}, {DType::BF16, "BF16"},        {DType::F16, "F16"},
    {DType::U16, "U16"}, {DType::I16, "I16"}, {DType::F8E4M3FN, "F8_E4M3"}, {DType::F8E5M2, "F8_E5M2"},
    {DType::I8, "I8"},   {DType::U8, "U8"},   {DType::Bool, "BOOL"}};

const NameRow* row(DType d) {
  const NameRow* r = std::find_if(std::begin(kNames), std::end(kNames), [&](const NameRow& t) { return t.dtype == d; });
  check(r != std::end(kNames), "a dtype that save_safetensors() does not know");
  return r;
}

std::uint64_t bytes_of(const TensorToSave& t) {
  return static_cast<std::uint64_t>(*io::elements_of(t.shape)) * size_of(t.dtype);
}

std::string header_of(std::span<const TensorToSave> tensors, const std::map<std::string, std::string>& metadata) try {
  std::string text = "{";
  const auto member = [&](const std::string& name, const nlohmann::ordered_json& value) {
    text += (text.size() > 1 ? "," : "") + nlohmann::json(name).dump() + ":" + value.dump();
  };
  if (!metadata.empty()) member("__metadata__", metadata);
  std::uint64_t at = 0;
  for (const TensorToSave& t : tensors) {
    const std::uint64_t end = at + bytes_of(t);
    member(t.name, {{"dtype", row(t.dtype)->name}, {"shape", t.shape}, {"data_offsets", {at, end}}});
    at = end;
  }
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > kLongestHeader)
    throw Error("save_safetensors", str_cat("the names and metadata make a header of ", text.size(),
                                            " bytes, readers take at most ", kLongestHeader));
  return text;
} catch (const nlohmann::json::exception&) {
  throw Error("save_safetensors", "a name or a word of the metadata is not UTF-8");
}

std::string little_endian(std::uint64_t v) {
  std::string s;
  for (int i = 0; i < 8; ++i) s += static_cast<char>(v >> 8 * i & 255);
  return s;
}

}  // namespace

void io::check_tensors(std::string_view op, std::span<const TensorToSave> tensors,
                       std::span<const std::string_view> reserved, bool may_have_blocks, bool have_bytes) {
  std::set<std::string_view> names(reserved.begin(), reserved.end());
  for (const TensorToSave& t : tensors) {
    const std::optional<std::int64_t> n = io::elements_of(t.shape);
    std::uint64_t needs;
    if (t.quant && !may_have_blocks)
      throw Error(op,
                  str_cat(in_quotes(t.name), " is in blocks of ", info(*t.quant).ggml_name, ", which GGUF alone has"));
    const std::int64_t each = t.quant ? info(*t.quant).elements : 1;
    if (t.quant && (t.shape.empty() || t.shape.back() % each != 0))
      throw Error(op, str_cat(in_quotes(t.name), " has rows that are no whole blocks of ", each));
    const std::size_t size = t.quant ? static_cast<std::size_t>(info(*t.quant).bytes) : size_of(t.dtype);
    if (!n || __builtin_mul_overflow(static_cast<std::uint64_t>(*n / each), size, &needs))
      throw Error(op, str_cat(in_quotes(t.name), " has a shape that no memory holds"));
    if (have_bytes && needs != t.bytes.size())
      throw Error(op, str_cat(in_quotes(t.name), " has ", t.bytes.size(), " bytes, its shape needs ", needs));
    if (!names.insert(t.name).second)
      throw Error(op, str_cat("two tensors are called ", in_quotes(t.name), ", or the name is reserved"));
  }
}

std::vector<TensorToSave> in_file_order(std::vector<TensorToSave> tensors) {
  std::ranges::sort(tensors, [](const TensorToSave& a, const TensorToSave& b) {
    return std::pair(row(a.dtype), std::string_view(a.name)) < std::pair(row(b.dtype), std::string_view(b.name));
  });
  return tensors;
}

namespace {
constexpr std::string_view kReserved[] = {"__metadata__"};
}

struct SafetensorsWriter::Impl {
  Impl(const std::string& path, std::vector<TensorToSave> all)
      : tensors(std::move(all)), file("save_safetensors", path) {}
  std::vector<TensorToSave> tensors;
  std::size_t written = 0;
  io::AtomicFile file;
};

SafetensorsWriter::SafetensorsWriter(const std::string& path, std::span<const TensorToSave> tensors,
                                     const std::map<std::string, std::string>& metadata) {
  io::check_tensors("save_safetensors", tensors, kReserved, false, false);
  std::vector<TensorToSave> order = in_file_order({tensors.begin(), tensors.end()});
  const std::string header = header_of(order, metadata);
  impl_ = std::make_unique<Impl>(path, std::move(order));
  impl_->file.write(little_endian(header.size()));
  impl_->file.write(header);
}
SafetensorsWriter::~SafetensorsWriter() = default;

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  if (impl_->written == impl_->tensors.size()) throw Error("save_safetensors", "there is no further tensor");
  const TensorToSave& t = impl_->tensors[impl_->written];
  if (bytes.size() != bytes_of(t))
    throw Error("save_safetensors",
                str_cat(in_quotes(t.name), " has ", bytes.size(), " bytes, its shape needs ", bytes_of(t)));
  impl_->file.write(bytes);
  ++impl_->written;
}

void SafetensorsWriter::commit() {
  if (impl_->written < impl_->tensors.size())
    throw Error("save_safetensors", str_cat(in_quotes(impl_->tensors[impl_->written].name), " has not been written"));
  impl_->file.commit();
}

void save_safetensors(const std::string& path, std::span<const TensorToSave> tensors,
                      const std::map<std::string, std::string>& metadata) {
  io::check_tensors("save_safetensors", tensors, kReserved);
  SafetensorsWriter file(path, tensors, metadata);
  for (const TensorToSave& t : in_file_order({tensors.begin(), tensors.end()})) file.write(t.bytes);
  file.commit();
}

}  // namespace lc
