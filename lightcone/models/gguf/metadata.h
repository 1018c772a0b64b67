// GgufMetadata: the keys of a GGUF file about its model, each of which is accounted for, as those of config.json are
// (models/files/config_file.h): a key of the architecture that nothing read is an Error.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/base/error.h"
#include "lightcone/io/checkpoints/gguf.h"
#include "lightcone/io/checkpoints/weights.h"

namespace lc {

// The metadata of one file. Keys are named without the architecture: "block_count" is llama.block_count of a llama.
class GgufMetadata {
 public:
  // `w` is a GGUF file. Keys in `ignore`, with or without the architecture, are taken for neutral. Throws Error if the
  // file is no model, or names no architecture.
  GgufMetadata(const Weights& w, std::vector<std::string> ignore);

  const std::string& architecture() const { return architecture_; }
  const Weights& weights() const { return weights_; }
  bool has(std::string_view key) const;
  // A number. A list that has one for each layer counts if all are equal, and is an Error otherwise.
  std::optional<double> number(std::string_view key) const;
  double number(std::string_view key, double otherwise) const { return number(key).value_or(otherwise); }
  // A whole number from 1 to 10^9. Throws Error if the key is missing; 0 counts as missing where there is another
  // value.
  std::int64_t size(std::string_view key) const;
  std::int64_t size(std::string_view key, std::int64_t otherwise) const;
  std::string text(std::string_view key, std::string_view otherwise = "") const;
  bool flag(std::string_view key, bool otherwise) const;
  // The numbers of a list; one by itself is a list. Empty if the key is missing. Throws Error for more than `most`.
  std::vector<double> numbers(std::string_view key, std::size_t most) const;

  // Declares keys that change nothing of what the model computes.
  void neutral(std::initializer_list<std::string_view> keys) const;
  // Declares a feature that the model lacks. Throws Error if the file turns it on: a number but 0, or true.
  void lacks(std::initializer_list<std::string_view> keys) const;
  // Throws Error that names a key of the architecture which nothing above read or declared, and the nearest known.
  void require_all_known() const;

  bool has_tensor(std::string_view name) const { return weights_.find(name) != nullptr; }
  // The extent of an axis of a tensor. Throws Error if there is no such tensor or axis.
  std::int64_t extent(std::string_view tensor, std::size_t axis) const;

  // Throws Error about this file.
  template <class... Ts>
  [[noreturn]] void fail(const Ts&... what) const {
    refuse(str_cat(what...));
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const;
  const GgufValue* value(std::string_view key) const;  // and records that the key is known
  std::string full(std::string_view key) const;
  std::int64_t whole(std::string_view key, double n) const;

  Weights weights_;
  const GgufFile& file_;
  std::string architecture_;
  std::vector<std::string> ignore_;
  mutable std::set<std::string, std::less<>> known_;
};

}  // namespace lc
