// The meeting of the ranks of one communicator. A rank arrives when the stream of its device stands at a task, and
// leaves when the task is done with all who take part.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "driver/library_work.h"
#include "types.h"

namespace lc::simulators::nccl {

using cuda::LibraryWork;

// A send or a receive of a group.
struct Message {
  bool sends;
  int peer;
  std::uint64_t at;
  std::size_t count;
  int type;
  std::size_t bytes() const { return count * size_of(type); }
};

// What one rank does: a collective, or the messages of a group.
struct Task {
  enum class Kind { AllReduce, Broadcast, AllGather, ReduceScatter, Messages };
  Kind kind;
  std::uint64_t in = 0, out = 0;
  std::size_t count = 0;
  int type = 0, reduction = 0, root = 0;
  std::vector<Message> messages = {};
  std::string words() const;
};

class Room {
 public:
  explicit Room(int ranks) : places_(static_cast<std::size_t>(ranks)) {}
  int size() const { return static_cast<int>(places_.size()); }

  // A rank with its device comes. It may not be there already, nor another one with this device.
  void join(int rank, const void* device);
  bool all_joined() const;
  // Returns true once the task, which the rank's stream stands at, is done.
  bool stand(int rank, const Task& task, LibraryWork::OnDevice on_device);
  bool is_standing(int rank) const;
  void leave(int rank);  // its tasks are not done any more

  // Why the communicator is of no use any more; "" if it is.
  std::string failure() const;
  void fail(const std::string& why);

 private:
  struct Place {
    bool joined = false;
    const void* device = nullptr;
    const Task* task = nullptr;  // null: it is not here
    bool done = false;
    std::vector<bool> exchanged;  // by message
  };
  bool check_memory(const Task& t, LibraryWork::OnDevice on_device);
  void match();
  void collect();
  void deliver(std::size_t from, std::size_t to);
  bool waits_for(std::size_t rank, std::size_t other) const;
  void find_deadlock();
  void set_failure(const std::string& why);

  mutable std::mutex mutex_;  // guards the fields below
  std::vector<Place> places_;
  std::string failure_;
};

}  // namespace lc::simulators::nccl
