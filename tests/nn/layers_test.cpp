// Layers against torch.nn's (tests/goldens/layers.txt, made by tools/make_layer_goldens.py): the names and shapes of their
// parameters, results and gradients, in f64 and compiled.
#include <cmath>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "error_of.h"
#include "lightcone/autograd/autograd.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/nn/attention.h"
#include "lightcone/nn/conv.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "lightcone/verify/verify.h"

using namespace lc;

namespace {

struct Golden {
  std::map<std::string, Value> params, grads;
  std::vector<Value> in;
  Value out;
};

Value numbers(std::istringstream& s) {
  Value v = make_value(DType::F64, {});
  std::string word;
  std::getline(s, word, '[');
  std::getline(s, word, ']');
  std::istringstream shape(word);
  for (std::int64_t n; shape >> n;) v.shape.push_back(n);
  v.f.clear();
  for (double x; s >> x;) v.f.push_back(x);
  return v;
}

std::map<std::string, Golden> goldens() {
  std::ifstream f(std::string(LIGHTCONE_SOURCE) + "/tests/goldens/layers.txt");
  std::map<std::string, Golden> all;
  Golden* now = nullptr;
  for (std::string line; std::getline(f, line);) {
    std::istringstream s(line);
    std::string kind, name;
    s >> kind;
    if (kind == "case") now = &all[line.substr(5)];
    else if (kind == "in") now->in.push_back(numbers(s));
    else if (kind == "out") now->out = numbers(s);
    else s >> name, (kind == "param" ? now->params : now->grads)[name] = numbers(s);
  }
  return all;
}

Tensor cotangent(const Tensor& t) {
  const Dim n = product(t.shape());
  const Tensor k = t.graph().index({n}, Dim::index(0, n), DType::I64) * 7.0 + 3.0;
  return ((to(k % 11.0, DType::F32) - 5.0) / 4.0).reshape(t.shape());
}

double off(const Value& got, const Value& want) {
  EXPECT_EQ(got.shape, want.shape);
  double largest = 1e-3, worst = 0;
  for (const double w : want.f) largest = std::max(largest, std::abs(w));
  for (std::size_t k = 0; k < want.f.size(); ++k) {
    const double error = std::abs(got.f[k] - want.f[k]);
    if (!(error <= worst)) worst = std::isnan(error) ? kInf : error;  // a NaN is as far off as can be
  }
  return worst / largest;
}

// The same layer built, run and differentiated here. `call` gives the result from the layer, the inputs and a mode.
template <class M, class Call>
void check(const std::string& name, M layer, const Call& call) {
  SCOPED_TRACE(name);
  const std::map<std::string, Golden> all = goldens();
  ASSERT_TRUE(all.contains(name));
  const Golden& c = all.at(name);
  Graph g;
  nn::Model<M> model(g, std::move(layer));
  std::map<std::string, Value> inputs;
  std::vector<Tensor> x;
  const auto give = [&](const std::string& input, Value v) {
    v.dtype = DType::F32;  // which holds these numbers exactly
    inputs[input] = std::move(v);
  };
  for (const Value& v : c.in) {
    const std::string input = cat("x", x.size());
    x.push_back(g.input(input, Shape(v.shape.begin(), v.shape.end())));
    give(input, v);
  }
  nn::Inference mode;
  const Tensor y = call(model.module(), x, mode).retrieve("y");
  std::vector<Tensor> parameters = model.parameters();
  EXPECT_EQ(parameters.size(), c.params.size());
  for (const nn::Entry& e : model.entries()) {
    ASSERT_TRUE(c.params.contains(e.name)) << e.name;
    give(e.name, c.params.at(e.name));
  }
  const std::vector<Tensor> d = vjp({y}, parameters, {cotangent(y)});
  for (std::size_t k = 0; k < d.size(); ++k) d[k].retrieve("d " + parameters[k].node().name);
  const auto exact = interpret(g, inputs).outputs;
  const auto compiled = run_values(transform(g, generic() | cpu({.threads = 2})).graph, inputs, {}).outputs;
  // the reference computes in f64, with the constants and the approximations of an f32 graph
  EXPECT_LT(off(exact.at("y"), c.out), 1e-6);
  EXPECT_LT(off(compiled.at("y"), c.out), 1e-5);
  for (const auto& [parameter, grad] : c.grads) {
    EXPECT_LT(off(exact.at("d " + parameter), grad), 1e-6) << parameter;
    EXPECT_LT(off(compiled.at("d " + parameter), grad), 2e-5) << parameter;
  }
}

const auto plain = [](const auto& layer, const std::vector<Tensor>& x, auto&) { return layer(x[0]); };
const auto with_mode = [](const auto& layer, const std::vector<Tensor>& x, auto& mode) { return layer(x[0], mode); };

TEST(Layers, ArePyTorchs) {
  check("Linear", nn::Linear<>(5, 3), plain);
  check("LayerNorm", nn::LayerNorm<>(6), plain);
  check("RMSNorm", nn::RMSNorm<>(6), plain);
  check("GroupNorm", nn::GroupNorm<2>(6), plain);
  check("Conv2d", nn::Conv2d<>(4, 6, 3, {.stride = {2}, .padding = {1}, .groups = 2}), plain);
}

TEST(Layers, AttentionIsPyTorchs) {
  check("MultiheadAttention", nn::MultiheadAttention(8, 2), with_mode);
  check("MultiheadAttention causal", nn::MultiheadAttention(8, 2, {.bias = false, .causal = true}), with_mode);
  check("MultiheadAttention cross", nn::MultiheadAttention(8, 4),
        [](const auto& layer, const std::vector<Tensor>& x, auto& mode) { return layer(x[0], x[1], x[2], mode); });
  const nn::EncoderLayerOptions o{.feedforward = 12, .dropout = 0};
  check("TransformerEncoderLayer", nn::TransformerEncoderLayer(8, 2, o), with_mode);
  check("TransformerEncoder", nn::TransformerEncoder(nn::TransformerEncoderLayer(8, 2, o), 2), with_mode);
  nn::EncoderLayerOptions first = o, causal = o;
  first.norm_first = true, first.activation = nn::Activation::GELU;
  causal.causal = true;
  check("TransformerEncoderLayer norm first", nn::TransformerEncoderLayer(8, 2, first), with_mode);
  check("TransformerEncoderLayer causal", nn::TransformerEncoderLayer(8, 2, causal), with_mode);
}

// With dropout the weights of attention are written out; with none of them dropped the result is the same.
TEST(Layers, AttentionDropsOutWhileItTrains) {
  Graph g;
  nn::Model<nn::MultiheadAttention> tiny(g, nn::MultiheadAttention(8, 2, {.dropout = 1e-9, .causal = true}));
  const auto x = typed::input<float, 2, 5, 8>(g, "x");
  nn::Inference inference;
  nn::Training training(tiny);
  const Tensor a = tiny.module()(x, inference), b = tiny.module()(x, training);
  amax(abs(a - b)).retrieve("off");
  EXPECT_EQ(a.shape(), x.shape());
  Program p = compile(g, generic() | cpu());
  tiny.initialise(p, 1);
  Context c(p);
  std::vector<float> values;
  for (int k = 0; k < 80; ++k) values.push_back(static_cast<float>((k * 37) % 19) / 9 - 1);
  EXPECT_LT(c.set("x", values).run().scalar("off"), 1e-5f);
  EXPECT_PRED2(contains, error_of([] { nn::MultiheadAttention(10, 3); }), "3 heads do not divide a width of 10");
}

}  // namespace
