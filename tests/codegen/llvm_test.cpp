// Kernels compiled through LLVM's library give the C compiler's bits, operation by operation. A library that is missing
// or refuses the text is reported.
//
// The test skips where libLLVM is not installed. Random graphs go through LLVM in random_test.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "guarded.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/jit/llvm.h"
#include "lightcone/core/tensor.h"
#include "lightcone/llm/sampler.h"
#include "lightcone/models/llama/llama.h"
#include "lightcone/passes/passes.h"
#include "lightcone/verify/verify.h"
#include "paths.h"

using namespace lc;
using backends::cpu::JitOptions;

namespace {

const std::string kMissing = "/nonexistent/libLLVM.so";

#define NEEDS_LLVM()                                                                         \
  if (const backends::cpu::LlvmFound found = backends::cpu::find_llvm(); found.path.empty()) \
  GTEST_SKIP() << found.problem

std::string words(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

// RAII: sets (or unsets, if `value` is null) an environment variable for one scope.
struct Setting {
  std::string name;
  std::optional<std::string> before;
  Setting(const char* n, const char* value) : name(n) {
    if (const char* v = std::getenv(n)) before = v;
    if (value) ::setenv(n, value, 1);
    else ::unsetenv(n);
  }
  ~Setting() {
    if (before) ::setenv(name.c_str(), before->c_str(), 1);
    else ::unsetenv(name.c_str());
  }
};

// Returns numbers near the limits of the type, and where results round, overflow or change sign.
std::vector<double> numbers(DType t) {
  if (t == DType::Bool) return {0, 1};
  if (t == DType::I8) return {0, 1, -1, 2, -3, 7, 11, 100, 127, -100, -127, -128};
  if (t == DType::U8) return {0, 1, 2, 3, 7, 100, 127, 128, 254, 255};
  std::vector<double> v{0, 1, -1, 2, -2, 3, -3, 7, 10, 31, -100, 2147483647, -2147483648.0};
  if (t == DType::I32 || t == DType::I16) return v;
  if (is_unsigned(t))
    return {0, 1, 2, 3, 7, 100, 255, 32767, 32768, 65535, 2147483648, 4294967295, 9223372036854775808.0, 1e19, 0x1p64};
  if (t == DType::I64) {
    v.insert(v.end(), {4294967296, -4294967297, 9007199254740992.0, -9223372036854775808.0});
    return v;
  }
  v.insert(v.end(),
           {-0.0, 0.5, -0.5, 1.5, 2.5, 0.1, -0.7, 1e-3, 1e-7, 5.9e-8, 6.1e-5, 1e-40, 1e-45, 127.9, 128.0, -149.5});
  v.insert(v.end(),
           {254.5, 255, 256.5, 65504, 65519.9, 65520, 65536, 999999.5, 1e6, 1.3e7, 3e9, -3e9, 9.3e18, -9.3e18});
  v.insert(v.end(),
           {1e30, -1e30, 3.4e38, 1e300, 5e-324, kInf, -kInf, kNaN, 1 + 0x1p-11, 1 + 0x1p-8, 1 + 0x1p-11 + 0x1p-40});
  return v;
}

// Returns the k-th operand of all combinations of numbers.
Value all_tuples(DType t, const std::vector<std::size_t>& sizes, std::size_t k, std::int64_t count) {
  Value v = make_value(t, {count});
  const std::vector<double> choice = numbers(t);
  for (std::size_t e = 0; e < v.size(); ++e) {
    std::size_t rest = e;
    for (std::size_t j = 0; j < k; ++j) rest /= sizes[j];
    const double x = choice[rest % sizes[k]];
    std::uint64_t raw = 0;
    store_f64(&raw, t, 0, x);
    if (is_float(t)) v.f[e] = load_f64(&raw, t, 0);
    else v.i[e] = load_i64(&raw, t, 0);
  }
  return v;
}

bool same(const Value& a, const Value& b, std::size_t k) {
  if (!is_float(a.dtype)) return a.i[k] == b.i[k];
  return (std::isnan(a.f[k]) && std::isnan(b.f[k])) ||
         (a.f[k] == b.f[k] && std::signbit(a.f[k]) == std::signbit(b.f[k]));
}

// An operation applied to all combinations of numbers of the given types.
struct Trial {
  std::string what;
  Graph graph;
  std::map<std::string, Value> values;
  bool whole = false;  // integers only, for which the reference is exact, too
};
Trial trial(const std::string& what, const std::vector<DType>& types,
            const std::function<Tensor(const std::vector<Tensor>&)>& make) {
  std::vector<std::size_t> sizes;
  std::int64_t count = 1;
  for (DType t : types) {
    sizes.push_back(numbers(t).size());
    count *= static_cast<std::int64_t>(sizes.back());
  }
  Trial t{what, {}, {}, false};
  std::vector<Tensor> in;
  for (std::size_t k = 0; k < types.size(); ++k) {
    const std::string name = str_cat("x", k);
    in.push_back(t.graph.input(name, {count}, types[k]));
    t.values[name] = all_tuples(types[k], sizes, k, count);
  }
  const Tensor y = make(in);
  t.whole = !is_float(y.dtype()) && std::none_of(types.begin(), types.end(), [](DType type) { return is_float(type); });
  t.graph.output("y", y);
  return t;
}

void expect_same(const Trial& t, const Value& c, const Value& llvm) {
  int shown = 0;
  for (std::size_t k = 0; k < c.size() && shown < 3; ++k) {
    if (same(c, llvm, k)) continue;
    ++shown;
    std::string operands;
    for (const auto& [name, v] : t.values) operands += str_cat(" ", v.at(k));
    ADD_FAILURE() << t.what << " of" << operands << ": C gives " << c.at(k) << ", LLVM " << llvm.at(k);
  }
}

}  // namespace

TEST(Llvm, EveryOperationGivesTheBitsOfTheCCompiler) {
  NEEDS_LLVM();
  const std::string c = backends::cpu::find_compiler();
  if (c.empty() || c == backends::cpu::kLlvm) GTEST_SKIP() << "no C compiler to compare with";
  std::vector<Trial> trials;
  for (const DTypeInfo& t : kDTypes) {
    for (const OpInfo& op : kOps) {
      if (op.kind != Kind::Elementwise || op.types == Types::Bits || (op.types == Types::Float && !t.is_float) ||
          (op.types == Types::Integer && t.is_float))
        continue;
      std::vector<DType> types(static_cast<std::size_t>(op.arity), t.dtype);
      if (op.types == Types::Select) types[0] = DType::Bool;
      trials.push_back(trial(str_cat(op.name, " ", t.name), types, [&](const std::vector<Tensor>& x) {
        Node n{.op = op.op, .dtype = op.types == Types::Compare ? DType::Bool : t.dtype, .shape = x[0].shape()};
        for (const Tensor& e : x) n.in.push_back(e.edge());
        return Tensor(x[0].graph(), {x[0].graph().add(n), View(x[0].shape())});
      }));
    }
    for (const DTypeInfo& to : kDTypes)
      trials.push_back(trial(str_cat(t.name, " to ", to.name), {t.dtype},
                             [&](const std::vector<Tensor>& x) { return prim::cast(x[0], to.dtype); }));
    for (const DTypeInfo& to : kDTypes)
      if (to.bytes == t.bytes && to.dtype != DType::Bool && t.dtype != DType::Bool)
        trials.push_back(trial(str_cat("bits of ", t.name, " as ", to.name), {t.dtype},
                               [&](const std::vector<Tensor>& x) { return prim::bitcast(x[0], to.dtype); }));
  }
  std::vector<const Graph*> graphs;
  for (const Trial& t : trials) graphs.push_back(&t.graph);
  const std::vector<Graph> by_c = cpu_batch(graphs, {.threads = 1}),
                           by_llvm = cpu_batch(graphs, {.threads = 1, .jit = {.compiler = "llvm"}});
  for (std::size_t k = 0; k < trials.size(); ++k) {
    const Value of_c = run_values(by_c[k], trials[k].values, {}).outputs.at("y");
    expect_same(trials[k], of_c, run_values(by_llvm[k], trials[k].values, {}).outputs.at("y"));
    if (trials[k].whole) {
      const Value want = interpret(trials[k].graph, trials[k].values, {}, Rounding::Storage).outputs.at("y");
      EXPECT_EQ(of_c.i, want.i) << trials[k].what << " is not the reference's";
    }
  }
}

// A row is padding joined with the known lanes of the last vector. LLVM 14 reads the upper eight of sixteen lanes
// without a mask if masks have no registers of their own. CMake runs this test for AVX2 and SSE2, too.
TEST(Llvm, ReadsNothingOutsideARowThatEndsInHalfAVector) {
  NEEDS_LLVM();
  for (const std::int64_t columns : {3, 5, 7, 8, 11, 20})
    for (const int before : {1, 2, 4}) {
      Graph g;
      const Tensor x = g.input("x", {3, 2, columns});
      g.output("y", prim::exp2(x.pad(1, 2, 2).pad(2, before, 2)));
      Value v = make_value(DType::F32, {3, 2, columns});
      for (std::size_t k = 0; k < v.size(); ++k) v.f[k] = static_cast<double>(k % 7) - 2;
      const Graph compiled = transform(g, cpu({.threads = 1, .jit = {.compiler = "llvm"}})).graph;
      const std::vector<double> want = run_values(g, {{"x", v}}, {}).outputs.at("y").f;
      for (const test::Against side : {test::Against::Front, test::Against::Back})
        EXPECT_EQ(test::run_guarded(compiled, {{"x", v}}, {}, side).outputs.at("y").f, want)
            << columns << " columns behind " << before;
    }
}

TEST(Llvm, TellsTheSameStory) {
  NEEDS_LLVM();
  const std::string folder = std::string(paths::kSource) + "/models/story/";
  const auto want = nlohmann::json::parse(std::ifstream(folder + "reference.json"))["ids"].get<std::vector<int>>();
  for (int threads : {1, 2}) {
    const Compiler compiler = generic() | cpu({.threads = threads, .jit = {.compiler = "llvm"}});
    const Llama m = Llama::load(folder + "story.gguf", {.compiler = compiler});
    LlamaSession s(m);
    llm::Sampler pick({});
    std::vector<int> have = m.tokenizer().encode("");
    while (have.size() < want.size()) have.push_back(pick(s.feed(have.back())));
    EXPECT_EQ(have, want);
  }
}

TEST(Llvm, IsChosenWhereThereIsNoCCompiler) {
  const Setting path("PATH", "/nonexistent"), wish("LIGHTCONE_CC", nullptr);
  EXPECT_EQ(backends::cpu::find_compiler({.llvm = kMissing}), "");
  EXPECT_EQ(backends::cpu::find_compiler({.compiler = "none"}), "");
  Graph g;
  g.output("y", prim::exp2(g.input("x", {3})));
  Value x = make_value(DType::F32, {3});
  x.f = {0, 1, 3};
  const Graph interpreted = transform(g, cpu({.threads = 1, .jit = {.llvm = kMissing}})).graph;
  EXPECT_EQ(run_values(interpreted, {{"x", x}}, {}).outputs.at("y").f, (std::vector<double>{1, 2, 8}));
  NEEDS_LLVM();
  EXPECT_EQ(backends::cpu::find_compiler(), backends::cpu::kLlvm);
  EXPECT_EQ(run_values(transform(g, cpu({.threads = 1})).graph, {{"x", x}}, {}).outputs.at("y").f,
            (std::vector<double>{1, 2, 8}));
}

TEST(Llvm, SaysWhatIsMissing) {
  Graph g;
  g.output("y", prim::exp2(g.input("x", {3})));
  const auto said = [&](const std::string& file) {
    return words([&] { transform(g, cpu({.threads = 1, .jit = {.compiler = "llvm", .llvm = file}})); });
  };
  EXPECT_NE(said(kMissing).find("LLVM's library cannot be loaded: " + kMissing), std::string::npos) << said(kMissing);
  EXPECT_NE(said("libm.so.6").find("libm.so.6 cannot be used: it lacks LLVM"), std::string::npos) << said("libm.so.6");
}

TEST(Llvm, RefusalsAreErrors) {
  NEEDS_LLVM();
  const auto said = [](const std::string& text) {
    const backends::cpu::Source s{"f", text};
    return words([&] { backends::cpu::jit(std::span(&s, 1), {.compiler = "llvm", .cache_dir = "off"}); });
  };
  const std::string head = "define void @f() {\n";
  EXPECT_NE(said("rubbish").find("LLVM does not read a kernel"), std::string::npos);
  EXPECT_NE(said(head + "  br label %a\na:\n  %x = add i32 %y, 1\n  %y = add i32 %x, 1\n  ret void\n}\n")
                .find("LLVM refuses"),
            std::string::npos);
  // defines another function than the one named
  EXPECT_NE(said("define void @g() {\n  ret void\n}\n").find("LLVM: "), std::string::npos);
  EXPECT_NE(said("declare void @nobody_has_this()\n" + head + "  call void @nobody_has_this()\n  ret void\n}\n")
                .find("LLVM: "),
            std::string::npos);
}

TEST(Llvm, CodeIsKeptOnDiskAndLivesAsLongAsItsOwner) {
  NEEDS_LLVM();
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / str_cat("lightcone_llvm_", ::getpid());
  const JitOptions o{.compiler = "llvm", .cache_dir = folder.string()};
  const auto compiled = [&](const std::string& name) {
    const backends::cpu::Source s{name, "define void @" + name + "() {\n  ret void\n}\n"};
    return backends::cpu::jit(std::span(&s, 1), o);
  };
  backends::cpu::Jitted kept = compiled("f");
  EXPECT_EQ(kept.compiled, 1);
  const backends::cpu::KernelFunction call = kept.functions[0];
  const std::vector<std::shared_ptr<void>> owner = std::move(kept.libraries);
  { EXPECT_EQ(compiled("f").cached, 1); }
  call(nullptr, nullptr, nullptr, 0, 0);
  for (const auto& file : std::filesystem::directory_iterator(folder))
    std::ofstream(file.path(), std::ios::app) << "torn";
  EXPECT_EQ(compiled("f").compiled, 1);
  std::filesystem::remove_all(folder);
}
