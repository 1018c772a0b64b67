// ONNX's indexing, sorting, results whose size depends on data, and random numbers. The numbers are those of the
// specification's examples, or worked out by hand.
#include <set>

#include "error_of.h"
#include "run_node.h"

using namespace lc;
using namespace lc::test;

namespace {

TEST(OnnxIndexing, TheLargest) {
  const OperandSpec x = f32({2, 4}, {1, 4, 4, 2, 8, 5, 6, 7});
  const auto both = [&](NodeSpec n, std::vector<OperandSpec> in) {
    n.outputs = 2;
    const std::vector<Result> r = run_node(n, in);
    std::vector<double> all = r[0].numbers;
    all.insert(all.end(), r[1].numbers.begin(), r[1].numbers.end());
    return all;
  };
  using V = std::vector<double>;
  EXPECT_EQ(both({"TopK", 1, {{"k", 2}}}, {x}), (V{4, 4, 8, 7, 1, 2, 0, 3}));
  EXPECT_EQ(both({"TopK", 11, {{"largest", 0}}}, {x, ints({1})}), (V{1, 5, 0, 1}));
  EXPECT_EQ(both({"TopK", 11, {{"axis", 0}}}, {x, ints({1})}), (V{8, 5, 6, 7, 1, 1, 1, 1}));
}

TEST(OnnxIndexing, Scatters) {
  const OperandSpec x = f32({5}, {1, 2, 3, 4, 5}), at = typed(DType::I64, {2}, {1, -2});
  expect_node({"ScatterElements", 11}, {x, at, f32({2}, {10, 20})}, {1, 10, 3, 20, 5}, {5});
  const OperandSpec twice = typed(DType::I64, {2}, {1, 1});
  for (const auto& [reduction, want] : {std::pair{"add", 32.}, {"mul", 400.}, {"max", 20.}, {"min", 2.}})
    expect_node({"ScatterElements", 18, {{"reduction", reduction}}}, {x, twice, f32({2}, {10, 20})}, {1, want, 3, 4, 5},
                {5});
  const OperandSpec m = f32({2, 2}, {1, 2, 3, 4}), row = constant(typed(DType::I64, {1, 1}, {-1}));
  expect_node({"ScatterND", 11}, {m, row, f32({1, 2}, {8, 9})}, {1, 2, 8, 9}, {2, 2});
  expect_node({"ScatterND", 18, {{"reduction", "max"}}}, {m, row, f32({1, 2}, {0, 9})}, {1, 2, 3, 9}, {2, 2});
  const OperandSpec cache = f32({1, 3, 1}, {1, 2, 3}), update = f32({1, 2, 1}, {8, 9});
  const std::vector<double> round =
      run_node({"TensorScatter", 24, {{"mode", "circular"}}}, {cache, update, typed(DType::I64, {1}, {2})})[0].numbers;
  EXPECT_EQ(round, (std::vector<double>{9, 2, 8}));
}

TEST(OnnxIndexing, Gathers) {
  const OperandSpec x = f32({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  const std::vector<double> rows = run_node({"GatherND", 11}, {x, typed(DType::I64, {2, 2}, {0, 1, 1, -2})})[0].numbers;
  EXPECT_EQ(rows, (std::vector<double>{2, 3, 4, 5}));
  const NodeSpec batches{"GatherND", 12, {{"batch_dims", 1}}};
  const Result r = run_node(batches, {x, typed(DType::I64, {2, 1}, {1, 0})})[0];
  EXPECT_EQ(r.numbers, (std::vector<double>{2, 3, 4, 5}));
  EXPECT_EQ(r.shape, (std::vector<std::int64_t>{2, 2}));
  expect_node({"ReverseSequence", 10, {{"time_axis", 1}, {"batch_axis", 0}}},
              {f32({2, 3}, {1, 2, 3, 4, 5, 6}), typed(DType::I64, {2}, {2, 3})}, {2, 1, 3, 6, 5, 4}, {2, 3});
  expect_node({"CenterCropPad", 18}, {f32({3, 1}, {1, 2, 3}), ints({2, 4})}, {0, 1, 0, 0, 0, 2, 0, 0}, {2, 4});
}

TEST(OnnxIndexing, SizesThatDependOnData) {
  const OperandSpec x = f32({2, 2}, {1, 0, 3, 4});
  expect_node({"NonZero", 13}, {x}, {0, 1, 1, 0, 0, 1}, {2, 3});
  expect_node({"NonZero", 13}, {constant(x)}, {0, 1, 1, 0, 0, 1}, {2, 3});
  OperandSpec triangle = constant(typed(DType::I64, {8, 8}, std::vector<double>(64)));
  std::vector<double> rows, columns;
  for (int r = 0; r < 8; ++r)
    for (int k = 0; k <= r; ++k)
      triangle.numbers[static_cast<std::size_t>(8 * r + k)] = 1, rows.push_back(r), columns.push_back(k);
  rows.insert(rows.end(), columns.begin(), columns.end());
  expect_node({"NonZero", 13}, {triangle}, rows, {2, 36});
  expect_node({"Compress", 11, {{"axis", 1}}}, {x, typed(DType::Bool, {2}, {0, 1})}, {0, 4}, {2, 1});
  expect_node({"Compress", 11}, {x, typed(DType::Bool, {3}, {1, 0, 1})}, {1, 3}, {2});
  const std::vector<Result> r = run_node({"Unique", 11, {{"sorted", 0}}, 4}, {f32({6}, {2, 1, 1, 3, 4, 3})});
  using V = std::vector<double>;
  EXPECT_EQ(r[0].numbers, (V{2, 1, 3, 4}));
  EXPECT_EQ(r[1].numbers, (V{0, 1, 3, 4}));
  EXPECT_EQ(r[2].numbers, (V{0, 1, 1, 2, 3, 2}));
  EXPECT_EQ(r[3].numbers, (V{1, 2, 2, 1}));
  const std::vector<Result> slices =
      run_node({"Unique", 11, {{"axis", 0}}, 4}, {f32({3, 3}, {2, 3, 4, 1, 0, 0, 1, 0, 0})});
  EXPECT_EQ(slices[0].numbers, (V{1, 0, 0, 2, 3, 4}));
  EXPECT_EQ(slices[1].numbers, (V{1, 0}));
  EXPECT_EQ(slices[2].numbers, (V{1, 0, 0}));
  EXPECT_EQ(slices[3].numbers, (V{2, 1}));
}

// x[mask] of PyTorch: the indices of NonZero, whose number depends on data, choose elements.
TEST(OnnxIndexing, ElementsByAMask) {
  const std::string m = ModelWriter()
                            .opset(13)
                            .input("x", onnx::ElementType::Float, {2, 3})
                            .constant("limit", DType::F32, {2.5}, {})
                            .node("Greater", {"x", "limit"}, {"mask"})
                            .node("NonZero", {"mask"}, {"at"})
                            .node("Transpose", {"at"}, {"rows"})
                            .node("GatherND", {"x", "rows"}, {"y"})
                            .output("y")
                            .bytes();
  const OnnxProgram g = read_onnx(std::as_bytes(std::span(m)));
  ASSERT_EQ(g.outputs[0].count, "y.count");
  Context c(compile(g.graph, generic() | cpu({.threads = 1, .compiler = false})));
  const std::vector<float> x = {1, 5, 2, 7, 0, 3};
  c.set("x", x).run();
  EXPECT_EQ(c.get_i64("y.count"), (std::vector<std::int64_t>{3}));
  EXPECT_EQ(c.get("y")[0], 5);
  EXPECT_EQ(c.get("y")[1], 7);
  EXPECT_EQ(c.get("y")[2], 3);
}

// Old exporters write a range as the places of ones: its length stays an expression.
TEST(OnnxIndexing, ARangeIsThePlacesOfOnes) {
  const std::string m = ModelWriter()
                            .opset(13)
                            .input("x", onnx::ElementType::Float, {"n", 2})
                            .constant("one", DType::F32, {1}, {})
                            .node("Shape", {"x"}, {"shape"})
                            .node("Expand", {"one", "shape"}, {"ones"})
                            .node("NonZero", {"ones"}, {"at"})
                            .output("at")
                            .bytes();
  const OnnxProgram g = read_onnx(std::as_bytes(std::span(m)));
  const Dim n = Dim::symbol("n", 1, 65536);
  EXPECT_EQ(g.outputs[0].shape, (Shape{2, n * Dim(2)}));
  EXPECT_EQ(g.outputs[0].count, "");
}

TEST(OnnxRandom, TypesRangesAndDraws) {
  const Result u =
      run_node({"RandomUniform", 1, {{"shape", std::vector<std::int64_t>{1000}}, {"low", 2.0}, {"high", 3.0}}}, {})[0];
  double sum = 0;
  for (const double v : u.numbers) {
    EXPECT_GE(v, 2);
    EXPECT_LT(v, 3);
    sum += v;
  }
  EXPECT_NEAR(sum / 1000, 2.5, .05);  // five standard deviations
  const Result n = run_node({"RandomNormalLike", 1, {{"dtype", 11}, {"seed", 1.5}}}, {f32({2, 2}, {0, 0, 0, 0})})[0];
  EXPECT_EQ(n.dtype, DType::F64);
  EXPECT_EQ(std::set<double>(n.numbers.begin(), n.numbers.end()).size(), 4u);
  const Result b = run_node({"Bernoulli", 15}, {f32({3}, {0, 1, 0})})[0];
  EXPECT_EQ(b.numbers, (std::vector<double>{0, 1, 0}));
  const Result m = run_node({"Multinomial", 7, {{"sample_size", 3}}}, {f32({1, 3}, {-1e30, 0, -1e30})})[0];
  EXPECT_EQ(m.dtype, DType::I32);
  EXPECT_EQ(m.numbers, (std::vector<double>{1, 1, 1}));
}

// The steps of a loop that draws are written out, and a loop whose length depends on data is refused.
TEST(OnnxRandom, EachStepOfALoopDrawsItsOwn) {
  using onnx::ElementType;
  const auto loop = [](const char* steps) {
    ModelWriter body;
    body.input("i", ElementType::Int64, {}).input("goes", ElementType::Bool, {});
    body.node("RandomUniform", {}, {"r"}, {{"shape", std::vector<std::int64_t>{1}}});
    body.node("Identity", {"goes"}, {"on"}).output("on").output("r");
    ModelWriter m;
    m.opset(17).input("n", ElementType::Int64, {}).constant("three", DType::I64, {3}, {});
    m.constant("true", DType::Bool, {1}, {}).node("Loop", {steps, "true"}, {"y"}, {{"body", body.graph()}}).output("y");
    const std::string bytes = m.bytes();
    return read_onnx(std::as_bytes(std::span(bytes)));
  };
  Context c(compile(loop("three").graph, generic() | cpu({.threads = 1, .compiler = false})));
  c.run();
  const std::vector<float> y = c.get("y");
  EXPECT_EQ(std::set<float>(y.begin(), y.end()).size(), 3u);
  try {
    loop("n");
    ADD_FAILURE() << "each step would draw the same";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("draws random numbers in a loop"), std::string::npos) << e.what();
  }
}

TEST(OnnxRandom, Dropout) {
  const OperandSpec x = f32({4}, {1, 2, 3, 4});
  const std::vector<Result> idle = run_node({"Dropout", 13, {}, 2}, {x, constant(f32({}, {.5}))});
  EXPECT_EQ(idle[0].numbers, (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(idle[1].numbers, (std::vector<double>{1, 1, 1, 1}));
  const OperandSpec many = f32({1000}, std::vector<double>(1000, 1));
  const std::vector<Result> r = run_node({"Dropout", 13, {{"seed", 3}}, 2},
                                         {many, constant(f32({}, {.75})), constant(typed(DType::Bool, {}, {1}))});
  int kept = 0;
  for (std::size_t k = 0; k < 1000; ++k) {
    EXPECT_EQ(r[0].numbers[k], r[1].numbers[k] * 4);
    kept += r[1].numbers[k] != 0;
  }
  EXPECT_NEAR(kept, 250, 70);  // five standard deviations
}

TEST(OnnxIndexing, RefusesWithAReason) {
  const auto why = [](const NodeSpec& n, const std::vector<OperandSpec>& in) {
    try {
      run_node(n, in);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const OperandSpec x = f32({2, 2}, {1, 2, 3, 4}), at = typed(DType::I64, {2, 2}, {0, 0, 0, 0});
  EXPECT_NE(why({"ScatterElements", 18, {{"reduction", "xor"}}}, {x, at, x})
                .find("has a reduction that is not none, add, mul, max or min"),
            std::string::npos);
  EXPECT_NE(why({"MatMul", 13}, {x, f32({3, 2}, {1, 2, 3, 4, 5, 6})}).find("extents differ: 2 vs 3"),
            std::string::npos);
  EXPECT_NE(why({"Softmax", 13, {{"axes", 1}}}, {x}).find("its attribute 'axes' is not known"), std::string::npos);
  EXPECT_NE(why({"ReduceSum", 13}, {x, ints({2})}).find("has axis 2 for a tensor with 2 axes"), std::string::npos);
  NodeSpec squeeze{"Squeeze", 13};
  EXPECT_EQ(run_node(squeeze, {f32({1, 2, 1}, {1, 2})})[0].shape, (std::vector<std::int64_t>{2}));
  squeeze.symbolic = true;
  EXPECT_NE(why(squeeze, {x}).find("depends on a size that is open: give it a number"), std::string::npos);
}

}  // namespace
