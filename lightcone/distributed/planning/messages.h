// The messages of a collective operation, counted as the transport over MPI sends them (mpi/meeting.cpp).
#pragma once

#include <cstddef>
#include <span>

#include "lightcone/distributed/communicator.h"
#include "lightcone/distributed/planning/links.h"

namespace lc::distributed {

// What one rank sends to ranks on other machines, or on its own one. Rounds follow one another: the messages of a round
// wait for those of the round before.
struct Sent {
  int rounds = 0;
  double messages = 0, bytes = 0;
};

struct Messages {
  Sent between, within;
  double reduced_bytes = 0;      // other ranks' numbers that this rank adds up, with its own
  std::size_t buffer_bytes = 0;  // memory of the transport, outside of the program's plan
};

// Counts what the busiest rank of the group sends: all of them but for a broadcast, whose root it is.
//
// Each rank sends directly to each other one. An all_reduce of more than kTogetherBytes, all ranks' numbers together,
// is a reduce_scatter and an all_gather, in two rounds; a smaller one sends everything to everybody. A broadcast of
// more than that, to more than one, goes in parts that the others pass on.
inline constexpr std::size_t kTogetherBytes = std::size_t{1} << 15;
// `pieces`: the elements of several arrays that are exchanged at once, of which c.n is the sum; empty: one array.
Messages messages_of(const Collective& c, const Cluster& cluster, std::span<const std::size_t> pieces = {});

// Seconds that the messages take on the cluster's links, and the sums on its processors. Messages to other machines and
// within one go at the same time.
double seconds_of(const Messages& m, const Cluster& cluster);
// The part of them that its processor is busy: copies, and sums.
double processor_seconds_of(const Messages& m, const Cluster& cluster);

}  // namespace lc::distributed
