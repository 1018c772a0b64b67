// Ranks with a simulated CUDA device each, which the simulated NCCL joins: a rank is a thread with a driver of its own,
// a copy of the library.
#pragma once

#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../cuda/cuda_fixture.h"
#include "lightcone/distributed/collectives.h"
#include "lightcone/distributed/nccl/nccl.h"
#include "lightcone/passes/passes.h"

namespace lc::test::on_nccl {

// Settings and counters of the simulated NCCL.
class FakeNccl {
 public:
  FakeNccl() : library_(::dlopen(paths::kFakeNccl, RTLD_NOW | RTLD_LOCAL)) {
    if (!library_) throw std::runtime_error(::dlerror());
  }
  void set(const char* name, long value) {
    EXPECT_EQ(reinterpret_cast<int (*)(const char*, long)>(::dlsym(library_, "fake_nccl_set"))(name, value), 0);
  }
  long get(const char* name) const {
    return reinterpret_cast<long (*)(const char*)>(::dlsym(library_, "fake_nccl_get"))(name);
  }

 private:
  void* library_;
};

// A driver for each rank, and a cache of kernels that all of them share.
inline CudaOptions device_of(int rank) {
  static const TempDir dir;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const std::string file = dir / str_cat("libcuda_of_rank_", rank, ".so");
  if (!std::filesystem::exists(file)) std::filesystem::copy_file(paths::kFakeCuda, file);
  CudaOptions o;
  o.driver = o.compiler = file;
  o.cache = dir / "cache";
  return o;
}

struct Rank {
  Collectives collectives;
  std::shared_ptr<backends::gpu::GpuDevice> device;
  Compiler compiler() const { return generic() | backends::gpu::compiler(device); }
};

// Returns what each rank threw ("" if nothing).
inline std::vector<std::string> on_devices(const Mesh& mesh, const std::function<void(const Rank&)>& run,
                                           double timeout_s = 60) {
  auto hosts = threads(mesh.size(), {.timeout_s = 60});
  std::vector<std::string> thrown(hosts.size());
  std::vector<std::thread> all;
  for (std::size_t k = 0; k < hosts.size(); ++k)
    all.emplace_back([&, k, host = std::move(hosts[k])]() mutable {
      try {
        const auto device = backends::cuda::open_device(device_of(static_cast<int>(k)));
        const auto rank = nccl_ranks(device, std::move(host), {.library = paths::kFakeNccl, .timeout_s = timeout_s});
        run({Collectives(mesh, rank), device});
      } catch (const std::exception& e) {
        thrown[k] = e.what();
      }
    });
  for (std::thread& t : all) t.join();
  return thrown;
}

inline void expect_none(const std::vector<std::string>& thrown) {
  for (const std::string& what : thrown) EXPECT_EQ(what, "");
}

}  // namespace lc::test::on_nccl
