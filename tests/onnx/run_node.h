// Runs models of one node: operands and expected results are written in the test.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/onnx/onnx.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "write_model.h"

namespace lc::test {

// An operand: an input of the model, or a constant that the rule may look at.
struct OperandSpec {
  DType dtype;
  std::vector<std::int64_t> shape;
  std::vector<double> numbers;
  bool constant = false, absent = false;
};
inline OperandSpec f32(std::vector<std::int64_t> shape, std::vector<double> v) {
  return {DType::F32, std::move(shape), std::move(v)};
}
inline OperandSpec typed(DType t, std::vector<std::int64_t> shape, std::vector<double> v) {
  return {t, std::move(shape), std::move(v)};
}
inline OperandSpec ints(std::vector<double> v) {  // a constant i64 [n]
  const auto n = static_cast<std::int64_t>(v.size());
  return {DType::I64, {n}, std::move(v), true};
}
inline OperandSpec constant(OperandSpec o) {
  o.constant = true;
  return o;
}
inline OperandSpec no_operand() { return {.dtype = DType::F32, .shape = {}, .numbers = {}, .absent = true}; }

struct NodeSpec {
  std::string op;
  std::int64_t opset;
  std::vector<AttributeSpec> attributes = {};
  int outputs = 1;
  std::string domain = {};
  bool symbolic = false;  // the extents of inputs are names
};

struct Result {
  DType dtype;
  std::vector<std::int64_t> shape;
  std::vector<double> numbers;
};

inline std::string model_of(const NodeSpec& n, const std::vector<OperandSpec>& operands) {
  ModelWriter m;
  m.opset(n.domain.empty() ? n.opset : 17);
  if (!n.domain.empty()) m.opset(n.opset, n.domain);
  std::vector<std::string> in, out;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const OperandSpec& o = operands[k];
    in.push_back(o.absent ? "" : "x" + std::to_string(k));
    if (o.absent) continue;
    if (o.constant) {
      m.constant(in[k], o.dtype, o.numbers, o.shape);
      continue;
    }
    std::vector<ModelWriter::ExtentSpec> shape;
    for (std::size_t a = 0; a < o.shape.size(); ++a) {
      if (n.symbolic) shape.emplace_back(("n" + std::to_string(k) + std::to_string(a)).c_str());
      else shape.emplace_back(static_cast<int>(o.shape[a]));
    }
    m.input(in[k], onnx::element_type_of(o.dtype), shape);
  }
  for (int k = 0; k < n.outputs; ++k) out.push_back("y" + std::to_string(k));
  m.node(n.op, in, out, n.attributes, n.domain);
  for (const std::string& name : out) m.output(name);
  return m.bytes();
}

inline std::vector<std::byte> bytes_of(const OperandSpec& o) {
  std::vector<std::byte> b(o.numbers.size() * size_of(o.dtype));
  for (std::size_t k = 0; k < o.numbers.size(); ++k) {
    if (is_float(o.dtype)) store_f64(b.data(), o.dtype, k, o.numbers[k]);
    else store_i64(b.data(), o.dtype, k, static_cast<std::int64_t>(o.numbers[k]));
  }
  return b;
}

// Results of which a part is valid are cut to it.
inline std::vector<Result> run_node(const NodeSpec& n, const std::vector<OperandSpec>& operands) {
  const std::string model = model_of(n, operands);
  const OnnxProgram g = read_onnx(std::as_bytes(std::span(model)), {.most_extent = 64});
  Program p = compile(g.graph, generic() | cpu({.threads = 1, .compiler = false}));
  g.load_weights(p);
  Context c(p);
  std::vector<std::vector<std::byte>> kept;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (operands[k].constant || operands[k].absent) continue;
    const std::vector<std::byte>& b = kept.emplace_back(bytes_of(operands[k]));
    c.set("x" + std::to_string(k), ArrayView{operands[k].dtype, operands[k].shape, b});
  }
  c.run();
  std::vector<Result> r;
  for (const OnnxProgram::Port& port : g.outputs) {
    Result one{.dtype = port.dtype, .shape = c.shape(port.name), .numbers = c.get_f64(port.name)};
    if (!port.count.empty()) {
      const auto axis = static_cast<std::size_t>(port.count_axis);
      const auto count = static_cast<std::size_t>(c.get_i64(port.count).at(0));
      std::size_t inner = 1;
      for (std::size_t a = axis + 1; a < one.shape.size(); ++a) inner *= static_cast<std::size_t>(one.shape[a]);
      const std::size_t row = inner * static_cast<std::size_t>(one.shape[axis]);
      std::vector<double> cut;
      for (std::size_t k = 0; k < one.numbers.size(); ++k)
        if (k % row < count * inner) cut.push_back(one.numbers[k]);
      one.numbers = cut;
      one.shape[axis] = static_cast<std::int64_t>(count);
    }
    r.push_back(std::move(one));
  }
  return r;
}

inline void expect_near(const std::string& what, const std::vector<double>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t k = 0; k < got.size(); ++k) {
    if (std::isnan(want[k])) EXPECT_TRUE(std::isnan(got[k])) << what << " " << k;
    else if (std::isinf(want[k])) EXPECT_EQ(got[k], want[k]) << what << " " << k;
    else EXPECT_NEAR(got[k], want[k], 2e-6 * (1 + std::abs(want[k]))) << what << " " << k;
  }
}
// Expects the first result to have these numbers and this shape, once with the extents as numbers and once as names.
inline void expect_node(NodeSpec n, const std::vector<OperandSpec>& operands, const std::vector<double>& want,
                        const std::vector<std::int64_t>& shape) {
  for (const bool symbolic : {false, true}) {
    n.symbolic = symbolic;
    const std::string what = n.op + " " + std::to_string(n.opset) + (symbolic ? " of symbols" : "");
    try {
      const std::vector<Result> r = run_node(n, operands);
      EXPECT_EQ(r[0].shape, shape) << what;
      expect_near(what, r[0].numbers, want);
    } catch (const Error& e) {
      ADD_FAILURE() << what << ": " << e.what();
    }
  }
}

}  // namespace lc::test
