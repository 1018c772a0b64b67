#include "ranks.h"

#include "lightcone/base/error.h"
#ifdef LIGHTCONE_HAS_MPI
#include "lightcone/distributed/mpi/mpi.h"
#endif

namespace lc::tool {
namespace {

int g_rank = 0;

std::shared_ptr<Communicator> processes([[maybe_unused]] double timeout_s) {
#ifdef LIGHTCONE_HAS_MPI
  return mpi_ranks({.timeout_s = timeout_s});
#else
  throw Error("--mesh", "this lightcone was built without MPI: install Open MPI or MPICH, and build it again");
#endif
}

}  // namespace

std::optional<Collectives> join_ranks(const std::string& mesh, const std::string& same, double timeout_s) {
  if (mesh.empty()) return {};
  const Mesh wanted = Mesh::parse(mesh);
  const std::shared_ptr<Communicator> all = processes(timeout_s);
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
