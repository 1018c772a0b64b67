#include "lightcone/distributed/launcher.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <numeric>
#include <string_view>
#include <thread>
#include <vector>

#include "lightcone/base/error.h"

namespace lc {
namespace {

using Variable = std::function<const char*(const char*)>;

// The variables of one launcher; null: it has none for that.
struct Names {
  const char* launcher;
  const char* sign;  // only where this one is set, too
  const char *rank, *size, *local_rank, *local_size, *processors;
};
constexpr Names kLaunchers[] = {
    {"Open MPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", nullptr},
    {"MPICH", "PMI_SIZE", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", nullptr},
    {"Slurm", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr, "SLURM_CPUS_PER_TASK"},
    {"Slurm", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr, "SLURM_CPUS_PER_TASK"},
    {"torchrun", "MASTER_ADDR", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", nullptr},
};

int number_of(std::string_view text, const char* name) {
  int n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < 0)
    throw Error("launcher", str_cat("the variable ", name, " is '", text.substr(0, 80), "', which is no whole number"));
  return n;
}

int read(const Variable& variable, const char* name, int otherwise) {
  const char* text = name ? variable(name) : nullptr;
  return text ? number_of(text, name) : otherwise;
}

// Reads Slurm's list of how many tasks each node has: "4", "2(x3),1" are those of nodes 0, 1, ...
int tasks_of_node(std::string_view list, int node, const char* name) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size()), open = std::min(list.find("(x"), end);
    const int tasks = number_of(list.substr(0, open), name);
    const int nodes = open < end ? number_of(list.substr(open + 2, end - open - 3), name) : 1;
    if (node < nodes) return tasks;
    node -= nodes;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return 1;
}

int tasks_here(const Variable& variable) {
  const int node = read(variable, "SLURM_NODEID", 0);
  for (const char* name : {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"})
    if (const char* list = variable(name)) return tasks_of_node(list, node, name);
  return 1;
}

std::uint64_t mixed(std::uint64_t hash, std::string_view bytes) {  // FNV-1a
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace

Launcher Launcher::of_this_process(const Variable& given) {
  const Variable variable = given ? given : [](const char* name) -> const char* { return std::getenv(name); };
  for (const Names& n : kLaunchers) {
    if (!variable(n.sign) || !variable(n.rank) || !variable(n.size)) continue;
    Launcher l{.name = n.launcher};
    l.rank = read(variable, n.rank, 0), l.size = read(variable, n.size, 1);
    l.local_rank = read(variable, n.local_rank, 0);
    l.local_size = l.name == "Slurm" ? tasks_here(variable) : read(variable, n.local_size, 1);
    l.processors = read(variable, n.processors, 0);
    if (l.rank >= l.size)
      throw Error("launcher", str_cat(l.name, " says by ", n.rank, " = ", l.rank, " and ", n.size, " = ", l.size,
                                      " that this is no rank of its own: unset variables that are left over"));
    return l;
  }
  return {};
}

std::string Launcher::how_to_start(int ranks) {
  return str_cat("start them by mpirun -n ", ranks, " ..., or by srun --mpi=pmix -n ", ranks, " ...");
}

void check_launched(const Launcher& launcher, const Communicator& communicator) {
  if (launcher.size == 1 || communicator.size() > 1) return;
  throw Error("launcher", str_cat(launcher.name, " started ", launcher.size, " processes, and ", communicator.name(),
                                  " knows this one alone: ",
                                  launcher.name == "torchrun" ? "torchrun starts processes for PyTorch"
                                                              : "it is another MPI's launcher, or Slurm's without MPI",
                                  "; ", Launcher::how_to_start(launcher.size)));
}

int threads_of_rank(Communicator& communicator, const Launcher& launcher) {
  cpu_set_t set;
  CPU_ZERO(&set);
  int processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  if (sched_getaffinity(0, sizeof set, &set) == 0) processors = std::max(1, CPU_COUNT(&set));
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host.fill(0);
  const std::uint64_t mine =
      mixed(mixed(0xcbf29ce484222325u, host.data()), {reinterpret_cast<const char*>(&set), sizeof set});
  std::vector<std::uint64_t> all(static_cast<std::size_t>(communicator.size()));
  std::vector<int> group(all.size());
  std::iota(group.begin(), group.end(), 0);
  communicator.run({.operation = Collective::Operation::AllGather,
                    .dtype = DType::U64,
                    .n = 1,
                    .group = group,
                    .place = communicator.rank()},
                   &mine, all.data());
  const int here = std::max(1, processors / static_cast<int>(std::ranges::count(all, mine)));
  return launcher.processors > 0 ? std::min(here, launcher.processors) : here;
}

}  // namespace lc
