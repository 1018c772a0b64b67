// A StableHLO module in memory: what read.h reads and write.h writes. Plain data, in the terms of MLIR.
//
// https://github.com/openxla/stablehlo/blob/main/docs/spec.md says what the operations mean.
#pragma once

#include "lightcone/macros_off.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lightcone/core/dtype.h"

namespace lc::stablehlo {

// Where something stands in the text, from 1. In bytecode, which has no lines, `column` is the byte and `line` 0.
struct Place {
  int line = 0, column = 0;
};
std::string str(Place at);  // "line 3", "byte 120"

inline constexpr std::int64_t kDynamic = -1;  // '?'

// A tensor's type, or one that is kept as it is written.
struct Type {
  bool is_tensor = true;
  std::string element = "f32";           // "f32", "ui8", "i1", "complex<f32>"; of another type the whole spelling
  std::vector<std::int64_t> shape = {};  // kDynamic where it is not known
  // Nothing, or for each axis the largest extent that it may have; kDynamic where none is given.
  std::vector<std::int64_t> bounds = {};
  friend bool operator==(const Type&, const Type&) = default;
};
std::string str(const Type& t);  // "tensor<2x3xf32>", "tensor<?x3xf32, #stablehlo.bounds<8, ?>>"
// f32 f64 f16 bf16 i8 i16 i32 i64 ui8 ui16 ui32 ui64 i1, none for others.
std::optional<DType> dtype_of(std::string_view element);
std::string_view element_of(DType t);

// What "!quant.uniform<i8<-127:127>:f32:1, {0.5:3, 0.25}>" says: a number is scale * (stored - zero_point), with a
// scale for all elements, or for each place along an axis.
struct Quantization {
  std::string storage = "i8", expressed = "f32";  // element types
  std::int64_t least = -128, most = 127;          // of the stored numbers
  int axis = -1;                                  // -1: one scale
  std::vector<double> scales = {};
  std::vector<std::int64_t> zero_points = {};  // as many
};
// None for an element type that is not quantised; an Error for one that is, in a way that is not supported.
std::optional<Quantization> quantization_of(std::string_view element);

struct Attribute;
using NamedAttribute = std::pair<std::string, Attribute>;
using AttributeList = std::vector<NamedAttribute>;

struct Attribute {
  enum class Kind : std::uint8_t {
    Unit,      // `unique_indices`
    Bool,      // true
    Integer,   // 1 : i64
    Real,      // 1.0 : f32
    String,    // "text"
    Symbol,    // @name
    Type,      // tensor<2xf32>
    List,      // [a, b]
    Integers,  // array<i64: 1, 2>, and of i1: `type.element` says which
    Dense,     // dense<...> : tensor<...>
    Enum,      // #stablehlo<comparison_direction LT>: `text` is "LT", `name` "comparison_direction"
    Struct,    // #stablehlo.gather<offset_dims = [2], ...>: `name` is "gather"; {a = 1} has none. A list of numbers in
               // a named one is Integers. #stablehlo.conv<[b, f, 0, 1]x[...> has the fields of MLIR's raw form:
               // input_batch_dimension, ..., output_spatial_dimensions
  };
  Kind kind = Kind::Unit;
  std::int64_t integer = 0;  // and of Bool
  double real = 0;
  std::string text = {}, name = {};
  stablehlo::Type type = {};  // of Dense; of Integer and Real the element type alone
  std::vector<std::int64_t> integers = {};
  std::vector<std::byte> data =
      {};              // of Dense: elements in row-major order, little-endian, a byte for i1; one if splat
  bool splat = false;  // all elements are the same one
  std::vector<Attribute> list = {};
  AttributeList fields = {};
};

// What they take of memory, with all they hold.
std::size_t memory_of(const Type& t);
std::size_t memory_of(const Attribute& a);

using ValueId = std::int32_t;  // into Module::values

struct Block;
struct Operation {
  std::string name = {};  // "stablehlo.add", "func.call"
  std::vector<ValueId> operands = {}, results = {};
  AttributeList attributes = {};
  std::vector<Block> regions;  // of one block each; no "= {}", for which clang wants to know what a Block is
  Place at = {};
  const Attribute* find(std::string_view attribute) const;
};

struct Block {
  std::vector<ValueId> arguments = {};
  std::vector<Operation> operations = {};  // the last one returns
};

struct Function {
  std::string name = "main";
  bool is_public = true;
  Block body = {};
  std::vector<Type> results = {};
  std::vector<AttributeList> argument_attributes = {}, result_attributes = {};  // empty, or one for each
  Place at = {};
};

struct Value {
  Type type = {};
  std::string name = {};  // as it was written, without %
};

struct Module {
  std::string name = {};
  std::vector<Value> values = {};
  std::vector<Function> functions = {};
  AttributeList attributes = {};
  const Function* function(std::string_view name) const;
  ValueId value(Type type, std::string name = {});  // a new one
};

// How often each operation occurs: in the functions themselves, and with what their regions hold (loops, reducers).
// Constants and returns count as others do.
struct Instructions {
  struct Count {
    int entry = 0, total = 0;
  };
  std::map<std::string, Count> by_name;  // "stablehlo.add"
  Count all;
};
Instructions instructions(const Module& m);

// Generic form, which every reader of MLIR takes: "stablehlo.add"(%0, %1) : (tensor<2xf32>, tensor<2xf32>) -> ...
std::string print(const Module& m);
// Either form, as JAX and PyTorch/XLA print it. Error with line and column for what cannot be read; never more memory
// than 32 MiB and some 300 times the text, whatever its aliases stand for. And bytecode, which is told by its first
// bytes.
Module parse(std::string_view text);
// A portable artifact: operations of VHLO, StableHLO's versioned form, in MLIR's bytecode, as JAX hands programs to
// plugins and serialize_portable_artifact() writes them. Error with the byte for what cannot be read; never more memory
// than 32 MiB and some 300 times the file.
Module parse_bytecode(std::span<const std::byte> file);

}  // namespace lc::stablehlo
#include "lightcone/macros_on.h"
