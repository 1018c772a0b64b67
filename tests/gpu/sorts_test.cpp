// Sorts and scatters are right on every GPU device, for rows of any length with equal elements, NaN and both zeros, and
// for every type.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "gpu_devices.h"
#include "lightcone/composites/composites.h"
#include "lightcone/core/array_view.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"

using namespace lc;

namespace {

using i64 = std::int64_t;
using Extents = std::vector<i64>;
constexpr DType kTypes[] = {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I8,  DType::I16, DType::I32,
                            DType::I64, DType::U8,  DType::U16, DType::U32,  DType::U64, DType::Bool};

struct Array {
  DType type;
  Extents shape;
  std::vector<std::byte> bytes;
  Array(DType t, Extents s)
      : type(t),
        shape(std::move(s)),
        bytes(static_cast<std::size_t>(std::accumulate(shape.begin(), shape.end(), i64{1}, std::multiplies<>())) *
              size_of(t)) {}
  std::size_t size() const { return bytes.size() / size_of(type); }
  double f(std::size_t k) const { return load_f64(bytes.data(), type, k); }
  i64 i(std::size_t k) const { return load_i64(bytes.data(), type, k); }
  void set(std::size_t k, double v) { store_f64(bytes.data(), type, k, v); }
  void set_integer(std::size_t k, i64 v) { store_i64(bytes.data(), type, k, v); }
  ArrayView view() const { return {type, shape, bytes}; }
};

// A third of the elements are edge cases of the type or equal to others, a third differ only in their last bits.
Array elements(DType t, Extents shape, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Array a(t, std::move(shape));
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const double edges[] = {0.0, -0.0, nan, -nan, inf, -inf, 1, -1, 65504, 1e-40, -1e-40, 6e-8};
  const i64 integers[] = {
      0, 1, -1, std::numeric_limits<i64>::min(), std::numeric_limits<i64>::max(), INT32_MIN, INT32_MAX, 127, -128, 255};
  for (std::size_t k = 0; k < a.size(); ++k) {
    const auto way = random() % 3;
    if (is_float(t)) {
      if (way == 0) a.set(k, edges[random() % std::size(edges)]);
      else
        a.set(k, way == 1 ? 1 + static_cast<double>(random() % 1000) * 0x1p-50
                          : std::ldexp(static_cast<double>(static_cast<i64>(random())), -62));
    } else if (t == DType::Bool) {
      a.set_integer(k, static_cast<i64>(random() % 2));
    } else {
      if (way == 0) a.set_integer(k, integers[random() % std::size(integers)]);
      else a.set_integer(k, way == 1 ? static_cast<i64>(random() % 10) : static_cast<i64>(random()));
    }
  }
  return a;
}

struct Axis {  // the sorted axis is `length`
  i64 outer, length, inner;
  std::size_t at(i64 o, i64 k, i64 i) const { return static_cast<std::size_t>((o * length + k) * inner + i); }
};

std::vector<i64> order_of(const Array& a, const Axis& axis, bool descending) {
  std::vector<i64> out(a.size()), order(static_cast<std::size_t>(axis.length));
  const auto less = [&](std::size_t p, std::size_t q) {
    if (is_float(a.type)) return a.f(p) < a.f(q) || (std::isnan(a.f(q)) && !std::isnan(a.f(p)));
    if (a.type == DType::U64) return static_cast<std::uint64_t>(a.i(p)) < static_cast<std::uint64_t>(a.i(q));
    return a.i(p) < a.i(q);
  };
  for (i64 o = 0; o < axis.outer; ++o)
    for (i64 i = 0; i < axis.inner; ++i) {
      std::iota(order.begin(), order.end(), i64{0});
      std::stable_sort(order.begin(), order.end(), [&](i64 x, i64 y) {
        const std::size_t p = axis.at(o, x, i), q = axis.at(o, y, i);
        return descending ? less(q, p) : less(p, q);
      });
      for (i64 k = 0; k < axis.length; ++k) out[axis.at(o, k, i)] = order[static_cast<std::size_t>(k)];
    }
  return out;
}

// Returns the result of a sequential scatter in source order.
Array scattered(Array out, const Array& index, const Array& source, bool adds) {
  const Axis to{out.shape[0], out.shape[1], out.shape[2]}, from{index.shape[0], index.shape[1], index.shape[2]};
  for (i64 o = 0; o < from.outer; ++o)
    for (i64 k = 0; k < from.length; ++k)
      for (i64 i = 0; i < from.inner; ++i) {
        const std::size_t p = from.at(o, k, i);
        const i64 j = index.i(p);
        if (j < 0 || j >= to.length) continue;
        const std::size_t q = to.at(o, j, i);
        if (is_float(out.type)) out.set(q, (adds ? out.f(q) : 0) + source.f(p));
        else if (out.type == DType::Bool) out.set_integer(q, (adds && out.i(q)) || source.i(p));
        else
          out.set_integer(q, static_cast<i64>((adds ? static_cast<std::uint64_t>(out.i(q)) : 0) +
                                              static_cast<std::uint64_t>(source.i(p))));
      }
  return out;
}

// Numbers of many magnitudes, so that another order of additions gives other bits.
Array terms(DType t, Extents shape, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Array a(t, std::move(shape));
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (is_float(t))
      a.set(k, std::ldexp(static_cast<double>(random() % 2001) - 1000, -static_cast<int>(random() % 40)));
    else a.set_integer(k, t == DType::Bool ? random() % 8 == 0 : static_cast<i64>(random()));
  }
  return a;
}

// Random indices. Some are out of range and must be ignored. Half of the others are below `few`, so these get many
// sources.
Array indices(DType t, Extents shape, i64 length, i64 few, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Array a(t, std::move(shape));
  for (std::size_t k = 0; k < a.size(); ++k) {
    const i64 in_range = static_cast<i64>(random() % static_cast<std::uint64_t>(random() % 2 ? few : length));
    a.set_integer(k, random() % 16 == 0 ? (random() % 2 ? -1 : length) : in_range);
  }
  return a;
}

class Sorts : public test::OnGpu {
 protected:
  bool has(DType t) const { return t != DType::F64 || device->limits().f64; }
  void expect_scatter(const Context& c, const std::string& output, const Array& want) const {
    if (is_float(want.type)) {
      const auto got = c.get_f64(output);
      for (std::size_t k = 0; k < want.size(); ++k) ASSERT_EQ(got[k], want.f(k)) << output << " " << k;
    } else {
      const auto got = c.get_i64(output);
      for (std::size_t k = 0; k < want.size(); ++k) ASSERT_EQ(got[k], want.i(k)) << output << " " << k;
    }
  }
};
LIGHTCONE_ON_GPUS(Sorts);

// The sorted axis is in each position, with lengths known at compile time.
TEST_P(Sorts, OfRowsOfAnyLength) {
  struct Case {
    i64 outer, length, inner;
  };
  std::vector<Case> cases = {{3, 0, 2}, {0, 5, 2}, {700, 1, 1}, {3, 2, 5}, {130, 9, 1}, {1, 4099, 2}, {2, 9000, 1}};
  for (const i64 n : {32, 256, 1024, 2048})
    for (const i64 off : {-1, 0, 1}) cases.push_back({2, n + off, n < 1000 ? 3 : 1});
  Graph g;
  std::vector<Array> inputs;
  for (std::size_t k = 0; k < cases.size(); ++k) {
    const Case& c = cases[k];
    inputs.push_back(elements(DType::F32, {c.outer, c.length, c.inner}, k + 1));
    const Tensor x = g.input(str_cat("x", k), {c.outer, c.length, c.inner});
    g.output(str_cat("up", k), argsort(x, 1)), g.output(str_cat("down", k), argsort(x, 1, true));
  }
  const Program p = compile(g, generic() | compiler());
  Context run(p);
  for (std::size_t k = 0; k < cases.size(); ++k) run.set(str_cat("x", k), inputs[k].view());
  run.run();
  for (std::size_t k = 0; k < cases.size(); ++k) {
    const Axis axis{cases[k].outer, cases[k].length, cases[k].inner};
    EXPECT_EQ(run.get_i64(str_cat("up", k)), order_of(inputs[k], axis, false)) << axis.length;
    EXPECT_EQ(run.get_i64(str_cat("down", k)), order_of(inputs[k], axis, true)) << axis.length;
  }
}

// Selects a direction by type, because compiling takes most of the time of these tests.
bool descends(DType t) { return static_cast<int>(t) % 2 != 0; }

// Lengths are bound at run time, each twice: CUDA replays the second run as a graph.
TEST_P(Sorts, OfEveryType) {
  Graph g;
  const Dim n = Dim::symbol("n", 0, 6000);
  for (const DType t : kTypes)
    if (has(t)) {
      const Tensor x = g.input(str_cat("x ", name(t)), {2, n}, t);
      g.output(str_cat("y ", name(t)), argsort(x, 1, descends(t)));
    }
  const Program p = compile(g, generic() | compiler());
  Context run(p);
  for (const i64 length : {5000, 5000, 7, 0, 1, 1024, 1024, 1025, 3000}) {
    run.bind("n", length);
    std::map<DType, Array> inputs;
    for (const DType t : kTypes)
      if (has(t)) {
        const Array& a = inputs.emplace(t, elements(t, {2, length}, static_cast<std::uint64_t>(length))).first->second;
        run.set(str_cat("x ", name(t)), a.view());
      }
    run.run();
    for (const auto& [t, a] : inputs)
      EXPECT_EQ(run.get_i64(str_cat("y ", name(t))), order_of(a, {2, length, 1}, descends(t)))
          << name(t) << " " << length;
  }
}

// The order of a block's threads does not change the result.
TEST_P(Sorts, GiveTheSameInEveryOrderOfThreads) {
  if (GetParam().name != "cuda") GTEST_SKIP() << "the CUDA that runs on the CPU orders threads";
  Graph g;
  g.output("order", argsort(g.input("x", {3000}), 0));
  g.output("sums", prim::scatter_add(g.input("base", {40, 3}), g.input("i", {2000, 3}, DType::I64),
                                     g.input("s", {2000, 3}), 0));
  const Program p = compile(g, generic() | compiler());
  std::vector<std::vector<double>> sums;
  std::vector<std::vector<i64>> orders;
  for (const long way : {0, 1}) {
    if (!test::set_fake_cuda("order", way)) GTEST_SKIP() << "it is another CUDA";
    Context run(p);
    run.set("x", elements(DType::F32, {3000}, 1).view()).set("base", terms(DType::F32, {40, 3}, 2).view());
    run.set("i", indices(DType::I64, {2000, 3}, 40, 3, 3).view())
        .set("s", terms(DType::F32, {2000, 3}, 4).view())
        .run();
    sums.push_back(run.get_f64("sums")), orders.push_back(run.get_i64("order"));
  }
  test::set_fake_cuda("order", 0);
  EXPECT_EQ(sums[0], sums[1]);
  EXPECT_EQ(orders[0], orders[1]);
}

TEST_P(Sorts, ScatterInTheOrderOfTheSource) {
  Graph g;
  std::map<std::string, Array> inputs, wants;
  const auto add = [&](DType t, DType of_index, i64 count, i64 length, bool puts = false) {
    const std::string key = str_cat(name(t), " by ", name(of_index), " ", count);
    const Array base = terms(t, {2, length, 3}, 1), index = indices(of_index, {2, count, 3}, length, 2, 2),
                source = terms(t, {2, count, 3}, 3);
    const Tensor b = g.input("base " + key, {2, length, 3}, t), i = g.input("index " + key, {2, count, 3}, of_index),
                 s = g.input("source " + key, {2, count, 3}, t);
    if (puts) {
      g.output("put " + key, prim::scatter(b, i, s, 1));
      wants.emplace("put " + key, scattered(base, index, source, false));
    }
    g.output("sum " + key, prim::scatter_add(b, i, s, 1));
    wants.emplace("sum " + key, scattered(base, index, source, true));
    inputs.emplace("base " + key, base), inputs.emplace("index " + key, index), inputs.emplace("source " + key, source);
  };
  for (const DType t : {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I8, DType::I64, DType::Bool})
    if (has(t)) add(t, DType::I64, 700, 41, t == DType::F32 || t == DType::BF16);
  for (const i64 count : {0, 1, 32, 33, 2500}) add(DType::F32, DType::I32, count, 100);
  add(DType::F32, DType::I64, 60, 1);
  const Program p = compile(g, generic() | compiler());
  Context run(p);
  for (const auto& [name, a] : inputs) run.set(name, a.view());
  run.run();
  for (const auto& [name, want] : wants) expect_scatter(run, name, want);
}

// The gradient of an embedding: indices that are equal in all columns are sorted once, not per column.
TEST_P(Sorts, ScatterWholeRows) {
  constexpr i64 kCount = 1500, kWidth = 24, kRows = 90;
  Graph g;
  const Tensor base = g.input("base", {1, kRows, kWidth}), ids = g.input("ids", {kCount}, DType::I64),
               source = g.input("source", {1, kCount, kWidth});
  g.output("y", prim::scatter_add(base, ids.unsqueeze(0).unsqueeze(2).expand({1, kCount, kWidth}), source, 1));
  const Program p = compile(g, generic() | compiler());
  for (NodeId id = 0; id < p.graph().size(); ++id) {
    const auto& kernel = p.graph()[id].kernel;
    EXPECT_LT(kernel ? kernel->scratch_bytes(1).bounds().hi : 0, kCount * 64);
  }
  const Array b = terms(DType::F32, {1, kRows, kWidth}, 1), i = indices(DType::I64, {kCount}, kRows, 3, 2),
              s = terms(DType::F32, {1, kCount, kWidth}, 3);
  Array whole(DType::I64, {1, kCount, kWidth});
  for (std::size_t k = 0; k < whole.size(); ++k) whole.set_integer(k, i.i(k / kWidth));
  Context run(p);
  run.set("base", b.view()).set("ids", i.view()).set("source", s.view()).run();
  expect_scatter(run, "y", scattered(b, whole, s, true));
}

}  // namespace
