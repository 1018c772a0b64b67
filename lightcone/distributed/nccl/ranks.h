// What one rank has of NCCL: the communicator of all ranks, those of groups, and a thread that looks after them.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lightcone/backends/cuda/device.h"
#include "lightcone/distributed/nccl/library.h"

namespace lc::distributed::nccl {

// NCCL's communicators do not block: a call that takes time is asked about until it is done, and every wait ends. After
// a failure all communicators are aborted, which ends what they have in streams, and all later calls throw Error.
//
// One thread makes calls at a time, and the thread that looks after them.
class Ranks {
 public:
  Ranks(const Library& library, std::shared_ptr<backends::cuda::CudaDevice> device, double timeout_s);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  UniqueId unique_id();
  // Makes the communicator of all ranks; all of them call it.
  void join(const UniqueId& id, int rank, int size);
  // How the id of a group's first rank comes to the others: share(id, ranks, place) returns with the same id on all.
  using ShareId = std::function<void(UniqueId& id, std::span<const int> ranks, int place)>;
  void share_ids_by(ShareId share) { share_id_ = std::move(share); }
  // Returns the communicator of a group, in the order of its places. All ranks of the group call it at the same point
  // of their programs, and others do not: stages of a pipeline run different programs. It stays until the end.
  Handle* group(std::span<const int> ranks, int place);
  Handle* world() const { return world_; }

  const backends::cuda::CudaDevice& device() const { return *device_; }
  const std::shared_ptr<backends::cuda::CudaDevice>& shared_device() const { return device_; }
  const Library& library() const { return library_; }
  // Calls call(api), which enqueues work of a communicator.
  template <class Call>
  void enqueue(Handle* handle, const Call& call) {
    const std::lock_guard lock(mutex_);
    refuse_if_failed();
    settle(handle, call(library_.api()), "run a collective");
  }

 private:
  void refuse_if_failed() const;
  void settle(Handle* handle, Result r, const char* doing);
  Result wait_for(Handle* handle, Result r) const;
  void fail(std::string why) noexcept;
  void look_after();
  void check_all();
  void end() noexcept;

  const Library& library_;
  const std::shared_ptr<backends::cuda::CudaDevice> device_;
  const double timeout_;
  int rank_ = 0, size_ = 1;
  ShareId share_id_;
  mutable std::mutex mutex_;  // guards the fields below
  std::condition_variable over_;
  bool joined_ = false, ends_ = false;
  std::string failure_;
  Handle* world_ = nullptr;
  std::map<std::vector<int>, Handle*> groups_;
  std::thread watch_;
};

}  // namespace lc::distributed::nccl
