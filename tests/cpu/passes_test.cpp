// Each pass of cpu() fires where it should, can be skipped or says that it cannot, and is named by verify() when it is
// broken.
#include <cmath>

#include <gtest/gtest.h>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/core/composite.h"
#include "lightcone/ops/loop.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/canonical.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "lightcone/verify/random_graph.h"
#include "lightcone/verify/verify.h"

namespace lc {
namespace {

Tensor parameter(Graph& g, const char* name, Shape shape) { return g.parameter(name, std::move(shape), DType::F32); }

Composite twice() {
  Composite c;
  c.name = "test.twice";
  c.infer = [](const Attributes&, std::span<const TensorType> in) -> std::vector<TensorType> { return {in[0]}; };
  c.define = [](const Attributes&, std::span<const Tensor> in) -> std::vector<Tensor> { return {in[0] + in[0]}; };
  return c;
}

// A graph with work for each pass.
Graph everything() {
  Graph g;
  const Tensor state = g.input("state", {128, 256});
  g.output("before", sum(state));
  Tensor x = g.input("image", {2, 8, 12, 12});
  x = relu(conv(x, parameter(g, "w1", {16, 8, 3, 3}), ConvOptions{.stride = {2}, .padding = {1}}));
  x = max_pool(x, {2, 2});  // small windows
  g.output("pooled", conv(x, parameter(g, "w2", {24, 16, 1, 1})));
  const Tensor batch = g.input("batch", {2, 4, 18, 18}), behind = g.input("behind", {2, 5, 16, 16});
  g.output("filter", conv(batch.transpose(0, 1), behind.transpose(0, 1)));  // shaped like a filter's gradient
  const Tensor q = g.input("q", {2, 9, 16}), k = g.input("k", {2, 11, 16}), v = g.input("v", {2, 11, 16});
  g.output("attended", matmul(softmax(matmul(q, k.transpose(1, 2)) * 0.25, 2), v));
  g.output("attention", scaled_dot_product_attention(q, k, v));
  const Tensor a = g.input("a", {6, 10}), b = g.input("b", {10, 7});
  g.output("padded", matmul(a.pad(1, 2, 0).slice(1, 0, 10), b));  // strides do not show where its zeros are
  const auto c = std::make_shared<const Composite>(twice());
  g.output("twice", call(c, {g.input("c", {5})})[0].flip(0));
  scan(
      [](const auto& s, const auto& row) {
        return Scanned{{tanh(s[0] + row[0])}, {}};
      },
      {g.input("h", {16})}, {g.input("rows", {5, 16})})
      .state[0]
      .retrieve("scanned");
  g.assign(state, state * 0.5);
  return g;
}

const char* const kPasses[] = {"compile-loops",
                               "fuse-attention",
                               "inline-composites",
                               "unroll-windows",
                               "channels-last",
                               "filter-gradients",
                               "materialize-views",
                               "match-attention",
                               "prepare-contractions",
                               "bf16-propagation",
                               "cpu",
                               "overlap-exchanges",
                               "schedule-state-updates",
                               "run-concurrently"};

bool right(const Graph& g, const Graph& compiled) {
  const auto in = random_inputs(g, {}, 7, false);
  return !compare(interpret(g, in, {}, Rounding::Wide, true), run_values(compiled, in, {}), 4);
}

TEST(Passes, EachFires) {
  const Compiled done = transform(everything(), cpu({.threads = 2}));
  ASSERT_EQ(done.log.size(), std::size(kPasses));
  const std::map<std::string, std::string> marks = {{"compile-loops", "loop compiled"},
                                                    {"inline-composites", "test.twice"},
                                                    {"unroll-windows", "window unrolled"},
                                                    {"channels-last", "channels last"},
                                                    {"filter-gradients", "channels last"},
                                                    {"fuse-attention", "attention"},
                                                    {"match-attention", "attention"},
                                                    {"prepare-contractions", "operand copied for a contraction"},
                                                    {"cpu", "matmul"},
                                                    {"schedule-state-updates", "update moved"}};
  for (std::size_t i = 0; i < done.log.size(); ++i) {
    EXPECT_EQ(done.log[i].pass, kPasses[i]);
    const auto m = marks.find(done.log[i].pass);
    EXPECT_TRUE(m == marks.end() || done.log[i].fired.contains(m->second)) << done.log[i].pass;
  }
  EXPECT_TRUE(right(everything(), done.graph));
}

// JAX's exact GELU, x erfc(-x / sqrt 2) / 2, is fused into the epilogue of a product, as relu is.
TEST(Passes, GeluByErfcRunsBehindAProduct) {
  const auto kernels = [](Tensor (*f)(const Tensor&)) {
    Graph g;
    g.output("y", f(matmul(g.input("x", {64, 48}), parameter(g, "w", {48, 96}))));
    const Graph made = transform(g, generic() | cpu({.threads = 1})).graph;
    EXPECT_TRUE(right(g, made));
    int n = 0;
    for (NodeId id = 0; id < made.size(); ++id) n += made[id].op == Op::Kernel;
    return n;
  };
  EXPECT_EQ(kernels([](const Tensor& x) { return x * 0.5 * erfc(x * -0.7071067811865476); }),
            kernels([](const Tensor& x) { return relu(x); }));
  EXPECT_GT(kernels([](const Tensor& x) { return softmax(x, 0); }), kernels([](const Tensor& x) { return relu(x); }));
}

TEST(Passes, SumsAndMaximaOfWindowsBecomeElementwise) {
  Graph g;
  const Tensor x = g.input("x", {1, 2, 12, 12}), half = g.input("half", {1, 2, 12, 12}, DType::F16);
  g.output("average", avg_pool(x, {3}, {2}, {1}));
  g.output("wide", avg_pool(x, {7}, {1}));
  g.output("largest", max_pool(x, {3}));
  PassLog log;
  const auto reduces = [](const Graph& h) {
    return any_node(h, [](const Node& n) { return info(n.op).kind == Kind::Reduce; });
  };
  EXPECT_FALSE(reduces(unroll_windows(g, log)));
  EXPECT_EQ(log.fired["window unrolled"], 6);
  EXPECT_TRUE(right(g, transform(g, cpu()).graph));
  g.output("rounded once", prim::sum_reduce(half.unfold(3, 3, 3), 4));
  EXPECT_TRUE(reduces(unroll_windows(g, log)));

  Graph zeros;  // a sum begins with 0, and -0 is not its result
  zeros.output("y", prim::sum_reduce(zeros.input("x", {4}).unfold(0, 2, 2), 1));
  const Program p = compile(zeros, generic() | cpu());
  Context c(p);
  c.set("x", std::vector<float>(4, -0.0f));
  c.run();
  EXPECT_FALSE(std::signbit(c.get("y")[0]));
}

// Fewer elements than there are lanes would fill them with nothing.
TEST(Passes, ShortReductionsHaveLanesAcrossTheirResults) {
  for (const std::int64_t extent : {3, 64}) {
    Graph g;
    g.output("y", sum(g.input("x", {1000, extent}), {1}));
    const Graph compiled = transform(g, generic() | cpu({.threads = 1})).graph;
    std::string text;
    for (NodeId id = 0; id < compiled.size(); ++id)
      if (compiled[id].kernel) text += compiled[id].kernel->source();
    EXPECT_EQ(text.find("LC_CARRY(float") != text.npos, extent == 64) << text;
    EXPECT_TRUE(right(g, compiled)) << extent;
  }
}

// The index of a padded image stays linear behind a pool that leaves an axis of one element.
TEST(Passes, AConvolutionBehindAPoolOfOneRowIsOne) {
  Graph g;
  Tensor x = conv(g.input("x", {1, 1, 12, 33}), parameter(g, "w1", {16, 1, 3, 3}), ConvOptions{.padding = {1}});
  x = max_pool(x, {1, 4});
  g.output("y", conv(x, parameter(g, "w2", {32, 16, 3, 3}), ConvOptions{.padding = {1}}));
  const Graph compiled = transform(g, generic() | cpu({.threads = 1})).graph;
  for (NodeId id = 0; id < compiled.size(); ++id)
    EXPECT_FALSE(compiled[id].name.starts_with("matmul")) << compiled[id].name;
  EXPECT_TRUE(right(g, compiled));
}

TEST(Passes, MayBeSkippedOrSayThatTheyMayNot) {
  const Graph g = everything();
  int refused = 0;
  for (const char* pass : kPasses) {
    try {
      const Compiled done = transform(g, cpu({.threads = 2}), {.skip = {pass}, .observe = {}});
      for (const PassLog& l : done.log) EXPECT_NE(l.pass, pass);
      EXPECT_TRUE(right(g, done.graph)) << "without " << pass;
    } catch (const Error& e) {
      ++refused;
      EXPECT_EQ(std::string(e.what()), str_cat("compile: the pass '", pass, "' cannot be skipped: later ones need it"));
    }
  }
  EXPECT_EQ(refused, 2);  // inline-composites and materialize-views
}

TEST(Passes, AreNotRunWhereTheyWouldCopy) {
  Graph g;
  g.output("y", relu(g.input("x", {8}) + 1.0));
  int ran = 0;
  Compiler counted;
  const Compiler whole = cpu({.threads = 1});
  for (Pass p : whole.passes()) {
    p.run = [&ran, run = p.run](const Graph& from, PassLog& log) { return ++ran, run(from, log); };
    counted = counted | Compiler(std::move(p));
  }
  const Compiled done = transform(g, counted);
  EXPECT_EQ(ran, 2);  // materialize-views and cpu
  EXPECT_EQ(done.log.size(), std::size(kPasses));
  EXPECT_TRUE(right(g, done.graph));
}

// Returns a copy of the graph in which one result is 1 % too large.
Graph spoiled(const Graph& g) {
  Graph out;
  std::vector<NodeId> to;
  for (NodeId id = 0; id < g.size(); ++id) {
    Node n = g[id];
    for (Edge& e : n.in) e.node = to[e.node];
    to.push_back(out.add(std::move(n)));
  }
  bool first = true;
  for (const Root& r : g.roots()) {
    Edge e{to[r.edge.node], r.edge.view};
    if (std::exchange(first, false)) e = prim::contiguous(Tensor(out, e) * 1.01).edge();
    out.root(r.name, e);
  }
  return out;
}

TEST(Passes, AreNamedWhenTheyAreBroken) {
  const Graph g = everything();
  for (const std::string_view pass : kPasses) {
    if (pass == "overlap-exchanges" || pass == "bf16-propagation") continue;  // this graph has no exchanges, and is f32
    Compiler broken;
    const Compiler whole = cpu({.threads = 2});
    for (Pass p : whole.passes()) {
      if (p.name == pass) p.run = [run = p.run](const Graph& from, PassLog& log) { return spoiled(run(from, log)); };
      broken = broken | Compiler(std::move(p));
    }
    const VerifyReport r = verify(g, broken, {.shrink = false});
    ASSERT_TRUE(r.fault) << pass << '\n' << r.str();
    EXPECT_EQ(r.fault->pass, pass);
  }
}

// x * sigmoid(x) reads the convolution several times, and a concatenation would compute it for each of its elements.
TEST(Passes, AnActivationThatIsConcatenatedIsTheEpilogueOfItsConvolution) {
  Graph g;
  const Tensor x = g.input("x", {1, 8, 10, 10});
  const Tensor y = silu(conv(x, parameter(g, "w", {8, 8, 3, 3}), parameter(g, "b", {8}), {.padding = {1}}));
  g.output("z", concat({x, y, y + x}, 1));
  const Compiled done = transform(g, generic() | cpu({.threads = 2}));
  EXPECT_EQ(fired(done.log, "epilogue"), 1) << report(done.log);
  EXPECT_EQ(fired(done.log, "loop"), 1) << report(done.log);
  EXPECT_TRUE(right(g, done.graph));
}

// Weights that are bytes and a scale: neither the matrix nor the table is converted in a run.
TEST(Passes, BytesAndTheirScalesAreMultipliedAndGatheredAsBytes) {
  Graph g;
  const Tensor x = g.input("x", {5, 32}), ids = g.input("ids", {7}, DType::I64);
  const auto scaled = [&](const char* name, Shape shape, Shape scales) {
    const Tensor bytes = g.parameter(name, shape, DType::I8);
    return to(bytes, DType::F32) * parameter(g, str_cat(name, ".scale").c_str(), std::move(scales));
  };
  g.output("columns", matmul(x, scaled("columns", {32, 48}, {1, 48})));
  g.output("rows", matmul(x, scaled("rows", {48, 32}, {48, 1}).t()));
  g.output("all", matmul(x, scaled("all", {32, 48}, {1, 1})));
  g.output("inputs", matmul(x, scaled("inputs", {32, 48}, {32, 1})));  // a scale of the summed axis stays inside
  g.output("table", embedding(clamp(ids, 0, 99), scaled("table", {100, 16}, {100, 1})));
  const Compiled done = transform(g, generic() | cpu({.threads = 2}));
  EXPECT_EQ(fired(done.log, "scale after a sum"), 3) << report(done.log);
  EXPECT_EQ(fired(done.log, "gather bytes"), 1) << report(done.log);
  EXPECT_TRUE(right(g, done.graph));
}

}  // namespace
}  // namespace lc
