// Texts that are divided along their length: attention in a ring and by heads, against attention to the whole text.
#include <cmath>
#include <mutex>
#include <random>

#include <gtest/gtest.h>

#include "lightcone/autograd/autograd.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/distributed/sharding/ring.h"
#include "lightcone/distributed/sharding/shard.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "lightcone/verify/random_graph.h"
#include "ranks.h"

namespace lc {
namespace {

using Floats = std::vector<float>;
using test::run_ranks;

void expect_none(const std::vector<std::string>& thrown) {
  for (const std::string& what : thrown) EXPECT_EQ(what, "");
}

enum class MaskKind { None, Keys, Queries, Both, Heads, Added };

struct Case {
  std::int64_t texts, heads, key_heads, queries, keys, depth, value;
  bool causal;
  MaskKind mask;
};

using Attend = std::function<Tensor(Tensor q, Tensor k, Tensor v, Tensor mask, bool causal)>;

Shape mask_shape(const Case& c) {
  switch (c.mask) {
    case MaskKind::None: return {};
    case MaskKind::Keys: return {c.texts, 1, 1, c.keys};
    case MaskKind::Queries: return {c.queries, 1};
    case MaskKind::Both: return {c.queries, c.keys};
    case MaskKind::Heads: return {c.heads, c.queries, c.keys};
    case MaskKind::Added: return {c.heads, c.queries, c.keys};
  }
  return {};
}

// Attention and its derivative, of which `n` ranks divide the text.
Graph graph_of(const Case& c, int n, DType type, const Attend& attend) {
  Graph g;
  const Tensor q = g.input("q", {c.texts, c.heads, c.queries / n, c.depth}, type),
               k = g.input("k", {c.texts, c.key_heads, c.keys / n, c.depth}, type),
               v = g.input("v", {c.texts, c.key_heads, c.keys / n, c.value}, type),
               w = g.input("w", {c.texts, c.heads, c.queries / n, c.value}, type);
  std::vector<Tensor> wrt{q, k, v};
  Tensor mask;
  if (c.mask != MaskKind::None) {
    Shape s = mask_shape(c);
    if (s.size() >= 2 && !(s[s.size() - 2] == Dim(1))) s[s.size() - 2] = s[s.size() - 2] / Dim(n);
    else if (s.size() >= 2) s.back() = s.back() / Dim(n);  // keys of this rank
    mask = g.input("mask", s, c.mask == MaskKind::Added ? type : DType::Bool);
    if (c.mask == MaskKind::Added) wrt.push_back(mask);
  }
  const Tensor y = attend(q, k, v, mask, c.causal);
  g.output("y", y);
  const auto d = gradients(sum(mul(y, w)), wrt);
  for (std::size_t i = 0; i < d.size(); ++i) g.output("d" + g[wrt[i].edge().node].name, d[i]);
  return g;
}

Tensor whole(Tensor q, Tensor k, Tensor v, Tensor mask, bool causal) {
  return scaled_dot_product_attention(q, k, v, {.attn_mask = mask, .is_causal = causal});
}

// How arrays are divided: along their queries, or keys.
ShardSpecs specs_of(const Case& c) {
  ShardSpecs s;
  for (const char* name : {"q", "k", "v", "w"}) s.push_back({name, {"", "", "seq"}});
  const Shape m = mask_shape(c);
  ShardSpec mask{"mask", std::vector<std::string>(m.size())};
  if (m.size() >= 2) mask.axes[m[m.size() - 2] == Dim(1) ? m.size() - 1 : m.size() - 2] = "seq";
  if (c.mask != MaskKind::None) s.push_back(mask);
  return s;
}

Value cut(const Mesh& mesh, int rank, const ShardSpecs& specs, const std::string& name, const Value& v) {
  Value wide = v;
  if (is_float(v.dtype)) wide.dtype = DType::F64;
  std::vector<std::byte> bytes(wide.size() * size_of(wide.dtype));
  write_value(wide, bytes.data());
  const ArrayPart part = part_of(mesh, rank, specs, name, ArrayView{wide.dtype, wide.shape, bytes});
  Value out = read_value(part.bytes.data(), wide.dtype, part.shape);
  out.dtype = v.dtype;
  return out;
}

Case random_case(std::mt19937_64& random, int n) {
  const auto one_of = [&](std::initializer_list<std::int64_t> all) { return *(all.begin() + random() % all.size()); };
  Case c{};
  c.texts = one_of({1, 2}), c.key_heads = one_of({1, 2, 4}), c.heads = c.key_heads * one_of({1, 1, 2, 3});
  c.queries = n * one_of({1, 2, 3}), c.keys = random() % 2 ? c.queries : n * one_of({1, 2, 4});
  c.depth = one_of({1, 3, 4}), c.value = one_of({2, 4});
  c.causal = random() % 2 == 0;
  c.mask = static_cast<MaskKind>(random() % 6);
  if (c.mask == MaskKind::Keys && c.keys == n) c.keys = 2 * n;  // a column for one key of a rank would hold for all
  return c;
}

std::map<std::string, Value> inputs_of(const Graph& g, std::uint64_t seed, bool all_attend) {
  std::map<std::string, Value> in = random_inputs(g, {}, seed, false);
  std::mt19937_64 random(seed);
  if (const auto mask = in.find("mask"); mask != in.end() && mask->second.dtype == DType::Bool)
    for (auto& x : mask->second.i) x = all_attend || random() % 4 != 0;
  return in;
}

void expect_close(const Value& got, const Value& want, double room, const std::string& what) {
  ASSERT_EQ(got.shape, want.shape) << what;
  for (std::size_t k = 0; k < got.size(); ++k) {
    const double x = got.at(k), y = want.at(k);
    // A query without keys makes the cotangents of all keys NaN, but not of those that a ring knows it does not see.
    if (std::isnan(y) && what.find(", d") != std::string::npos) continue;
    ASSERT_TRUE((std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= room * (1 + std::abs(y)))
        << what << ": element " << k << " is " << x << ", not " << y;
  }
}

// By the reference, which is in f64, all ranks get their part of what attention to the whole text gives, NaN included;
// processors do within f32's rounding.
TEST(RingAttention, AgreesWithTheWholeText) {
  std::mt19937_64 random(42);
  int by_heads = 0, causal = 0;
  for (int k = 0; k < 80 && !::testing::Test::HasFailure(); ++k) {
    const int n = std::vector<int>{1, 2, 3, 4}[random() % 4];
    const Case c = random_case(random, n);
    const Graph g = graph_of(c, 1, DType::F64, whole);
    const auto inputs = inputs_of(g, static_cast<std::uint64_t>(k), k % 2 == 0);
    const Results want = interpret(g, inputs);
    const ShardSpecs specs = specs_of(c);
    const Mesh mesh({{"seq", n}});
    const bool heads = c.heads % n == 0 && c.key_heads % n == 0;
    by_heads += heads && n > 1, causal += c.causal;
    for (const bool ring : {true, false}) {
      if (!ring && !heads) continue;
      std::mutex mutex;
      expect_none(run_ranks(mesh, [&](const Collectives& r) {
        const Attend attend = [&](Tensor q, Tensor key, Tensor v, Tensor mask, bool is_causal) {
          const TextAttentionOptions o{.is_causal = is_causal, .attn_mask = mask};
          return ring ? ring_attention(r, "seq", q, key, v, o) : all_to_all_attention(r, "seq", q, key, v, o);
        };
        std::map<std::string, Value> parts;
        for (const auto& [name, v] : inputs) parts[name] = cut(mesh, r.rank(), specs, name, v);
        const Results got = interpret(graph_of(c, n, DType::F64, attend), parts);
        const Graph narrow = graph_of(c, n, DType::F32, attend);
        Context cpu_run(compile(narrow, generic() | cpu({.threads = 1, .compiler = false})));
        for (const auto& [name, v] : parts)
          if (is_float(v.dtype)) cpu_run.set(name, Floats(v.f.begin(), v.f.end()));
          else cpu_run.set(name, Floats(v.i.begin(), v.i.end()));
        cpu_run.run();
        const std::lock_guard lock(mutex);
        for (const auto& [name, v] : want.outputs) {
          const Value part = cut(mesh, r.rank(), specs, name == "y" ? "w" : name.substr(1), v);
          const std::string what =
              str_cat("case ", k, ring ? ", ring of " : ", heads over ", n, ", rank ", r.rank(), ", ", name);
          expect_close(got.outputs.at(name), part, 1e-12, what);
          Value on_cpu = part;
          const Floats y = cpu_run.get(name);
          on_cpu.f.assign(y.begin(), y.end());
          expect_close(on_cpu, part, 1e-4, what + " on the CPU");
        }
      }));
    }
  }
  EXPECT_GT(by_heads, 8);
  EXPECT_GT(causal, 10);
}

// shard(): texts divided along queries, keys or both, and heads or texts along another axis.
TEST(ShardedAttention, AgreesWithTheWholeText) {
  std::mt19937_64 random(7);
  std::map<std::string, int> fired;
  const Mesh meshes[] = {Mesh({{"seq", 2}}), Mesh({{"seq", 3}}), Mesh({{"seq", 4}}), Mesh({{"seq", 2}, {"other", 2}}),
                         Mesh({{"other", 2}, {"seq", 2}})};
  for (int k = 0; k < 60 && !::testing::Test::HasFailure(); ++k) {
    const Mesh& mesh = meshes[k % std::size(meshes)];
    const Case c = random_case(random, mesh.axes().size() > 1 ? 2 : mesh.size());
    const Graph g = graph_of(c, 1, DType::F64, whole);
    const auto inputs = inputs_of(g, static_cast<std::uint64_t>(k), true);
    const Results want = interpret(g, inputs);
    const auto divided = [&](std::int64_t extent) { return extent % 2 == 0 && mesh.axes().size() > 1; };
    const std::string other = random() % 4 ? "other" : "";
    const std::string heads = divided(c.heads) && divided(c.key_heads) ? other : "";
    const std::string texts = heads.empty() && divided(c.texts) ? other : "";
    const std::string queries = random() % 4 ? "seq" : "", keys = random() % 4 ? "seq" : "";
    const ShardSpecs specs{{"q", {texts, heads, queries}}, {"k", {texts, heads, keys}}, {"v", {texts, heads, keys}}};
    std::mutex mutex;
    expect_none(run_ranks(mesh, [&](const Collectives& r) {
      const Compiled made = transform(g, shard(r, specs));
      std::map<std::string, Value> parts;
      for (const auto& [name, v] : inputs) parts[name] = cut(mesh, r.rank(), specs, name, v);
      const Results got = interpret(made.graph, parts);
      const std::lock_guard lock(mutex);
      for (const auto& [name, v] : want.outputs)
        expect_close(got.outputs.at(name), v, 1e-12,
                     str_cat("case ", k, " on ", mesh, ", rank ", r.rank(), ", ", name));
      for (const auto& [name, n] : made.log[0].fired) fired[name] += n;
    }));
  }
  EXPECT_GT(fired["permute"], 100);
  EXPECT_GT(fired["all_to_all"], 50);
}

}  // namespace
}  // namespace lc
