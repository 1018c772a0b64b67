#include "lightcone/distributed/nccl/ranks.h"

#include <chrono>

#include "lightcone/base/error.h"
#include "lightcone/distributed/nccl/meeting_place.h"

namespace lc::distributed::nccl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{20};  // between two looks at the communicators
constexpr double kFarewell = 5;                 // seconds that the end of a communicator may take

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

}  // namespace

Ranks::Ranks(const Library& library, std::shared_ptr<backends::cuda::CudaDevice> device, double timeout_s)
    : library_(library), device_(std::move(device)), timeout_(timeout_s) {
  device_->stream()->context().watch();
  watch_ = std::thread([this] { look_after(); });
}

Ranks::~Ranks() {
  device_->stream()->wait_quietly();  // looked after, so that it ends
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  over_.notify_all();
  watch_.join();
  end();
}

void Ranks::refuse_if_failed() const {
  if (!failure_.empty()) throw Error("nccl", failure_);
}

// ---- calls ----------------------------------------------------------------------------------------------------------

UniqueId Ranks::unique_id() {
  device_->stream()->context().enter();
  UniqueId id;
  if (const Result r = library_.api().unique_id(&id); r != Result::Success)
    throw Error("nccl", str_cat(library_.name(), " makes no id for ranks to meet by: ", library_.words(r)));
  return id;
}

// Waits until the communicator has done what it was asked for. Returns InProgress after the time-out.
Result Ranks::wait_for(Handle* handle, Result r) const {
  for (const auto begin = Clock::now(); r == Result::InProgress && seconds_since(begin) < timeout_;) {
    if (const Result asked = library_.api().state(handle, &r); asked != Result::Success) return asked;
    if (r == Result::InProgress) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return r;
}

void Ranks::settle(Handle* handle, Result r, const char* doing) {
  r = wait_for(handle, r);
  if (r == Result::Success) return;
  fail(r == Result::InProgress
           ? str_cat(library_.name(), " cannot ", doing, ": not all ranks did so within ", timeout_, " s")
           : str_cat(library_.name(), " cannot ", doing, ": ", library_.words(r)));
  refuse_if_failed();
}

void Ranks::join(const UniqueId& id, int rank, int size) {
  rank_ = rank, size_ = size;
  device_->stream()->context().enter();
  const std::lock_guard lock(mutex_);
  Config config;
  const Result r = library_.api().create(&world_, size, id, rank, &config);
  settle(world_, r, "let the ranks meet");
  joined_ = true;
}

Handle* Ranks::group(std::span<const int> ranks, int place) {
  bool all = static_cast<int>(ranks.size()) == size_;
  for (std::size_t k = 0; k < ranks.size() && all; ++k) all = ranks[k] == static_cast<int>(k);
  if (all) return world_;
  const std::vector<int> name(ranks.begin(), ranks.end());
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = groups_.find(name); it != groups_.end()) return it->second;
  }
  device_->stream()->context().enter();
  UniqueId id;
  if (place == 0) {
    const NoMeetingPlace here;
    id = unique_id();
  }
  if (ranks.size() > 1) share_id_(id, ranks, place);
  const std::lock_guard lock(mutex_);
  refuse_if_failed();
  Handle*& to = groups_[name];
  Config config;
  Result r{};
  {
    const NoMeetingPlace here;
    r = library_.api().create(&to, static_cast<int>(ranks.size()), id, place, &config);
  }
  settle(to, r, "let the ranks of a group meet");
  return to;
}

// ---- looking after them ---------------------------------------------------------------------------------------------

void Ranks::look_after() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    over_.wait_for(lock, kLook);
    if (!ends_ && failure_.empty()) check_all();
  }
}

void Ranks::check_all() {
  std::vector<Handle*> all{world_};
  for (const auto& [name, handle] : groups_) all.push_back(handle);
  for (Handle* handle : all) {
    Result r = Result::Success;
    if (!handle || library_.api().state(handle, &r) != Result::Success) continue;
    if (r != Result::Success && r != Result::InProgress)
      return fail(str_cat("a collective failed in ", library_.name(), ": ", library_.words(r)));
  }
  if (device_->stream()->context().blocked_s() > timeout_)
    fail(str_cat("this rank's device waits for other ranks since ", timeout_,
                 " s: one of them has ended, runs another ",
                 "program, or needs longer for its own work (NcclOptions::timeout_s)"));
}

// Waits of the host for the device end when the collectives in it do, and throw.
void Ranks::fail(std::string why) noexcept {
  if (!failure_.empty()) return;
  failure_ = std::move(why);
  if (joined_) device_->stream()->context().interrupt("nccl", failure_);
  for (const auto& [name, handle] : groups_)
    if (handle) library_.api().abort(handle);
  if (world_) library_.api().abort(world_);
  groups_.clear();
  world_ = nullptr;
}

void Ranks::end() noexcept {
  const auto end_one = [&](Handle* handle) {
    if (!handle) return;
    Result r = library_.api().finalize(handle);
    for (const auto begin = Clock::now(); r == Result::InProgress && seconds_since(begin) < kFarewell;) {
      if (library_.api().state(handle, &r) != Result::Success) break;
      if (r == Result::InProgress) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    if (r != Result::Success || library_.api().destroy(handle) != Result::Success) library_.api().abort(handle);
  };
  device_->stream()->context().quietly([&](const backends::cuda::api::Driver&) {
    for (const auto& [name, handle] : groups_) end_one(handle);
    end_one(world_);
    return backends::cuda::api::Result::Success;
  });
}

}  // namespace lc::distributed::nccl
