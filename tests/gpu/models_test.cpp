// Language models give the same greedy texts on every GPU device, and training steps give the CPU's losses and random
// numbers.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "data.h"
#include "gpu_devices.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/llm/sampler.h"
#include "lightcone/models/llama/llama.h"
#include "lightcone/ops/loop.h"
#include "lightcone/ops/random.h"
#include "lightcone/passes/passes.h"
#include "paths.h"
#include "small_training.h"

using namespace lc;
using Json = nlohmann::json;

namespace {

class Models : public test::OnGpu {};
LIGHTCONE_ON_GPUS(Models);

std::vector<int> greedy(const Llama& m, std::vector<int> ids, std::size_t length) {
  LlamaSession s(m);
  llm::Sampler pick({});
  int next = pick(s.feed(ids));
  ids.push_back(next);
  while (ids.size() < length && next != 1 && next != 2) ids.push_back(next = pick(s.feed(next)));
  return ids;
}

}  // namespace

TEST_P(Models, TellTheStoryOfTheCpu) {
  const std::string folder = std::string(paths::kSource) + "/models/story/";
  const auto want = Json::parse(std::ifstream(folder + "reference.json"))["ids"].get<std::vector<int>>();
  const Llama m = Llama::load(folder + "story.gguf",
                              {.context = 64, .compiler = generic() | compiler({.fallback = cpu({.threads = 1})})});
  EXPECT_EQ(m.program().interpreted(), 0u);
  const std::size_t length = std::min<std::size_t>(want.size(), 48);
  EXPECT_EQ(greedy(m, {want.begin(), want.begin() + 3}, length),
            std::vector<int>(want.begin(), want.begin() + static_cast<std::ptrdiff_t>(length)));
}

// Every checkpoint of the reference data, with every type of weights, generates its reference text.
TEST_P(Models, TellTheReferenceTexts) {
  NEEDS_DATA("llm/stories260K");
  int seen = 0;
  for (const std::string model : {"stories260K", "babyllama361"}) {
    const std::string base = "llm/" + model + "/";
    const Json want = Json::parse(slurp(data(base + "expected/expected.json")));
    for (const Json& v : want["gguf"]) {
      const std::string file = base + v["file"].get<std::string>();
      if (!std::filesystem::exists(data(file))) continue;  // the data set may be incomplete
      ++seen;
      const auto all = v["greedy_ids"].get<std::vector<int>>();
      const std::size_t length = std::min<std::size_t>(all.size(), 40);
      const Llama m =
          Llama::load(data(file), {.context = 64, .compiler = generic() | compiler({.fallback = cpu({.threads = 1})})});
      EXPECT_EQ(m.program().interpreted(), 0u);
      EXPECT_EQ(greedy(m, m.tokenizer().encode("Once upon a time"), length),
                std::vector<int>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(length)))
          << file;
    }
  }
  EXPECT_GE(seen, 7);
}

TEST_P(Models, TrainWithTheLossesOfTheCpu) {
  test::SmallTraining here(3), there(3, false, compiler({.fallback = cpu({.threads = 1})}));
  const std::vector<float> want = here.run(20), got = there.run(20);
  for (std::size_t k = 0; k < want.size(); ++k)
    EXPECT_NEAR(got[k], want[k], 2e-5 * (1 + std::abs(want[k]))) << "step " << k;
  EXPECT_LT(got.back(), got.front());
  const auto w = here.weights(), v = there.weights();
  for (std::size_t k = 0; k < w.size(); ++k) EXPECT_NEAR(v[k], w[k], 1e-4 * (1 + std::abs(w[k])));
}

TEST_P(Models, DrawTheSameRandomNumbers) {
  Graph g;
  Random numbers(g, 42);
  g.output("words", numbers.bits({1003}));
  g.output("uniform", numbers.uniform({1003}));
  g.output("normal", numbers.normal({1003}));
  const Program here = compile(g, generic() | cpu({.threads = 1})),
                there = compile(g, generic() | compiler({.fallback = cpu({.threads = 1})}));
  Context a(here), b(there);
  for (int run = 0; run < 2; ++run) {
    a.run(), b.run();
    EXPECT_TRUE(std::ranges::equal(a.bytes("words"), b.bytes("words")));
    EXPECT_EQ(a.get("uniform"), b.get("uniform"));
    const auto x = a.get("normal"), y = b.get("normal");
    for (std::size_t k = 0; k < x.size(); ++k) ASSERT_NEAR(x[k], y[k], 1e-5);
  }
}

// Types that a device lacks are computed on the CPU if that was requested, and the log notes it. Otherwise compiling is
// an Error.
TEST_P(Models, ComputeF64OnTheHostOnlyWhenAsked) {
  Graph g;
  const Tensor x = g.input("x", {3, 5});
  g.output("y", sum(exp(x.to(DType::F64)) * 2.0, {1}).to(DType::F32) + 1.0);
  std::vector<float> points(15), want(3, 1);
  for (std::size_t k = 0; k < points.size(); ++k) {
    points[k] = std::sin(static_cast<float>(k));
    want[k / 5] += static_cast<float>(2 * std::exp(static_cast<double>(points[k])));
  }
  const bool lacks = !device->limits().f64;
  if (lacks) {
    try {
      compile(g, generic() | compiler());
      FAIL() << "f64 was computed without being asked for";
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("has no f64"), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("GpuOptions{.fallback = cpu()}"), std::string::npos) << e.what();
    }
  }
  const Program p = compile(g, generic() | compiler({.fallback = cpu({.threads = 1})}));
  EXPECT_EQ(fired(p.log(), "on the host") > 0, lacks);
  const auto said = [](const PassLog& l) {
    return std::ranges::any_of(l.notes, [](const std::string& n) { return n.find("on the CPU, because") != n.npos; });
  };
  EXPECT_EQ(std::ranges::any_of(p.log(), said), lacks);
  Context c(p);
  const auto got = c.set("x", points).run().get("y");
  for (std::size_t k = 0; k < want.size(); ++k) EXPECT_NEAR(got[k], want[k], 1e-5);
}

// A recurrence over slices at symbolic positions, and a loop that ends when nothing changes any more.
TEST_P(Models, RunLoops) {
  Graph g;
  const Tensor x = g.input("x", {37, 3}), w = g.input("w", {3, 3});
  const Scanned rnn = scan(
      [&](const std::vector<Tensor>& state, const std::vector<Tensor>& slice) {
        const Tensor h = tanh(matmul(state[0].reshape({1, 3}), w).reshape({3}) + slice[0]);
        return Scanned{{h}, {h * 2.0}};
      },
      {g.constant(0).expand({3})}, {x});
  g.output("h", rnn.state[0]);
  g.output("ys", rnn.ys[0]);
  const auto root = while_loop([](const auto& s) { return lc::abs(s[0] * s[0] - 2.0) > 1e-3; },
                               [](const auto& s) { return std::vector<Tensor>{(s[0] + 2.0 / s[0]) / 2.0}; },
                               {g.input("start", {})}, 5000);
  g.output("root", root[0]);
  const Program here = compile(g, generic() | cpu({.threads = 1})),
                there = compile(g, generic() | compiler({.fallback = cpu({.threads = 1})}));
  EXPECT_EQ(there.interpreted(), 0u);
  EXPECT_EQ(fired(there.log(), "loop compiled"), 2);
  Context a(here), b(there);
  std::vector<float> points(37 * 3), weights(9);
  for (std::size_t k = 0; k < points.size(); ++k) points[k] = std::sin(static_cast<float>(k));
  for (std::size_t k = 0; k < weights.size(); ++k) weights[k] = std::cos(static_cast<float>(k)) / 2;
  for (Context* c : {&a, &b}) c->set("x", points).set("w", weights).set("start", std::vector<float>{9}).run();
  for (const char* name : {"h", "ys", "root"}) {
    const auto want = a.get(name), got = b.get(name);
    ASSERT_EQ(want.size(), got.size());
    for (std::size_t k = 0; k < want.size(); ++k) EXPECT_NEAR(got[k], want[k], 1e-5) << name << " " << k;
  }
  EXPECT_NEAR(b.get("root")[0], std::sqrt(2.0f), 1e-3);
}
