// Session: builds a graph, sets its inputs, compiles it, runs it and reads the results.
//
//   Session cx;
//   auto a = cx.tensor<3, 1>().set({{1}, {2}, {3}});
//   auto b = cx.tensor<1, 4>().set({{1, 2, 3, 4}});
//   auto c = a.matmul(b).retrieve();
//   cx.compile(generic() | cpu());
//   cx.execute();
//   std::cout << cx.str(c) << '\n';  // cx.data(c) has the numbers
//
// Weights are parameters: cx.parameter<784, 128>("fc1.weight"), filled by set() or all at once by cx.load(file). They
// keep their values from run to run, so values that depend only on them are computed once, and products read them
// packed.
//
// A Session is a thin layer over Graph, compile() and Context for small programs and for learning. Its tensors are
// typed (ops/typed/typed.h).
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lightcone/core/array_view.h"
#include "lightcone/ops/typed/typed.h"

namespace lc {

class Compiler;
class Program;
class Session;

namespace typed {

// Sets the value of an input of a session: elements in row-major order, or an array.
void put(Session& s, const lc::Tensor& input, const void* data, std::size_t elements);
void put(Session& s, const lc::Tensor& input, const ArrayView& array);

// An input of a session, with a static type.
template <class E, Dim... D>
class Variable : public Tensor<E, D...> {
 public:
  Variable(Tensor<E, D...> t, Session* s) : Tensor<E, D...>(t), session_(s) {}
  // Sets the value from rows of literals or from all elements in row-major order. Numbers of elements are checked at
  // compile time if the type has them, otherwise at run time.
  template <std::size_t N>
    requires(sizeof...(D) != 2)
  Variable& set(const E (&v)[N]) {
    require<counts(N)>();
    return put(v, N);
  }
  template <std::size_t R, std::size_t C>
    requires(sizeof...(D) == 2)
  Variable& set(const E (&v)[R][C]) {
    constexpr Shape s = Tensor<E, D...>::static_shape;
    constexpr Shape given{{static_cast<long>(R), static_cast<long>(C)}, 2};
    require<!differ(s.d[0], given.d[0]) && !differ(s.d[1], given.d[1])
                ? Text()
                : Text("set: rows of ").add(given).add(" for a tensor of ").add(s)>();
    return put(&v[0][0], R * C);
  }
  // Sets the value from an array of a file or a data set. Throws Error if shape or element type differ.
  Variable& set(const ArrayView& array) {
    typed::put(*session_, *this, array);
    return *this;
  }
  // Sets the value from a contiguous range of all elements in row-major order.
  template <class Range>
    requires requires(const Range& v) { std::data(v), std::size(v); }
  Variable& set(const Range& v) {
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(*std::data(v))>, E>,
                  "set: elements of another type than the tensor's");
    if constexpr (requires { std::tuple_size<Range>::value; }) require<counts(std::tuple_size<Range>::value)>();
    return put(std::data(v), std::size(v));
  }

 private:
  static consteval Text counts(std::size_t given) {
    constexpr Shape s = Tensor<E, D...>::static_shape;
    std::int64_t n = 1;
    for (int i = 0; i < s.rank; ++i) {
      if (!s.d[i].number()) return {};
      n *= s.d[i].n;
    }
    return n == static_cast<std::int64_t>(given)
               ? Text()
               : Text("set: ").add(static_cast<std::int64_t>(given)).add(" elements for a tensor of ").add(s);
  }
  Variable& put(const E* v, std::size_t n) {
    typed::put(*session_, *this, v, n);
    return *this;
  }
  Session* session_;
};

}  // namespace typed

// A graph with its program and context. See the top of this file.
class Session {
 public:
  Session();
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // The graph to which inputs and operations are added.
  Graph& graph();
  // Adds an f32 input. `dims` gives the symbolic extents; see typed::input().
  template <typed::Dim... D>
  auto tensor(std::initializer_list<Dim> dims = {}, const typed::At& at = typed::At::current()) {
    return typed::Variable<float, D...>(typed::input<float, D...>(graph(), next_name().c_str(), dims, at), this);
  }
  // Adds an input of element type E.
  template <class E, typed::Dim... D>
  auto tensor(std::initializer_list<Dim> dims = {}, const typed::At& at = typed::At::current()) {
    return typed::Variable<E, D...>(typed::input<E, D...>(graph(), next_name().c_str(), dims, at), this);
  }
  // Adds a weight: an f32 input (or one of element type E) that keeps its value from run to run. Throws Error if the
  // name is taken.
  template <typed::Dim... D>
  auto parameter(const char* name, std::initializer_list<Dim> dims = {}, const typed::At& at = typed::At::current()) {
    return parameter<float, D...>(name, dims, at);
  }
  // Adds a weight of element type E. Throws Error if the name is taken.
  template <class E, typed::Dim... D>
  auto parameter(const char* name, std::initializer_list<Dim> dims = {}, const typed::At& at = typed::At::current()) {
    using T = typed::Tensor<E, D...>;
    return typed::Variable<E, D...>(
        T::from(typed::make_input(graph(), name, T::static_shape, T::static_dtype, dims, at, true), at), this);
  }
  // Loads all parameters of the graph, including those of an nn::Model in it, by name. Throws Error if a parameter is
  // missing in `tensors`, if a shape or element type differs, or, unless `strict` is false, if a name is not that of a
  // parameter.
  Session& load(const std::map<std::string, ArrayView, std::less<>>& tensors, bool strict = true);
  // The same from a checkpoint: safetensors, GGUF, or a folder of safetensors. Floating tensors of other types are
  // converted. This function and save() are in lightcone::io.
  Session& load(const std::string& path, bool strict = true);
  // Saves all parameters as safetensors.
  void save(const std::string& path) const;
  // The values of all parameters as they were set or loaded. Throws Error if a parameter has no value.
  std::map<std::string, ArrayView, std::less<>> parameters() const;

  // Compiles the graph. A previous program is replaced; inputs and states keep their values, and tensors stay valid.
  Session& compile(const Compiler& c);
  // Sets the value of a symbolic extent for the next runs, before or after compiling. Throws Error if no input has an
  // extent of this name, or if the value is outside its bounds.
  Session& bind(std::string_view name, std::int64_t value);
  // Runs the program once. Throws Error if the session was not compiled.
  Session& execute();

  // The values of a result in row-major order: 64-bit integers for integer and bool tensors, doubles for f64, floats
  // for all others. Throws Error if the tensor was not retrieved before compile().
  std::vector<float> data(const Tensor& result) const;
  // The values of a typed result, with the element type given above.
  template <class E, typed::Dim... D>
  auto data(const typed::Tensor<E, D...>& result) const {
    if constexpr (!typed::kFloating<E>) return data_i64(result);
    else if constexpr (std::is_same_v<E, double>) return data_f64(result);
    else return data(static_cast<const Tensor&>(result));
  }
  // A result as text, as PyTorch prints it: one row per line, columns aligned.
  std::string str(const Tensor& result) const;
  // The compiled program. Throws Error if the session was not compiled.
  const Program& program() const;

  // Sets the value of an input. Throws Error if the number of elements, the shape or the element type do not match.
  void put(const Tensor& input, const void* data, std::size_t elements);
  void put(const Tensor& input, const ArrayView& array);

 private:
  std::vector<std::int64_t> data_i64(const Tensor& result) const;
  std::vector<double> data_f64(const Tensor& result) const;
  std::string next_name();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lc
