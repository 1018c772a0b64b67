// The PJRT client moves every element type, donates, and destroys objects in any order, on Lightcone's plugin and on
// the one that LIGHTCONE_TEST_PJRT_PLUGIN names.
#include <cstdlib>
#include <cstring>
#include <limits>
#include <thread>

#include "paths.h"
#include "plugins.h"

using namespace lc;
using test::kTwo;
using test::put;
using test::refusal;
using test::take;

namespace {

class Client : public ::testing::TestWithParam<std::string> {
 protected:
  std::shared_ptr<const backends::pjrt::Client> client =
      backends::pjrt::Client::create(backends::pjrt::Plugin::load(GetParam()));
};
INSTANTIATE_TEST_SUITE_P(Plugins, Client, ::testing::ValuesIn(test::plugin_paths()), test::name_of);

const std::vector<float> kA{1, 2, 3, 4, 5, 6}, kB{10, 20, 30, 40, 50, 60}, kSum{11, 22, 33, 44, 55, 66},
    kTurned{10, 40, 20, 50, 30, 60};

std::string identity(std::string_view type) {
  return str_cat("module { func.func public @main(%x: ", type, ") -> ", type, " { return %x : ", type, " } }");
}

}  // namespace

TEST_P(Client, SaysWhatItIs) {
  EXPECT_GE(client->plugin().minor_version(), 58);
  EXPECT_FALSE(client->platform().empty());
  EXPECT_FALSE(client->platform_version().empty());
  ASSERT_GE(client->devices(), 1u);
  EXPECT_FALSE(client->device(0).kind.empty());
  EXPECT_FALSE(client->device(0).text.empty());
  const backends::pjrt::Attributes attributes = client->plugin().attributes();
  ASSERT_TRUE(attributes.contains("stablehlo_current_version"));
  EXPECT_EQ(std::get<std::vector<std::int64_t>>(attributes.at("stablehlo_current_version")).size(), 3u);
  EXPECT_NE(refusal([&] { client->device(99); }).find("there is no device 99"), std::string::npos);
  EXPECT_NE(refusal([&] { client->device(-1); }).find("there is no device -1"), std::string::npos);
  EXPECT_EQ(backends::pjrt::Plugin::load(GetParam()),
            backends::pjrt::Plugin::load(GetParam()));  // loaded once per process
}

TEST_P(Client, RunsAProgram) {
  const backends::pjrt::Executable program = client->compile(kTwo);
  ASSERT_EQ(program.results(), 2u);
  const backends::pjrt::Array a = put(*client, kA, {2, 3}), b = put(*client, kB, {2, 3});
  std::optional<backends::pjrt::Event> done;
  const std::int64_t kept[] = {0};
  const backends::pjrt::Array* in[] = {&a, &b};
  const std::vector<backends::pjrt::Array> y = program.execute(in, kept, &done);
  done->await();
  EXPECT_TRUE(done->ready());
  ASSERT_EQ(y.size(), 2u);
  EXPECT_EQ(y[0].dtype(), DType::F32);
  EXPECT_EQ(y[1].shape(), (std::vector<std::int64_t>{3, 2}));
  y[1].ready().await();
  EXPECT_EQ(take<float>(y[0]), kSum);
  EXPECT_EQ(take<float>(y[1]), kTurned);
  EXPECT_TRUE(program.cost().contains("flops"));
  const auto [format, code] = program.optimised();
  EXPECT_FALSE(format.empty());
  EXPECT_FALSE(code.empty());
}

TEST_P(Client, ADonatedArrayIsGoneUnlessItIsKept) {
  const backends::pjrt::Executable program = client->compile(kTwo);
  const backends::pjrt::Array a = put(*client, kA, {2, 3}), b = put(*client, kB, {2, 3});
  const backends::pjrt::Array* in[] = {&a, &b};
  const std::int64_t kept[] = {0};
  for (int k = 0; k < 2; ++k) {
    EXPECT_EQ(take<float>(program.execute(in, kept)[0]), kSum);
    EXPECT_FALSE(a.is_deleted());
  }
  EXPECT_EQ(take<float>(program.execute(in)[0]), kSum);
  EXPECT_TRUE(a.is_deleted());
  EXPECT_FALSE(b.is_deleted());
  std::vector<float> room(6);
  EXPECT_NE(refusal([&] { a.to_host(room.data(), 24); }).find("donated"), std::string::npos);
  EXPECT_NE(refusal([&] { program.execute(in); }), "");
  // a state that is passed from run to run
  std::vector<backends::pjrt::Array> state;
  state.push_back(put(*client, kA, {2, 3}));
  for (int k = 0; k < 5; ++k) {
    const backends::pjrt::Array* next[] = {&state[0], &b};
    state = program.execute(next);
  }
  EXPECT_EQ(take<float>(state[0]), (std::vector<float>{51, 102, 153, 204, 255, 306}));
}

TEST_P(Client, EveryElementType) {
  for (const DTypeInfo& t : kDTypes) {
    for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{}, {7}, {2, 3}, {0, 4}, {1, 2, 1, 3}}) {
      std::size_t n = 1;
      std::string type = "tensor<";
      for (const std::int64_t d : shape) n *= static_cast<std::size_t>(d), type += str_cat(d, "x");
      static constexpr std::string_view kNames[] = {"f32", "f64", "f16", "bf16", "f8E4M3FN", "f8E5M2", "i8", "i16",
                                                    "i32", "i64", "ui8", "ui16", "ui32",     "ui64",   "i1"};
      type += str_cat(kNames[static_cast<int>(t.dtype)], ">");
      std::vector<std::byte> data(n * t.bytes);
      for (std::size_t k = 0; k < data.size(); ++k)
        data[k] = static_cast<std::byte>(t.dtype == DType::Bool ? k % 2 : (k * 37 + 11) % 113);  // values without NaN
      const backends::pjrt::Array x = client->to_device({t.dtype, shape, data});
      EXPECT_EQ(x.dtype(), t.dtype) << t.name;
      EXPECT_EQ(x.shape(), shape) << t.name;
      EXPECT_EQ(x.bytes(), data.size()) << t.name;
      EXPECT_EQ(take<std::uint8_t>(x),
                std::vector<std::uint8_t>(reinterpret_cast<std::uint8_t*>(data.data()),
                                          reinterpret_cast<std::uint8_t*>(data.data()) + data.size()))
          << t.name;
      const backends::pjrt::Array* in[] = {&x};
      const std::vector<backends::pjrt::Array> y = client->compile(identity(type)).execute(in);
      EXPECT_EQ(y[0].dtype(), t.dtype) << type;
      EXPECT_EQ(y[0].shape(), shape) << type;
      EXPECT_EQ(take<std::uint8_t>(y[0]), take<std::uint8_t>(x)) << type;
    }
  }
}

TEST_P(Client, NumbersAtTheEdges) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> odd{inf, -inf, nan, -0.0f, 1e-45f, 3.4e38f};
  const backends::pjrt::Array x = put(*client, odd, {6});
  const backends::pjrt::Array* in[] = {&x};
  const auto y = take<float>(client->compile(identity("tensor<6xf32>")).execute(in)[0]);
  EXPECT_EQ(std::memcmp(y.data(), odd.data(), 24), 0);
}

TEST_P(Client, MistakesAreErrorsThatSayWhat) {
  EXPECT_NE(refusal([&] { client->compile("module {"); }).find("cannot compile the program"), std::string::npos);
  EXPECT_NE(refusal([&] { client->compile(""); }), "");
  EXPECT_NE(refusal([&] { client->compile(kTwo, 1000); }).find("there is no device 1000"), std::string::npos);
  EXPECT_NE(refusal([&] { client->to_device({DType::F32, {3}, {}}); }).find("12 bytes, not 0"), std::string::npos);
  EXPECT_NE(refusal([&] { client->to_device({DType::F32, {-3}, {}}); }).find("-3"), std::string::npos);
  EXPECT_NE(refusal([&] {
              client->to_device({DType::F32, {1l << 40, 1l << 40}, {}});
            }).find("addresses"),
            std::string::npos);
  const backends::pjrt::Array a = put(*client, kA, {2, 3});
  float small[2];
  EXPECT_NE(refusal([&] { a.to_host(small, sizeof small); }).find("24 bytes does not fit 8"), std::string::npos);
  const backends::pjrt::Executable program = client->compile(kTwo);
  const backends::pjrt::Array* one[] = {&a};
  EXPECT_NE(refusal([&] { program.execute(one); }).find("cannot run a program"), std::string::npos);
  EXPECT_EQ(take<float>(a), kA);  // the client still works
}

TEST_P(Client, ObjectsMayGoInAnyOrder) {
  std::optional<backends::pjrt::Executable> program(client->compile(kTwo));
  std::optional<backends::pjrt::Array> a(put(*client, kA, {2, 3})), b(put(*client, kB, {2, 3}));
  client.reset();
  const backends::pjrt::Array* in[] = {&*a, &*b};
  std::optional<backends::pjrt::Event> done;
  std::vector<backends::pjrt::Array> y = program->execute(in, {}, &done);
  program.reset(), a.reset(), b.reset();
  EXPECT_EQ(take<float>(y[0]), kSum);
  y.erase(y.begin());
  EXPECT_EQ(take<float>(y[0]), kTurned);
  y.clear();
  done->await();
}

TEST_P(Client, ThreadsRunOneProgramAtOnce) {
  const backends::pjrt::Executable program = client->compile(kTwo);
  const backends::pjrt::Array b = put(*client, kB, {2, 3});  // shared by all threads
  std::vector<int> wrong(3);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      for (int k = 0; k < 100; ++k) {
        std::vector<float> x(6), want(6);
        for (std::size_t i = 0; i < 6; ++i)
          x[i] = static_cast<float>(t * 1000 + i) + static_cast<float>(k), want[i] = x[i] + kB[i];
        const backends::pjrt::Array a = put(*client, x, {2, 3});
        const backends::pjrt::Array* in[] = {&a, &b};
        const auto y = program.execute(in);
        wrong[t] += take<float>(y[0]) != want || take<float>(y[1]) != kTurned;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, std::vector<int>(wrong.size()));
}

// ---- where plugins come from ----------------------------------------------------------------------

TEST(Plugin, IsFoundByANameOfTheEnvironment) {
  const std::string listed = str_cat("other:/nowhere/other.so,mine:", paths::kPjrtPlugin, ",nonsense");
  ::setenv("PJRT_NAMES_AND_LIBRARY_PATHS", listed.c_str(), 1);
  EXPECT_EQ(backends::pjrt::Plugin::load("mine"), backends::pjrt::Plugin::load(paths::kPjrtPlugin));
  EXPECT_NE(refusal([] { backends::pjrt::Plugin::load("other"); }).find("'/nowhere/other.so' cannot be loaded"),
            std::string::npos);
  const std::string unknown = refusal([] { backends::pjrt::Plugin::load("tpu"); });
  EXPECT_NE(unknown.find("no plugin is named 'tpu'; PJRT_NAMES_AND_LIBRARY_PATHS names other, mine"), std::string::npos)
      << unknown;
  ::unsetenv("PJRT_NAMES_AND_LIBRARY_PATHS");
  EXPECT_NE(refusal([] { backends::pjrt::Plugin::load("mine"); }).find("names none"), std::string::npos);
}

TEST(Plugin, WhatIsNoneIsAnError) {
  EXPECT_NE(refusal([] { backends::pjrt::Plugin::load(""); }).find("no plugin is named"), std::string::npos);
  EXPECT_NE(refusal([] { backends::pjrt::Plugin::load("/nowhere/at/all.so"); }).find("cannot be loaded"),
            std::string::npos);
  EXPECT_NE(refusal([] { backends::pjrt::Plugin::load(__FILE__ "/"); }).find("cannot be loaded"), std::string::npos);
  const std::string said = refusal([] { backends::pjrt::Plugin::load("libm.so.6"); });  // the system's loader finds it
  EXPECT_NE(said.find("a library without a function GetPjrtApi"), std::string::npos) << said;
}
