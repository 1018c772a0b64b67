// CIFAR's binary batches: records of one label (CIFAR-10) or two (CIFAR-100: coarse, then fine) and three planes of 32
// x 32 bytes: red, green, blue.
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

Dataset read_records(std::span<const MappedFile* const> files, std::span<const Label> labels, const ReadOptions& o) {
  if (files.empty()) throw Error("load", "CIFAR: no file was named");
  const std::size_t record = labels.size() + kImage;
  Budget budget(o, files[0]->path());
  std::size_t n = 0;
  for (const MappedFile* file : files) {
    const std::size_t size = file->bytes().size();
    if (size % record != 0)
      throw file_error("load", file->path(), "not a CIFAR batch, or a truncated one: ", size,
                       " bytes are no records of ", record);
    budget.parsed(size);
    n += size / record;
  }
  budget.take(n, kImage + labels.size() * sizeof(std::int64_t));
  const auto count = static_cast<std::int64_t>(n);
  Array image = Array::zeros(DType::U8, {count, 3, 32, 32});
  std::vector<Array> values;
  for (std::size_t k = 0; k < labels.size(); ++k) values.push_back(Array::zeros(DType::I64, {count}));
  std::size_t at = 0;
  for (const MappedFile* file : files) {
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

constexpr Label kTen[] = {{"label", 10}}, kHundred[] = {{"coarse_label", 20}, {"label", 100}};

}  // namespace

Dataset read_cifar10(std::span<const std::string> paths, const ReadOptions& o) {
  std::vector<std::shared_ptr<const MappedFile>> open;
  std::vector<const MappedFile*> files;
  for (const std::string& path : paths) {
    open.push_back(io::opened(path, o));
    files.push_back(open.back().get());
  }
  return read_records(files, kTen, o);
}

Dataset read_cifar10(const MappedFile& file, const ReadOptions& o) {
  const MappedFile* const one[] = {&file};
  return read_records(one, kTen, o);
}

Dataset read_cifar100(const MappedFile& file, const ReadOptions& o) {
  const MappedFile* const one[] = {&file};
  return read_records(one, kHundred, o);
}

Dataset read_cifar100(const std::string& path, const ReadOptions& o) { return read_cifar100(*io::opened(path, o), o); }

}  // namespace lc
