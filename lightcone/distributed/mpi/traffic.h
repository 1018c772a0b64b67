// Traffic: messages between ranks, none of which is waited for longer than the time-out.
//
// They are messages of two ranks each (MPI_Isend, MPI_Irecv), and no collective operations of MPI: a receive that does
// not come names its rank and can be cancelled, a collective does neither; and MPI_Comm_create_group, which a group of
// its own would need, cannot be given up. What is sent to whom is what MPI's own non-blocking collectives send.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lightcone/distributed/mpi/library.h"
#include "lightcone/distributed/mpi/mpi.h"

namespace lc::distributed {

// Arrays that go one way between this rank and another one, in order and in messages. Some of these are under way at
// once, and each that is done makes room for the next.
struct Flow {
  struct Array {
    std::byte* at = nullptr;
    std::size_t bytes = 0;    // which no message has yet
    std::size_t message = 0;  // the most that one has
  };
  int peer = 0, tag = 0;
  bool receives = false;
  std::vector<Array> arrays;
  std::size_t next = 0;      // the array of the next message
  std::size_t requests = 0;  // how many the batch has for this flow
  bool has_more() const { return next < arrays.size(); }
};

// Messages under way, and those that follow them.
struct Batch {
  std::vector<MPI_Request> requests;
  std::vector<std::size_t> flow_of;  // for each request
  std::vector<Flow> flows;           // the first `used` of them; the others keep their memory
  std::size_t used = 0;
  std::size_t longest = 0;  // bytes of an array
  Flow& flow(int peer, int tag, bool receives);
  void clear();
};

class Traffic {
 public:
  enum class Tag : int { Header = 1, Data = 2, Note = 3 };
  using Header = std::array<std::uint64_t, 8>;

  // Throws Error unless all ranks make one within the time-out.
  explicit Traffic(const MpiOptions& o);
  int rank() const { return rank_; }
  int size() const { return size_; }

  void send(Batch& b, const void* from, std::size_t bytes, int to, Tag tag);
  void receive(Batch& b, void* to, std::size_t bytes, int from, Tag tag);
  enum class Patience : std::uint8_t { Whole, EachMessage };  // what the time-out counts
  // Waits for all messages of a batch, and empties it. False if that failed.
  bool wait(Batch& b, Patience patience);

  // Why nothing works any more; "" while everything does. A failure is told to all other ranks.
  const std::string& failure() const { return failure_; }
  void fail(const std::string& why);
  // The same; returns whether this rank is the lowest of those that failed by themselves, as far as it hears in a
  // moment.
  bool fail_and_ask(const std::string& why);
  // Tells all others that this rank ends, and waits for their end. False if any rank failed: MPI may still use this
  // object's memory.
  bool leave();
  // At the end of a process whose rank failed: lets the other ranks fail, too.
  void say_farewell();

  Batch headers, data;
  std::vector<Header> heads;    // the headers of a group
  std::vector<std::byte> rows;  // numbers to be reduced
  std::vector<const void*> all_rows;

 private:
  // Followed: a rank fails because another one did.
  enum class News : int { Nothing, Ended, Failed, Followed };
  struct Note {
    News news = News::Nothing;
    std::array<char, 1020> text{};
  };
  void duplicate_world();
  void listen();
  void hear();
  void tell(News news, const std::string& text);
  void pass_on(Batch& b, Flow& f, std::byte* at, std::size_t bytes);
  void post(Flow& f, MPI_Request& request);
  bool test(Batch& b, int& done);
  void cancel(Batch& b);
  std::string who_is_missing(const Batch& b, double waited) const;
  bool exchange_notes(News news);

  std::shared_ptr<Library> library_;
  MpiOptions options_;
  MPI_Comm world_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1, notes_ = 0;
  struct MessageBytes {
    std::size_t of_short, of_long;  // arrays
  };
  std::vector<MessageBytes> message_bytes_;  // to and from each rank
  std::string failure_;
  bool told_ = false, told_all_ = false;
  bool followed_ = false;  // failure_ is another rank's
  Note incoming_, outgoing_;
  Batch told_to_;
  MPI_Request listening_ = MPI_REQUEST_NULL;
  std::vector<News> heard_;  // from each rank
  std::vector<std::chrono::steady_clock::time_point> when_;
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace lc::distributed
