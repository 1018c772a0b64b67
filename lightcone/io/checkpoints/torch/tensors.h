// The bytes of tensors: views of the file where they are contiguous and aligned, otherwise copies.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "lightcone/io/checkpoints/torch/archive.h"
#include "lightcone/io/checkpoints/torch/torch_file.h"
#include "lightcone/io/checkpoints/torch/values.h"

namespace lc::io::torch {

// Reads the tensors of an open file. Copies are made once and kept in `owners`.
class TensorReader {
 public:
  TensorReader(const Opened& opened, Values& values, std::vector<std::shared_ptr<const void>>& owners)
      : opened_(opened), v_(values), owners_(owners) {}
  // Returns tensor `number` of the arena. `path` names it in an Error: a storage that is not there or too small, a
  // shape or strides that leave it, more memory than the budget has.
  const TorchTensor& read(std::size_t number, std::string_view path);

 private:
  struct Stored {
    std::span<const std::byte> bytes;
    bool big_endian;
    const Part* part;  // null: in the pickle
  };
  Stored storage(const StorageRecord& s, std::string_view path);
  std::span<std::byte> memory(std::size_t bytes, const Part* from);
  std::span<const std::byte> in_order(const TensorRecord& t, const Stored& s, std::size_t elements);
  [[noreturn]] void wrong(std::string_view path, std::string_view what) const;
  const Opened& opened_;
  Values& v_;
  std::vector<std::shared_ptr<const void>>& owners_;
  std::vector<std::optional<TorchTensor>> done_;
  std::map<const Part*, std::span<const std::byte>> unpacked_;
  std::set<const Part*> copied_;
};

}  // namespace lc::io::torch
