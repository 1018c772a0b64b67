// What the names in a pickle stand for. Nothing is imported, looked up or run: a name is compared with two lists.
//
// A pickle can do two things with a name. It makes an object of a class and gives it a state (NEWOBJ, BUILD,
// copyreg._reconstructor, and INST or OBJ without arguments); no constructor of the class has a say in what the state
// is. And it calls a function or a class with arguments (REDUCE, and INST or OBJ with arguments); what comes out is
// known to nobody who does not run it. The rule follows that line:
//
// - An object of any class is kept as its class's name and its state. Its tensors are found by the paths of its
//   attributes, which is how whole pickled modules are read.
// - A call is answered from the list of functions that make tensors and containers (torch._utils._rebuild_tensor_v2,
//   collections.OrderedDict, numpy's arrays, ...), or, for plain values of the standard library (pathlib.PosixPath,
//   datetime.datetime, ...), by an object that knows its class and arguments.
// - Every other call is an Error that names the function, whatever its arguments, and whether or not a tensor depends
//   on it: os.system and an Enum of a strange package look the same to whoever does not run them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lightcone/io/checkpoints/torch/values.h"

namespace lc::io::torch {

// Answers calls of the pickles of one file.
class Calls {
 public:
  explicit Calls(Values& values) : v_(values) {}
  // REDUCE: what a global returns for a tuple of arguments. Throws Error for a function that is not on the lists.
  Id call(Id function, Id arguments);
  // NEWOBJ: an object of a class.
  Id make(Id of, Id arguments);
  // BUILD: gives an object its state.
  void build(Id object, Id state);
  // BINPERSID: the storage that a persistent id names.
  Id persistent(Id id);

 private:
  using Function = Id (Calls::*)(std::string_view name, std::span<const Id> arguments);
  struct Row;
  static std::span<const Row> rows();
  const Row* row(std::string_view name) const;

  Id dict(std::string_view name, std::span<const Id> arguments);
  Id empty_dict(std::string_view name, std::span<const Id> arguments);
  Id list(std::string_view name, std::span<const Id> arguments);
  Id set(std::string_view name, std::span<const Id> arguments);
  Id tuple(std::string_view name, std::span<const Id> arguments);
  Id bytes(std::string_view name, std::span<const Id> arguments);
  Id first(std::string_view name, std::span<const Id> arguments);
  Id tensor(std::string_view name, std::span<const Id> arguments);
  Id tensor_of_dtype(std::string_view name, std::span<const Id> arguments);
  Id subclass(std::string_view name, std::span<const Id> arguments);
  Id reconstructed(std::string_view name, std::span<const Id> arguments);
  Id new_object(std::string_view name, std::span<const Id> arguments);
  Id numpy_array(std::string_view name, std::span<const Id> arguments);
  Id numpy_scalar(std::string_view name, std::span<const Id> arguments);

  Id copied(Kind kind, std::string_view name, std::span<const Id> arguments);
  Id strided(std::string_view name, std::span<const Id> a, const ElementType* type);
  std::vector<std::int64_t> extents(std::string_view name, Id tuple);
  void fill_array(Id array, std::span<const Id> state);
  struct NumpyType {
    const ElementType* type = nullptr;
    bool big_endian = false;
  };
  NumpyType numpy_type(Id dtype) const;
  void need(std::string_view name, bool fits);
  Values& v_;
};

}  // namespace lc::io::torch
