// The ranks of a command that MPI has started as several processes, as --mesh asks for them.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "lightcone/distributed/collectives.h"

namespace lc::tool {

struct ProcessOptions {
  double timeout_s = 60;                             // how long a rank waits for another one
  std::size_t message_bytes = std::size_t{1} << 18;  // longer arrays go as several messages
};
// Joins the processes that MPI has started. Throws Error in a program without MPI.
std::shared_ptr<Communicator> mpi_processes(const ProcessOptions& o);

// Joins the processes that MPI has started; nullopt if `mesh` is "", and then nothing calls MPI. All ranks but the
// first are silent from here on: errors alone are printed. Throws Error for a mesh of another number of ranks, if ranks
// were given other words (`same`: what must be equal), and in a program without MPI. `timeout_s` is how long a rank
// waits for the others.
std::optional<Collectives> join_ranks(const std::string& mesh, const std::string& same, double timeout_s);

bool is_silent();  // another rank says what there is to say
int this_rank();   // 0 without --mesh

}  // namespace lc::tool
