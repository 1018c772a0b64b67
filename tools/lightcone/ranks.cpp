#include "ranks.h"

#include <algorithm>

#include "lightcone/base/error.h"
#ifdef LIGHTCONE_HAS_MPI
#include "lightcone/distributed/mpi/mpi.h"
#endif

namespace lc::tool {
namespace {

int g_rank = 0;

}  // namespace

std::shared_ptr<Communicator> mpi_processes([[maybe_unused]] const ProcessOptions& o) {
#ifdef LIGHTCONE_HAS_MPI
  // Processes begin at different times on a busy machine, however short the time-out is.
  return mpi_ranks(
      {.timeout_s = o.timeout_s, .start_timeout_s = std::max(o.timeout_s, 20.0), .message_bytes = o.message_bytes});
#else
  throw Error("mpi", "this lightcone was built without MPI: install it (Debian: libopenmpi-dev), and build it again");
#endif
}

std::optional<Collectives> join_ranks(const std::string& mesh, const std::string& same, double timeout_s) {
  if (mesh.empty()) return {};
  const Mesh wanted = Mesh::parse(mesh);
  const std::shared_ptr<Communicator> all = mpi_processes({.timeout_s = timeout_s});
  g_rank = all->rank();
  if (all->size() != wanted.size())
    throw Error("--mesh", str_cat(wanted, " has ", wanted.size(), " ranks, and MPI has started ", all->size(),
                                  ": mpirun -n ", wanted.size(), " lightcone ..."));
  Collectives ranks(wanted, all);
  ranks.check_same("the version and the options", str_cat(LIGHTCONE_VERSION, " ", wanted, " ", same));
  return ranks;
}

bool is_silent() { return g_rank > 0; }
int this_rank() { return g_rank; }

}  // namespace lc::tool
