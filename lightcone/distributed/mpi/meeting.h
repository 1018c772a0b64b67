// Meeting: one collective operation of one rank, as messages.
#pragma once

#include <cstddef>

#include "lightcone/distributed/communicator.h"
#include "lightcone/distributed/mpi/traffic.h"

namespace lc::distributed {

class Meeting {
 public:
  Meeting(Traffic& traffic, const Collective& c, const void* in, void* out)
      : traffic_(traffic), c_(c), in_(static_cast<const std::byte*>(in)), out_(static_cast<std::byte*>(out)) {}
  // Throws Error if the ranks' operations differ, or if one does not come.
  void run();

 private:
  // Every operation sends what it can, meets (all ranks of the group have come, to the same operation), receives, and
  // waits for the rest.
  void meet();
  void wait();
  [[noreturn]] void fail();

  void all_reduce();
  void reduce_together();
  void reduce_scatter();
  void all_gather();
  void all_to_all();
  void broadcast();
  void broadcast_in_parts();
  void permute();
  void message();

  void send(int place, const std::byte* from, std::size_t bytes);
  void receive(int place, std::byte* to, std::size_t bytes);
  void send_to_all(const std::byte* from, std::size_t bytes);
  // Receives everybody's row of some elements into the traffic's rows, where it is to be reduced with this rank's own.
  void receive_rows(std::size_t elements);
  void reduce(const std::byte* mine, std::byte* to, std::size_t elements);
  void copy(std::byte* to, const std::byte* from, std::size_t bytes);
  template <class F>
  void for_others(F&& f) const;

  // An array as parts, one for each rank: they have the same length, but the last ones.
  struct Part {
    std::size_t begin, bytes;
  };
  Part part(int place) const;
  int ranks() const { return static_cast<int>(c_.group.size()); }
  std::size_t bytes() const { return c_.n * size_of(c_.dtype); }

  Traffic& traffic_;
  const Collective& c_;
  const std::byte* in_;
  std::byte* out_;
};

}  // namespace lc::distributed
