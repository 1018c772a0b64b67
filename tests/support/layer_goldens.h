// Compares layers with torch.nn's (tests/goldens/layers.txt; tools/make_layer_goldens.py documents its format): names
// and shapes of parameters, results, gradients of parameters and inputs, and running statistics, in f64 and compiled.
// First and second derivatives are compared with central differences.
#pragma once

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "differences.h"
#include "lightcone/autograd/autograd.h"
#include "lightcone/nn/module.h"
#include "lightcone/passes/passes.h"
#include "lightcone/verify/verify.h"
#include "on_device.h"
#include "paths.h"

namespace lc {

// How torch initializes a parameter: uniform in [a, b), normal with mean a and standard deviation b, or constant a.
struct First {
  std::string kind;
  double a = 0, b = 0;
};
struct LayerGolden {
  std::map<std::string, First> first;
  std::map<std::string, Value> params, buffers, after, grads;
  std::vector<Value> in;
  std::map<std::string, Value> din;
  Value out;
};

inline Value golden_numbers(std::istringstream& s, DType type) {
  Value v = make_value(DType::F64, {});
  std::string word;
  std::getline(s, word, '[');
  std::getline(s, word, ']');
  std::istringstream shape(word);
  for (std::int64_t n; shape >> n;) v.shape.push_back(n);
  v.f.clear();
  for (double x; s >> x;) v.f.push_back(x);
  v.dtype = type;
  if (type == DType::I64) v.i.assign(v.f.begin(), v.f.end()), v.f.clear();
  return v;
}

inline const std::map<std::string, LayerGolden>& layer_goldens() {
  static const std::map<std::string, LayerGolden> kept = [] {
    std::ifstream f(std::string(paths::kSource) + "/tests/goldens/layers.txt");
    std::map<std::string, LayerGolden> all;
    LayerGolden* now = nullptr;
    for (std::string line; std::getline(f, line);) {
      std::istringstream s(line);
      std::string kind, name;
      s >> kind;
      if (kind == "case") now = &all[line.substr(5)];
      else if (kind == "in") now->in.push_back(golden_numbers(s, DType::F32));  // f32 holds these numbers exactly
      else if (kind == "ids") now->in.push_back(golden_numbers(s, DType::I64));
      else if (kind == "first") {
        s >> name;
        First& f = now->first[name];
        s >> f.kind >> f.a >> f.b;
      } else if (kind == "out") now->out = golden_numbers(s, DType::F64);
      else {
        s >> name;
        auto& to = kind == "param"    ? now->params
                   : kind == "buffer" ? now->buffers
                   : kind == "after"  ? now->after
                   : kind == "din"    ? now->din
                                      : now->grads;
        to[name] = golden_numbers(s, DType::F32);
      }
    }
    return all;
  }();
  return kept;
}

inline Tensor golden_cotangent(const Tensor& t) {
  const Dim n = product(t.shape());
  const Tensor k = t.graph().index({n}, Dim::index(0, n), DType::I64) * 7.0 + 3.0;
  return ((to(k % 11.0, DType::F32) - 5.0) / 4.0).reshape(t.shape());
}

// Returns the largest absolute error divided by the largest expected magnitude.
inline double off_by(const Value& got, const Value& want) {
  EXPECT_EQ(got.shape, want.shape);
  double largest = 1e-3, worst = 0;
  for (const double w : want.f) largest = std::max(largest, std::abs(w));
  for (std::size_t k = 0; k < want.f.size() && k < got.size(); ++k) {
    const double error = std::abs(got.at(k) - want.f[k]);
    if (!(error <= worst)) worst = std::isnan(error) ? kInf : error;  // a NaN counts as an infinite error
  }
  return worst / largest;
}

// Concatenates the flattened outputs, as the script does.
inline Tensor joined(const std::vector<Tensor>& outputs) {
  std::vector<Tensor> flat;
  for (const Tensor& t : outputs) flat.push_back(flatten(t));
  return concat(flat, 0);
}

// Compares the initial values of a parameter with the same draws of the distribution that torch uses.
inline void check_first(const nn::Entry& e, const First& first, const std::vector<std::int64_t>& shape) {
  const nn::init::Source from{.seed = 5, .parameter = e.name};
  const nn::init::Values have = e.init(shape, from),
                         want = first.kind == "uniform"  ? nn::init::uniform(shape, from, first.a, first.b)
                                : first.kind == "normal" ? nn::init::normal(shape, from, first.a, first.b)
                                                         : nn::init::constant(shape, static_cast<float>(first.a));
  ASSERT_EQ(have.size(), want.size());
  for (std::size_t k = 0; k < have.size(); ++k) {
    if (have[k] == 0 && first.kind == "normal") continue;  // the padding row of an embedding
    EXPECT_NEAR(have[k], want[k], 1e-6) << "the first values of " << e.name;
  }
}

// A layer in a graph with the values of one case. All its names begin with `path`.
template <class M, class Mode, class Call>
struct BuiltLayer {
  nn::Model<M> model;
  std::vector<Tensor> x, wrt;  // wrt: differentiable tensors, parameters first, then floating inputs
  std::vector<std::string> names;
  Tensor y;

  BuiltLayer(Graph& g, const std::string& path, Inputs& inputs, const LayerGolden& c, M layer, const Call& call)
      : model(g, std::move(layer), path) {
    const std::string before = path.empty() ? "" : path + ".";
    for (const Value& v : c.in) {
      const std::string input = str_cat(before, "x", x.size());
      x.push_back(g.input(input, Shape(v.shape.begin(), v.shape.end()), v.dtype));
      inputs[input] = v;
    }
    if constexpr (nn::is_training<Mode>) {
      Mode mode(model);
      y = call(model.module(), x, mode);
    } else {
      Mode mode;
      y = call(model.module(), x, mode);
    }
    wrt = model.parameters();
    for (const Tensor& t : x)
      if (is_float(t.dtype())) wrt.push_back(t);
    for (const Tensor& t : wrt) names.push_back(t.node().name);
    std::set<std::string> have, want;
    for (const auto* all : {&c.params, &c.buffers})
      for (const auto& [name, value] : *all) want.insert(before + name);
    for (const nn::Entry& e : model.entries()) {
      have.insert(e.name);
      const auto& from = e.kind == nn::Entry::Kind::Buffer ? c.buffers : c.params;
      const auto value = from.find(e.name.substr(before.size()));
      if (value == from.end()) continue;
      Value v = value->second;
      if (const auto f = c.first.find(value->first); f != c.first.end()) check_first(e, f->second, v.shape);
      if (!is_float(e.tensor.dtype())) v.i.assign(v.f.begin(), v.f.end()), v.f.clear(), v.dtype = e.tensor.dtype();
      inputs[e.name] = v;
    }
    EXPECT_EQ(have, want) << "the names of the state_dict";
  }
};

// Compares the gradients of sum(y * c) along random directions of every parameter and input with central differences,
// and then the gradients of these gradients.
inline void check_directions(Graph& g, Inputs inputs, const Tensor& y, const std::vector<Tensor>& wrt,
                             const std::vector<std::string>& names, const std::string& what, int orders) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<std::string> constants;
  const auto weighted = [&](const Tensor& t) {
    const std::string name = str_cat("c", constants.size());
    constants.push_back(name);
    Value v = make_value(DType::F64, {});
    for (const Dim& d : t.shape()) v.shape.push_back(*d.constant());
    std::int64_t n = 1;
    for (const auto s : v.shape) n *= s;
    v.f.resize(static_cast<std::size_t>(n));
    for (double& value : v.f) value = uniform(random);
    inputs[name] = v;
    return sum(prim::cast(t, DType::F64) * g.input(name, t.shape(), DType::F64));
  };
  Tensor loss = weighted(y);
  for (int order = 1; order <= orders; ++order) {
    const std::string name = str_cat("loss ", order);
    loss.retrieve(name);
    const std::vector<Tensor> d = gradients(loss, wrt, {.allow_unused = true});
    for (std::size_t k = 0; k < d.size(); ++k) d[k].retrieve(str_cat(name, " d ", names[k]));
    const auto found = interpret(g, inputs).outputs;
    for (std::size_t k = 0; k < d.size(); ++k) {
      const Value at = inputs.at(names[k]), &slope = found.at(str_cat(name, " d ", names[k]));
      double expected = 0, largest = 1;
      std::map<std::string, Value> up = inputs, down = inputs;
      const double h = 1e-6;
      for (std::size_t i = 0; i < at.f.size(); ++i) {
        const double v = uniform(random);
        expected += v * slope.f[i];
        largest = std::max(largest, std::abs(slope.f[i]));
        up[names[k]].f[i] += h * v, down[names[k]].f[i] -= h * v;
      }
      const double difference =
          (interpret(g, up).outputs.at(name).f[0] - interpret(g, down).outputs.at(name).f[0]) / (2 * h);
      EXPECT_NEAR(expected, difference, 2e-5 * largest) << what << ": order " << order << ", " << names[k];
    }
    if (order == orders) break;
    Tensor next;
    for (const Tensor& t : d) {
      const Tensor part = weighted(t);
      next = next.defined() ? next + part : part;
    }
    loss = next;
  }
}

// Collects layers in one graph, with their gradients. check() compiles the graph once and compares all results.
class LayerCases {
 public:
  // Adds a layer. `call` computes the result from the layer, the inputs and a mode. Derivatives up to `orders` are
  // compared with central differences.
  template <class Mode = nn::Inference, class M, class Call>
  void add(const std::string& name, const M& layer, const Call& call, int orders = 2) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(layer_goldens().contains(name));
    const LayerGolden& c = layer_goldens().at(name);
    const std::string path = str_cat("case ", cases_++, " ", name), before = path + ".";
    const BuiltLayer<M, Mode, Call> b(g_, path, inputs_, c, layer, call);
    result(path, b.y, c.out, 1e-5);
    const std::vector<Tensor> d = vjp({b.y}, b.wrt, {golden_cotangent(b.y)}, {.allow_unused = true});
    for (std::size_t k = 0; k < d.size(); ++k) {
      const std::string of = b.names[k].substr(before.size());
      const bool input = !c.grads.contains(of);
      ASSERT_TRUE(!input || c.din.contains(of.substr(1))) << of;
      result(path + " d " + of, d[k], input ? c.din.at(of.substr(1)) : c.grads.at(of), 2e-5);
    }
    for (const auto& [buffer, value] : c.after) after_[before + buffer] = value;
    Graph alone;
    Inputs values;
    const BuiltLayer<M, Mode, Call> again(alone, "", values, c, layer, call);
    check_directions(alone, values, again.y, again.wrt, again.names, name, orders);
  }
  // Compares the reference (f64, with an f32 graph's constants and approximations) and the compiled results with
  // torch's.
  void check() const {
    const Results exact = interpret(g_, inputs_);
    const auto compiled =
        run_values(transform(g_, generic() | test::device({.threads = 2})).graph, inputs_, {}).outputs;
    for (const auto& [name, r] : results_) {
      EXPECT_LT(off_by(exact.outputs.at(name), r.want), 1e-6) << name;
      EXPECT_LT(off_by(compiled.at(name), r.want), r.tolerance) << name << ", compiled";
    }
    for (const auto& [buffer, value] : after_)  // a buffer that is not assigned keeps its value
      EXPECT_LT(off_by(exact.states.contains(buffer) ? exact.states.at(buffer) : inputs_.at(buffer), value), 1e-6)
          << buffer;
  }

 private:
  struct Expected {
    Value want;
    double tolerance;
  };
  void result(const std::string& name, const Tensor& t, const Value& want, double tolerance) {
    t.retrieve(name);
    results_[name] = {want, tolerance};
  }
  Graph g_;
  Inputs inputs_;
  std::map<std::string, Expected> results_;
  std::map<std::string, Value> after_;
  int cases_ = 0;
};

inline const auto one_input = [](const auto& layer, const std::vector<Tensor>& x, auto&) { return layer(x[0]); };
inline const auto with_mode = [](const auto& layer, const std::vector<Tensor>& x, auto& mode) {
  return layer(x[0], mode);
};

}  // namespace lc
