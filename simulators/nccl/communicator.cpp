#include "communicator.h"

#include <unordered_map>

namespace lc::simulators::nccl {
namespace {

struct Known {
  std::mutex mutex;
  std::unordered_map<const void*, std::shared_ptr<Communicator>> all;
  std::string error;
};
Known& known() {
  static Known* const only = new Known;
  return *only;
}

}  // namespace

Settings& settings() {
  static Settings* const only = new Settings;
  return *only;
}

std::shared_ptr<Communicator> find(const void* handle) {
  const std::lock_guard lock(known().mutex);
  const auto it = known().all.find(handle);
  return it == known().all.end() ? nullptr : it->second;
}
Communicator* add(std::shared_ptr<Communicator> c) {
  const std::lock_guard lock(known().mutex);
  Communicator* const handle = c.get();
  known().all.emplace(handle, std::move(c));
  return handle;
}
bool remove(const void* handle) {
  const std::lock_guard lock(known().mutex);
  return known().all.erase(handle) != 0;
}
std::size_t live() {
  const std::lock_guard lock(known().mutex);
  return known().all.size();
}

std::string last_error() {
  const std::lock_guard lock(known().mutex);
  return known().error;
}
Result error(Result r, const std::string& words) {
  const std::lock_guard lock(known().mutex);
  known().error = words;
  return r;
}

Result Communicator::state() const {
  if (const std::string why = room->failure(); !why.empty()) return error(kInvalidUsage, why);
  return !room->all_joined() || (finalized && room->is_standing(rank)) ? kInProgress : kSuccess;
}

// ---- groups ---------------------------------------------------------------------------------------

namespace {

struct Call {
  std::shared_ptr<Communicator> communicator;
  void* stream;
  Task task;
};
thread_local int depth = 0;
thread_local std::vector<Call> calls;

// The work stands in its stream until all ranks that take part are there. An abort ends it without a result.
Result enqueue(const Call& c) {
  const auto task = std::make_shared<const Task>(c.task);
  const std::shared_ptr<Communicator> who = c.communicator;
  cuda::LibraryWork work;
  work.ready = [who, task](cuda::LibraryWork::OnDevice on_device) {
    return who->aborted || who->room->stand(who->rank, *task, on_device);
  };
  work.run = [](cuda::LibraryWork::OnDevice) {
    ++settings().tasks;
    return std::string();
  };
  const int r = who->device.work(c.stream, &work);
  return r == 0 ? kSuccess : error(kUnhandledCudaError, "the driver's result is " + std::to_string(r));
}

}  // namespace

void begin_group() { ++depth; }

// Messages of one communicator in one stream are one task.
Result end_group() {
  if (depth == 0) return error(kInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  if (--depth > 0) return kSuccess;
  std::vector<Call> joined;
  for (Call& c : calls) {
    Call* with = nullptr;
    for (Call& j : joined)
      if (j.communicator == c.communicator && j.stream == c.stream && j.task.kind == Task::Kind::Messages) with = &j;
    if (with && c.task.kind == Task::Kind::Messages)
      with->task.messages.insert(with->task.messages.end(), c.task.messages.begin(), c.task.messages.end());
    else joined.push_back(std::move(c));
  }
  calls.clear();
  for (const Call& c : joined)
    if (const Result r = enqueue(c); r != kSuccess) return r;
  return kSuccess;
}

Result submit(const std::shared_ptr<Communicator>& c, void* stream, Task task) {
  Call call{c, stream, std::move(task)};
  if (depth == 0) return enqueue(call);
  calls.push_back(std::move(call));
  return kSuccess;
}

}  // namespace lc::simulators::nccl
