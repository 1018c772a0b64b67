// Every pointer in the Metal kernels of random graphs has its address space, which clang checks.
//
// A pointer without one would run on the simulator, and no Metal compiler would take it. The test skips without clang.
#include <set>

#include "fake.h"
#include "lightcone/codegen/simt/dialect.h"
#include "lightcone/passes/passes.h"
#include "lightcone/verify/random_graph.h"
#include "msl_check.h"
#include "paths.h"

namespace lc::test {
namespace {

// Unlike Metal, clang for C++ copies no class out of an address space, so vector loads become loads of a vector type.
std::string for_clang(std::string text) {
  const std::pair<std::string, std::string> changes[] = {
      {"struct alignas(sizeof(T) * N) LcWide { T v[N]; };", "using LcWide = T __attribute__((ext_vector_type(N)));"},
      {"#define LC_AT(W, L) W.v[L]", "#define LC_AT(W, L) W[L]"}};
  for (const auto& [from, to] : changes) {
    const std::size_t at = text.find(from);
    if (at == text.npos) throw Error("test", "the prelude has no '" + from + "' any more");
    text.replace(at, from.size(), to);
  }
  return text;
}

// Returns a program with all kernels of a graph.
std::string program_of(const Graph& g) {
  std::set<std::string> kernels;
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].kernel && g[id].kernel->source().find("kernel void") != std::string::npos)
      kernels.insert(g[id].kernel->source());
  std::string text = codegen::simt::prelude(codegen::simt::Language::Metal);
  for (const std::string& k : kernels) text += k + "\n";
  return kernels.empty() ? std::string() : for_clang(text);
}

class GeneratedMsl : public MetalTest {};

TEST_F(GeneratedMsl, PointersSayWhereTheyPoint) {
  if (!can_check_msl()) GTEST_SKIP() << "there is no clang++: the texts of kernels are not checked";
  const Compiler compiler = generic() | metal({.device = 0, .library = paths::kFakeMetal});
  int checked = 0;
  for (std::uint64_t number = 0; number < 60 && checked < 15; ++number) {
    const Graph g = random_graph(7000000 + number, {.nodes = 4 + static_cast<int>(number % 14)});
    std::string text;
    try {
      text = program_of(transform(g, compiler).graph);
    } catch (const Error& e) {  // Metal has no 64-bit floating numbers
      ASSERT_NE(std::string(e.what()).find("f64"), std::string::npos) << e.what();
    }
    if (text.empty()) continue;
    const std::string wrong = check_msl(text);
    ASSERT_EQ(wrong, "") << "random graph " << 7000000 + number << "\n" << text.substr(text.find("kernel void"));
    if (checked++) continue;
    const std::string pointer = "  LC_GLOBAL ";  // proves that a missing address space is detected
    text.replace(text.find(pointer, text.find("kernel void")), pointer.size(), "  ");
    EXPECT_NE(check_msl(text).find("cannot initialize"), std::string::npos);
  }
  EXPECT_EQ(checked, 15);
}

}  // namespace
}  // namespace lc::test
