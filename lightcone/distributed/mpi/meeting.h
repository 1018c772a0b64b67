// Meeting: one collective operation of one rank, on one or several arrays, as messages.
#pragma once

#include <cstddef>
#include <span>

#include "lightcone/distributed/communicator.h"
#include "lightcone/distributed/mpi/traffic.h"

namespace lc::distributed {

class Meeting {
 public:
  Meeting(Traffic& traffic, const Collective& c, std::span<const Piece> pieces)
      : traffic_(traffic), c_(c), pieces_(pieces) {}
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
  void copy(std::byte* to, const std::byte* from, std::size_t bytes);
  template <class F>
  void for_others(F&& f) const;

  // Receives everybody's row of some elements of each array into the traffic's rows, where they are to be reduced with
  // this rank's own. `elements` and what follows are functions of an array.
  template <class Elements>
  void receive_rows(const Elements& elements);
  template <class Elements, class Mine, class To>
  void reduce(const Elements& elements, const Mine& mine, const To& to);

  // An array as parts, one for each rank: they have the same length, but the last ones.
  struct Part {
    std::size_t begin, bytes;
  };
  Part part(const Piece& p, int place) const;
  static const std::byte* in(const Piece& p) { return static_cast<const std::byte*>(p.in); }
  static std::byte* out(const Piece& p) { return static_cast<std::byte*>(p.out); }
  std::size_t bytes(const Piece& p) const { return p.n * size_of(c_.dtype); }
  int ranks() const { return static_cast<int>(c_.group.size()); }
  std::size_t bytes() const { return c_.n * size_of(c_.dtype); }  // all arrays together

  Traffic& traffic_;
  const Collective& c_;
  std::span<const Piece> pieces_;
};

}  // namespace lc::distributed
