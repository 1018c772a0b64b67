// Integers of every type give the answers of PyTorch and NumPy (tests/goldens/integers.txt), in the reference, as
// primitives and compiled.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <sstream>

#include "error_of.h"
#include "golden_cases.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/jit/llvm.h"
#include "lightcone/ops/special/special.h"
#include "lightcone/passes/passes.h"
#include "lightcone/verify/verify.h"
#include "paths.h"

using namespace lc;

namespace {

using T = const std::vector<Tensor>&;
// clang-format off
const std::map<std::string, std::function<Tensor(T)>> kFunctions{
    {"add", [](T t) { return t[0] + t[1]; }},
    {"sub", [](T t) { return t[0] - t[1]; }},
    {"mul", [](T t) { return t[0] * t[1]; }},
    {"floor_divide", [](T t) { return floor_divide(t[0], t[1]); }},
    {"remainder", [](T t) { return remainder(t[0], t[1]); }},
    {"fmod", [](T t) { return fmod(t[0], t[1]); }},
    {"pow", [](T t) { return pow(t[0], t[1]); }},
    {"maximum", [](T t) { return maximum(t[0], t[1]); }},
    {"minimum", [](T t) { return minimum(t[0], t[1]); }},
    {"bitwise_and", [](T t) { return bitwise_and(t[0], t[1]); }},
    {"bitwise_or", [](T t) { return bitwise_or(t[0], t[1]); }},
    {"bitwise_xor", [](T t) { return bitwise_xor(t[0], t[1]); }},
    {"bitwise_not", [](T t) { return bitwise_not(t[0]); }},
    {"bitwise_left_shift", [](T t) { return bitwise_left_shift(t[0], t[1]); }},
    {"bitwise_right_shift", [](T t) { return bitwise_right_shift(t[0], t[1]); }},
    {"lt", [](T t) { return t[0] < t[1]; }},
    {"eq", [](T t) { return eq(t[0], t[1]); }},
    {"amax", [](T t) { return amax(t[0]); }},
    {"amin", [](T t) { return amin(t[0]); }},
    {"argmin", [](T t) { return argmin(t[0]); }},
    {"sum", [](T t) { return sum(t[0]); }},
    {"cumsum", [](T t) { return cumsum(t[0], 0); }},
    {"cummin", [](T t) { return cummin(t[0], 0).values; }},
    {"sort", [](T t) { return sort(t[0], 0).values; }},
    {"argsort", [](T t) { return argsort(t[0], 0); }},
    {"population_count", [](T t) { return population_count(t[0]); }},
    {"count_leading_zeros", [](T t) { return count_leading_zeros(t[0]); }},
};
// clang-format on

Tensor made(const std::string& name, T t) { return kFunctions.at(name.substr(0, name.find(' ')))(t); }
Cases all_cases() { return cases_of("integers.txt", made); }

// Reads the goldens' lines "promote A B C".
std::vector<std::array<std::string, 3>> promotions() {
  std::ifstream f(std::string(paths::kSource) + "/tests/goldens/integers.txt");
  std::vector<std::array<std::string, 3>> all;
  for (std::string line; std::getline(f, line);) {
    std::istringstream s(line);
    std::string kind;
    std::array<std::string, 3> types;
    if (s >> kind >> types[0] >> types[1] >> types[2] && kind == "promote") all.push_back(types);
  }
  return all;
}

}  // namespace

TEST(Integers, ByTheReference) {
  const Cases c = all_cases();
  expect_answers(c, interpreted(c, {}), "the reference");
  expect_answers(c, interpreted(c, generic()), "the reference behind generic()");
}

TEST(Integers, ByTheirDefinitions) {
  const Cases c = all_cases();
  expect_answers(c, interpreted(c, primitives_only()), "the twelve");
}

TEST(Integers, ByKernels) {
  const Cases c = all_cases();
  expect_answers(c, compiled(c, "none"), "the kernel IR's interpreter");
  if (!backends::cpu::find_llvm().path.empty()) expect_answers(c, compiled(c, "llvm"), "LLVM");
  if (const std::string found = backends::cpu::find_compiler(); !found.empty() && found != backends::cpu::kLlvm)
    expect_answers(c, compiled(c, ""), "the C compiler");
}

TEST(Integers, PromoteAsInPyTorch) {
  const auto all = promotions();
  ASSERT_EQ(all.size(), std::size(kDTypes) * std::size(kDTypes));
  for (const auto& [a, b, both] : all) {
    Graph g;
    const Tensor x = g.input("x", {2}, type_named(a)), y = g.input("y", {2}, type_named(b));
    if (both == "none") {
      EXPECT_NE(error_of([&] { x + y; }).find(str_cat(a, " and ", b, " are brought to no common type")),
                std::string::npos);
    } else {
      EXPECT_EQ(name((x + y).dtype()), both) << a << " with " << b;
    }
  }
}

// Constants are exact as built, folded and compiled.
TEST(Integers, ConstantsAreExact) {
  constexpr std::uint64_t kNumbers[] = {
      0, 1, 255, 65536, (1ull << 53) + 1, 1ull << 63, (1ull << 63) + 1, ~std::uint64_t{0}, ~std::uint64_t{0} - 1};
  Graph g;
  std::map<std::string, std::uint64_t> want;
  for (const std::uint64_t n : kNumbers) {
    const Tensor c = g.constant(n, DType::U64), one = g.constant(1, DType::U64);
    g.output(str_cat(n), c), want[str_cat(n)] = n;
    g.output(str_cat(n, " + 1"), prim::add(c, one)), want[str_cat(n, " + 1")] = n + 1;
    g.output(str_cat(n, " / 3"), prim::div(c, g.constant(3, DType::U64))), want[str_cat(n, " / 3")] = n / 3;
    g.output(str_cat(n, " xor 1"), prim::bitwise_xor(c, one)), want[str_cat(n, " xor 1")] = n ^ 1;
  }
  g.output("-1", g.constant(-1, DType::U64)), want["-1"] = ~std::uint64_t{0};
  g.output("-5", full(g, {}, -5.0, DType::U64)), want["-5"] = ~std::uint64_t{0} - 4;
  g.output("-1 u32", g.constant(-1, DType::U32)), want["-1 u32"] = 0xffffffff;
  g.output("-2 u16", g.constant(-2, DType::U16)), want["-2 u16"] = 0xfffe;
  g.output("too large", g.constant(70000, DType::U16)), want["too large"] = 0xffff;
  g.output("2^64", g.constant(0x1p64, DType::U64)), want["2^64"] = ~std::uint64_t{0};
  const Graph folded = transform(g, generic()).graph;
  for (NodeId id = 0; id < folded.size(); ++id)
    EXPECT_TRUE(!folded.live()[id] || info(folded[id].op).kind == Kind::Leaf) << folded.str();
  for (const char* compiler : {"none", ""})
    for (const auto& [name, v] :
         run_values(transform(g, cpu({.threads = 1, .jit = {.compiler = compiler}})).graph, {}, {}).outputs)
      EXPECT_EQ(static_cast<std::uint64_t>(v.i[0]), want.at(name)) << name;
  for (const auto& [name, v] : interpret(folded, {}).outputs)
    EXPECT_EQ(static_cast<std::uint64_t>(v.i[0]), want.at(name)) << name;
}

// Shifts by a number equal shifts by a tensor. If the amount is outside [0, bits), the result is 0 or the sign.
TEST(Integers, ShiftsByNumbersAndByTensors) {
  for (const DTypeInfo& t : kDTypes) {
    if (!is_integer(t.dtype)) continue;
    const int bits = 8 * t.bytes;
    Graph g;
    const Tensor x = g.input("x", {5}, t.dtype);
    std::map<std::string, Value> in{{"x", make_value(t.dtype, {5})}};
    in["x"].i = {0, 1, t.highest, t.lowest, t.highest / 3};
    const std::set<int> places{0, 1, 7, bits - 1, bits, bits + 9, -1};
    for (const int k : places) {
      const Tensor number = full(g, {}, k, t.dtype), tensor = g.input(str_cat("by ", k), {5}, t.dtype);
      in[str_cat("by ", k)] = make_value(t.dtype, {5});
      std::uint64_t raw = 0;
      store_i64(&raw, t.dtype, 0, k);
      in[str_cat("by ", k)].i.assign(5, load_i64(&raw, t.dtype, 0));
      bitwise_left_shift(x, number).retrieve(str_cat("left ", k, " number"));
      bitwise_left_shift(x, tensor).retrieve(str_cat("left ", k, " tensor"));
      bitwise_right_shift(x, number).retrieve(str_cat("right ", k, " number"));
      bitwise_right_shift(x, tensor).retrieve(str_cat("right ", k, " tensor"));
    }
    const auto r = interpret(g, in).outputs;
    for (const int k : places)
      for (std::size_t e = 0; e < 5; ++e) {
        const bool inside = k >= 0 && k < bits;
        std::uint64_t raw = 0;
        store_i64(&raw, t.dtype, 0,
                  inside ? static_cast<std::int64_t>(static_cast<std::uint64_t>(in["x"].i[e]) << k) : 0);
        const std::int64_t left = load_i64(&raw, t.dtype, 0), x = in["x"].i[e];
        const std::int64_t right = inside && is_unsigned(t.dtype)
                                       ? static_cast<std::int64_t>(static_cast<std::uint64_t>(x) >> k)
                                   : inside ? x >> k
                                            : (t.lowest < 0 && x < 0 ? -1 : 0);
        for (const char* by : {" number", " tensor"}) {
          EXPECT_EQ(r.at(str_cat("left ", k, by)).i[e], left) << t.name << " " << x << " << " << k << by;
          EXPECT_EQ(r.at(str_cat("right ", k, by)).i[e], right) << t.name << " " << x << " >> " << k << by;
        }
      }
  }
}

// All 16-bit patterns survive conversions in both directions; NaN stays NaN.
TEST(Integers, EveryHalfKeepsItsBits) {
  for (const DType half : {DType::F16, DType::BF16}) {
    Graph g;
    const Tensor x = g.input("x", {65536}, DType::U16), y = bitcast(x, half);
    bitcast(y, DType::U16).retrieve("back");
    bitcast(prim::cast(y, DType::F32), DType::U32).retrieve("wide");
    y.retrieve("half");
    std::map<std::string, Value> in{{"x", make_value(DType::U16, {65536})}};
    for (std::size_t k = 0; k < 65536; ++k) in["x"].i[k] = static_cast<std::int64_t>(k);
    for (const char* way : {"reference", "none", "llvm", ""}) {
      if (way == std::string("llvm") && backends::cpu::find_llvm().path.empty()) continue;
      const auto r =
          way == std::string("reference")
              ? interpret(g, in, {}, Rounding::Storage).outputs
              : run_values(transform(g, cpu({.threads = 1, .jit = {.compiler = way}})).graph, in, {}).outputs;
      for (std::size_t k = 0; k < 65536; ++k) {
        const auto bits = static_cast<std::uint16_t>(k);
        const float want = half == DType::F16 ? f16_to_f32(bits) : bf16_to_f32(bits);
        if (std::isnan(want)) {
          ASSERT_TRUE(std::isnan(r.at("half").f[k])) << name(half) << " " << k << " by " << way;
          continue;
        }
        ASSERT_EQ(r.at("half").f[k], want) << name(half) << " " << k << " by " << way;
        ASSERT_EQ(r.at("back").i[k], bits) << name(half) << " by " << way;
        ASSERT_EQ(r.at("wide").i[k], std::bit_cast<std::uint32_t>(want)) << name(half) << " by " << way;
      }
    }
  }
}

TEST(Integers, Mistakes) {
  Graph g;
  const Tensor f = g.input("f", {3}), u = g.input("u", {3}, DType::U32), i = g.input("i", {3}, DType::I64),
               b = g.input("b", {3}, DType::Bool), wide = g.input("wide", {3}, DType::U64);
  const auto expect = [](const std::function<void()>& what, const std::string& sentence) {
    EXPECT_NE(error_of(what).find(sentence), std::string::npos) << error_of(what);
  };
  expect([&] { u + i; },
         "u32 and i64 are brought to no common type, as in PyTorch; cast one: i64 holds the numbers of both");
  expect([&] { wide + i; },
         "u64 and i64 are brought to no common type, as in PyTorch; cast one: u64 fits into no signed type");
  expect([&] { bitcast(f, DType::I64); }, "bitcast: the bits of f32 are none of i64");
  expect([&] { bitcast(b, DType::U8); }, "bitcast: the bits of bool are none of u8");
  expect([&] { prim::bitwise_and(f, f); }, "bitwise_and: needs an operand of integers or bool, not f32");
  expect([&] { population_count(b); }, "population_count: is for integers, not bool");
  expect([&] { count_leading_zeros(f); }, "count_leading_zeros: is for integers, not f32");
}
