// Launcher: what the program that started this process says of it in environment variables, before anything of a
// transport runs.
#pragma once

#include <functional>
#include <string>

#include "lightcone/distributed/communicator.h"

namespace lc {

struct Launcher {
  std::string name = {};               // "Open MPI", "MPICH", "Slurm", "torchrun"; "" if nothing started this process
  int rank = 0, size = 1;              // this process among all
  int local_rank = 0, local_size = 1;  // among those on this machine
  int processors = 0;                  // the number that Slurm means for this process; 0: nobody says one

  // Reads, in this order, the variables of Open MPI's mpirun (OMPI_COMM_WORLD_RANK, ...), of MPICH's (PMI_RANK,
  // PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS), of Slurm's srun (SLURM_PROCID, SLURM_STEP_NUM_TASKS or SLURM_NTASKS,
  // SLURM_LOCALID, SLURM_STEP_TASKS_PER_NODE, SLURM_CPUS_PER_TASK) and of torchrun (RANK, WORLD_SIZE, LOCAL_RANK,
  // LOCAL_WORLD_SIZE, where MASTER_ADDR is set). A script of sbatch is one process, for SLURM_STEP_ID is not set there.
  // `variable` returns null for a variable that is not set; by default the process's own are read. Throws Error for a
  // variable that is no number, or a rank that is not below the size.
  static Launcher of_this_process(const std::function<const char*(const char*)>& variable = {});

  // How people start so many ranks of this library instead: "mpirun -n 4 ..., or srun --mpi=pmix -n 4 ...".
  static std::string how_to_start(int ranks);
};

// Throws Error if the launcher started several processes and the communicator knows one rank only: each would train
// alone.
void check_launched(const Launcher& launcher, const Communicator& communicator);

// Returns how many threads this rank computes with: its part of the processors, those that it may run on divided by the
// ranks of this machine that may run on the same, and no more than the launcher means for it. All ranks call it.
int threads_of_rank(Communicator& communicator, const Launcher& launcher);

}  // namespace lc
