// A Session sets, loads, saves and packs its parameters.
#include "lightcone/nn/session.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "data.h"
#include "error_of.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/lightcone.h"
#include "lightcone/nn/layers.h"
#include "lightcone/train/load.h"
#include "on_device.h"

using namespace lc;

namespace {

std::string file(const char* name) { return testing::TempDir() + name; }

TEST(SessionParameters, AreSetLoadedAndSaved) {
  const std::string path = file("session_parameters.safetensors");
  {
    Session cx;
    auto w = cx.parameter<2, 3>("fc.weight").set({{1, 2, 3}, {4, 5, 6}});
    auto b = cx.parameter<2>("fc.bias").set({10, 20});
    auto x = cx.tensor<1, 3>().set({{1, 0, -1}});
    auto y = linear(x, w, b).retrieve();
    cx.compile(generic() | test::device({.threads = 1})).execute();
    EXPECT_EQ(cx.data(y), (std::vector<float>{8, 18}));
    b.set({0, 1});  // after compiling, too
    cx.execute();
    EXPECT_EQ(cx.data(y), (std::vector<float>{-2, -1}));
    cx.save(path);
  }
  Session cx;
  auto w = cx.parameter<2, 3>("fc.weight");
  auto b = cx.parameter<2>("fc.bias");
  auto x = cx.tensor<1, 3>().set({{1, 0, -1}});
  auto y = linear(x, w, b).retrieve();
  cx.compile(generic() | test::device({.threads = 1}));
  EXPECT_PRED2(contains, error_of([&] { cx.execute(); }), "'fc.");
  cx.load(path).execute();
  EXPECT_EQ(cx.data(y), (std::vector<float>{-2, -1}));
  EXPECT_TRUE(cx.program().is_parameter("fc.weight"));
}

TEST(SessionParameters, SayWhatDoesNotFit) {
  const std::string path = file("session_wrong.safetensors");
  const std::vector<float> numbers(6, 1);
  const std::vector<TensorToSave> stored{{"w", DType::F32, {3, 2}, std::as_bytes(std::span(numbers))},
                                         {"more", DType::F32, {2}, std::as_bytes(std::span(numbers)).first(8)}};
  save_safetensors(path, stored);
  {
    Session cx;
    cx.parameter<2, 3>("w");
    EXPECT_PRED2(contains, error_of([&] { cx.load(path); }), path + ": no parameter is called more; strict = false");
    EXPECT_EQ(error_of([&] { cx.load(path, false); }),
              "load: " + path + ": an array of f32 [3, 2] for 'w', which is f32 [2, 3]: it is the transpose");
  }
  Session cx;
  auto w = cx.parameter<3, 2>("w");
  cx.parameter<2>("absent");
  EXPECT_EQ(error_of([&] { cx.load(path); }),
            "load: " + path + ": there is no tensor for the parameters absent; given are more, w");
  w.set({{1, 2}, {3, 4}, {5, 6}});
  EXPECT_EQ(error_of([&] { cx.save(file("never.safetensors")); }),
            "parameters: 'absent' has no value yet: set or load it");
  const Weights weights = Weights::open(path);
  w.set(weights.at("w"));
  EXPECT_EQ(error_of([&] { w.set(weights.at("more")); }), "set: an array of f32 [2] for 'w', which is f32 [3, 2]");
  EXPECT_PRED2(contains, error_of([&] { cx.parameter<2>("absent"); }), "absent");
  // the names of a wrapper; names that are many, long or not text
  std::map<std::string, ArrayView, std::less<>> given;
  for (const char* name : {"module.absent", "module.w", "x.absent"}) given.emplace(name, weights.at("w"));
  EXPECT_EQ(
      error_of([&] { cx.load(given); }),
      "load: there is no tensor for the parameters w, absent: all of them are there with 'module.' before their names");
  given.erase("module.w");
  for (const char* name : {"\x1b[2J", "a", "b", "c", "d", "e"}) given.emplace(name, weights.at("w"));
  EXPECT_EQ(error_of([&] { cx.load(given); }),
            "load: there is no tensor for the parameters w, absent; given are ?[2J, a, b, c, d and 3 more");
  given = {{"w", weights.at("w")}, {"absent", weights.at("more")}, {std::string(500, 'z'), weights.at("w")}};
  EXPECT_EQ(error_of([&] { cx.load(given); }),
            "load: no parameter is called " + std::string(80, 'z') + "...; strict = false ignores them");
}

TEST(SessionParameters, OfAModelComeFromAFile) {
  const std::string path = file("session_model.safetensors");
  std::vector<float> numbers(8);
  for (std::size_t k = 0; k < numbers.size(); ++k) numbers[k] = static_cast<float>(k);
  std::vector<std::uint16_t> halves{0x3f80, 0x4000};  // 1 and 2 as bf16
  const std::vector<TensorToSave> stored{{"weight", DType::F32, {2, 4}, std::as_bytes(std::span(numbers))},
                                         {"bias", DType::BF16, {2}, std::as_bytes(std::span(halves))}};
  save_safetensors(path, stored);
  Session cx;
  nn::Model<nn::Linear<4, 2>> net(cx.graph());
  auto x = cx.tensor<1, 4>().set({{1, 1, 1, 1}});
  auto y = net(x).retrieve();
  cx.compile(generic() | test::device({.threads = 1})).load(path).execute();
  EXPECT_EQ(cx.data(y), (std::vector<float>{7, 24}));

  Graph g;  // does the same for a Program
  nn::Model<nn::Linear<4, 2>> same(g);
  g.output("y", same(g.input("x", {1, 4})));
  Program p = compile(g, generic() | test::device({.threads = 1}));
  load(p, Weights::open(path));
  {  // a parameter that no result needs is accepted
    Graph part;
    nn::Model<nn::Linear<4, 2>> half(part);
    part.output("y", half.module().weight * 2);
    Program weights_alone = compile(part, generic() | test::device({.threads = 1}));
    load(weights_alone, Weights::open(path));
    EXPECT_EQ(Context(weights_alone).run().get("y").at(1), 2);
  }
  EXPECT_EQ(Context(p).set("x", std::vector<float>(4, 1)).run().get("y"), (std::vector<float>{7, 24}));
}

// Products with a parameter read it in its packed form.
TEST(SessionParameters, ArePackedOnce) {
  LIGHTCONE_CPU_ALONE();
  Session cx;
  auto w = cx.parameter<512, 512>("w");
  auto x = cx.tensor<8, 512>();
  linear(x, w).retrieve("y");
  w.set(std::vector<float>(512 * 512, 1)), x.set(std::vector<float>(8 * 512, 1));
  cx.compile(generic() | test::device({.threads = 1})).execute();
  EXPECT_FALSE(cx.program().resident("w"));
}

}  // namespace
