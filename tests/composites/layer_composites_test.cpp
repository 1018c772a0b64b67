// Attention, norms and RoPE are composites that graphs keep by name, and networks compile to the kernels that they have
// when the definitions are written out. Derivatives agree with finite differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "differences.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/composites/composites.h"
#include "lightcone/lowering/types/half_precision.h"
#include "lightcone/lowering/types/int8.h"
#include "lightcone/lowering/types/mixed_precision.h"
#include "lightcone/passes/composites.h"
#include "lightcone/passes/passes.h"
#include "lightcone/verify/random_graph.h"
#include "lightcone/verify/verify.h"
#include "nets.h"
#include "random_inputs.h"

namespace lc {
namespace {

using test::random_values;

bool is_layer(const Node& n) {
  return n.composite && (n.composite->transparent || n.composite == builtin::attention());
}
int count(const Graph& g, const CompositeRef& c) {
  const std::vector<bool> live = g.live();
  int n = 0;
  for (NodeId id = 0; id < g.size(); ++id) n += live[id] && is(g[id], c);
  return n;
}
Graph written_out(const Graph& g) {
  PassLog log;
  return inline_composites(g, log, [](const Graph&, const Node& n) { return is_layer(n); });
}
// The names of all kernels; that of a loop is a hash of its text.
std::multiset<std::string> kernels(const Graph& g) {
  std::multiset<std::string> names;
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].op == Op::Kernel) names.insert(g[id].kernel->name());
  return names;
}
bool same_bits(const Results& a, const Results& b) {
  for (const auto& [name, v] : a.outputs)
    if (std::memcmp(v.f.data(), b.outputs.at(name).f.data(), v.f.size() * sizeof(double)) != 0) return false;
  return a.outputs.size() == b.outputs.size();
}
Compiler on_cpu() { return cpu({.threads = 2, .compiler = false}); }

struct Network {
  const char* name;
  Graph graph;
  Bindings sizes = {};
};
std::vector<Network> networks() {
  std::vector<Network> all;
  all.push_back({"bert", test::bert()});
  all.push_back({"gpt", test::gpt()});
  all.push_back({"llama", test::llama(), {{"seq", 7}, {"past", 5}}});
  all.push_back({"llama, i8 cache", test::llama(DType::I8), {{"seq", 1}, {"past", 30}}});
  return all;
}

Graph all_layers() {
  Graph g;
  const Tensor x = g.input("x", {2, 4, 6, 8}), w = g.parameter("w", {8}), b = g.parameter("b", {8});
  const Tensor c = g.parameter("c", {4}), cos = g.input("cos", {6, 4}), sin = g.input("sin", {6, 4});
  g.output("layer", layer_norm(x, {8}, w, b));
  g.output("plain", layer_norm(x, {6, 8}));
  g.output("rms", rms_norm(x, {8}, w));
  g.output("group", group_norm(x, 2, c, c));
  g.output("rope", rope(x, cos, sin, false));
  g.output("pairs", rope(x, cos, sin, true));
  g.output("attention", scaled_dot_product_attention(x, x, x, AttentionOptions{.is_causal = true}));
  return g;
}

}  // namespace

TEST(LayerComposites, GraphsKeepTheirNames) {
  const Graph g = all_layers();
  EXPECT_EQ(count(g, builtin::layer_norm()), 2);
  EXPECT_EQ(count(g, builtin::rms_norm()), 1);
  EXPECT_EQ(count(g, builtin::group_norm()), 1);
  EXPECT_EQ(count(g, builtin::rope()), 2);
  EXPECT_EQ(count(g, builtin::attention()), 1);
  EXPECT_NE(g.str().find("layer_norm<axes=1, eps=1e-05>"), std::string::npos) << g.str();
  EXPECT_NE(g.str().find("scaled_dot_product_attention<scale=0.35355"), std::string::npos) << g.str();
  EXPECT_FALSE(any_node(transform(g, primitives_only()).graph, is_layer));
  const VerifyReport r = verify(g, generic() | on_cpu());
  EXPECT_TRUE(r.ok()) << r.str();
}

TEST(LayerComposites, GenericInlinesAllButAttention) {
  const Compiled done = transform(all_layers(), generic());
  EXPECT_TRUE(any_node(done.graph, is_layer));
  EXPECT_FALSE(any_node(done.graph, [](const Node& n) { return n.composite && n.composite->transparent; }));
  EXPECT_EQ(count(done.graph, builtin::attention()), 1);
  EXPECT_EQ(fired(done.log, "layer_norm"), 2);
}

// The matcher finds attention where the composite is not used, and makes the same kernels of it.
TEST(LayerComposites, NetworksHaveTheKernelsOfTheirDefinitions) {
  for (const Network& n : networks()) {
    const Graph out = written_out(n.graph);
    EXPECT_FALSE(any_node(out, is_layer)) << n.name;
    const Compiled by_name = transform(n.graph, generic() | on_cpu()), matched = transform(out, generic() | on_cpu());
    EXPECT_GT(fired(by_name.log, "attention"), 0) << n.name;
    EXPECT_EQ(fired(by_name.log, "attention"), fired(matched.log, "attention")) << n.name;
    EXPECT_EQ(kernels(by_name.graph).size(), kernels(matched.graph).size()) << n.name;
    if (n.name != std::string("gpt")) {  // its causal mask has fewer axes
      EXPECT_EQ(kernels(by_name.graph), kernels(matched.graph)) << n.name;
    }
    const auto in = random_inputs(n.graph, n.sizes, 3, false);
    EXPECT_TRUE(same_bits(run_values(by_name.graph, in, n.sizes), run_values(matched.graph, in, n.sizes))) << n.name;
  }
}

// Passes that change types see the same products and round the same values.
TEST(LayerComposites, NarrowTypesRoundTheSameValues) {
  for (const Network& n : networks())
    for (const Compiler& types : {generic() | half(), generic() | half(DType::BF16), autocast(DType::BF16) | generic(),
                                  generic() | int8(), generic() | int8({.group = 32})}) {
      const Graph a = transform(n.graph, types | on_cpu()).graph,
                  b = transform(written_out(n.graph), types | on_cpu()).graph;
      EXPECT_EQ(kernels(a), kernels(b)) << n.name << " " << types.passes()[0].name;
    }
}

// Without a kernel the definition is computed: f64, and one key, over which nothing is summed.
TEST(LayerComposites, AttentionWithoutAKernel) {
  for (const DType t : {DType::F64, DType::F32}) {
    Graph g;
    const Tensor q = g.input("q", {2, 5, 8}, t);
    const Shape keys{2, t == DType::F64 ? 7 : 1, 8};
    g.output("y", scaled_dot_product_attention(q, g.input("k", keys, t), g.input("v", keys, t)));
    const Compiled done = transform(g, generic() | on_cpu());
    EXPECT_EQ(fired(done.log, "attention"), 0) << report(done.log);
    EXPECT_EQ(fired(done.log, "scaled_dot_product_attention"), 1) << report(done.log);
    const VerifyReport r = verify(g, generic() | on_cpu());
    EXPECT_TRUE(r.ok()) << r.str();
  }
}

// The kernel reads grouped heads, transposed views, broadcast batches and small masks in place, also where calls share
// scores, which the matcher leaves alone.
TEST(LayerComposites, AttentionReadsViews) {
  Graph g;
  const Tensor q = g.input("q", {5, 6, 16}).transpose(0, 1), k = g.input("k", {2, 9, 16}), v = g.input("v", {2, 9, 12});
  const Tensor heads = g.input("heads", {6, 1, 9}, DType::Bool), added = g.input("added", {9});
  g.output("grouped", scaled_dot_product_attention(q, k, v));
  g.output("masked", scaled_dot_product_attention(q, k, v, AttentionOptions{.attn_mask = heads, .is_causal = true}));
  g.output("added", scaled_dot_product_attention(q, k, v, added, 0, false, 0.5));
  g.output("halves", scaled_dot_product_attention(q, k, v, g.input("f16", {5, 9}, DType::F16)));
  g.output("batch", scaled_dot_product_attention(g.input("many", {3, 6, 5, 16}), k.unsqueeze(0), v.unsqueeze(0)));
  const Compiled done = transform(g, generic() | on_cpu());
  EXPECT_EQ(fired(done.log, "attention"), 5) << report(done.log);
  const VerifyReport r = verify(g, generic() | on_cpu());
  EXPECT_TRUE(r.ok()) << r.str();
}

TEST(LayerComposites, Differences) {
  const auto f64 = [](Graph& g, const char* name, Shape s) { return g.input(name, std::move(s), DType::F64); };
  {
    Graph g;
    const Tensor y = layer_norm(f64(g, "x", {2, 3, 4}), {3, 4}, f64(g, "w", {3, 4}), f64(g, "b", {3, 4}));
    check_gradients(g, y, random_values(g, 1), "layer_norm", 2);
  }
  {
    Graph g;
    const Tensor y = rms_norm(f64(g, "x", {2, 3, 4}), {4}, f64(g, "w", {4}), 1e-3);
    check_gradients(g, y, random_values(g, 2), "rms_norm", 2);
  }
  {
    Graph g;
    const Tensor y = group_norm(f64(g, "x", {2, 4, 3}), 2, f64(g, "w", {4}), f64(g, "b", {4}));
    check_gradients(g, y, random_values(g, 3), "group_norm", 1);
  }
  for (const bool interleaved : {false, true}) {
    Graph g;
    const Tensor y = rope(f64(g, "x", {2, 3, 4}), f64(g, "cos", {3, 2}), f64(g, "sin", {3, 2}), interleaved);
    check_gradients(g, y, random_values(g, 4), "rope", 2);
  }
  for (const Shape& mask : {Shape{3, 4}, Shape{4}, Shape{2, 1, 4}}) {  // a floating mask has a derivative
    Graph g;
    const Tensor y = scaled_dot_product_attention(f64(g, "q", {2, 3, 2}), f64(g, "k", {1, 4, 2}),
                                                  f64(g, "v", {1, 4, 3}), f64(g, "mask", mask));
    check_gradients(g, y, random_values(g, 5), "attention", 1);
  }
}

// The definition's derivative gives the composite's numbers.
TEST(LayerComposites, DerivativesAreThoseOfTheDefinitions) {
  for (const Network& n : networks()) {
    if (n.graph.assignments().size() > 0) continue;
    Graph by_name = n.graph.clone(), out = written_out(n.graph);
    std::vector<Results> found;
    for (Graph* g : {&by_name, &out}) {
      std::vector<Tensor> wrt;
      for (NodeId id = 0; id < g->size(); ++id)
        if ((*g)[id].op == Op::Input && (*g)[id].dtype == DType::F32)
          wrt.emplace_back(*g, Edge{id, View((*g)[id].shape)});
      const Tensor y(*g, g->roots()[0].edge);
      const std::vector<Tensor> d = gradients(mean(y * y), wrt, {.allow_unused = true});
      for (std::size_t k = 0; k < d.size(); ++k) g->output("d " + wrt[k].node().name, d[k]);
      found.push_back(interpret(*g, random_inputs(n.graph, n.sizes, 3, false), n.sizes, Rounding::Wide));
    }
    for (const auto& [name, v] : found[0].outputs) {
      double largest = 1;
      for (const double x : v.f) largest = std::max(largest, std::abs(x));
      for (std::size_t k = 0; k < v.size(); ++k)  // the constants of a softmax and its derivative are f32
        ASSERT_NEAR(v.at(k), found[1].outputs.at(name).at(k), 1e-5 * largest) << n.name << " " << name;
    }
  }
}

TEST(LayerComposites, SayWhatDoesNotFit) {
  Graph g;
  const Tensor x = g.input("x", {2, 4, 6}), v = g.input("v", {6}), w = g.input("w", {4});
  const auto problem = [](const CompositeRef& c, std::vector<Tensor> in, Attributes a) -> std::string {
    try {
      call(c, std::move(in), std::move(a));
    } catch (const Error& e) {
      const std::string what = e.what();
      return what.substr(0, what.find(" (at "));
    }
    return "";
  };
  const Attributes one{{"axes", 1}, {"eps", 1e-5}}, scaled{{"scale", 1.0}, {"causal", 0}};
  EXPECT_EQ(problem(builtin::layer_norm(), {x, v, v, v}, one), "layer_norm: takes 1 to 3 operands, not 4");
  EXPECT_EQ(problem(builtin::layer_norm(), {x, w}, one),
            "layer_norm: a weight or bias [4] does not fit the normalized shape [6]");
  EXPECT_EQ(problem(builtin::rms_norm(), {x}, {{"axes", 4}, {"eps", 1e-5}}),
            "rms_norm: 4 axes are not the last ones of [2, 4, 6]");
  EXPECT_EQ(problem(builtin::group_norm(), {x}, {{"groups", 3}, {"eps", 1e-5}}),
            "group_norm: 3 groups do not divide 4 channels");
  EXPECT_EQ(problem(builtin::rope(), {x, w, w}, {{"interleaved", 0}}), "rope: angles of [4] do not fit [2, 4, 6]");
  EXPECT_EQ(problem(builtin::attention(), {x, x}, scaled),
            "scaled_dot_product_attention: takes 3 to 4 operands, not 2");
  EXPECT_EQ(problem(builtin::attention(), {x, x, x, v}, scaled),
            "scaled_dot_product_attention: a mask [6] does not fit scores [2, 4, 4]");
}

}  // namespace lc
