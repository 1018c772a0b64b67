#include "lightcone/models/files/pictures.h"

#include "lightcone/io/printable.h"

namespace lc {
namespace {

constexpr std::int64_t kLargestPicture = 16'384;  // along one side

}  // namespace

PictureSize size_of_key(const ConfigFile& file, std::string_view key, std::int64_t otherwise) {
  const std::vector<std::int64_t> s = file.sizes(key);
  if (s.empty()) return {otherwise, otherwise};
  if (s.size() > 2) file.fail(key, " has ", s.size(), " numbers, and a height and a width are wanted");
  return {s.front(), s.back()};
}

PictureSize picture_size(const std::string& path, const LoadModelOptions& o, const PictureSize& otherwise) {
  const PictureSize s{o.height ? o.height : otherwise.height, o.width ? o.width : otherwise.width};
  for (const std::int64_t n : {s.height, s.width})
    if (n < 1 || n > kLargestPicture)
      throw file_error("load_model", path, "pictures of ", s.height, " x ", s.width, " are asked for; sides from 1 to ",
                       kLargestPicture, " are supported");
  return s;
}

Tensor picture_input(LoadedModel& m, const LoadModelOptions& o, std::int64_t channels, const PictureSize& size) {
  const Dim batch = o.fixed_batch ? Dim(o.batch) : Dim::symbol("batch", 1, o.batch);
  if (!o.fixed_batch) m.limits["batch"] = o.batch;
  return m.inputs["pixel_values"] = m.graph().input("pixel_values", {batch, channels, size.height, size.width});
}

void require_fewer_layers(const ConfigFile& file, std::span<const std::int64_t> depths, const Weights& w) {
  const auto weights = static_cast<std::int64_t>(w.tensors().size());
  std::int64_t layers = 0;
  for (const std::int64_t n : depths)
    if ((layers += n) > weights) file.fail(layers, " layers, and ", weights, " weights");
}

}  // namespace lc
