// The values and nodes of an ONNX graph while it is made from a StableHLO module.
//
// Most operations of ONNX broadcast, and those of StableHLO do not. So a broadcast is not written but kept as what it
// repeats, and its readers take that, with axes of extent 1, unless they need every element.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/onnx/write/nodes.h"
#include "lightcone/stablehlo/module.h"

namespace lc::onnx {

using stablehlo::ValueId;
using Type = stablehlo::Type;
using Extents = std::vector<std::int64_t>;  // kDynamic for one that is unknown until the model runs

using Ref = int;  // the number of a value

// Returns the element type in which onnxruntime's CPU kernels compute an operation on elements of type `element`.
std::string_view computed_as(std::string_view op, std::string_view element);

bool is_dynamic(const Extents& s);

class Emitter {
 public:
  Emitter(OutGraph& g, int opset);
  int opset() const { return opset_; }

  // ---- values ----
  Ref value(std::string name, Type type);
  Ref splat(Type type, std::vector<std::byte> element);  // all elements are this one
  // `small` with its axes at `axes` of `type`, repeated along the others. `list` is a value with the extents of `type`,
  // or -1: it is needed if they are unknown.
  Ref spread(Ref small, std::vector<std::size_t> axes, Type type, Ref list);
  const Type& type(Ref r) const { return at(r).type; }
  const Extents& shape(Ref r) const { return at(r).type.shape; }
  const std::string& element(Ref r) const { return at(r).type.element; }
  // The value of a splat, or nullopt.
  std::optional<double> number(Ref r) const;
  bool is_splat(Ref r) const { return at(r).constant.has_value(); }
  // The element of a splat; empty if it has none.
  const std::vector<std::byte>& element_of_splat(Ref r) const { return *at(r).constant; }
  Ref list_of(Ref r) const { return at(r).list; }
  // What a spread repeats, and the axes along which it does; -1 for another value.
  Ref small_of(Ref r) const { return at(r).small; }
  std::vector<std::size_t> repeated_axes(Ref r) const;
  // A spread in a shape that differs from its own only in axes of extent 1, or -1 if it is no such thing.
  Ref respread(Ref r, const Type& to, Ref list);

  // The name of the whole value.
  std::string name(Ref r);
  // Something that broadcasts to the value: a name, and the shape of that, right-aligned.
  struct Loose {
    std::string name;
    Extents shape;
  };
  Loose loose(Ref r, std::string_view as);
  std::string cast(const std::string& name, std::string_view from, std::string_view to);

  // ---- nodes ----
  std::string node(std::string_view op, std::vector<std::string> inputs, OutAttributes attributes = {});
  std::vector<std::string> nodes(std::string_view op, std::vector<std::string> inputs, std::size_t outputs,
                                 OutAttributes attributes = {});
  // Applies an operation that broadcasts, computed in a type that has a kernel. `first`: the operand whose element type
  // the operation has.
  Ref elementwise(std::string_view op, std::vector<Ref> in, const Type& result, OutAttributes attributes = {},
                  std::size_t first = 0);
  // The value of type `result` that `name`, of the right-aligned `shape`, broadcasts to.
  Ref broadcast(const std::string& name, Extents shape, const Type& result, Ref list);
  Ref convert(Ref x, std::string_view to);
  Ref bitcast(Ref x, std::string_view to);  // BitCast of opset 26
  // Applies an operation to a whole value, in a type that has a kernel.
  Ref whole(std::string_view op, Ref x, const Type& result, std::vector<std::string> more = {},
            OutAttributes attributes = {});

  std::string constant(std::string_view element, const Extents& shape, std::vector<std::byte> bytes);
  std::string list(const Extents& values);                 // i64 [n]
  std::string scalar(std::int64_t v);                      // i64 []
  std::string number(std::string_view element, double v);  // []
  // The extents of a value as i64 [n], computed if they are unknown.
  std::string extents(Ref r);
  std::string extent(Ref r, std::size_t axis);  // i64 [1]

  // ---- shapes ----
  // The name of x in this shape; at most one extent may be unknown, unless `list` names the extents.
  std::string reshape(const std::string& x, const Extents& to, const std::string& list = {});
  std::string unsqueeze(const std::string& x, const Extents& axes);
  std::string squeeze(const std::string& x, const Extents& axes);
  std::string transpose(const std::string& x, const std::vector<std::size_t>& permutation);
  std::string slice(const std::string& x, const Extents& begin, const Extents& end, const Extents& axes,
                    const Extents& steps);

  // ---- subgraphs ----
  // Writes a subgraph; names that it makes are not seen outside of it.
  void inside(OutGraph& g, const std::function<void()>& write);
  std::string fresh();
  void reserve(const std::string& name) { taken_.insert(name); }

  OutGraph& outermost() { return *scopes_.front().graph; }

 private:
  struct Held {
    Type type;
    std::string name;                                     // "": not written yet
    std::optional<std::vector<std::byte>> constant = {};  // a splat has its element
    Ref small = -1;                                       // a spread repeats it
    std::vector<std::size_t> axes = {};
    Ref list = -1;
  };
  struct Scope {
    OutGraph* graph;
    std::map<std::string, std::string> known;  // names of what has been written already, by what it is
  };
  const Held& at(Ref r) const { return held_[static_cast<std::size_t>(r)]; }
  const std::string* known(const std::string& what) const;
  std::string once(const std::string& what, const std::function<std::string()>& write);
  std::string written(Ref r);

  int opset_;
  std::vector<Held> held_;
  std::vector<Scope> scopes_;
  std::set<std::string> taken_;
  std::map<std::string, std::string> constants_;
  int next_ = 0;
  std::map<std::string, int> numbers_;  // counts nodes, by operation
};

DType dtype_of_element(std::string_view element);

}  // namespace lc::onnx
