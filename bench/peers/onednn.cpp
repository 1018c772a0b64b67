// oneDNN as a peer: matrix products with the weight reordered once into the library's layout. bench/setup-peers builds
// it against the oneDNN that it found; it uses the protocol of bench/runner/protocol.cpp.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>

#include <oneapi/dnnl/dnnl.hpp>

#include "protocol.h"

namespace lc::bench {
namespace {

using dnnl::memory;
using Type = memory::data_type;

class Product {
 public:
  // x [m, n] times the transpose of a weight [n, n].
  Product(const std::string& dtype, std::int64_t m, std::int64_t n)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_), count_(static_cast<std::size_t>(m * n)) {
    const bool int8 = dtype == "int8";
    const Type type = int8 ? Type::s8 : dtype == "bf16" ? Type::bf16 : Type::f32;
    const memory::dims dims{n, n}, rows{m, n};
    const memory::desc any(dims, type, memory::format_tag::any), plain(rows, type, memory::format_tag::ab);
    const memory::desc result(rows, int8 ? Type::s32 : Type::f32, memory::format_tag::ab);
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc d(engine_, plain, any, result);
#else
    const dnnl::matmul::primitive_desc d(dnnl::matmul::desc(plain, any, result), engine_);
#endif
    implementation_ = d.impl_info_str();
    product_ = dnnl::matmul(d);
    const std::vector<float> x = int8 ? whole("x", count_) : input_values("x", count_);
    // y = x w^T: the weight [out, in] is the transpose of matmul's second operand
    const std::vector<float> w = int8 ? whole("w", static_cast<std::size_t>(n * n)) : parameter_values("w", {n, n});
    memory x32(memory::desc(rows, Type::f32, memory::format_tag::ab), engine_, const_cast<float*>(x.data()));
    memory w32(memory::desc(dims, Type::f32, memory::format_tag::ba), engine_, const_cast<float*>(w.data()));
    x_ = memory(plain, engine_), w_ = memory(d.weights_desc(), engine_), y_ = memory(result, engine_);
    memory narrow(memory::desc(dims, type, memory::format_tag::ba), engine_);  // rounded first, then packed
    dnnl::reorder(x32, x_).execute(stream_, x32, x_);
    dnnl::reorder(w32, narrow).execute(stream_, w32, narrow);
    dnnl::reorder(narrow, w_).execute(stream_, narrow, w_);
    stream_.wait();
    arguments_ = {{DNNL_ARG_SRC, x_}, {DNNL_ARG_WEIGHTS, w_}, {DNNL_ARG_DST, y_}};
    int8_ = int8;
  }
  void call() {
    product_.execute(stream_, arguments_);
    stream_.wait();
  }
  Json answer() {
    std::vector<float> v(count_);
    const void* data = y_.get_data_handle();
    for (std::size_t i = 0; i < v.size(); ++i)
      v[i] = int8_ ? static_cast<float>(static_cast<const std::int32_t*>(data)[i]) : static_cast<const float*>(data)[i];
    return summary(v);
  }
  Json facts() const { return {{"note", implementation_}}; }

 private:
  static std::vector<float> whole(const char* name, std::size_t count) {
    std::vector<float> v = input_values(name, count, 127);
    for (float& f : v) f = std::trunc(f);
    return v;
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  std::size_t count_;  // numbers of x, and of the result
  bool int8_ = false;
  std::string implementation_;
  dnnl::matmul product_;
  memory x_, w_, y_;
  std::unordered_map<int, memory> arguments_;
};

class OneDnn final : public Workload {
 public:
  explicit OneDnn(const Json& w)
      : product_(w.at("dtype").get<std::string>(), w.at(w.contains("m") ? "m" : "n").get<std::int64_t>(),
                 w.at("n").get<std::int64_t>()) {}
  void call() override { product_.call(); }
  Json answer() override { return product_.answer(); }
  Json facts() override { return product_.facts(); }

 private:
  Product product_;
};

std::unique_ptr<Workload> make(const Json& w) {
  if (w.at("kind") != "gemm") throw std::runtime_error("this runner multiplies matrices only");
  return std::make_unique<OneDnn>(w);
}
std::string version() {
  const dnnl_version_t* v = dnnl_version();
  return "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
}

}  // namespace
}  // namespace lc::bench

int main() { return lc::bench::serve({lc::bench::make, lc::bench::version()}); }
