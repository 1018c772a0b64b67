// One node of a model that is being read: its operands and attributes, as rules ask for them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/base/error.h"
#include "lightcone/onnx/read/importer.h"
#include "lightcone/onnx/read/operators.h"
#include "lightcone/ops/ops.h"

namespace lc::onnx {

using Integers = std::vector<std::int64_t>;

// An attribute that no rule asks for is not supported: the importer refuses the node. Accessors throw Error for an
// attribute of another type, and the Error becomes the node's line in the list of what is not supported.
class Call {
 public:
  Call(Importer& importer, const NodeData& node, std::int64_t opset, Values in)
      : importer(importer), node(node), opset(opset), in(std::move(in)) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  Importer& importer;
  const NodeData& node;
  std::int64_t opset;  // the version of the operator's domain
  Values in;

  Graph& graph() const;
  [[noreturn]] void refuse(const std::string& why) const;

  // ---- operands and results
  bool has(std::size_t k) const { return k < in.size() && in[k].defined(); }
  Tensor x(std::size_t k = 0) const;     // throws Error if it is absent, no tensor, or has a size that depends on data
  Tensor optional(std::size_t k) const;  // the same, but undefined if it is absent
  const Value& value(std::size_t k) const;  // throws Error if it is absent
  std::size_t results() const { return node.outputs.size(); }
  bool wants(std::size_t k) const { return k < node.outputs.size() && !node.outputs[k].empty(); }

  // ---- operands whose elements are known when the model is read
  std::vector<Dim> dims(std::size_t k) const;                  // integers, which may depend on the sizes of inputs
  Integers integers(std::size_t k) const;                      // integers without symbols
  std::vector<double> numbers(std::size_t k) const;            // any numbers without symbols
  std::int64_t integer(std::size_t k) const;                   // a scalar, or a tensor of one element
  Dim dim(std::size_t k) const;                                // the same, which may depend on the sizes of inputs
  double number(std::size_t k) const;                          // the same, of any type
  std::optional<std::vector<Dim>> known(std::size_t k) const;  // nullopt: absent, or it depends on data

  // ---- attributes
  bool has_attribute(std::string_view name) const { return find(name) != nullptr; }
  std::int64_t integer(std::string_view name) const;  // throws Error if it is missing
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  bool flag(std::string_view name, bool otherwise = false) const { return integer(name, otherwise ? 1 : 0) != 0; }
  double number(std::string_view name, double otherwise) const;
  std::string_view text(std::string_view name, std::string_view otherwise = {}) const;
  Integers integers(std::string_view name) const;  // throws Error if it is missing
  Integers integers(std::string_view name, const Integers& otherwise) const;
  std::vector<double> numbers(std::string_view name, const std::vector<double>& otherwise = {}) const;
  std::vector<std::string_view> texts(std::string_view name) const;  // empty if it is missing
  const TensorData& tensor(std::string_view name) const;             // throws Error if it is missing
  const GraphData& graph(std::string_view name) const;               // throws Error if it is missing
  // A type as an integer; throws Error for one that is not known.
  ElementType element_type(std::string_view name, ElementType otherwise = ElementType::Undefined) const;
  DType dtype(std::string_view name, ElementType otherwise) const;          // the same; throws Error without a DType
  void ignore(std::string_view name) const { find(name); }                  // for an attribute that changes no value
  int axis(std::string_view name, std::int64_t otherwise, int rank) const;  // wrapped to [0, rank)
  int wrap(std::int64_t axis, int rank) const;                              // throws Error outside [-rank, rank)
  std::vector<int> wrap(const Integers& axes, int rank) const;  // sorted; throws Error if one is named twice

  // Names an attribute that the rule did not ask for; nullopt if there is none.
  std::optional<std::string_view> unread() const;

 private:
  const Attribute* find(std::string_view name) const;
  const Attribute* find(std::string_view name, Attribute::Type type) const;
  mutable std::set<std::string_view> read_;
};

// ---- words that several rules use -----------------------------------------------------------------

// Broadcasts tensors to one shape. Extents with different names are taken to be equal from here on.
Shape broadcast_shape(Call& c, const std::vector<Tensor>& tensors);
std::vector<Tensor> broadcast(Call& c, std::vector<Tensor> tensors);
Tensor expand_to(Call& c, const Tensor& t, const Shape& shape);  // as Expand does: t's extents of 1 are repeated
// Integers as a constant i64 tensor [n], which may depend on the sizes of inputs.
Tensor tensor_of(Call& c, const std::vector<Dim>& dims, DType dtype = DType::I64);
std::vector<int> all_axes(int rank);
std::int64_t fixed(const Call& c, const Dim& d, const char* what);  // throws Error for a symbol
int narrow_int(const Call& c, std::int64_t n, const char* what);    // throws Error if it does not fit into an int
std::vector<int> fixed(const Call& c, const Shape& s, const char* what);

}  // namespace lc::onnx
