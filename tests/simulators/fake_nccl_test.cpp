// The simulated NCCL reports what NVIDIA's leaves to luck: ranks that disagree, messages in a circle, communicators
// that are used too early or too late.
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "data.h"
#include "lightcone/distributed/nccl/api.h"
#include "paths.h"

namespace lc {
namespace {

namespace nccl = distributed::nccl;
using nccl::Result;

template <class Function>
void find(void* library, const char* name, Function& to) {
  to = reinterpret_cast<Function>(::dlsym(library, name));
  if (!to) throw std::runtime_error(name);
}

nccl::Api load() {
  void* const library = ::dlopen(paths::kFakeNccl, RTLD_NOW | RTLD_LOCAL);
  nccl::Api a;
#define LIGHTCONE_FIND(name, symbol, ...) find(library, symbol, a.name);
  LIGHTCONE_NCCL_FUNCTIONS(LIGHTCONE_FIND)
#undef LIGHTCONE_FIND
  find(library, "ncclGetErrorString", a.words), find(library, "ncclGetLastError", a.last_error);
  return a;
}
const nccl::Api& api() {
  static const nccl::Api a = load();
  return a;
}

// One rank in a thread: a driver of its own with a stream, a communicator, and a buffer of 256 bytes.
class Rank {
 public:
  nccl::Handle* handle = nullptr;
  void* stream = nullptr;
  std::uint64_t at = 0;
  int number = 0;

  Rank(int rank, int size, const nccl::UniqueId& id, int device) : number(rank) {
    static const TempDir dir;
    const std::string file = dir / ("libcuda" + std::to_string(device) + ".so");
    std::filesystem::copy_file(paths::kFakeCuda, file, std::filesystem::copy_options::skip_existing);
    library_ = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* context = nullptr;
    call("cuInit", 0u), call("cuDevicePrimaryCtxRetain", &context, 0), call("cuCtxSetCurrent", context);
    call("cuStreamCreate", &stream, 1u), call("cuMemAlloc_v2", &at, std::size_t{256});
    nccl::Config config;
    state = settle(&handle, api().create(&handle, size, id, rank, &config));
  }
  ~Rank() {
    if (handle) api().abort(handle);
    call("cuStreamDestroy_v2", stream), call("cuMemFree_v2", at), call("cuDevicePrimaryCtxRelease_v2", 0);
  }
  Rank(const Rank&) = delete;
  Result state = Result::Success;

  template <class... Arguments>
  int call(const char* name, Arguments... arguments) {
    return reinterpret_cast<int (*)(Arguments...)>(::dlsym(library_, name))(arguments...);
  }
  static Result settle(nccl::Handle** handle, Result r) {
    while (r == Result::InProgress && *handle) {
      if (const Result asked = api().state(*handle, &r); asked != Result::Success) return asked;
      std::this_thread::yield();
    }
    return r;
  }
  nccl::Stream* to() const { return static_cast<nccl::Stream*>(stream); }
  Result reduce(std::size_t n) {
    return api().all_reduce(at, at, n, nccl::Type::F32, nccl::Reduction::Sum, handle, to());
  }
  // Waits until the stream is done. Returns false if it stands still for a second or the communicator has failed.
  bool done() {
    for (const auto begin = std::chrono::steady_clock::now();
         std::chrono::steady_clock::now() - begin < std::chrono::seconds(1);) {
      if (call("cuStreamQuery", stream) == 0) return true;
      Result r{};
      if (api().state(handle, &r) != Result::Success || (r != Result::Success && r != Result::InProgress)) return false;
      std::this_thread::yield();
    }
    return false;
  }

 private:
  void* library_;
};

std::string words() { return api().last_error(nullptr); }

void run(int size, const std::function<void(Rank&)>& f, bool one_device = false) {
  nccl::UniqueId id;
  ASSERT_EQ(api().unique_id(&id), Result::Success);
  std::vector<std::thread> all;
  for (int k = 0; k < size; ++k)
    all.emplace_back([&, k] {
      Rank r(k, size, id, one_device ? 0 : k);
      f(r);
    });
  for (std::thread& t : all) t.join();
}

void expect_words(const std::string& part) { EXPECT_NE(words().find(part), std::string::npos) << words(); }

}  // namespace

TEST(FakeNccl, CollectivesWaitForAllRanks) {
  run(3, [](Rank& r) {
    EXPECT_EQ(r.state, Result::Success);
    const float mine = static_cast<float>(r.number + 1);
    float sum = 0;
    r.call("cuMemcpyHtoDAsync_v2", r.at, static_cast<const void*>(&mine), sizeof mine, r.stream);
    EXPECT_EQ(r.reduce(1), Result::Success);
    r.call("cuMemcpyDtoHAsync_v2", static_cast<void*>(&sum), r.at, sizeof sum, r.stream);
    EXPECT_TRUE(r.done());
    EXPECT_EQ(sum, 6);
  });
}

TEST(FakeNccl, RanksThatDisagreeFail) {
  run(2, [](Rank& r) {
    EXPECT_EQ(r.reduce(static_cast<std::size_t>(r.number + 1)), Result::Success);
    EXPECT_FALSE(r.done());
    EXPECT_EQ(r.reduce(1), Result::InvalidUsage);
  });
  expect_words("ranks run different operations: rank 0 AllReduce of 1 elements of type 7, reduction 0; rank 1");
  run(2, [](Rank& r) {
    if (r.number == 0) api().send(r.at, 8, nccl::Type::U8, 1, r.handle, r.to());
    else api().receive(r.at, 9, nccl::Type::U8, 0, r.handle, r.to());
    EXPECT_FALSE(r.done());
  });
  expect_words("rank 0 sends 8 of type 1, and rank 1 receives 9 of type 1");
}

TEST(FakeNccl, MessagesOutsideOfAGroupLock) {
  for (const bool in_group : {true, false}) {
    run(2, [&](Rank& r) {
      if (in_group) api().begin_group();
      EXPECT_EQ(api().send(r.at, 8, nccl::Type::U8, 1 - r.number, r.handle, r.to()), Result::Success);
      // Outside of a group the circle may be known by now.
      const Result received = api().receive(r.at + 64, 8, nccl::Type::U8, 1 - r.number, r.handle, r.to());
      if (in_group) {
        EXPECT_EQ(received, Result::Success);
        EXPECT_EQ(api().end_group(), Result::Success);
      }
      EXPECT_EQ(r.done(), in_group);
    });
  }
  expect_words("ranks wait for each other");
  run(2, [&](Rank& r) {
    if (r.number == 0) r.reduce(1);
    else api().send(r.at, 8, nccl::Type::U8, 0, r.handle, r.to());
    EXPECT_FALSE(r.done());
  });
  expect_words("ranks wait for each other");
}

// A send stands in its stream until it is received, and what was enqueued behind it waits, too.
TEST(FakeNccl, SendsWaitForTheirReceivers) {
  std::atomic<bool> received = false;
  run(3, [&](Rank& r) {
    char mine[2] = {static_cast<char>(r.number + 1), 0};
    r.call("cuMemcpyHtoDAsync_v2", r.at, static_cast<const void*>(mine), sizeof mine, r.stream);
    if (r.number == 0) {
      for (const int to : {1, 2}) EXPECT_EQ(api().send(r.at, 1, nccl::Type::U8, to, r.handle, r.to()), Result::Success);
    } else if (r.number == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      received = true;
      EXPECT_EQ(api().receive(r.at + 1, 1, nccl::Type::U8, 0, r.handle, r.to()), Result::Success);
    } else {
      EXPECT_EQ(api().receive(r.at + 1, 1, nccl::Type::U8, 0, r.handle, r.to()), Result::Success);
    }
    EXPECT_TRUE(r.done());
    EXPECT_TRUE(received) << r.number;
    r.call("cuMemcpyDtoHAsync_v2", static_cast<void*>(mine), r.at, sizeof mine, r.stream);
    EXPECT_TRUE(r.done());
    EXPECT_EQ(mine[1], r.number ? 1 : 0);
  });
}

TEST(FakeNccl, MemoryMustBeTheDevices) {
  run(1, [](Rank& r) {
    api().all_reduce(r.at, r.at + 252, 2, nccl::Type::F32, nccl::Reduction::Sum, r.handle, r.to());
    EXPECT_FALSE(r.done());
  });
  expect_words("a buffer is not the device's memory");
}

TEST(FakeNccl, TwoRanksOnOneDeviceAreRefused) {
  run(
      2, [](Rank& r) { EXPECT_EQ(r.state, Result::InvalidUsage); }, true);
  expect_words("Duplicate GPU detected");
}

TEST(FakeNccl, CommunicatorsHaveALife) {
  nccl::UniqueId id;
  ASSERT_EQ(api().unique_id(&id), Result::Success);
  run(2, [&](Rank& r) {
    nccl::Handle* part = nullptr;
    nccl::Config config;
    EXPECT_EQ(Rank::settle(&part, api().create(&part, 2, id, 1 - r.number, &config)), Result::Success);
    // The ranks are turned: what rank 1 has is what the first one of the part sends to both.
    const char mine = static_cast<char>(r.number + 1);
    char got = 0;
    r.call("cuMemcpyHtoDAsync_v2", r.at, static_cast<const void*>(&mine), std::size_t{1}, r.stream);
    EXPECT_EQ(api().broadcast(r.at, r.at + 8, 1, nccl::Type::U8, 0, part, r.to()), Result::Success);
    r.call("cuMemcpyDtoHAsync_v2", static_cast<void*>(&got), r.at + 8, std::size_t{1}, r.stream);
    EXPECT_TRUE(r.done());
    EXPECT_EQ(got, 2);
    EXPECT_EQ(Rank::settle(&part, api().finalize(part)), Result::Success);
    EXPECT_EQ(api().broadcast(r.at, r.at + 8, 1, nccl::Type::U8, 0, part, r.to()), Result::InvalidUsage);
    EXPECT_EQ(api().destroy(part), Result::Success);
    EXPECT_EQ(api().destroy(part), Result::InvalidArgument);
    if (r.number == 0) {  // the other rank never comes: an abort ends the wait
      EXPECT_EQ(r.reduce(1), Result::Success);
      EXPECT_NE(r.call("cuStreamQuery", r.stream), 0);
      EXPECT_EQ(api().abort(r.handle), Result::Success);
      EXPECT_EQ(r.call("cuStreamSynchronize", r.stream), 0);
      EXPECT_EQ(r.reduce(1), Result::InvalidArgument);
      r.handle = nullptr;
    }
  });
}

TEST(FakeNccl, OptionsMustBeInitialised) {
  nccl::UniqueId id;
  nccl::Handle* handle = nullptr;
  nccl::Config config;
  config.magic = 0;
  EXPECT_EQ(api().create(&handle, 1, id, 0, &config), Result::InvalidArgument);
  config = {};
  EXPECT_EQ(api().create(&handle, 1, id, 1, &config), Result::InvalidArgument);
  EXPECT_EQ(api().create(&handle, 1, id, 0, &config), Result::UnhandledCudaError);  // no context is current
}

}  // namespace lc
