// Convolutions, pools and recurrent layers of ONNX give ONNX Runtime's answers (1.32), with sizes that are numbers and
// sizes that inputs bind, and say what does not fit.
#include <span>

#include <gtest/gtest.h>

#include "error_of.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/onnx/onnx.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "write_model.h"

using namespace lc;
using lc::onnx::ElementType;
using lc::test::AttributeSpec;
using lc::test::ModelWriter;

namespace {

// An input: its values in a period of 11, (7 k + 3) mod 11 - 5 quarters, as those whose answers are below.
struct Input {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
  Input(std::vector<std::int64_t> s) : shape(std::move(s)) {
    std::int64_t n = 1;
    for (const std::int64_t d : shape) n *= d;
    for (std::int64_t k = 0; k < n; ++k) values.push_back(static_cast<float>((k * 7 + 3) % 11 - 5) / 4);
  }
};

struct Layer {
  std::string op;
  std::int64_t opset;
  std::vector<AttributeSpec> attributes;
  std::vector<Input> in;                   // x0, x1, ...; an empty shape: absent
  std::vector<std::string> symbols = {};   // names of the extents of x0; "": the number
  std::vector<std::int32_t> lengths = {};  // the operand 4 of recurrent layers
  std::size_t results = 1;
};
struct Answer {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

std::string bytes_of(const Layer& l) {
  ModelWriter m;
  m.opset(l.opset);
  std::vector<std::string> inputs, outputs;
  for (std::size_t k = 0; k < l.in.size(); ++k) {
    const std::string name = str_cat("x", k);
    inputs.push_back(l.in[k].shape.empty() && !(k == 4 && !l.lengths.empty()) ? "" : name);
    if (inputs.back().empty()) continue;
    if (k == 4 && !l.lengths.empty()) {
      m.constant(name, l.lengths, {static_cast<std::int64_t>(l.lengths.size())});
      continue;
    }
    std::vector<ModelWriter::ExtentSpec> shape;
    for (std::size_t d = 0; d < l.in[k].shape.size(); ++d) {
      const bool named = k == 0 && d < l.symbols.size() && !l.symbols[d].empty();
      shape.push_back(named ? ModelWriter::ExtentSpec(l.symbols[d].c_str())
                            : ModelWriter::ExtentSpec(static_cast<int>(l.in[k].shape[d])));
    }
    m.input(name, ElementType::Float, shape);
  }
  for (std::size_t k = 0; k < l.results; ++k) outputs.push_back(str_cat("y", k));
  m.node(l.op, inputs, outputs, l.attributes);
  for (const std::string& y : outputs) m.output(y);
  return m.bytes();
}

std::vector<Answer> answers(const Layer& l) {
  const std::string file = bytes_of(l);
  const OnnxProgram m = read_onnx(std::as_bytes(std::span(file)), {.most_extent = 64});
  Program p = compile(m.graph, generic() | cpu({.threads = 1, .compiler = false}));
  m.load_weights(p);
  Context c(p);
  for (const OnnxProgram::Port& port : m.inputs) {
    const Input& v = l.in[static_cast<std::size_t>(std::stoi(port.name.substr(1)))];
    c.set(port.name, ArrayView{DType::F32, v.shape, std::as_bytes(std::span(v.values))});
  }
  c.run();
  std::vector<Answer> r;
  for (const OnnxProgram::Port& port : m.outputs) {
    r.push_back({c.shape(port.name), {}});
    if (port.dtype == DType::F32) r.back().values = c.get(port.name);
    else
      for (const std::int64_t n : c.get_i64(port.name)) r.back().values.push_back(static_cast<float>(n));
  }
  return r;
}

void expect(const Layer& l, const std::vector<Answer>& want) {
  const std::vector<Answer> got = answers(l);
  ASSERT_EQ(got.size(), want.size()) << l.op;
  for (std::size_t k = 0; k < got.size(); ++k) {
    EXPECT_EQ(got[k].shape, want[k].shape) << l.op << ' ' << k;
    ASSERT_EQ(got[k].values.size(), want[k].values.size()) << l.op << ' ' << k;
    for (std::size_t n = 0; n < want[k].values.size(); ++n)
      EXPECT_NEAR(got[k].values[n], want[k].values[n], 1e-5) << l.op << ' ' << k << ' ' << n;
  }
}
// The same answer with an image whose extents are numbers, and with one whose extents the input binds.
void expect_of_image(Layer l, const std::vector<Answer>& want) {
  expect(l, want);
  l.symbols = {"n", "", "h", "w"};
  expect(l, want);
}

using Numbers = std::vector<std::int64_t>;
const Input kImage({1, 1, 5, 5}), kFilter({1, 1, 2, 2});

TEST(OnnxLayers, ConvPads) {
  expect_of_image({"Conv", 11, {{"auto_pad", "SAME_UPPER"}, {"strides", Numbers{2, 2}}}, {kImage, kFilter}},
                  {{{1, 1, 3, 3}, {2.5625, -0.6875, -0.8125, -0.625, -1.125, 0.3125, 1.25, 1.8125, -0.125}}});
  expect_of_image({"Conv", 11, {{"auto_pad", "SAME_LOWER"}, {"strides", Numbers{2, 2}}}, {kImage, kFilter}},
                  {{{1, 1, 3, 3}, {0.375, 0.125, -0.9375, -0.375, 0.375, -0.8125, 2.1875, -0.75, -0.5625}}});
  expect_of_image({"Conv", 11, {{"auto_pad", "VALID"}, {"strides", Numbers{2, 2}}}, {kImage, kFilter}},
                  {{{1, 1, 2, 2}, {2.5625, -0.6875, -0.625, -1.125}}});
  expect_of_image(
      {"Conv", 11, {{"pads", Numbers{1, 0, 0, 2}}, {"dilations", Numbers{2, 1}}}, {kImage, kFilter}},
      {{{1, 1, 4, 6}, {0.75, -0.8125, 0.375, 0.875,   -0.3125, 0, 2.3125,  -1.375, -0.9375, 2.25,    -0.6875, 0,
                       -1,   2.1875,  -1.5,  -1.0625, 0.5625,  0, -1.5625, 2.3125, -1.375,  -0.9375, 0.4375,  0}}});
}

TEST(OnnxLayers, ConvTransposeCutsAndExtends) {
  const std::vector<Input> in{Input({1, 1, 2, 3}), Input({1, 1, 3, 2})};
  expect_of_image({"ConvTranspose", 11, {{"strides", Numbers{2, 2}}, {"output_shape", Numbers{4, 5}}}, in},
                  {{{1, 1, 4, 5}, {0.375,  0.3125, -0.9375, 0.0625, -0.1875, -0.9375, 0.75, 1.25, 0.25, 0,
                                   0.5625, 0.25,   -0.75,   0,      0,       0,       1,    0,    0,    0}}});
  expect_of_image(
      {"ConvTranspose",
       11,
       {{"strides", Numbers{2, 2}}, {"pads", Numbers{1, 0, 0, 1}}, {"output_padding", Numbers{1, 0}}},
       in},
      {{{1, 1, 5, 5}, {-0.125, 0.375, 0.3125, -0.9375, 0.0625, -0.125, -0.9375, 0.75, 1.25, 0.25, -0.1875, 0.5625, 0.25,
                       -0.75,  0,     -0.75,  0,       1,      0,      0,       0,    0,    0,    0,       0}}});
}

TEST(OnnxLayers, Pools) {
  expect_of_image({.op = "MaxPool",
                   .opset = 12,
                   .attributes = {{"kernel_shape", Numbers{2, 3}},
                                  {"strides", Numbers{2, 1}},
                                  {"pads", Numbers{1, 0, 0, 1}},
                                  {"storage_order", 1}},
                   .in = {kImage},
                   .results = 2},
                  {{{1, 1, 3, 4}, {1.25, 1.25, 1, 1, 1.25, 1.25, 1.25, 0.25, 1, 1.25, 1.25, 1.25}},
                   {{1, 1, 3, 4}, {5, 5, 20, 20, 12, 12, 12, 17, 3, 19, 19, 19}}});
  expect_of_image(
      {"MaxPool", 12, {{"kernel_shape", Numbers{3, 3}}, {"strides", Numbers{3, 3}}, {"ceil_mode", 1}}, {kImage}},
      {{{1, 1, 2, 2}, {1.25, 1, 1, 1.25}}});
  std::vector<AttributeSpec> a{{"kernel_shape", Numbers{3, 2}},
                               {"strides", Numbers{2, 3}},
                               {"ceil_mode", 1},
                               {"pads", Numbers{1, 1, 1, 0}},
                               {"dilations", Numbers{1, 2}}};
  expect_of_image({"AveragePool", 19, a, {kImage}}, {{{1, 1, 3, 2}, {0.125, 0.1875, -0.5, -0.20833333, 0.25, -0.375}}});
  a.emplace_back("count_include_pad", 1);
  expect_of_image({"AveragePool", 19, a, {kImage}},
                  {{{1, 1, 3, 2}, {0.04166667, 0.125, -0.25, -0.20833333, 0.08333334, -0.25}}});
  expect_of_image({"LpPool", 11, {{"kernel_shape", Numbers{2, 2}}, {"strides", Numbers{2, 2}}, {"p", 3}}, {kImage}},
                  {{{1, 1, 2, 2}, {1.454662, 0.95646560, 1.0772173, 1.5023112}}});
}

// Lengths, clipping, peepholes, a direction backwards, both directions with their own activations.
TEST(OnnxLayers, Recurrent) {
  const Input x({3, 2, 2});
  const Layer lstm{.op = "LSTM",
                   .opset = 14,
                   .attributes = {{"hidden_size", 1}, {"direction", "reverse"}, {"clip", 0.5}},
                   .in = {x, {{1, 4, 2}}, {{1, 4, 1}}, {{1, 8}}, {{}}, {{1, 2, 1}}, {{1, 2, 1}}, {{1, 3}}},
                   .lengths = {3, 2},
                   .results = 3};
  const std::vector<Answer> want{{{3, 1, 2, 1}, {0.064816065, 0.10209606, -0.24859095, 0.39888847, -0.18561269, 0}},
                                 {{1, 2, 1}, {0.064816065, 0.10209606}},
                                 {{1, 2, 1}, {0.12798792, 0.16551554}}};
  expect(lstm, want);
  Layer any_batch = lstm;
  any_batch.symbols = {"", "batch", ""};
  expect(any_batch, want);
  expect({.op = "GRU",
          .opset = 14,
          .attributes = {{"hidden_size", 1},
                         {"direction", "bidirectional"},
                         {"linear_before_reset", 1},
                         {"activations", std::vector<std::string>{"HardSigmoid", "ScaledTanh", "Sigmoid", "Tanh"}},
                         {"activation_alpha", std::vector<float>{0.3F, 1.5F}},
                         {"activation_beta", std::vector<float>{0.4F, 0.5F}}},
          .in = {x, {{2, 3, 2}}, {{2, 3, 1}}, {{2, 6}}},
          .results = 2},
         {{{3, 2, 2, 1},
           {-0.080440834, 0.36737806, -0.62166673, -0.19004694, 0.82139790, -0.13915513, -0.098769054, -0.62774658,
            0.15347314, 0.51465493, -0.20860386, -0.16685115}},
          {{2, 2, 1}, {0.15347314, 0.51465493, -0.62166673, -0.19004694}}});
  expect({"GRU", 14, {{"hidden_size", 1}}, {x, {{1, 3, 2}}, {{1, 3, 1}}, {{1, 6}}}},
         {{{3, 1, 2, 1}, {-0.088897936, 0.42048365, 0.69928473, -0.083884925, 0.19423525, 0.54499531}}});
  expect({"RNN", 14, {{"hidden_size", 1}}, {x, {{1, 1, 2}}, {{1, 1, 1}}}},
         {{{3, 1, 2, 1}, {0.94808519, -0.78661883, -0.75047541, 0.94990516, -0.78652817, -0.87404209}}});
}

// Nearest neighbours with whole scales are views: the sizes of the image need not be known.
TEST(OnnxLayers, UpsampleOfAnySize) {
  const std::string file = ModelWriter()
                               .opset(13)
                               .input("x", ElementType::Float, {"n", 1, "h", "w"})
                               .constant<float>("scales", {1, 1, 2, 3}, {4})
                               .node("Resize", {"x", "", "scales"}, {"y"},
                                     {{"coordinate_transformation_mode", "asymmetric"}, {"nearest_mode", "floor"}})
                               .output("y")
                               .bytes();
  const OnnxProgram m = read_onnx(std::as_bytes(std::span(file)), {.most_extent = 64});
  EXPECT_EQ(str(m.outputs[0].shape), "[n, 1, 2*h, 3*w]");
  Program p = compile(m.graph, generic() | cpu({.threads = 1, .compiler = false}));
  Context c(p);
  const std::vector<float> x{1, 2};
  c.set("x", ArrayView{DType::F32, {1, 1, 1, 2}, std::as_bytes(std::span(x))}).run();
  EXPECT_EQ(c.get("y"), (std::vector<float>{1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2}));
}

TEST(OnnxLayers, Mistakes) {
  const auto refusal = [](const Layer& l) { return error_of([&] { answers(l); }); };
  const auto says = [&](const Layer& l, const std::string& part) { EXPECT_PRED2(contains, refusal(l), part); };
  says({"Conv", 11, {{"auto_pad", "MOST"}}, {kImage, kFilter}}, "auto_pad is not NOTSET");
  says({"Conv", 11, {{"pads", Numbers{1, 1}}}, {kImage, kFilter}}, "has 2 pads for 2 spatial axes");
  says({"Conv", 11, {{"kernel_shape", Numbers{3, 3}}}, {kImage, kFilter}}, "kernel_shape is not that of its weight");
  says({"Conv", 11, {{"dilations", Numbers{9, 9}}}, {kImage, kFilter}}, "a window of 10 elements does not fit");
  says({"Conv", 11, {{"strides", Numbers{0, 1}}}, {kImage, kFilter}}, "has 0 in strides");
  says({"MaxPool", 12, {}, {kImage}}, "has no attribute kernel_shape");
  says({"RNN", 14, {{"activations", std::vector<std::string>{"Affine"}}}, {{{3, 2, 2}}, {{1, 1, 2}}, {{1, 1, 1}}}},
       "gives its activation affine no alpha or beta");
  says({"RNN", 14, {{"activations", std::vector<std::string>{"Step"}}}, {{{3, 2, 2}}, {{1, 1, 2}}, {{1, 1, 1}}}},
       "has an activation that ONNX does not");
  Layer endless{"RNN", 14, {}, {{{3, 2, 2}}, {{1, 1, 2}}, {{1, 1, 1}}}, {"steps", "", ""}};
  says(endless, "the number of steps is steps, and has to be a number");
}

}  // namespace
