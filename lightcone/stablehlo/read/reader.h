// The interface between the reader of a module and the rules for single operations.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/base/error.h"
#include "lightcone/ops/ops.h"
#include "lightcone/readers/known_values.h"
#include "lightcone/stablehlo/read.h"

namespace lc::stablehlo {

using Integers = std::vector<std::int64_t>;

class Reader;

// The operands or results of an operation. Access beyond their number throws an Error, which refuses the operation.
template <class T>
class Given : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  const T& operator[](std::size_t k) const { return at(k); }
  const T& at(std::size_t k) const {
    if (k >= this->size()) throw Error("", str_cat("has too few operands or results: ", this->size()));
    return std::vector<T>::operator[](k);
  }
  const T& front() const { return at(0); }
  const T& back() const { return at(this->size() - 1); }
};

// One operation with its operands. Inside of a reducer's body, tensors of one shape may stand for scalars, for all
// pairs at once: `in` then has more axes than the types.
struct Call {
  Reader& reader;
  const Operation& op;
  Given<Tensor> in;
  Given<Type> types, results;  // types of the operands and the results in the text

  const Tensor& x() const;  // the first operand
  bool lifted() const;      // whether a tensor stands for a scalar
  Graph& graph() const;
  [[noreturn]] void refuse(const std::string& why) const;  // throws Error: this operation is not supported

  bool has(std::string_view attribute) const { return op.find(attribute); }
  Integers integers(std::string_view attribute) const;  // array, list or dense; throws Error if missing
  Integers integers(std::string_view attribute, std::size_t n, std::int64_t otherwise) const;  // `n` numbers
  std::int64_t integer(std::string_view attribute, std::int64_t otherwise) const;
  double number(std::string_view attribute, double otherwise) const;
  bool flag(std::string_view attribute) const;
  std::string word(std::string_view attribute, std::string_view otherwise = {}) const;  // an enumeration or a string
  const AttributeList& fields(std::string_view attribute) const;                        // a struct
  DType dtype(std::size_t result = 0) const;
  // Returns a region. Throws Error unless it has this many arguments and returns this many values, at its end and
  // nowhere else.
  const Block& region(std::size_t k, std::size_t arguments, std::size_t results) const;
};
Integers integers_of(const AttributeList& fields, std::string_view name);
std::int64_t integer_of(const AttributeList& fields, std::string_view name, std::int64_t otherwise);

using Rule = std::vector<Tensor> (*)(const Call&);
using Rules = std::map<std::string_view, Rule>;
// Each file of this folder adds the rules of its operations.
void add_elementwise(Rules& r);
void add_complex(Rules& r);
void add_quantized(Rules& r);
void add_narrow_integers(Rules& r);
void add_bits(Rules& r);
void add_shapes(Rules& r);
void add_slices(Rules& r);
void add_reductions(Rules& r);
void add_windows(Rules& r);
void add_products(Rules& r);
void add_norms(Rules& r);
void add_collectives(Rules& r);
void add_gather_scatter(Rules& r);
void add_sort(Rules& r);
void add_control(Rules& r);
void add_random(Rules& r);
void add_checks(Rules& r);
void add_factorisation_calls(Rules& targets);  // rules of custom calls, by their targets

// Rewriting of modules before they are read, so that rules see numbers that a graph has: quantised types and integers
// of 2 and 4 bits become integers of whole bytes, complex numbers become their parts.
bool hands_on(const Operation& op);  // passes values to a function, a branch or a loop, and back
bool moves(const Operation& op);     // moves elements without changing them
bool has_quantized(const Module& m);
Module expand_quantized(Module m);
bool has_narrow_integers(const Module& m);
Module widen_integers(Module m);
bool is_complex(const Type& t);
bool has_complex(const Module& m);
Module split_complex(Module m, std::string_view entry);  // `entry` is the function that is read
// Operations that split_complex() creates: [.., 2] to two parts, and back.
inline constexpr const char *kSplitComplex = "lightcone.split_complex", *kJoinComplex = "lightcone.join_complex";

using Problems = std::vector<std::string>;

class Reader {
 public:
  // With `surveyed`, run() leaves in it what is not supported, and neither throws an Error of it nor returns a program.
  Reader(const Module& m, const StableHloOptions& o, Problems* surveyed = nullptr);
  StableHloProgram run();

  Graph& graph() { return program_.graph; }
  const Module& module() const { return m_; }
  const StableHloOptions& options() const { return o_; }
  static Rule rule(std::string_view name);  // rule of stablehlo.NAME or chlo.NAME, which must exist

  // Returns the results of a block for these arguments. Constants and captured values are scalars or have their outer
  // shape.
  std::vector<Tensor> block(const Block& b, std::span<const Tensor> arguments);
  std::vector<Tensor> function(const std::string& name, std::span<const Tensor> arguments);
  // Applies the body of a reducer to tensors of one shape instead of scalars. `widened`: floats of 16 or 8 bits in its
  // text are f32.
  std::vector<Tensor> elementwise(const Block& b, std::span<const Tensor> arguments, bool widened = false);
  Tensor value(ValueId id) const { return values_[static_cast<std::size_t>(id)]; }

  Tensor constant(const Attribute& dense);
  // Returns the elements of an integer tensor that depends on constants alone.
  std::optional<Integers> known(const Tensor& t);
  void check(const Call& c, const Tensor& actual, const Tensor& expected, StableHloProgram::Check::Kind kind,
             double limit);

 private:
  std::optional<ArrayView> constant_data(const std::string& name) const;
  void operation(const Operation& op);
  std::vector<Tensor> results_of(const Operation& op);
  Tensor stand_in(ValueId result_of_an_unsupported_operation);
  void hold_against_types(const Operation& op, const std::vector<Tensor>& results) const;
  void problem(Place at, const std::string& what);
  void inputs(const Function& f);
  Type bound_type(const std::string& name, int k, const Type& t) const;
  Tensor size(const std::string& name, std::int64_t value, const Type& t);
  void outputs(const Function& f, const std::vector<Tensor>& results);

  const Module& m_;
  const StableHloOptions& o_;
  StableHloProgram program_;
  std::vector<Tensor> values_;
  std::map<std::string_view, const Function*> functions_;  // the first function of each name
  Problems problems_;
  Problems* surveyed_;
  readers::KnownValues known_{[this](const std::string& name) { return constant_data(name); }};
  std::set<std::string> known_problems_;
  std::vector<std::pair<Tensor, Tensor>> checked_;  // actual and expected values of program_.checks
  std::vector<std::string> calls_;                  // functions that are being inlined
  std::int64_t operations_ = 0, values_handed_ = 0;
  int depth_ = 0;   // nesting of blocks that are being read
  int lifted_ = 0;  // nesting of reducer bodies
  bool widened_ = false;
};

// ---- words that several rules use ------------------------------------------------------------------
Shape shape_of(const Integers& extents);
Integers extents(const Tensor& t);                                    // constants, like all extents here
bool too_large(const Integers& shape);                                // for a tensor; unknown extents count as one
const Integers& static_shape(const Call& c, std::size_t result = 0);  // shape of the result's type, without '?'
bool is_scalar(const Type& t);
Tensor to_shape(const Tensor& t, const Shape& s);        // broadcasts a scalar; other tensors have the shape already
Tensor scalar_like(const Tensor& t, double v);           // v in t's dtype and shape
Tensor index_along(Graph& g, const Shape& s, int axis);  // i64: the index along an axis
DType signed_of(DType t);                                // the signed type of the same size
// Inserts `between` elements of `with` between neighbours, `low` before and `high` after them; negative numbers cut.
Tensor padded(const Tensor& t, const Tensor& with, const Integers& low, const Integers& high, const Integers& between);
// Maps floats to integers in the order of TOTALORDER: -NaN < -infinity < ... < -0 < +0 < ... < NaN.
Tensor total_order(const Tensor& x);
// Returns the name of the operation if a body is a single operation of its two arguments, or "second" if it returns its
// second argument.
std::string simple_reducer(const Block& b);
// Reduces by a named reducer. Returns an undefined tensor for an unknown one. Sums and products of halves are f32.
Tensor reduced(const std::string& reducer, const Tensor& t, const std::vector<int>& axes);
// Combines t, which was reduced without it, with the start value and converts it to that value's type.
std::vector<Tensor> from_start(Reader& r, const Block& body, const Tensor& start, const Tensor& t);
// Reduces tensors over axes by a body, as a tree; `init` are scalars.
std::vector<Tensor> fold(Reader& r, const Block& body, std::vector<Tensor> xs, std::vector<Tensor> init,
                         std::span<const int> axes);

}  // namespace lc::stablehlo
