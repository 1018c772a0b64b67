// The CPU back end computes what the reference does with odd values: NaN, infinities, zeros of both signs, the ends of
// every integer type, negative indices, and quantized blocks of any bytes.
#include "lightcone/backends/cpu/cpu.h"

#include <cmath>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "agree.h"

using namespace lc;
using namespace lc::test;

namespace {

// Returns all pairs of the numbers, as two columns.
std::map<std::string, std::vector<float>> pairs_of(const std::vector<float>& numbers) {
  std::map<std::string, std::vector<float>> m;
  for (float x : numbers)
    for (float y : numbers) {
      m["a"].push_back(x), m["b"].push_back(y);
      m["rows"].push_back(x), m["rows"].push_back(y);
    }
  m["columns"] = m["a"];
  m["columns"].insert(m["columns"].end(), m["b"].begin(), m["b"].end());
  return m;
}

}  // namespace

// A reciprocal shows the sign of a zero. A row and a column are reduced by different code.
TEST(Cpu, OddFloats) {
  const auto pairs =
      pairs_of({NAN, -NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1, -1, 2.5f, -2.5f, 300, -300, 3e38f, -3e38f});
  const auto n = static_cast<std::int64_t>(pairs.at("a").size());
  for (DType t : {DType::F32, DType::F64}) {
    Graph g;
    const Tensor a = g.input("a", {n}, t), b = g.input("b", {n}, t);
    const Tensor most[] = {prim::maximum(a, b), prim::minimum(a, b), prim::max_reduce(g.input("rows", {n, 2}, t), 1),
                           prim::max_reduce(g.input("columns", {2, n}, t), 0), prim::mod(a, b)};
    for (std::size_t i = 0; i < std::size(most); ++i) {
      g.output(str_cat("y", i), most[i]);
      g.output(str_cat("sign", i), prim::recip(most[i]));
    }
    for (const DTypeInfo& to : kDTypes)
      if (to.dtype != t) g.output(str_cat("to ", to.name), prim::cast(a, to.dtype));
    g.output("less", prim::less_than(a, b));
    g.output("equal", prim::equal(a, b));
    agree(g, pairs);
  }
}

TEST(Cpu, OddIntegers) {
  const std::pair<DType, std::vector<float>> cases[] = {
      {DType::I8, {-128, -127, -7, -3, -1, 0, 1, 3, 7, 126, 127}},
      {DType::I32, {-0x1p31f, -0x1p31f + 256, -7, -3, -1, 0, 1, 3, 7, 0x1p31f - 256}},
      {DType::I64, {-0x1p63f, -0x1p40f, -7, -3, -1, 0, 1, 3, 7, 0x1p62f}},
      {DType::I16, {-32768, -32767, -7, -3, -1, 0, 1, 3, 7, 32767}},
      {DType::U8, {0, 1, 3, 7, 254, 255}},
      {DType::U16, {0, 1, 3, 7, 0x1p15f, 65534, 65535}},
      {DType::U32, {0, 1, 3, 7, 0x1p31f, 0x1p32f - 256}},
      {DType::U64, {0, 1, 3, 7, 0x1p63f, 0x1p64f - 0x1p40f}}};
  for (const auto& [t, numbers] : cases) {
    const auto pairs = pairs_of(numbers);
    const auto n = static_cast<std::int64_t>(pairs.at("a").size());
    Graph g;
    const Tensor a = g.input("a", {n}, t), b = g.input("b", {n}, t);
    int i = 0;
    for (const Tensor& y :
         {prim::div(a, b), prim::mod(a, b), prim::pow(a, b), prim::add(a, b), prim::mul(a, b), prim::maximum(a, b),
          prim::minimum(a, b), prim::less_than(a, b), prim::equal(a, b), prim::bitwise_and(a, b),
          prim::bitwise_or(a, b), prim::bitwise_xor(a, b), prim::max_reduce(g.input("rows", {n, 2}, t), 1),
          prim::sum_reduce(g.input("columns", {2, n}, t), 0)})
      g.output(str_cat("y", i++), y);
    agree(g, pairs);
  }
}

// Index expressions divide towards minus infinity.
TEST(Cpu, OddIndices) {
  Graph g;
  const Dim n = Dim::symbol("n", 1, 4), i = Dim::index(0, 21) - 10;
  g.output("floor", g.index({21}, i / Dim(3)));
  g.output("rest", g.index({21}, i % Dim(3)));
  g.output("floor n", g.index({21}, i / n));
  g.output("rest n", g.index({21}, i % n));
  for (std::int64_t by : {1, 3, 4}) agree(g, {}, {{"n", by}});
}

// Blocks may have any bytes, including scales that are NaN or infinite.
TEST(Cpu, BlocksOfAnyBytes) {
  std::mt19937 random(7);
  for (const QuantInfo& q : kQuantFormats) {
    Graph g;
    const int count = 4000 / q.bytes * 8;
    const Tensor v = prim::dequantize(g.input("blocks", {count, q.bytes}, DType::U8), q.format);
    g.output("v", v);
    g.output("sign", prim::recip(v));  // shows the signs of zeros
    std::vector<float> bytes(static_cast<std::size_t>(count * q.bytes));
    // a half with the upper byte 7c is not a finite number
    for (float& b : bytes) b = static_cast<float>(random() % 4 ? random() % 256 : 0x7c);
    agree(g, {{"blocks", bytes}});
  }
}
