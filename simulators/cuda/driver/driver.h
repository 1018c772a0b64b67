// The state of the driver, and the prologue shared by all its calls.
#pragma once
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>

#include "driver/codes.h"
#include "driver/memory.h"
#include "driver/settings.h"
#include "driver/work.h"

#define FAKE_CUDA_API extern "C" __attribute__((visibility("default")))

namespace lc::simulators::cuda {

// Objects by the handles that the user holds.
template <class T>
class Handles {
 public:
  void* add(std::shared_ptr<T> object) {
    void* handle = object.get();
    objects_.emplace(handle, std::move(object));
    return handle;
  }
  T* find(const void* handle) const {
    const auto i = objects_.find(handle);
    return i == objects_.end() ? nullptr : i->second.get();
  }
  std::shared_ptr<T> shared(const void* handle) const {
    const auto i = objects_.find(handle);
    return i == objects_.end() ? nullptr : i->second;
  }
  Code remove(const void* handle) { return objects_.erase(handle) != 0 ? kSuccess : kInvalidHandle; }
  std::size_t size() const { return objects_.size(); }
  void clear() { objects_.clear(); }
  auto begin() const { return objects_.begin(); }
  auto end() const { return objects_.end(); }

 private:
  std::unordered_map<const void*, std::shared_ptr<T>> objects_;
};

struct Module {
  std::shared_ptr<Library> library;
  std::unordered_map<std::string, std::shared_ptr<Function>> functions;
};

// The conditions under which a call is refused.
enum Rule : unsigned {
  kAlways = 0,
  kInitialized = 1,
  kCurrentContext = 2,      // requires a current context without a fault
  kReleases = 4,            // takes effect even if it returns an earlier or an injected error
  kForbiddenInCapture = 8,  // would wait or allocate: breaks a capture whose mode does not allow it
};

class Driver {
 public:
  std::mutex mutex;
  bool initialized = false;
  // state of the primary context
  int retained = 0;
  bool alive = false;
  Code fault = kSuccess;
  std::string fault_words;
  int refused = kSuccess;  // the error that the running call returns although it takes effect

  Allocations allocations;
  AddressSpace addresses;
  PinnedMemory pinned;
  Handles<Stream> streams;
  Handles<Event> events;
  Handles<Module> modules;
  Handles<Function> functions;
  Handles<Graph> graphs;
  Handles<GraphExec> execs;
  std::shared_ptr<Stream> default_stream = std::make_shared<Stream>();

  // Returns the error with which a call ends before it begins. Clears `still_works` if the call must not take effect
  // either.
  Code refuse(unsigned rules, bool& still_works);
  bool on_device(Address a, std::size_t bytes) const {
    return allocations.holds(a, bytes) || addresses.holds(a, bytes);
  }
  bool room_for(std::size_t bytes) const;
  void set_fault(Code code, std::string words);
  void clear();  // destroys everything that the context owns

  // Returns the stream, or null if there is none. The handles null and 1 name the default stream.
  std::shared_ptr<Stream> stream(void* handle) const;
  // Appends an operation to the stream; runs it unless work is deferred or captured.
  Code submit(Stream& s, Operation operation);
  // Runs the stream's next operation. Returns false if it waits for other devices.
  bool run_one(Stream& s);
  // These wait until all is done. Other threads may call the driver meanwhile.
  void run_until(const std::shared_ptr<Mark>& mark);
  void drain(Stream& s);
  void drain_all();
  // Breaks captures that a waiting or allocating call of this thread must not disturb.
  Code forbid_in_capture();

 private:
  bool try_until(const std::shared_ptr<Mark>& mark);
  bool is_ready(const Node& node);
  void pause();
  void execute(const Node& node);
  void run(const Launch& launch);
  void run(const Copy& copy);
  void run(const Fill& fill);
  void run(const std::shared_ptr<const LibraryWork>& work);
  std::shared_ptr<Mark> end_of(Stream& s);
  Code capture(Stream& s, Operation& operation);
  void wait_for_others(Stream& s);
};

Driver& driver();

// Counts the call; returns the injected error if this call is to fail, and kSuccess otherwise.
int count_call();

// Returns the current context of the thread: 0 or kContextHandle.
void* primary_context();
bool has_current_context();

template <class Work>
int driver_call(unsigned rules, Work work) {
  const int injected = count_call();
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  bool still_works = (rules & kReleases) != 0;
  int refused = d.refuse(rules, still_works);
  if (refused == kSuccess) refused = injected;
  if (refused != kSuccess && !still_works) return refused;
  d.refused = refused;
  try {
    const int code = work(d);
    return refused != kSuccess ? refused : code;
  } catch (const std::bad_alloc&) {
    return kOutOfMemory;
  } catch (const std::exception&) {
    return kUnknown;
  }
}

}  // namespace lc::simulators::cuda
