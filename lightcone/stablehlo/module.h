// A StableHLO module in memory, as read.h reads and write.h writes it: plain data in MLIR's terms.
//
// The meaning of the operations: https://github.com/openxla/stablehlo/blob/main/docs/spec.md.
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

#include "lightcone/base/error.h"
#include "lightcone/core/dtype.h"

namespace lc::stablehlo {

// A position in the text, counted from 1. In bytecode, which has no lines, `column` is the byte and `line` is 0.
struct Place {
  int line = 0, column = 0;
};
std::string str(Place at);  // "line 3", "byte 120"

inline constexpr std::int64_t kDynamic = -1;  // an unknown extent, '?'

// A tensor type, or another type kept as its text.
struct Type {
  bool is_tensor = true;
  std::string element = "f32";           // "f32", "ui8", "i1", "complex<f32>"; for another type its whole text
  std::vector<std::int64_t> shape = {};  // kDynamic for an unknown extent
  // Empty, or the upper bound of each extent; kDynamic without a bound.
  std::vector<std::int64_t> bounds = {};
  friend bool operator==(const Type&, const Type&) = default;
};
std::string str(const Type& t);  // "tensor<2x3xf32>", "tensor<?x3xf32, #stablehlo.bounds<8, ?>>"
// Returns the element type of f32 f64 f16 bf16 f8E4M3FN f8E5M2 i8 i16 i32 i64 ui8 ui16 ui32 ui64 i1, or nullopt for
// others.
std::optional<DType> dtype_of(std::string_view element);
std::string_view element_of(DType t);

// The contents of "!quant.uniform<i8<-127:127>:f32:1, {0.5:3, 0.25}>": a number is scale * (stored - zero_point), with
// one scale for all elements or one for each index along an axis.
struct Quantization {
  std::string storage = "i8", expressed = "f32";  // element types
  std::int64_t least = -128, most = 127;          // range of the stored numbers
  int axis = -1;                                  // axis of the scales; -1: one scale
  std::vector<double> scales = {};
  std::vector<std::int64_t> zero_points = {};  // one per scale
};
// Returns nullopt for an element type that is not quantised. Throws Error for an unsupported quantised type.
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
    Integers,  // array<i64: 1, 2>; `type.element` is i64 or i1
    Dense,     // dense<...> : tensor<...>
    Enum,      // #stablehlo<comparison_direction LT>: `text` is "LT", `name` "comparison_direction"
    // #stablehlo.gather<offset_dims = [2], ...>: `name` is "gather", and lists of numbers are Integers; {a = 1} has no
    // name. #stablehlo.conv<[b, f, 0, 1]x[...> has the fields of MLIR's raw form: input_batch_dimension, ...,
    // output_spatial_dimensions.
    Struct,
  };
  Kind kind = Kind::Unit;
  std::int64_t integer = 0;  // also the value of a Bool
  double real = 0;
  std::string text = {}, name = {};
  stablehlo::Type type = {};  // type of Dense; for Integer and Real only its element
  std::vector<std::int64_t> integers = {};
  std::vector<std::byte> data =
      {};              // Dense: elements in row-major order, little-endian, one byte for i1; a single one if splat
  bool splat = false;  // all elements are equal
  std::vector<Attribute> list = {};
  AttributeList fields = {};
};

// Returns the bytes that a type takes in memory.
std::size_t memory_of(const Type& t);
// Returns the bytes that an attribute takes in memory with everything it holds.
std::size_t memory_of(const Attribute& a);

using ValueId = std::int32_t;  // index into Module::values

struct Block;
struct Operation {
  std::string name = {};  // "stablehlo.add", "func.call"
  std::vector<ValueId> operands = {}, results = {};
  AttributeList attributes = {};
  std::vector<Block> regions;  // one block each; without "= {}", because clang would then need the complete type
  Place at = {};
  Location where = {};  // the line of the program that built the graph; it is not printed
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
  std::vector<AttributeList> argument_attributes = {}, result_attributes = {};  // empty, or one per argument or result
  Place at = {};
};

struct Value {
  Type type = {};
  std::string name = {};  // name in the text, without %
};

struct Module {
  std::string name = {};
  std::vector<Value> values = {};
  std::vector<Function> functions = {};
  AttributeList attributes = {};
  const Function* function(std::string_view name) const;
  ValueId value(Type type, std::string name = {});  // adds a value
};

// How often each operation occurs: directly in functions, and including their regions (loops, reducers). Constants and
// returns are counted, too.
struct Instructions {
  struct Count {
    int entry = 0, total = 0;
  };
  std::map<std::string, Count> by_name;  // keyed by name, such as "stablehlo.add"
  Count all;
};
Instructions instructions(const Module& m);

// Returns the text in generic form, which every MLIR reader accepts:
// "stablehlo.add"(%0, %1) : (tensor<2xf32>, tensor<2xf32>) -> ...
std::string print(const Module& m);
// Parses text in generic or pretty form, as JAX and PyTorch/XLA print it, or bytecode, which is recognised by its first
// bytes. Throws Error with line and column if it cannot be read. Memory is limited to 32 MiB plus some 300 times the
// text's size, whatever its aliases expand to.
Module parse(std::string_view text);
// Parses a portable artifact: operations of VHLO, StableHLO's versioned form, in MLIR's bytecode, as JAX passes
// programs to plugins and serialize_portable_artifact() writes them. Throws Error with the byte if it cannot be read.
// Memory is limited to 32 MiB plus some 300 times the file's size.
Module parse_bytecode(std::span<const std::byte> file);

}  // namespace lc::stablehlo
#include "lightcone/macros_on.h"
