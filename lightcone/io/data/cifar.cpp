// CIFAR's binary batches: records of one label (CIFAR-10) or two (CIFAR-100: the coarse one, the fine one) and three
// planes of 32 x 32 bytes: red, green, blue.
#include <cstring>

#include "lightcone/io/data/opened.h"
#include "lightcone/io/data/readers.h"
#include "lightcone/io/printable.h"

namespace lc {
namespace {

constexpr std::size_t kImage = 3 * 32 * 32;

struct Label {
  const char* name;
  int classes;
};

Dataset read_records(std::span<const std::string> paths, std::span<const Label> labels, const ReadOptions& o) {
  if (paths.empty()) throw Error("load", "CIFAR: no file was named");
  const std::size_t record = labels.size() + kImage;
  Budget budget(o, paths[0]);
  std::vector<std::shared_ptr<const MappedFile>> files;
  std::size_t n = 0;
  for (const std::string& path : paths) {
    files.push_back(io::opened(path, o));
    const std::size_t size = files.back()->bytes().size();
    if (size % record != 0)
      throw file_error("load", path, "not a CIFAR batch, or a truncated one: ", size, " bytes are no records of ", record);
    budget.parsed(size);
    n += size / record;
  }
  budget.take(n, kImage + labels.size() * sizeof(std::int64_t));
  const auto count = static_cast<std::int64_t>(n);
  Array image = Array::zeros(DType::U8, {count, 3, 32, 32});
  std::vector<Array> values(labels.size(), Array::zeros(DType::I64, {count}));
  std::size_t at = 0;
  for (const auto& file : files) {
    const auto bytes = file->bytes();
    for (std::size_t begin = 0; begin < bytes.size(); begin += record, ++at) {
      for (std::size_t k = 0; k < labels.size(); ++k) {
        const int v = static_cast<int>(bytes[begin + k]);
        if (v >= labels[k].classes)
          throw file_error("load", file->path(), "record ", begin / record, ": ", labels[k].name, " is ", v,
                           ", and there are ", labels[k].classes, " classes");
        values[k].values<std::int64_t>()[at] = v;
      }
      std::memcpy(image.bytes.data() + at * kImage, bytes.data() + begin + labels.size(), kImage);
    }
  }
  Arrays arrays;
  arrays.emplace("image", std::move(image));
  for (std::size_t k = 0; k < labels.size(); ++k) arrays.emplace(labels[k].name, std::move(values[k]));
  return Dataset(std::move(arrays));
}

}  // namespace

Dataset read_cifar10(std::span<const std::string> paths, const ReadOptions& o) {
  constexpr Label kLabels[] = {{"label", 10}};
  return read_records(paths, kLabels, o);
}

Dataset read_cifar100(const std::string& path, const ReadOptions& o) {
  constexpr Label kLabels[] = {{"coarse_label", 20}, {"label", 100}};
  return read_records(std::span(&path, 1), kLabels, o);
}

}  // namespace lc
