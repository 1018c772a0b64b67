// ConfigFile: the config.json of a checkpoint, of which every key is accounted for. A key that a model neither reads
// nor declares neutral is an Error, because it may change what the model computes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lightcone/base/error.h"
#include "lightcone/io/checkpoints/weights.h"

namespace lc {

namespace io {
class Json;
}

// An object of a JSON file about a model. Copies share the file and the record of the keys that were read.
class ConfigFile {
 public:
  // The config.json of a checkpoint. Keys in `ignore` are taken for neutral. Throws Error if there is none, or if it is
  // not an object.
  explicit ConfigFile(const Weights& w, std::vector<std::string> ignore = {});
  // A text that stands for config.json, such as what a file says of itself in other words. `where` is for Errors.
  static ConfigFile from_text(const std::string& where, const std::string& text, const ReadOptions& o,
                              std::vector<std::string> ignore = {});
  // Another JSON file that holds an object.
  ConfigFile(const std::string& file, const ReadOptions& o, std::vector<std::string> ignore = {});

  bool has(std::string_view key) const;  // present and not null
  // A whole number from 1 to 10^9. Throws Error if the key is missing.
  std::int64_t size(std::string_view key) const;
  std::int64_t size(std::string_view key, std::int64_t otherwise) const;
  // A whole number from 0 to 10^9: the id of a token.
  std::int64_t id(std::string_view key, std::int64_t otherwise) const;
  double number(std::string_view key, double otherwise) const;
  std::string text(std::string_view key, std::string_view otherwise = "") const;
  bool flag(std::string_view key, bool otherwise) const;
  // A list of whole numbers from 1 to 10^9, or of numbers; a number by itself is a list of one. Empty if the key is
  // missing. Infinity is 1e308.
  std::vector<std::int64_t> sizes(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;
  // A list of texts; empty if the key is missing.
  std::vector<std::string> texts(std::string_view key) const;
  // The values of an object whose values are texts, with their keys in the order of the file; empty if it is missing.
  std::vector<std::pair<std::string, std::string>> map(std::string_view key) const;
  // The names of the classes by num_labels and id2label: LABEL_0, LABEL_1, ... where the file has no names. As in
  // transformers there are two if the file says nothing.
  std::vector<std::string> labels() const;
  // An object within this one. Throws Error if the key is missing.
  ConfigFile section(std::string_view key) const;
  // The objects of a list; empty if the key is missing.
  std::vector<ConfigFile> sections(std::string_view key) const;

  // The value of each key of a list of lists: [[["global", "local"], 12]] is 12 times global, local (GPT-Neo).
  std::vector<std::string> repeated_texts(std::string_view key) const;
  bool is_object(std::string_view key) const;
  bool is_text(std::string_view key) const;
  bool is_null(std::string_view key) const;  // there, and null: the feature is off, where a missing key means a default

  // Declares keys that change nothing of what the model computes.
  void neutral(std::initializer_list<std::string_view> keys) const;
  // Declares a feature that the model lacks. Throws Error if the file turns it on.
  void lacks(std::initializer_list<std::string_view> flags) const;
  // Declares a feature of which the model has one kind. Throws Error for another.
  void only(std::string_view key, std::string_view value) const;
  // Throws Error that names a key with a value which nothing above read or declared, and the known key nearest to it in
  // spelling. Keys that begin with "_", and values that are null, false or empty, say nothing. `model` is what the
  // Error calls the model.
  void require_all_known(std::string_view model) const;

  const std::string& path() const;  // the file's name, for Errors
  // Throws Error about this file.
  template <class... Ts>
  [[noreturn]] void fail(const Ts&... what) const {
    refuse(str_cat(what...));
  }

 private:
  struct Shared;
  ConfigFile(std::shared_ptr<Shared> shared, const io::Json& root, std::string within);
  [[noreturn]] void refuse(const std::string& what) const;
  io::Json get(std::string_view key) const;  // and records that the key is known
  double whole(std::string_view key, const io::Json& j, double least) const;

  std::shared_ptr<Shared> shared_;
  std::shared_ptr<const io::Json> root_;
  std::string within_;  // "text_config." of a section
  std::shared_ptr<std::set<std::string, std::less<>>> known_ = std::make_shared<std::set<std::string, std::less<>>>();
};

}  // namespace lc
