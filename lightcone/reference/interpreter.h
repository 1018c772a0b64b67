// The reference interpreter: the living definition of every operation, and the judge of every
// compiler. Floating values are computed in f64, integers in i64; samples.h says how error bounds are found.
#pragma once

#include <map>
#include <vector>

#include "lightcone/core/graph.h"
#include "lightcone/reference/access.h"
#include "lightcone/reference/samples.h"

namespace lc {

// A value, perhaps with its samples or its error bound. Floats are in f, integers and bools in i.
struct Value {
  DType dtype = DType::F32;
  std::vector<std::int64_t> shape;
  std::vector<double> f;
  std::vector<std::int64_t> i;
  std::vector<Deviations> shift;  // while a graph is judged: how far the samples are from each element; empty: exact
  // Of a result: how far a correct implementation in this type may be from each element (infinity: undecided,
  // because a comparison or a rounding sits on an edge). Empty: exact.
  std::vector<double> error;
  std::vector<Value> parts;  // of a composite with several results, which lie here and nowhere else

  std::size_t size() const { return is_float(dtype) ? f.size() : i.size(); }
  double at(std::size_t k) const { return is_float(dtype) ? f[k] : to_f64(i[k], dtype); }
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
Value evaluate(const Node& n, std::span<const Value> operands, const Bindings& env, Rounding rounding);
Value look_through(const Value& base, const View& view, const Bindings& env);

struct Results {
  std::map<std::string, Value> outputs;
  std::map<std::string, Value> states;  // what each assigned input holds afterwards
};
// Runs a whole graph of leaves, primitives and composites. Time and memory are in proportion to the graph: a product
// that is only summed up is never laid out. `products`: by what part of themselves, or of the largest of some
// neighbours, an implementation may round the factors of sums of products (2^-8: to bf16, or to bytes with a scale).
Results interpret(const Graph& g, const std::map<std::string, Value>& inputs, const Bindings& env = {},
                  Rounding rounding = Rounding::Wide, bool track_error = false, double products = 0);

}  // namespace lc
