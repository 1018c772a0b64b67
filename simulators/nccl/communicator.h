// A rank's communicator, and the calls between ncclGroupStart and ncclGroupEnd.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "device.h"
#include "room.h"

namespace lc::simulators::nccl {

struct Communicator {
  Device device;
  int rank = 0;
  std::shared_ptr<Room> room;
  bool blocking = true;
  std::atomic<bool> aborted = false, finalized = false;

  // Returns what ncclCommGetAsyncError() reports.
  Result state() const;
};

struct Settings {
  std::atomic<long> version = 22703;
  std::atomic<long> calls = 0;    // so far
  std::atomic<long> tasks = 0;    // collectives and groups of messages done by a rank so far
  std::atomic<long> fail_at = 0;  // the number of the call that returns fail_code, once; 0: none
  std::atomic<long> fail_code = 1;
};
Settings& settings();

// Communicators that were neither destroyed nor aborted, by the handles that the user holds.
std::shared_ptr<Communicator> find(const void* handle);
Communicator* add(std::shared_ptr<Communicator> c);
bool remove(const void* handle);
std::size_t live();

// Returns the words of the latest error of this process.
std::string last_error();
Result error(Result r, const std::string& words);

// ---- groups ---------------------------------------------------------------------------------------

void begin_group();
Result end_group();
// Enqueues a task in the stream, or adds it to the group of this thread.
Result submit(const std::shared_ptr<Communicator>& c, void* stream, Task task);

}  // namespace lc::simulators::nccl
