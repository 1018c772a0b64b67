// Reads a model node by node. Problems are collected, so that one Error lists all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/onnx/model/model.h"
#include "lightcone/onnx/onnx.h"
#include "lightcone/onnx/read/operators.h"
#include "lightcone/ops/random.h"
#include "lightcone/readers/known_values.h"

namespace lc::onnx {

class Importer {
 public:
  Importer(const Model& m, const OnnxOptions& o);
  OnnxProgram run();
  // Reads as much of the model as is supported, and returns what is not: the sentences of the Error of run(), and what
  // lies beyond unsupported operators as far as their results are not needed.
  std::vector<std::string> survey();

  Graph& graph() { return program_.graph; }
  readers::KnownValues& known() { return known_; }
  const OnnxOptions& options() const { return o_; }

  // Returns the outputs of a subgraph, whose nodes also see the names around it.
  Values subgraph(const GraphData& g, std::span<const Value> arguments);
  // Runs `f`. If it throws Error, forgets the problems that it reported and returns false.
  bool tries(const std::function<void()>& f);
  // Counts work that a few bytes of the file may ask for many times over: nodes of functions and loops, elements of
  // sequences. Throws Error if it is out of proportion to the number of nodes in the file.
  void spend(std::int64_t work);
  // Counts elements of sequences, each of which is a list of its own. Throws Error in the same way.
  void keep(std::size_t elements);
  // A constant as graph code if it is short or regular, else a parameter with these bytes.
  Value constant(const TensorData& t, std::string_view name);

  // Takes two extents to be equal. Where they are not yet the same expression, one of them is replaced by the other in
  // the whole model, which is read again. Throws Error if they cannot be equal.
  void same_extent(const Dim& a, const Dim& b);

  // Takes an extent to be at least `least`. Where its expression allows less, and has one symbol, the symbol's least
  // value is raised in the whole model, which is read again.
  void at_least(const Dim& extent, std::int64_t least);

  // The source of random numbers that all nodes share, and the name of a stream for one draw. Throws Error while a
  // LoopBody exists: each step of the loop would draw the same numbers.
  Random& random();
  std::string random_stream(const std::string& seed) { return str_cat("onnx.", seed, ".", draws_++); }

  class LoopBody {
   public:
    explicit LoopBody(Importer& i) : importer_(i) { ++importer_.loops_; }
    LoopBody(const LoopBody&) = delete;
    LoopBody& operator=(const LoopBody&) = delete;
    ~LoopBody() { --importer_.loops_; }

   private:
    Importer& importer_;
  };

  // The attribute of the function's caller that a function's node refers to, or null.
  const Attribute* bound(std::string_view reference) const;

 private:
  struct Scope {
    std::map<std::string_view, Value> values;
    Scope* outer = nullptr;
  };
  // A function that is being inlined.
  struct Frame {
    std::map<std::string_view, const Attribute*> attributes;
    const std::map<std::string_view, std::int64_t>* opsets = nullptr;
  };

  OnnxProgram attempt();
  void read_all();  // leaves problems_, and the graph in program_
  void next_round(int& rounds);
  // Lowers the largest value of open extents if a tensor of the graph would be too large, and returns whether it did.
  bool lower_limit(const Graph& g);
  void inputs();
  Value given_value(const ValueInfo& v, DType dtype, const Shape& shape, const ArrayView& a);
  void outputs();
  void replace(const std::string& symbol, const Dim& by);
  Shape shape_of(const ValueInfo& v);
  Dim extent_of(const ValueInfo& v, int axis, const TypeInfo::Extent& e);
  Dim symbol(const std::string& name);
  void nodes(const std::vector<NodeData>& all);
  void node(const NodeData& n, std::size_t index);
  Values results_of(const NodeData& n, Values in);
  Values call(const Function& f, const NodeData& n, const Values& in);
  std::int64_t opset(std::string_view domain) const;
  Value lookup(std::string_view name) const;
  void define(std::string_view name, Value v);
  void problem(const std::string& what);
  std::optional<ArrayView> data_of(const std::string& parameter) const;

  const Model& m_;
  const OnnxOptions& o_;
  std::int64_t limit_;  // the largest value of extents that the file does not state
  OnnxProgram program_;
  readers::KnownValues known_;
  Scope* scope_ = nullptr;
  std::vector<Frame> frames_;
  std::map<std::string, std::size_t> weight_of_;  // a parameter's name to its index in program_.weights
  std::map<std::string, Dim> replaced_;           // symbols of which it is known what they equal
  bool again_ = false;                            // the model is read again because of them
  std::vector<std::string> problems_;
  std::set<std::string> known_problems_;
  std::optional<Random> random_;
  std::map<std::string, int> next_number_;    // for parameters with the same name
  std::set<std::string_view> plain_extents_;  // names of extents that are no expressions
  std::int64_t most_work_, work_ = 0;         // in all rounds
  std::size_t kept_ = 0;                      // elements of sequences, in this round
  std::int64_t draws_ = 0;
  int depth_ = 0, loops_ = 0;
  bool surveys_ = false;           // unsupported operators are passed over
  std::int64_t not_examined_ = 0;  // nodes whose operands could not be read
};

}  // namespace lc::onnx
