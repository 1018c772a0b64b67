// Ranks as processes that MPI starts: `mpirun -n 4 program`, or a cluster's scheduler. Needs the component mpi
// (lightcone::mpi), which is built where CMake finds MPI.
#pragma once

#include <cstddef>
#include <memory>

#include "lightcone/distributed/communicator.h"

namespace lc {

struct MpiOptions {
  // How long a rank waits in one operation, in seconds, until all others have come, and then for each next message of
  // theirs; and at its end for the others' end. It must be longer than ranks' work between two operations differs.
  double timeout_s = 60;
  // How long MPI itself waits for all processes, when it begins and when it ends.
  double start_timeout_s = 60;
  std::size_t message_bytes = std::size_t{1} << 18;  // longer arrays go as several messages; from 1 to 2^31 - 1
  // The same between ranks on different machines, where that is less. MPI sends messages of this length at once. Before
  // a longer one it waits for an answer, which over TCP comes behind all that the other rank is sending: when both
  // send, each gets half of what the network could do both ways at once. Other networks may like longer ones.
  std::size_t network_message_bytes = std::size_t{1} << 14;
};

// Returns this process's rank of MPI_COMM_WORLD (torch.distributed.init_process_group("mpi")). All ranks call it. MPI
// is initialised here (MPI_THREAD_SERIALIZED), by a thread of its own, unless the program has done so, and finalised
// with the last communicator if it was initialised here. A program that no launcher started is the only rank.
//
// Results have the bits of threads(). A rank whose communicator ends is seen by all others within a second. After an
// Error all later operations throw it, too, and MPI is not finalised, which would wait for ranks that do not come:
// launchers (mpirun, srun --kill-on-bad-exit) end the other processes when this one ends, up to two seconds later.
//
// Throws Error if MPI is missing threads, has been finalised, or if not all ranks call this within the time-outs.
std::shared_ptr<Communicator> mpi_ranks(const MpiOptions& o = {});

}  // namespace lc
