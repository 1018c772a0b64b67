// The reference interpreter: the living definition of every operation, and the judge of every
// compiler. Floating values are computed in f64, integers in i64.
#pragma once

#include <map>
#include <vector>

#include "lightcone/core/graph.h"

namespace lc {

// A value with its error bound. Floats are in f, integers and bools in i; `error[k]` bounds how
// far a correct implementation in the node's dtype may be from element k (infinity: undecided,
// because a comparison or a rounding sits on an edge).
struct Value {
  DType dtype = DType::F32;
  std::vector<std::int64_t> shape;
  std::vector<double> f;
  std::vector<std::int64_t> i;
  std::vector<double> error;  // empty: exact

  std::size_t size() const { return is_float(dtype) ? f.size() : i.size(); }
  double at(std::size_t k) const { return is_float(dtype) ? f[k] : static_cast<double>(i[k]); }
  double error_at(std::size_t k) const { return error.empty() ? 0 : error[k]; }
};
Value make_value(DType dtype, std::vector<std::int64_t> shape);
Value read_value(const void* data, DType dtype, std::vector<std::int64_t> shape);
void write_value(const Value& v, void* data);

enum class Rounding {
  Wide,     // f32 and f64 stay f64: the judge
  Storage,  // every result is rounded to its dtype: what a naive device computes
};

// One node from its operands, which have the shapes their views show.
Value evaluate(const Node& n, std::span<const Value> operands, const Bindings& env, Rounding rounding,
               bool track_error = false);
Value look_through(const Value& base, const View& view, const Bindings& env);

struct Results {
  std::map<std::string, Value> outputs;
  std::map<std::string, Value> states;  // what each assigned input holds afterwards
};
// Runs a whole graph of leaves, primitives and composites.
Results interpret(const Graph& g, const std::map<std::string, Value>& inputs, const Bindings& env = {},
                  Rounding rounding = Rounding::Wide, bool track_error = false);

std::vector<std::int64_t> numbers(const Shape& s, const Bindings& env);

}  // namespace lc
