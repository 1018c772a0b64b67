// What rules for single operations see of a module that is being read.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/core/error.h"
#include "lightcone/ops/ops.h"
#include "lightcone/stablehlo/read.h"

namespace lc::stablehlo {

using Integers = std::vector<std::int64_t>;

class Reader;

// What an operation has; it is refused where it has fewer than its rule asks for.
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

// One operation with its operands. Within the body of a reducer scalars may stand for tensors of one shape, for all
// pairs at once: `in` then has more axes than the types say.
struct Call {
  Reader& reader;
  const Operation& op;
  Given<Tensor> in;
  Given<Type> types, results;  // of the operands and the results, as the text says

  const Tensor& x() const;  // the first operand
  bool lifted() const;      // does a tensor stand for a scalar?
  Graph& graph() const;
  [[noreturn]] void refuse(const std::string& why) const;  // this operation is not supported

  bool has(std::string_view attribute) const { return op.find(attribute); }
  Integers integers(std::string_view attribute) const;  // array, list or dense; an Error where there is none
  Integers integers(std::string_view attribute, std::size_t n, std::int64_t otherwise) const;  // n of them
  std::int64_t integer(std::string_view attribute, std::int64_t otherwise) const;
  double number(std::string_view attribute, double otherwise) const;
  bool flag(std::string_view attribute) const;
  std::string word(std::string_view attribute, std::string_view otherwise = {}) const;  // of an enumeration, a string
  const AttributeList& fields(std::string_view attribute) const;                        // of a struct
  DType dtype(std::size_t result = 0) const;
  // A region of so many arguments, which returns so many values: at its end and nowhere else.
  const Block& region(std::size_t k, std::size_t arguments, std::size_t results) const;
};
Integers integers_of(const AttributeList& fields, std::string_view name);
std::int64_t integer_of(const AttributeList& fields, std::string_view name, std::int64_t otherwise);

using Rule = std::vector<Tensor> (*)(const Call&);
using Rules = std::map<std::string_view, Rule>;
// Each file of this folder adds those of its operations.
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
void add_factorisation_calls(Rules& targets);  // of custom calls, by their targets

// Modules rewritten before they are read, so that rules see numbers that a graph has: quantised types and integers of 2
// and 4 bits become integers of whole bytes, complex numbers their parts.
bool hands_on(const Operation& op);  // values to a function, a branch or a loop, and back
bool moves(const Operation& op);     // elements to other places, and changes none
bool has_quantized(const Module& m);
Module expand_quantized(Module m);
bool has_narrow_integers(const Module& m);
Module widen_integers(Module m);
bool is_complex(const Type& t);
bool has_complex(const Module& m);
Module split_complex(Module m, std::string_view entry);  // `entry` is the function that is read
// Operations that the last one makes: [.., 2] into two parts, and back.
inline constexpr const char *kSplitComplex = "lightcone.split_complex", *kJoinComplex = "lightcone.join_complex";

class Reader {
 public:
  Reader(const Module& m, const StableHloOptions& o);
  StableHloProgram run();

  Graph& graph() { return program_.graph; }
  const Module& module() const { return m_; }
  const StableHloOptions& options() const { return o_; }
  static Rule rule(std::string_view name);  // of stablehlo.NAME or chlo.NAME, which there is

  // What a block returns for these arguments. Constants and what it captures are scalars or as they are outside.
  std::vector<Tensor> block(const Block& b, std::span<const Tensor> arguments);
  std::vector<Tensor> function(const std::string& name, std::span<const Tensor> arguments);
  // The body of a reducer on tensors of one shape instead of scalars. `widened`: what its text has as floats of 16 or 8
  // bits is f32.
  std::vector<Tensor> elementwise(const Block& b, std::span<const Tensor> arguments, bool widened = false);
  Tensor value(ValueId id) const { return values_[static_cast<std::size_t>(id)]; }

  Tensor constant(const Attribute& dense);
  // The elements of an integer tensor that depends on constants alone.
  std::optional<Integers> known(const Tensor& t) const;
  void check(const Call& c, const Tensor& actual, const Tensor& expected, StableHloProgram::Check::Kind kind,
             double limit);

 private:
  void operation(const Operation& op);
  std::vector<Tensor> results_of(const Operation& op);
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
  std::map<std::string_view, const Function*> functions_;  // of one name the first
  std::vector<std::string> problems_;
  std::set<std::string> known_problems_;
  std::vector<std::pair<Tensor, Tensor>> checked_;  // actual and expected, of program_.checks
  std::vector<std::string> calls_;                  // functions that are being inlined
  std::int64_t operations_ = 0, values_handed_ = 0;
  int depth_ = 0;   // of blocks that are being read
  int lifted_ = 0;  // within a reducer's body
  bool widened_ = false;
};

// ---- words that several rules use ------------------------------------------------------------------
Shape shape_of(const Integers& extents);
Integers extents(const Tensor& t);                                    // numbers, as all extents here are
bool too_large(const Integers& shape);                                // for a tensor; what is not known counts as one
const Integers& static_shape(const Call& c, std::size_t result = 0);  // as the result's type says it, without '?'
bool is_scalar(const Type& t);
Tensor to_shape(const Tensor& t, const Shape& s);        // a scalar spread, others as they are
Tensor scalar_like(const Tensor& t, double v);           // of t's dtype and shape
Tensor index_along(Graph& g, const Shape& s, int axis);  // i64: the place along an axis
DType signed_of(DType t);                                // of the same size
// `between` elements of `with` between neighbours, `low` in front, `high` behind; negative numbers cut.
Tensor padded(const Tensor& t, const Tensor& with, const Integers& low, const Integers& high, const Integers& between);
// Integers in the order of TOTALORDER: -NaN < -infinity < ... < -0 < +0 < ... < NaN.
Tensor total_order(const Tensor& x);
// A body that is one operation of its two arguments, by its name; "second" for one that returns its second argument.
std::string simple_reducer(const Block& b);
// Undefined: there is no such one. Sums and products of halves are of f32 still.
Tensor reduced(const std::string& reducer, const Tensor& t, const std::vector<int>& axes);
// t, which was reduced without it, joined with the start value; it has that one's type then.
std::vector<Tensor> from_start(Reader& r, const Block& body, const Tensor& start, const Tensor& t);
// Tensors reduced over an axis by a body, in a tree; `init` are scalars.
std::vector<Tensor> fold(Reader& r, const Block& body, std::vector<Tensor> xs, std::vector<Tensor> init,
                         std::span<const int> axes);

}  // namespace lc::stablehlo
