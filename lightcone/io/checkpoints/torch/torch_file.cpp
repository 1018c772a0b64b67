#include "lightcone/io/checkpoints/torch/torch_file.h"

#include "lightcone/base/error.h"
#include "lightcone/io/checkpoints/torch/archive.h"
#include "lightcone/io/checkpoints/torch/modules.h"
#include "lightcone/io/checkpoints/torch/paths.h"
#include "lightcone/io/checkpoints/torch/tensors.h"
#include "lightcone/io/checkpoints/torch/values.h"
#include "lightcone/io/shape.h"

namespace lc::io {
namespace {

using namespace torch;

constexpr std::int64_t kMostShown = 16;  // values of a tensor in the text of a plain value

// The numbers of a small tensor as a list, otherwise its type and shape.
std::string described(const Values& v, std::size_t number, TensorReader& reader) {
  const TensorRecord& r = v.tensors[number];
  const std::optional<std::int64_t> n = elements_of(r.shape);
  if (!r.type->dtype || !n || *n > kMostShown) {
    std::string shape;
    for (std::int64_t extent : r.shape) shape += str_cat(shape.empty() ? "" : ", ", extent);
    return str_cat("\"<tensor ", r.type->name, " [", shape, "]>\"");
  }
  const TorchTensor& t = reader.read(number, "(a plain value)");
  std::string values;
  for (std::size_t i = 0; i < static_cast<std::size_t>(*n); ++i)
    values += str_cat(i ? ", " : "", load_f64(t.bytes.data(), *t.dtype, i));
  return t.shape.empty() ? values : "[" + values + "]";
}

}  // namespace

bool looks_like_torch(std::span<const std::byte> file) { return looks_like_archive(file) || looks_like_legacy(file); }

TorchFile read_torch(const MappedFile& file, Budget& budget) {
  Values values(file.path(), budget);
  const Opened opened = looks_like_archive(file.bytes()) ? open_archive(file, values) : open_legacy(file, values);
  TorchFile result;
  Paths paths = paths_of_tensors(values, opened.root);
  TensorReader reader(opened, values, result.owners);
  for (auto& [path, number] : paths.tensors) {
    const TorchTensor& t = reader.read(number, path);
    budget.take(sizeof(t) + 64 + path.size() + 8 * t.shape.size());
    result.tensors.emplace_back(std::move(path), t);
  }
  result.metadata = plain_values(values, opened.root, paths.has_tensor,
                                 [&](std::size_t number) { return described(values, number, reader); });
  result.modules = modules_below(values, opened.root, paths.left_out);
  return result;
}

}  // namespace lc::io
