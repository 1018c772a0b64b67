// WeightTable: the weights of a checkpoint by the names that a model gives its parameters.
//
// A model has one table of names for each format: what a file calls a part, and what the model calls it. '#' stands for
// a number, such as that of a layer.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/io/checkpoints/stored_part.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/nn/parameter.h"
#include "lightcone/runtime/program.h"

namespace lc {

// A row of a table of names. Both are whole names, or what stands before a '.' in them.
struct WeightName {
  std::string_view theirs, ours;
  bool optional = false;  // the file may have it without the model reading it: a head for another task
  bool yields = false;    // another tensor of the same name for the model counts in place of it
};

// Returns `name` with its beginning, which matches `from` up to the end or a '.', replaced by `to`; nullopt if it does
// not match. '#' in `to` stands for the numbers that '#' of `from` stood for.
std::optional<std::string> rewritten(std::string_view name, std::string_view from, std::string_view to);

// The weights of one file. Copies share it and the record of the weights that were used.
class WeightTable {
 public:
  // `prefixes` are what some files write before every name ("bert."). Names that end in .gamma and .beta are taken for
  // .weight and .bias. Throws Error if two tensors have the same name for the model and are not the same.
  WeightTable(const Weights& w, std::span<const std::string_view> prefixes, std::span<const WeightName> names);

  bool has(std::string_view ours) const { return shared_->tensors.contains(ours); }
  // The same weights for a module whose parameters have `path` and '.' before their names.
  WeightTable below(const std::string& path) const;
  // Gives the tensor of a parameter another name: two parameters of the model are this weight.
  void also(std::string_view ours, std::string_view as);
  // Returns the tensor of a parameter, or null.
  const StoredTensor* find(std::string_view ours) const;
  // The file's own name of a parameter that it has, or "".
  std::string name_in_file(std::string_view ours) const;
  // For nn::Stored: the type in which the file stores each parameter. It throws Error for a parameter that the file
  // lacks and for one of another shape, by the file's name of it.
  nn::StorageOf storage() const;
  // Takes a tensor that is no weight by itself: whole numbers that the model makes weights of, in an input of this
  // name. Throws Error if the file lacks it, or has another shape or type.
  void take(std::string_view ours, const Shape& shape, DType type) const;
  // Throws Error that names a weight of the file which no parameter took, and the known name nearest to it in spelling.
  void require_all_used(std::string_view model) const;
  // Loads the parameters that storage() was asked for into a program; with `part`, into that of one rank of several.
  void load(Program& program, const PartOf& part = {}) const;

 private:
  struct Row {
    std::string theirs;
    StoredTensor tensor;
    bool optional, yields;
  };
  struct Shared {
    Weights weights;
    std::vector<WeightName> names;
    std::string prefix;  // what stands before the names of this file, for Errors
    std::map<std::string, Row, std::less<>> tensors;
    std::vector<std::string> unknown;
    std::set<std::string, std::less<>> used;
  };
  static void add(Shared& s, const std::string& name, std::string_view plain, const StoredTensor& t);
  static std::string theirs(const Shared& s, std::string_view ours);
  static const Row& row_of(const Shared& s, std::string_view path, const Shape& shape);
  static nn::Storage storage_of(Shared& s, std::string_view path, const Shape& shape);

  std::shared_ptr<Shared> shared_;
  std::string path_ = {};  // before the names of parameters, with its '.'
};

}  // namespace lc
