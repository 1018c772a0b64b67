// Session: write a graph, set its inputs, compile it, run it, look at the results.
//
//   Session cx;
//   auto a = cx.tensor<3, 1>().set({{1}, {2}, {3}});
//   auto b = cx.tensor<1, 4>().set({{1, 2, 3, 4}});
//   auto c = a.matmul(b).retrieve();
//   cx.compile(generic() | cpu());
//   cx.execute();
//   std::cout << cx.str(c) << '\n';  // cx.data(c) has the numbers
//
// Weights are parameters: cx.parameter<784, 128>("fc1.weight"), filled by set() or, all at once, by cx.load(file). They
// stay the same from run to run, so what depends on them alone is computed once, and products read them packed.
//
// A thin shim over Graph, compile() and Context for small programs and for learning; its tensors
// are typed (ops/typed/typed.h).
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

void put(Session& s, const lc::Tensor& input, const void* data, std::size_t elements);
void put(Session& s, const lc::Tensor& input, const ArrayView& array);

// An input of a session.
template <class E, Dim... D>
class Variable : public Tensor<E, D...> {
 public:
  Variable(Tensor<E, D...> t, Session* s) : Tensor<E, D...>(t), session_(s) {}
  // Rows as they are written, or all elements in row-major order. What can be counted is counted
  // when this compiles, the rest when it runs.
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
  // An array of a file or a data set. Error where its shape or element type is not the tensor's.
  Variable& set(const ArrayView& array) {
    typed::put(*session_, *this, array);
    return *this;
  }
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

class Session {
 public:
  Session();
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Graph& graph();
  template <typed::Dim... D>
  auto tensor(std::initializer_list<Dim> dims = {}, const typed::At& at = typed::At::current()) {
    return typed::Variable<float, D...>(typed::input<float, D...>(graph(), next_name().c_str(), dims, at), this);
  }
  template <class E, typed::Dim... D>
  auto tensor(std::initializer_list<Dim> dims = {}, const typed::At& at = typed::At::current()) {
    return typed::Variable<E, D...>(typed::input<E, D...>(graph(), next_name().c_str(), dims, at), this);
  }
  // A weight: an f32 input (or one of elements E) that keeps its value from run to run. Error for a name that is taken.
  template <typed::Dim... D>
  auto parameter(const char* name, std::initializer_list<Dim> dims = {}, const typed::At& at = typed::At::current()) {
    return parameter<float, D...>(name, dims, at);
  }
  template <class E, typed::Dim... D>
  auto parameter(const char* name, std::initializer_list<Dim> dims = {}, const typed::At& at = typed::At::current()) {
    using T = typed::Tensor<E, D...>;
    return typed::Variable<E, D...>(
        T::from(typed::make_input(graph(), name, T::static_shape, T::static_dtype, dims, at, true), at), this);
  }
  // All parameters of the graph (those of an nn::Model in it, too) by name. Error where one is missing, has another
  // shape or element type, and, unless `strict` is false, for a name that is not a parameter.
  Session& load(const std::map<std::string, ArrayView, std::less<>>& tensors, bool strict = true);
  // The same from a checkpoint: safetensors, GGUF, or a folder of the first. Floating tensors of other types are
  // converted. Safetensors to save. (These two are in lightcone::io.)
  Session& load(const std::string& path, bool strict = true);
  void save(const std::string& path) const;
  // The values of all parameters, as they were set or loaded. Error where one has none.
  std::map<std::string, ArrayView, std::less<>> parameters() const;

  // Replaces what was compiled before; inputs keep their values, handles stay valid.
  Session& compile(const Compiler& c);
  // What a named extent is in the next runs; before or after compiling.
  Session& bind(std::string_view name, std::int64_t value);
  Session& execute();

  // Values of a result in row-major order. Integer and bool tensors give 64-bit integers, f64
  // doubles, all others floats.
  std::vector<float> data(const Tensor& result) const;
  template <class E, typed::Dim... D>
  auto data(const typed::Tensor<E, D...>& result) const {
    if constexpr (!typed::kFloating<E>) return data_i64(result);
    else if constexpr (std::is_same_v<E, double>) return data_f64(result);
    else return data(static_cast<const Tensor&>(result));
  }
  std::string str(const Tensor& result) const;  // as PyTorch prints it: a row a line, columns aligned
  const Program& program() const;

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
