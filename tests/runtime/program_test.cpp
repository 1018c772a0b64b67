// Programs, contexts and sessions check the names, sizes and types that they are given, and say what does not fit.
#include "lightcone/runtime/program.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "error_of.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/lowering/types/half_precision.h"
#include "lightcone/nn/session.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "on_device.h"

using namespace lc;

TEST(Program, RunsOnTheInterpreterWithoutABackEnd) {
  Graph g;
  const Tensor a = g.input("a", {3}), b = g.input("b", {3});
  const Tensor y = prim::mul(prim::add(a, b), b).retrieve("y");
  const Program p = compile(g, generic());
  Context c(p);
  c.set(a, {1, 2, 3}).set(b, {4, 5, 6}).run();
  EXPECT_EQ(c.get(y), (std::vector<float>{20, 35, 54}));
  EXPECT_EQ(p.plan().input_bytes, 24u);
  EXPECT_EQ(p.interpreted(), 2u);
}

TEST(Program, EveryWayToGiveDataChecksItsSize) {
  Graph g;
  const Dim n = Dim::symbol("n", 2, 4);
  const Tensor x = g.input("x", {n}), w = g.input("w", {3});
  g.output("y", prim::sum_reduce(x, 0));
  g.output("z", prim::add(w, w));
  Program p = compile(g);
  alignas(4) const char bytes[24] = {};
  EXPECT_THROW(p.load("w", bytes, 8), Error);
  EXPECT_THROW(p.load("w", bytes, 16), Error);
  EXPECT_THROW(p.load("w", bytes + 1, 12), Error);  // floats need an alignment of four
  EXPECT_NO_THROW(p.load("w", bytes, 12));
  EXPECT_THROW(p.load("no such input", bytes, 1), Error);
  Context c(p);
  EXPECT_THROW(c.bind("n", 1), Error);
  EXPECT_THROW(c.bind("n", 5), Error);
  EXPECT_NO_THROW(c.bind("n", 2));
  EXPECT_THROW(c.set(x, {1, 2, 3, 4, 5}), Error);
  EXPECT_THROW(c.set("x", std::vector<std::int64_t>(5)), Error);
  EXPECT_THROW(c.set_bytes("x", bytes, 20), Error);
  EXPECT_THROW(c.set("nothing", std::vector<float>{1}), Error);
  float mine[4] = {1, 2, 4, 8};
  EXPECT_THROW(c.use("x", mine, 8), Error);  // the buffer must hold the largest size
  alignas(4) char odd[20] = {};
  EXPECT_THROW(c.use("x", odd + 1, 16), Error);  // alignment of four, as in load()
  EXPECT_THROW(c.run(), Error);                  // x has no value yet
  c.use("x", mine, sizeof mine).run();
  EXPECT_EQ(c.scalar("y"), 3);
  mine[0] = 10;  // read in place
  EXPECT_EQ(c.bind("n", 4).run().scalar("y"), 24);
  Context other(p);  // reads another context's memory, without a cast
  other.bind("n", 2).use("x", std::as_bytes(std::span<const float>(mine))).run();
  EXPECT_EQ(other.scalar("y"), 12);
  EXPECT_THROW(c.get("nothing"), Error);
  EXPECT_THROW(c.scalar("z"), Error);
}

// Sizes that are not whole elements are refused, and nothing next to a buffer is written.
TEST(Program, BytesAreWholeElementsAndStayInTheirBuffer) {
  Graph g;
  const Tensor a = g.input("a", {16}), b = g.input("b", {16}), h = g.input("h", {4}, DType::F16);
  g.assign(a, prim::add(a, b));
  g.assign(b, prim::add(b, b));
  g.output("y", prim::add(prim::cast(h, DType::F32), full_like(prim::cast(h, DType::F32), 1)));
  for (const Compiler& compiler : {generic(), generic() | test::device({.threads = 1})}) {
    Context c(compile(g, compiler));
    const std::vector<char> ones(80, 0x11);
    const std::vector<float> before = c.get("b");
    for (std::size_t bytes : {63, 65, 66, 67, 68, 80, 1})
      EXPECT_THROW(c.set_bytes("a", ones.data(), bytes), Error) << bytes;
    EXPECT_EQ(c.get("b"), before);
    for (std::size_t bytes : {7, 9, 10, 1}) EXPECT_THROW(c.set_bytes("h", ones.data(), bytes), Error) << bytes;
    EXPECT_THROW(c.set_bytes("h", nullptr, 8), Error);
    EXPECT_THROW(c.set_bytes("h", ones.data(), std::size_t{0} - 2), Error);
    EXPECT_NO_THROW(c.set_bytes("h", ones.data(), 8));
    alignas(4) char mine[64] = {};
    EXPECT_THROW(c.use("a", mine, 63), Error);
    EXPECT_THROW(c.use("a", nullptr, 64), Error);
  }
  Program p = compile(g, generic());
  EXPECT_THROW(p.load("h", nullptr, 8), Error);
}

// A result has as many bytes as its sizes imply, and impossible sizes are an Error.
TEST(Program, ResultsOfSizesThatDoNotFitAreRefused) {
  Graph g;
  const Dim n = Dim::symbol("n", 1, 64);
  const Tensor x = g.input("x", {n});
  g.output("y", prim::exp2(x.slice(0, 0, n - 2)));
  g.output("seen", x);
  for (const Compiler& compiler : {generic(), generic() | test::device({.threads = 1})}) {
    Context c(compile(g, compiler));
    EXPECT_THROW(c.bytes("y"), Error);  // no sizes are bound yet
    c.bind("n", 3).set("x", std::vector<float>{1, 2, 3}).run();
    EXPECT_EQ(c.bytes("y").size(), 4u);
    c.bind("n", 1);
    EXPECT_THROW(c.bytes("y"), Error);
    EXPECT_THROW(c.get("y"), Error);
    c.bind("n", 64);  // only three elements were given
    EXPECT_THROW(c.get("x"), Error);
    EXPECT_THROW(c.get("seen"), Error);
    EXPECT_THROW(c.bytes("seen"), Error);
    EXPECT_THROW(c.run(), Error);
  }
}

TEST(Program, AnInputThatNothingReadsTellsItsSizes) {
  Graph g;
  const Dim n = Dim::symbol("n", 1, 8);
  const Tensor x = g.input("x", {n, 0});
  g.output("y", full(g, {n}, 2.0) + sum(x, 1));
  const Program p = compile(g, generic() | cpu({.threads = 1, .compiler = false}));
  Context c(p);
  c.set("x", ArrayView{DType::F32, {3, 0}, {}});
  EXPECT_EQ(c.run().get("y"), (std::vector<float>{2, 2, 2}));
  EXPECT_NE(error_of([&] {
              c.set("x", ArrayView{DType::F32, {3, 1}, {}});
            }).find("which is f32 [n, 0]"),
            std::string::npos);
}

TEST(Program, ASliceOfAnArrayIsLoaded) {
  const std::vector<float> all = [] {
    std::vector<float> v(24);
    std::iota(v.begin(), v.end(), 0.0f);
    return v;
  }();
  const ArrayView array{DType::F32, {4, 6}, std::as_bytes(std::span(all))};
  Graph g;
  const Tensor rows = g.parameter("rows", {2, 6}), columns = g.parameter("columns", {4, 2});
  g.output("a", mul(rows, 2));
  g.output("b", mul(columns, 2));
  Program p = compile(g, generic() | test::device());
  p.load_slice("rows", array, 0, 1).load_slice("columns", array, -1, 3);
  Context c(p);
  c.run();
  EXPECT_EQ(c.get("a"), (std::vector<float>{12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34}));
  EXPECT_EQ(c.get("b"), (std::vector<float>{6, 8, 18, 20, 30, 32, 42, 44}));
  EXPECT_NE(error_of([&] {
              p.load_slice("rows", array, 0, 3);
            }).find("takes 2 elements of axis 0, and from 3 on the array has 1"),
            std::string::npos);
  EXPECT_NE(error_of([&] { p.load_slice("rows", array, 0, -1); }).find("axis 0"), std::string::npos);
  EXPECT_NE(error_of([&] { p.load_slice("columns", array, 0, 0); }).find("[4, 2]"), std::string::npos);
  EXPECT_NE(error_of([&] { p.load_slice("rows", array, 2, 0); }).find("axis 2"), std::string::npos);
}

// A name that the graph never had is an Error; a name that no result needs is not.
TEST(Program, NamesThatTheGraphNeverHadAreRefused) {
  Graph g;
  const Dim n = Dim::symbol("n", 1, 8), m = Dim::symbol("m", 1, 8);
  const Tensor x = g.input("x", {n});
  g.input("unread", {m, 2});
  g.output("y", prim::exp2(x));
  g.output("zero", prim::mul(sum(prim::mul(x, full_like(x, 0)), {0}), g.constant(0)));
  for (const Compiler& compiler : {Compiler(), generic(), generic() | test::device({.threads = 1})}) {
    Program p = compile(g, compiler);
    const std::vector<float> values(16);
    EXPECT_NO_THROW(p.load("unread", values.data(), 64));
    Context c(p);
    EXPECT_NO_THROW(c.bind("m", 3));
    EXPECT_THROW(c.bind("m", 9), Error);  // its bounds are still checked
    EXPECT_NO_THROW(c.set("unread", std::vector<float>(6)));
    try {
      c.bind("rows", 3);
      ADD_FAILURE() << "bound a size that no extent is named after";
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("m, n"), std::string::npos) << e.what();
    }
    try {
      p.load("weight", values.data(), 64);
      ADD_FAILURE() << "loaded an input that the graph does not have";
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("'weight'"), std::string::npos) << e.what();
    }
    EXPECT_THROW(p.load("rows", nullptr, 0), Error);
    EXPECT_THROW(c.set("weight", values), Error);
    c.bind("n", 2).set("x", std::vector<float>{1, 2}).run();
    EXPECT_EQ(c.get("y"), (std::vector<float>{2, 4}));
  }
}

// Arguments that would silently be truncated, ignored or skipped are refused.
TEST(Program, WhatCannotBeMeantIsRefused) {
  const auto refused = [](const auto& f) -> std::string {
    try {
      f();
    } catch (const Error& e) {
      return e.problem();
    }
    return "nothing was said";
  };
  Graph g;
  const Tensor ids = g.input("ids", {3}, DType::I64);
  EXPECT_EQ(refused([&] { compile(g, test::device({.threads = 1})); }),
            "the graph has no results: retrieve() what the program is to compute, or give a state its next value");
  g.output("y", prim::mul(ids, ids));
  const Program p = compile(g, generic());
  Context c(p);
  EXPECT_EQ(refused([&] {
              c.set("ids", std::vector<float>{1, 2, 1.5f});
            }),
            "'ids' is i64 and does not hold 1.5, its element 2");
  EXPECT_NE(refused([&] { c.set("ids", std::vector<float>{NAN, 2, 1}); }).find("does not hold nan"), std::string::npos);
  EXPECT_NO_THROW(c.set("ids", std::vector<float>{1, -2, 3}).run());
  EXPECT_EQ(refused([&] { compile(g, generic(), {.skip = {"genric"}}); }),
            "there is no pass 'genric' to skip; there are generic");
  EXPECT_EQ(refused([&] { compile(g, generic() | test::device({.threads = 1}) | half()); }),
            "the pass 'half f16' stands behind one that made kernels, as cpu() does, and would change nothing: put it "
            "before");
}

// A number that the type cannot represent is refused, not converted.
TEST(Program, NumbersThatATypeHasNotAreRefused) {
  Graph g;
  std::vector<std::string> names;
  for (const DType t : {DType::I8, DType::U8, DType::I16, DType::U32, DType::U64, DType::I64}) {
    names.push_back(std::string(name(t)));
    g.output("y" + names.back(), prim::contiguous(g.input(names.back(), {1}, t)));
  }
  const Program p = compile(g, generic());
  Context c(p);
  const auto holds = [&](const char* input, std::int64_t v) {
    const bool whole = error_of([&] { c.set(input, std::vector<std::int64_t>{v}); }) == "no error";
    const auto real = static_cast<float>(v);
    if (real < 0x1p63f && static_cast<std::int64_t>(real) == v) {
      EXPECT_EQ(error_of([&] { c.set(input, std::vector<float>{real}); }) == "no error", whole) << input << " " << v;
    }
    return whole;
  };
  EXPECT_TRUE(holds("i8", -128) && holds("i8", 127) && holds("u8", 255) && holds("i16", -32768) && holds("u64", 1));
  EXPECT_TRUE(holds("u32", 4294967295) && holds("i64", INT64_MIN) && holds("u64", INT64_MAX));
  EXPECT_FALSE(holds("i8", 128) || holds("i8", -129) || holds("u8", -1) || holds("u8", 256) || holds("i16", 32768));
  EXPECT_FALSE(holds("u32", -1) || holds("u32", std::int64_t{1} << 32) || holds("u64", -1));
  EXPECT_EQ(error_of([&] { c.set("i8", std::vector<std::int64_t>{300}); }),
            "set: 'i8' is i8 and does not hold 300, its element 0");
  EXPECT_NO_THROW(c.set("u64", std::vector<float>{0x1p63f}));
  EXPECT_THROW(c.set("i64", std::vector<float>{0x1p63f}), Error);

  Graph reals;
  reals.output("y", prim::contiguous(reals.input("x", {2})));
  Context r(compile(reals, generic()));
  EXPECT_EQ(r.set("x", std::vector<float>{3, -4}).run().get_i64("y"), (std::vector<std::int64_t>{3, -4}));
  r.set("x", std::vector<float>{3, 1.5}).run();
  EXPECT_EQ(error_of([&] { r.get_i64("y"); }),
            "get_i64: 'y' is f32 and holds 1.5, its element 1, which is no whole number: get() gives it");
}

// Results of the previous run have the sizes of that run.
TEST(Program, ResultsOfOtherSizesAreRefused) {
  Graph g;
  const Dim n = Dim::symbol("n", 1, 8);
  g.output("y", prim::exp2(g.input("x", {2, n})));
  g.output("fixed", prim::exp2(g.input("z", {2})));
  for (const Compiler& compiler : {generic(), generic() | test::device({.threads = 1})}) {
    Context c(compile(g, compiler));
    c.bind("n", 2).set("x", std::vector<float>{0, 1, 2, 3}).set("z", std::vector<float>{1, 2}).run();
    c.bind("n", 2);
    EXPECT_EQ(c.get("y").size(), 4u);
    c.bind("n", 1);
    EXPECT_EQ(
        error_of([&] { c.get("y"); }),
        "get: 'y' of shape [2, n] has no value for these sizes yet, which were bound after the last run: run() again");
    EXPECT_EQ(c.get("fixed"), (std::vector<float>{2, 4}));
    c.set("x", std::vector<float>{4, 5}).run();
    EXPECT_EQ(c.get("y"), (std::vector<float>{16, 32}));
  }
}

// The error lists ten names, the most similar first, not all hundred.
TEST(Program, AnUnknownNameIsAnsweredWithTheNearestOnes) {
  Graph g;
  const Dim seq = Dim::symbol("sequence", 1, 8);
  Tensor y = g.input("tokens", {seq, 2});
  for (int i = 0; i < 100; ++i) {
    const Tensor w = g.parameter(str_cat("layers.", i, ".", std::string(100, 'w'), ".weight"), {2}, DType::F32);
    y = prim::add(y, w.reshape({1, 2}).expand({seq, 2}));
  }
  g.output("logits", y);
  Program p = compile(g, generic());
  Context c(p);
  std::vector<float> values(2);
  const auto said = [](const std::function<void()>& f) -> std::string {
    try {
      f();
    } catch (const Error& e) {
      return e.what();
    }
    return "nothing";
  };
  const auto bounded = [&](const std::function<void()>& f, const char* op) {
    const std::string s = said(f);
    EXPECT_EQ(s.find(str_cat(op, ": the graph has no input 'tokns'; it has tokens, ")), 0u) << s;
    EXPECT_EQ(std::count(s.begin(), s.end(), ','), 9) << s;
    EXPECT_NE(s.find(" and 91 more"), std::string::npos) << s;
    EXPECT_LT(s.size(), 1200u);
  };
  bounded([&] { p.load("tokns", values.data(), 8); }, "load");
  bounded([&] { c.set("tokns", values); }, "set");
  bounded([&] { c.set_bytes("tokns", values.data(), 8); }, "set_bytes");
  bounded([&] { c.use("tokns", values.data(), 8); }, "use");
  EXPECT_EQ(said([&] { c.bind("Sequense", 2); }), "bind: no size of the graph is named 'Sequense'; it has sequence");
  EXPECT_EQ(said([&] { p.plan({{"seq", 2}}); }), "plan: no size of the graph is named 'seq'; it has sequence");
  EXPECT_NE(said([&] { c.get("logit"); }).find("(it has logits)"), std::string::npos);
  EXPECT_NE(said([&] { c.run(); }), "nothing");  // no size is bound and no input is set
}

TEST(Program, OneThatWasNeverCompiledSaysSo) {
  Program p;
  EXPECT_THROW(p.graph(), Error);
  EXPECT_THROW(p.plan(), Error);
  EXPECT_THROW(p.inputs(), Error);
  EXPECT_THROW(p.load("x", nullptr, 0), Error);
  EXPECT_THROW(Context{p}, Error);
}

TEST(Program, AnExtentThatBecomesNegativeIsRefused) {
  Graph g;
  const Dim n = Dim::symbol("n", 1, 4);
  g.output("y", prim::exp2(g.input("x", {n}).slice(0, 0, n - 2)));
  for (const Compiler& c : {Compiler(), generic() | test::device({.threads = 1})}) {
    Context run(compile(g, c));
    EXPECT_EQ(run.bind("n", 3).set("x", std::vector<float>{1, 2, 3}).run().get("y"), (std::vector<float>{2}));
    EXPECT_EQ(run.bind("n", 2).set("x", std::vector<float>{1, 2}).run().get("y").size(), 0u);
    EXPECT_THROW(run.bind("n", 1).set("x", std::vector<float>{1}).run(), Error);
  }
}

TEST(Session, KeepsBindingsWhenItCompilesAgain) {
  Session cx;
  const auto x = cx.tensor<"n">().set({1, 2, 3});
  const auto y = sum<0>(x).retrieve();
  cx.bind("n", 3);
  for (int i = 0; i < 2; ++i) {
    cx.compile(generic());
    EXPECT_EQ(cx.execute().data(y), (std::vector<float>{6}));
  }
}

// Operations added after compiling have no effect until the next compilation. If that fails, the previous program
// stays.
TEST(Session, WhatComesLaterWaits) {
  Session cx;
  const auto x = cx.tensor<3>().set({1, 2, 3});
  const auto y = (x + x).retrieve();
  cx.compile(generic());
  const auto z = cx.tensor<"later">();
  const auto s = sum<0>(z).retrieve();
  cx.bind("later", 2);
  float values[2] = {4, 5};
  cx.put(z, values, 2);
  EXPECT_EQ(cx.execute().data(y), (std::vector<float>{2, 4, 6}));
  EXPECT_THROW(cx.compile(Compiler(Pass{"odd", [](const Graph&, PassLog&) { return Graph(); }})), Error);
  EXPECT_EQ(cx.execute().data(y), (std::vector<float>{2, 4, 6}));
  cx.compile(generic());
  EXPECT_EQ(cx.execute().data(s), (std::vector<float>{9}));
}

// The contract of passes is checked after each pass.
TEST(Program, APassThatBreaksTheContractIsRefused) {
  Graph g;
  const Tensor x = g.input("x", {2}), s = g.input("s", {2});
  g.output("y", prim::add(x, s));
  g.assign(s, x);
  const auto breaks = [&](const std::function<void(Graph&, Tensor, Tensor)>& finish, const std::string& words) {
    const Compiler c(Pass{"odd", [&](const Graph&, PassLog&) {
                            Graph h;
                            const Tensor a = h.input("x", {2}), b = h.input("s", {2});
                            finish(h, a, b);
                            return h;
                          }});
    try {
      transform(g, c);
      ADD_FAILURE() << words;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
    }
  };
  breaks([](Graph& h, Tensor a, Tensor b) { h.assign(b, a); }, "the number of outputs");
  breaks([](Graph& h, Tensor a, Tensor b) { h.output("z", a), h.assign(b, a); }, "renamed the output 'y'");
  breaks([](Graph& h, Tensor a, Tensor b) { h.output("y", a.slice(0, 0, 1)), h.assign(b, a); }, "changed the shape");
  breaks([](Graph& h, Tensor a, Tensor b) { h.output("y", prim::cast(a, DType::F64)), h.assign(b, a); },
         "changed the element type");
  breaks([](Graph& h, Tensor a, Tensor) { h.output("y", a); }, "the number of assignments");
}
