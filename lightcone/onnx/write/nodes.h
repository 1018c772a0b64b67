// An ONNX graph that is being written: nodes and initializers by name, with subgraphs in attributes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lightcone/core/dim.h"
#include "lightcone/core/dtype.h"
#include "lightcone/io/protobuf_writer.h"

namespace lc::onnx {

struct OutGraph;
using OutValue = std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>, std::shared_ptr<OutGraph>>;
struct OutAttribute {
  std::string name;
  OutValue value;
};
using OutAttributes = std::vector<OutAttribute>;

struct OutNode {
  std::string op, name, comment = {};
  std::vector<std::string> inputs = {}, outputs = {};  // "" for an input that is absent
  OutAttributes attributes = {};
};
// The type of an input or an output.
struct OutPort {
  std::string name;
  DType dtype = DType::F32;
  std::optional<Shape> shape = {};  // nullopt: it is not stated
};
// A constant: its bytes, a view of those of a parameter, or a function that computes them when they are written.
struct OutTensor {
  std::string name;
  DType dtype = DType::F32;
  std::vector<std::int64_t> shape = {};
  std::vector<std::byte> own = {};
  std::span<const std::byte> view = {};
  std::function<std::vector<std::byte>()> make = {};
  std::uint64_t size() const;  // in bytes
};
struct OutGraph {
  std::string name = "lightcone";
  std::vector<OutNode> nodes = {};
  std::vector<OutPort> inputs = {}, outputs = {};
  std::vector<OutTensor> initializers = {};  // only the outermost graph has them
};

// Gives values the names of the outputs, in their order. A value that is an input, a constant or several outputs is
// copied.
void name_outputs(OutGraph& g, const std::vector<std::string>& values);
// Removes nodes whose results nobody reads, also in subgraphs, and initializers that no node reads.
void remove_unread(OutGraph& g);

// Returns the fields of a GraphProto except for its initializers.
ProtobufWriter graph_fields(const OutGraph& g);
// The number of an element type in files.
std::int64_t element_number(DType t);

}  // namespace lc::onnx
