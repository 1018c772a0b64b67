// An ONNX file in memory, as https://github.com/onnx/onnx/blob/main/onnx/onnx.proto describes it. Texts and the bytes
// of tensors refer to the file, which the model keeps mapped.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/core/dtype.h"
#include "lightcone/io/mapped_file.h"
#include "lightcone/io/read_options.h"

namespace lc::onnx {

// TensorProto.DataType.
enum class ElementType : int {
  Undefined,
  Float,
  Uint8,
  Int8,
  Uint16,
  Int16,
  Int32,
  Int64,
  String,
  Bool,
  Float16,
  Double,
  Uint32,
  Uint64,
  Complex64,
  Complex128,
  Bfloat16,
  Float8E4M3FN,
  Float8E4M3FNUZ,
  Float8E5M2,
  Float8E5M2FNUZ,
  Uint4,
  Int4,
  Float4E2M1,
  Float8E8M0,
  Uint2,
  Int2,
};
std::string_view name(ElementType t);  // "float16"
// The element type of a graph's tensors for it; integers of 2 and 4 bits become those of 8. nullopt: not supported.
std::optional<DType> dtype_of(ElementType t);
ElementType element_type_of(DType t);
ElementType element_type_of(std::int64_t number);  // Undefined for a number that is not known
bool is_packed(ElementType t);                     // integers of 2 and 4 bits

// A constant. Elements of 2 and 4 bits were unpacked to whole bytes.
struct TensorData {
  std::string_view name;
  ElementType type = ElementType::Undefined;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;             // little-endian, row-major; empty for strings
  std::shared_ptr<const void> owner = {};       // keeps bytes that are not in the model's file
  std::shared_ptr<const MappedFile> file = {};  // the other file that holds the bytes
  std::vector<std::string_view> strings = {};   // ElementType::String
};

// The type of a graph's input or output.
struct TypeInfo {
  enum class Kind : std::uint8_t { Unknown, Tensor, Sequence, Optional, Map, Sparse };
  struct Extent {
    std::optional<std::int64_t> value = {};
    std::string_view parameter = {};  // the symbol's name; "" if nothing is known
  };
  Kind kind = Kind::Unknown;
  ElementType element = ElementType::Undefined;
  std::optional<std::vector<Extent>> shape = {};  // nullopt: the rank is unknown
  std::vector<TypeInfo> of = {};                  // Sequence and Optional: the type of an element
};
struct ValueInfo {
  std::string_view name;
  TypeInfo type;
};

struct GraphData;
struct Attribute {
  enum class Type : int {
    Undefined,
    Float,
    Int,
    String,
    Tensor,
    Graph,
    Floats,
    Ints,
    Strings,
    Tensors,
    Graphs,
    SparseTensor,
    SparseTensors,
    TypeProto,
    TypeProtos,
  };
  std::string_view name, reference = {};  // reference: the attribute of the function that encloses the node
  Type type = Type::Undefined;
  double f = 0;
  std::int64_t i = 0;
  std::string_view s = {};
  std::vector<float> floats = {};
  std::vector<std::int64_t> ints = {};
  std::vector<std::string_view> strings = {};
  std::vector<TensorData> tensors = {};                 // Tensor: one
  std::vector<std::shared_ptr<GraphData>> graphs = {};  // Graph: one
  std::optional<TypeInfo> type_info = {};
};
struct NodeData {
  std::string_view name, op, domain, overload;
  std::vector<std::string_view> inputs, outputs;  // "" for one that is absent
  std::vector<Attribute> attributes;
};
struct GraphData {
  std::string_view name;
  std::vector<NodeData> nodes;
  std::vector<TensorData> initializers;
  std::vector<ValueInfo> inputs, outputs;
};
struct Function {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<Attribute> defaults;  // attributes with their default values
  std::vector<NodeData> nodes;
  std::map<std::string_view, std::int64_t> opsets;
};
struct Model {
  std::shared_ptr<const MappedFile> file;
  std::int64_t ir_version = 0;
  std::string_view producer, producer_version;
  std::map<std::string_view, std::int64_t> opsets;  // by domain; "" is ai.onnx
  GraphData graph;
  std::vector<Function> functions;
  std::map<std::array<std::string_view, 3>, std::size_t> function_index;  // by domain, name and overload
  std::map<std::string, std::string> metadata;
};

// Parses a model without looking at its operators. Throws Error for a file that is damaged, has fields that are not
// known, or names external data that is missing, too short, or not below the model's folder.
Model parse(std::shared_ptr<const MappedFile> file, const ReadOptions& o = {});
// Parses a file with one tensor (TensorProto), as ONNX's test data has them.
TensorData parse_tensor(const std::shared_ptr<const MappedFile>& file, const ReadOptions& o = {});

}  // namespace lc::onnx
