// The reference interpreter: it defines the semantics of every operation and checks every compiler. Floating values are
// computed in f64, integers in i64; samples.h describes the error bounds.
#pragma once

#include <map>
#include <vector>

#include "lightcone/core/graph.h"
#include "lightcone/reference/access.h"
#include "lightcone/reference/samples.h"

namespace lc {

// A value with optional samples or error bounds. Floats are stored in f, integers and bools in i.
struct Value {
  DType dtype = DType::F32;
  std::vector<std::int64_t> shape;
  std::vector<double> f;
  std::vector<std::int64_t> i;
  std::vector<Deviations> shift;  // during sampling: deviations per element; empty: exact
  // For a result: the error that a correct implementation in this type may have per element (infinity: undecided,
  // because a comparison or a rounding is on an edge). Empty: exact.
  std::vector<double> error;
  std::vector<Value> parts;  // a composite with several results stores them only here

  std::size_t size() const { return is_float(dtype) ? f.size() : i.size(); }
  double at(std::size_t k) const { return is_float(dtype) ? f[k] : to_f64(i[k], dtype); }
  double error_at(std::size_t k) const { return error.empty() ? 0 : error[k]; }
};
Value make_value(DType dtype, std::vector<std::int64_t> shape);
Value read_value(const void* data, DType dtype, std::vector<std::int64_t> shape);
void write_value(const Value& v, void* data);

enum class Rounding {
  Wide,     // f32 and f64 stay f64: for checking
  Storage,  // results are rounded to their dtype: a naive device
};

// Evaluates one node. Operands have the shapes of the node's views.
Value evaluate(const Node& n, std::span<const Value> operands, const Bindings& env, Rounding rounding);
Value look_through(const Value& base, const View& view, const Bindings& env);

struct Results {
  std::map<std::string, Value> outputs;
  std::map<std::string, Value> states;  // new values of assigned inputs
};
// Runs a graph of leaves, primitives and composites. Time and memory are proportional to the graph: a product that is
// only summed is never materialized. `products` is the relative error allowed for factors in sums of products, also
// relative to the largest of a few neighbours (2^-8: to bf16, or to bytes with a scale). Throws Error for kernels.
Results interpret(const Graph& g, const std::map<std::string, Value>& inputs, const Bindings& env = {},
                  Rounding rounding = Rounding::Wide, bool track_error = false, double products = 0);

}  // namespace lc
