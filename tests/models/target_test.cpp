// The story model compiles for every processor that kernels exist for, and runs where this one can run it.
#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/llm/sampler.h"
#include "lightcone/models/llama/llama.h"
#include "lightcone/passes/passes.h"
#include "paths.h"

using namespace lc;
using namespace lc::backends::cpu;
using Json = nlohmann::json;

namespace {

std::string folder() { return std::string(paths::kSource) + "/models/story/"; }

LlamaOptions for_target(const Target& t, Precision p, const std::string& compiler) {
  LlamaOptions o;
  o.context = 128, o.chunk = 8;
  o.compiler = generic() | cpu({.threads = 2, .precision = p, .target = t, .jit = {.compiler = compiler}});
  return o;
}

std::vector<std::string> kernels(const Program& p) {
  std::vector<std::string> names;
  for (NodeId id = 0; id < p.graph().size(); ++id)
    if (p.graph()[id].op == Op::Kernel) names.push_back(p.graph()[id].name);
  return names;
}

}  // namespace

TEST(Target, ThisProcessorIsOne) {
  EXPECT_TRUE(runs_here(this_target())) << str(this_target());
  EXPECT_TRUE(runs_here(Target())) << "plain C++ runs everywhere";
  const std::vector<Target> all = known_targets();
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) EXPECT_FALSE(all[i] == all[k]) << str(all[i]);
  EXPECT_EQ(str(Target()), "generic");
}

// Each target that this processor supports generates the same text. Other targets are compiled, too.
TEST(Target, TheStoryModelForEveryKnownOne) {
  const Json want = Json::parse(std::ifstream(folder() + "reference.json"));
  const auto ids = want["ids"].get<std::vector<int>>();
  int ran = 0, compiled = 0;
  for (const Target& t : known_targets())
    for (const std::string compiler : {"", "llvm"}) {
      LlamaOptions o = for_target(t, Precision::Highest, compiler);
      o.load_weights = runs_here(t);
      std::optional<Llama> m;
      try {
        m.emplace(Llama::load(folder() + "story.gguf", o));
      } catch (const Error& e) {
        // the LLVM library is not installed
        if (compiler == "llvm" && std::string(e.what()).find("LLVM") != std::string::npos) continue;
        FAIL() << str(t) << " through '" << compiler << "': " << e.what();
      }
      ++compiled;
      EXPECT_EQ(m->program().interpreted(), 0u) << str(t);
      if (!runs_here(t)) {  // an Error, and never an illegal instruction
        try {
          LlamaSession session(*m);
          FAIL() << str(t) << " was run on " << str(this_target());
        } catch (const Error& e) {
          EXPECT_EQ(std::string(e.what()).find(str_cat("run: the program was compiled for ", str(t), ", which this")),
                    0u)
              << e.what();
        }
        continue;
      }
      ++ran;
      LlamaSession s(*m);
      llm::Sampler pick({});
      std::vector<int> have = m->tokenizer().encode("");
      while (have.size() < 40) have.push_back(pick(s.feed(have.back())));
      EXPECT_TRUE(std::equal(have.begin(), have.end(), ids.begin())) << str(t) << " through '" << compiler << "'";
    }
  EXPECT_GE(ran, 1);
  EXPECT_GE(compiled, static_cast<int>(known_targets().size()));
}

// Kernels are chosen by the target, not by this processor.
TEST(Target, ChoosesTheKernels) {
  for (const Target& t : known_targets()) {
    if (!t.amx && !(t.avx512_bf16 && t.fast_bf16)) continue;
    LlamaOptions o = for_target(t, Precision::Medium, "");
    o.load_weights = false;
    const std::vector<std::string> names = kernels(Llama::load(folder() + "story.gguf", o).program());
    const std::string unit = !t.amx ? "avx512bf16" : tiles_emulated() ? "emulated" : "amx";
    EXPECT_TRUE(std::any_of(names.begin(), names.end(), [&](const auto& n) { return n.find(unit) != n.npos; }))
        << str(t);
  }
}
