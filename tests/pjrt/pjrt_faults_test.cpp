// Wrong PJRT plugins (versions, short tables, missing or failing functions, damaged programs) give an Error.
#include <dlfcn.h>

#include <deque>

#include "paths.h"
#include "plugins.h"

using namespace lc;
using backends::pjrt::api::Api;
using test::kTwo;
using test::put;
using test::refusal;
using test::take;
using PjrtError = backends::pjrt::api::Error;
using backends::pjrt::api::Function;

namespace {

constexpr int kFunctions = static_cast<int>(Function::Count);

const Api& real() {
  static const Api* const table = [] {
    void* const library = ::dlopen(paths::kPjrtPlugin, RTLD_NOW | RTLD_LOCAL);
    return reinterpret_cast<const Api* (*)()>(::dlsym(library, "GetPjrtApi"))();
  }();
  return *table;
}

// Returns a copy of the function table that stays valid, as plugins' tables do.
Api& copy_of_table() {
  static std::deque<Api> all;
  return all.emplace_back(real());
}

// A program without kernels, which compiles fast.
constexpr const char* kSame = R"(module @same {
  func.func public @main(%a: tensor<6xf32>, %b: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
    return %a, %b : tensor<6xf32>, tensor<6xf32>
  }
})";

// Uses each function of a client once.
void whole_story(const Api& table) {
  const auto plugin = backends::pjrt::Plugin::of(&table, "faulty");
  static_cast<void>(plugin->attributes());
  const auto client = backends::pjrt::Client::create(plugin);
  static_cast<void>(client->platform());
  static_cast<void>(client->platform_version());
  static_cast<void>(client->device(0));
  const backends::pjrt::Executable program = client->compile(kSame);
  const backends::pjrt::Array a = put(*client, std::vector<float>(6, 1), {6}),
                              b = put(*client, std::vector<float>(6, 2), {6});
  const backends::pjrt::Array* in[] = {&a, &b};
  std::optional<backends::pjrt::Event> done;
  const std::vector<backends::pjrt::Array> y = program.execute(in, {}, &done);
  done->await();
  static_cast<void>(done->ready());
  y[0].ready().await();
  static_cast<void>(a.is_deleted());
  if (take<float>(y[1]) != std::vector<float>(6, 2)) throw Error("story", "the result is wrong");
  static_cast<void>(program.cost());
  static_cast<void>(program.optimised());
}

// Functions that count their calls and fail in one of them.
int calls = 0, failing = 0;
bool destroys(int k) {
  for (const Function f : {Function::EventDestroy, Function::ClientDestroy, Function::ExecutableDestroy,
                           Function::LoadedExecutableDestroy, Function::BufferDestroy})
    if (static_cast<int>(f) == k) return true;
  return false;
}
template <int K>
PjrtError* counted(void* args) {
  using F = PjrtError* (*)(void*);
  const auto own = reinterpret_cast<F>(real().functions[K]);
  if (++calls != failing) return own(args);
  if (destroys(K))  // destroys the object, and then reports an error
    if (PjrtError* e = own(args)) return e;
  backends::pjrt::api::Head none;
  return own(&none);  // arguments with size 0 are refused
}
template <int... K>
void count_calls(Api& table, std::integer_sequence<int, K...>) {
  ((table.functions[K] = reinterpret_cast<backends::pjrt::api::AnyFunction>(&counted<K>)), ...);
  for (const Function f : {Function::ErrorDestroy, Function::ErrorMessage, Function::ErrorGetCode})
    table.functions[static_cast<int>(f)] = real().functions[static_cast<int>(f)];
}

}  // namespace

TEST(FaultyPlugin, VersionsThatAreNotUnderstood) {
  struct Case {
    int major, minor;
    bool good;
  };
  for (const auto& [major, minor, good] : {Case{0, 57, false},
                                           {0, 58, true},
                                           {0, 81, true},
                                           {0, 1000, true},
                                           {1, 0, false},
                                           {1, 81, false},
                                           {-1, 81, false},
                                           {0, -1, false}}) {
    Api& table = copy_of_table();
    table.version.major = major, table.version.minor = minor;
    const std::string said = refusal([&] { whole_story(table); });
    EXPECT_EQ(said.empty(), good) << said;
    if (good) continue;
    EXPECT_NE(said.find(str_cat("version ", major, ".", minor)), std::string::npos) << said;
  }
  EXPECT_NE(refusal([] { backends::pjrt::Plugin::of(nullptr, "nothing"); }).find("gives nothing"), std::string::npos);
}

TEST(FaultyPlugin, ShortTables) {
  for (const std::size_t size : {0, 8, 39}) {
    Api& table = copy_of_table();
    table.head.size = size;
    EXPECT_NE(refusal([&] { whole_story(table); }).find("not even room for its version"), std::string::npos);
  }
  int whole = 0;
  for (int n = 0; n <= kFunctions; ++n) {  // the table ends before function n
    Api& table = copy_of_table();
    table.head.size = offsetof(Api, functions) + static_cast<std::size_t>(n) * sizeof table.functions[0];
    const std::string said = refusal([&] { whole_story(table); });
    whole += said.empty();
    if (said.empty()) continue;
    EXPECT_NE(said.find("has no function"), std::string::npos) << n << ": " << said;
  }
  // the last function that the story needs
  EXPECT_EQ(whole, kFunctions - static_cast<int>(Function::BufferReadyEvent));
}

TEST(FaultyPlugin, FunctionsThatAreMissing) {
  int missed = 0;
  for (int k = 0; k < kFunctions; ++k) {
    Api& table = copy_of_table();
    table.functions[k] = nullptr;
    const std::string said = refusal([&] { whole_story(table); });
    if (said.empty()) continue;
    ++missed;
    EXPECT_NE(said.find(str_cat("has no function ", k, ";")), std::string::npos) << said;
  }
  EXPECT_EQ(missed, 28);  // the functions of the story, and all destructors
}

TEST(FaultyPlugin, EachCallFailsInTurn) {
  Api& first = copy_of_table();
  count_calls(first, std::make_integer_sequence<int, kFunctions>());
  failing = 0, calls = 0;
  EXPECT_EQ(refusal([&] { whole_story(first); }), "");
  const int all = calls;
  EXPECT_GT(all, 30);
  int errors = 0;
  for (int n = 1; n <= all; ++n) {
    Api& table = copy_of_table();
    count_calls(table, std::make_integer_sequence<int, kFunctions>());
    calls = 0, failing = n;
    const std::string said = refusal([&] { whole_story(table); });
    EXPECT_GE(calls, n);
    if (said.empty()) continue;  // failures of destructors are not reported
    ++errors;
    EXPECT_NE(said.find("'faulty' cannot "), std::string::npos) << said;
    EXPECT_NE(said.find("(INVALID_ARGUMENT)"), std::string::npos) << said;
  }
  EXPECT_GT(errors, 25);
  EXPECT_LT(errors, all);
  failing = 0;
}

// An error whose message or code cannot be read is still an error.
TEST(FaultyPlugin, ErrorsWithoutWords) {
  for (const Function f : {Function::ErrorMessage, Function::ErrorGetCode}) {
    Api& table = copy_of_table();
    table.functions[static_cast<int>(f)] = nullptr;
    const auto client = backends::pjrt::Client::create(backends::pjrt::Plugin::of(&table, "mute"));
    const std::string said = refusal([&] { client->compile("module {"); });
    EXPECT_NE(said.find("'mute' cannot compile the program: "), std::string::npos) << said;
    EXPECT_NE(said.find(f == Function::ErrorMessage ? "does not say why (INVALID_ARGUMENT)" : "(UNKNOWN)"),
              std::string::npos)
        << said;
  }
}

TEST(FaultyPlugin, WithoutDevicesOrOptions) {
  Api& table = copy_of_table();
  table.functions[static_cast<int>(Function::ClientAddressableDevices)] =
      reinterpret_cast<backends::pjrt::api::AnyFunction>(
          +[](backends::pjrt::api::ClientAddressableDevices*) -> PjrtError* { return nullptr; });
  EXPECT_NE(refusal([&] {
              backends::pjrt::Client::create(backends::pjrt::Plugin::of(&table, "empty"));
            }).find("finds no device"),
            std::string::npos);
  const auto plugin = backends::pjrt::Plugin::of(&real(), "lightcone");
  EXPECT_NE(refusal([&] {
              backends::pjrt::Client::create(plugin, {{"speed", "high"}});
            }).find("no option 'speed'"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              backends::pjrt::Client::create(plugin, {{"threads", std::int64_t{-1}}});
            }).find("'threads' is an integer"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              backends::pjrt::Client::create(plugin, {{"threads", true}});
            }).find("'threads' is an integer"),
            std::string::npos);
  EXPECT_EQ(backends::pjrt::Client::create(plugin, {{"threads", std::int64_t{1}}})->devices(), 1u);
}

// Every prefix of a program, and the program with changed bytes, gives a program or an Error.
TEST(FaultyPlugin, DamagedPrograms) {
  const auto client = backends::pjrt::Client::create(backends::pjrt::Plugin::of(&real(), "lightcone"));
  const std::string text = kTwo;
  for (std::size_t n = 0; n < text.rfind('}'); n += 3)
    EXPECT_NE(refusal([&] { client->compile(text.substr(0, n)); }), "") << n;
  int good = 0;
  for (std::size_t n = 0; n < text.size(); n += 5)
    for (const char c : {'\0', '<', 'x', '9', '"'}) {
      std::string damaged = text;
      damaged[n] = c;
      good += refusal([&] { client->compile(damaged); }).empty();
    }
  EXPECT_GT(good, 0);  // letters of names may change
}
