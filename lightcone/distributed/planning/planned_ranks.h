// Communicators for planning: of ranks that are not there, and of ranks behind a slower network than there is.
#pragma once

#include <memory>

#include "lightcone/distributed/communicator.h"
#include "lightcone/distributed/planning/links.h"

namespace lc {

// What a planned rank does where the others would be needed.
enum class PlannedExchange : std::uint8_t {
  Refused,   // throws Error: the program is looked at, and not run
  Pretended  // every other rank has this rank's numbers, and no time passes but for copies
};

// One rank of so many, without the others: its graph can be made and compiled, and its memory and traffic are known.
std::shared_ptr<Communicator> planned_ranks(int size, int rank = 0, PlannedExchange what = PlannedExchange::Refused);

// The ranks of another communicator behind slower links: each operation takes longer by what its messages would need on
// them. Ranks on one machine see its own network within that machine.
std::shared_ptr<Communicator> slowed(std::shared_ptr<Communicator> ranks, const Cluster& cluster);

}  // namespace lc
