// The functions of NCCL.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "communicator.h"

#define FAKE_NCCL_API extern "C" __attribute__((visibility("default")))

using namespace lc::simulators::nccl;

namespace lc::simulators::nccl {
namespace {

// Rooms whose ranks have not all come, by the id that rank 0 gave out.
struct Waiting {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Room>> rooms;
  long ids = 0;
};
Waiting& waiting() {
  static Waiting* const only = new Waiting;
  return *only;
}

// Counts the call. Returns the injected error if this call is to fail.
Result counted() {
  const long number = ++settings().calls;
  if (number == settings().fail_at) return error(static_cast<Result>(settings().fail_code.load()), "injected");
  return kSuccess;
}

template <class Work>
Result call(const Work& work) {
  if (const Result r = counted(); r != kSuccess) return r;
  try {
    return work();
  } catch (const std::exception& e) {
    return error(kSystemError, e.what());
  }
}

// Calls work(communicator) for a communicator that is alive and not waiting for anything.
template <class Work>
Result ready_call(Communicator* handle, const Work& work) {
  return call([&]() -> Result {
    const std::shared_ptr<Communicator> c = find(handle);
    if (!c) return error(kInvalidArgument, "the communicator is none, or was destroyed or aborted");
    if (c->finalized) return error(kInvalidUsage, "the communicator was finalized");
    if (const Result r = c->state(); r == kInProgress) return error(kInvalidUsage, "a call is still in progress");
    else if (r != kSuccess) return r;
    return work(c);
  });
}

Result check_config(const Config* config, bool& blocking) {
  if (!config) return kSuccess;
  if (config->size < offsetof(Config, split_share) || config->magic != kMagic)
    return error(kInvalidArgument, "ncclConfig_t was not initialised");
  if (config->blocking != kUndefined && config->blocking != 0 && config->blocking != 1)
    return error(kInvalidArgument, "ncclConfig_t::blocking is 0 or 1");
  if (config->blocking != kUndefined) blocking = config->blocking == 1;
  return kSuccess;
}

Result settle(Communicator& c) {
  for (;;) {
    const Result r = c.state();
    if (r != kInProgress || !c.blocking) return r;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

Result collective(Communicator* handle, void* stream, Task task) {
  return ready_call(handle, [&](const std::shared_ptr<Communicator>& c) -> Result {
    if (task.type < 0 || task.type >= kTypes) return error(kInvalidArgument, "there is no such type");
    if (task.reduction < 0 || task.reduction >= kReductions) return error(kInvalidArgument, "no such reduction");
    if (task.root < 0 || task.root >= c->room->size()) return error(kInvalidArgument, "there is no such root");
    if (task.count && (!task.in || !task.out)) return error(kInvalidArgument, "a buffer is null");
    return submit(c, stream, std::move(task));
  });
}

Result message(Communicator* handle, void* stream, const Message& m) {
  return ready_call(handle, [&](const std::shared_ptr<Communicator>& c) -> Result {
    if (m.type < 0 || m.type >= kTypes) return error(kInvalidArgument, "there is no such type");
    if (m.peer < 0 || m.peer >= c->room->size()) return error(kInvalidArgument, "there is no such peer");
    if (m.count && !m.at) return error(kInvalidArgument, "a buffer is null");
    Task task{.kind = Task::Kind::Messages};
    task.messages.push_back(m);
    return submit(c, stream, std::move(task));
  });
}

}  // namespace
}  // namespace lc::simulators::nccl

FAKE_NCCL_API int ncclGetVersion(int* version) {
  return call([&]() -> Result {
    if (!version) return kInvalidArgument;
    *version = static_cast<int>(settings().version);
    return kSuccess;
  });
}

FAKE_NCCL_API const char* ncclGetErrorString(int result) {
  constexpr const char* words[] = {"no error",
                                   "unhandled cuda error",
                                   "unhandled system error",
                                   "internal error",
                                   "invalid argument",
                                   "invalid usage",
                                   "remote process exited or there was a network error",
                                   "NCCL operation in progress"};
  return result >= 0 && result < 8 ? words[result] : "unknown result code";
}

FAKE_NCCL_API const char* ncclGetLastError(Communicator*) {
  thread_local std::string words;
  words = last_error();
  return words.c_str();
}

// As NCCL does, every rank may make the id where NCCL_COMM_ID says where rank 0 is.
FAKE_NCCL_API int ncclGetUniqueId(UniqueId* to) {
  return call([&]() -> Result {
    if (!to) return kInvalidArgument;
    std::memset(to->bytes, 0, sizeof to->bytes);
    const char* const place = std::getenv("NCCL_COMM_ID");
    const std::lock_guard lock(waiting().mutex);
    const std::string id = place ? std::string("at ") + place : "number " + std::to_string(++waiting().ids);
    std::memcpy(to->bytes, id.data(), std::min(id.size(), sizeof to->bytes));
    return kSuccess;
  });
}

FAKE_NCCL_API int ncclCommInitRankConfig(Communicator** to, int ranks, UniqueId id, int rank, const Config* config) {
  return call([&]() -> Result {
    if (!to || ranks < 1 || rank < 0 || rank >= ranks) return error(kInvalidArgument, "there is no such rank");
    const auto c = std::make_shared<Communicator>();
    if (const Result r = check_config(config, c->blocking); r != kSuccess) return r;
    c->device = current_device();
    if (!c->device) return error(kUnhandledCudaError, "this thread has no current context, or several drivers'");
    c->rank = rank;
    {
      const std::lock_guard lock(waiting().mutex);
      std::shared_ptr<Room>& room = waiting().rooms[std::string(id.bytes, sizeof id.bytes)];
      if (!room) room = std::make_shared<Room>(ranks);
      if (room->size() != ranks) return error(kInvalidUsage, "ranks differ in how many they are");
      room->join(rank, reinterpret_cast<const void*>(c->device.work));
      c->room = room;
      if (room->all_joined() || !room->failure().empty()) waiting().rooms.erase(std::string(id.bytes, sizeof id.bytes));
    }
    *to = add(c);
    return settle(*c);
  });
}

FAKE_NCCL_API int ncclCommGetAsyncError(Communicator* handle, int* to) {
  return call([&]() -> Result {
    const std::shared_ptr<Communicator> c = find(handle);
    if (!c || !to) return error(kInvalidArgument, "the communicator is none, or was destroyed or aborted");
    *to = c->state();
    return kSuccess;
  });
}

FAKE_NCCL_API int ncclCommFinalize(Communicator* handle) {
  return ready_call(handle, [&](const std::shared_ptr<Communicator>& c) -> Result {
    c->finalized = true;
    return settle(*c);
  });
}

FAKE_NCCL_API int ncclCommDestroy(Communicator* handle) {
  return call([&]() -> Result {
    const std::shared_ptr<Communicator> c = find(handle);
    if (!c || !remove(handle)) return error(kInvalidArgument, "the communicator is none, or was destroyed or aborted");
    if (c->room->is_standing(c->rank)) return error(kInvalidUsage, "a collective is not done");
    return kSuccess;
  });
}

FAKE_NCCL_API int ncclCommAbort(Communicator* handle) {
  return call([&]() -> Result {
    const std::shared_ptr<Communicator> c = find(handle);
    if (!c || !remove(handle)) return error(kInvalidArgument, "the communicator is none, or was destroyed or aborted");
    c->aborted = true;
    if (c->room) c->room->leave(c->rank);
    return kSuccess;
  });
}

FAKE_NCCL_API int ncclAllReduce(std::uint64_t in, std::uint64_t out, std::size_t count, int type, int reduction,
                                Communicator* c, void* stream) {
  return collective(
      c, stream,
      {.kind = Task::Kind::AllReduce, .in = in, .out = out, .count = count, .type = type, .reduction = reduction});
}
FAKE_NCCL_API int ncclBroadcast(std::uint64_t in, std::uint64_t out, std::size_t count, int type, int root,
                                Communicator* c, void* stream) {
  return collective(c, stream,
                    {.kind = Task::Kind::Broadcast, .in = in, .out = out, .count = count, .type = type, .root = root});
}
FAKE_NCCL_API int ncclAllGather(std::uint64_t in, std::uint64_t out, std::size_t count, int type, Communicator* c,
                                void* stream) {
  return collective(c, stream, {.kind = Task::Kind::AllGather, .in = in, .out = out, .count = count, .type = type});
}
FAKE_NCCL_API int ncclReduceScatter(std::uint64_t in, std::uint64_t out, std::size_t count, int type, int reduction,
                                    Communicator* c, void* stream) {
  return collective(
      c, stream,
      {.kind = Task::Kind::ReduceScatter, .in = in, .out = out, .count = count, .type = type, .reduction = reduction});
}
FAKE_NCCL_API int ncclSend(std::uint64_t from, std::size_t count, int type, int peer, Communicator* c, void* stream) {
  return message(c, stream, {true, peer, from, count, type});
}
FAKE_NCCL_API int ncclRecv(std::uint64_t to, std::size_t count, int type, int peer, Communicator* c, void* stream) {
  return message(c, stream, {false, peer, to, count, type});
}

FAKE_NCCL_API int ncclGroupStart() {
  begin_group();
  return kSuccess;
}
FAKE_NCCL_API int ncclGroupEnd() { return end_group(); }

// ---- for tests ------------------------------------------------------------------------------------

namespace {
std::atomic<long>* setting(const char* name) {
  Settings& s = settings();
  for (const auto& [known, value] :
       {std::pair("version", &s.version), std::pair("calls", &s.calls), std::pair("tasks", &s.tasks),
        std::pair("fail_at", &s.fail_at), std::pair("fail_code", &s.fail_code)})
    if (std::strcmp(name, known) == 0) return value;
  return nullptr;
}
}  // namespace

// Changes a setting. Returns 0, or -1 if the name is unknown.
FAKE_NCCL_API int fake_nccl_set(const char* name, long value) {
  std::atomic<long>* const s = setting(name);
  if (s == nullptr) return -1;
  *s = value;
  return 0;
}
// Returns a setting, or "live", the number of communicators; -1 if the name is unknown.
FAKE_NCCL_API long fake_nccl_get(const char* name) {
  if (std::strcmp(name, "live") == 0) return static_cast<long>(live());
  const std::atomic<long>* const s = setting(name);
  return s == nullptr ? -1 : s->load();
}
