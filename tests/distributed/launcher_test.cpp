// The variables of launchers are read, and what ranks do together outside of graphs fails on all of them.
#include "lightcone/distributed/launcher.h"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>

#include <gtest/gtest.h>

#include "lightcone/base/error.h"
#include "lightcone/distributed/sharding/shard.h"
#include "ranks.h"

namespace lc {
namespace {

using Variables = std::map<std::string, std::string>;

Launcher launched(const Variables& v) {
  return Launcher::of_this_process([&](const char* name) -> const char* {
    const auto it = v.find(name);
    return it == v.end() ? nullptr : it->second.c_str();
  });
}

std::string failure(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

void expect(const Launcher& l, const std::string& name, int rank, int size, int local_rank, int local_size) {
  EXPECT_EQ(l.name, name);
  EXPECT_EQ(l.rank, rank) << name;
  EXPECT_EQ(l.size, size) << name;
  EXPECT_EQ(l.local_rank, local_rank) << name;
  EXPECT_EQ(l.local_size, local_size) << name;
}

TEST(Launcher, ReadsWhatEachOneSays) {
  expect(launched({}), "", 0, 1, 0, 1);
  expect(launched({{"OMPI_COMM_WORLD_RANK", "3"},
                   {"OMPI_COMM_WORLD_SIZE", "4"},
                   {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                   {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}),
         "Open MPI", 3, 4, 1, 2);
  expect(launched({{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "4"}}), "MPICH",
         5, 8, 1, 4);
  expect(launched({{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}}), "MPICH", 5, 8, 0, 1);
  expect(launched({{"RANK", "6"},
                   {"WORLD_SIZE", "8"},
                   {"LOCAL_RANK", "2"},
                   {"LOCAL_WORLD_SIZE", "4"},
                   {"MASTER_ADDR", "node1"}}),
         "torchrun", 6, 8, 2, 4);
  // Programs use these two names for other purposes.
  expect(launched({{"RANK", "6"}, {"WORLD_SIZE", "8"}}), "", 0, 1, 0, 1);
}

TEST(Launcher, ReadsSlurm) {
  Variables v{{"SLURM_PROCID", "5"},
              {"SLURM_NTASKS", "7"},
              {"SLURM_LOCALID", "1"},
              {"SLURM_STEP_ID", "0"},
              {"SLURM_NODEID", "2"},
              {"SLURM_CPUS_PER_TASK", "6"},
              {"SLURM_TASKS_PER_NODE", "2(x3),1"}};
  expect(launched(v), "Slurm", 5, 7, 1, 2);
  EXPECT_EQ(launched(v).processors, 6);
  v["SLURM_NODEID"] = "3";
  expect(launched(v), "Slurm", 5, 7, 1, 1);
  v["SLURM_STEP_NUM_TASKS"] = "6", v["SLURM_STEP_TASKS_PER_NODE"] = "1,5", v["SLURM_NODEID"] = "1";
  expect(launched(v), "Slurm", 5, 6, 1, 5);  // the step's own number
  v.erase("SLURM_STEP_ID");
  expect(launched(v), "", 0, 1, 0, 1);  // the script of sbatch
  // Open MPI's mpirun within a job of Slurm's.
  v["SLURM_STEP_ID"] = "0", v["OMPI_COMM_WORLD_RANK"] = "1", v["OMPI_COMM_WORLD_SIZE"] = "2";
  expect(launched(v), "Open MPI", 1, 2, 0, 1);
}

TEST(Launcher, RefusesWhatIsNoRank) {
  EXPECT_NE(failure([] {
              launched({{"PMI_RANK", "two"}, {"PMI_SIZE", "8"}});
            }).find("the variable PMI_RANK is 'two', which is no whole number"),
            std::string::npos);
  EXPECT_NE(failure([] {
              launched({{"PMI_RANK", "-1"}, {"PMI_SIZE", "8"}});
            }).find("no whole number"),
            std::string::npos);
  EXPECT_NE(failure([] {
              launched({{"PMI_RANK", "8"}, {"PMI_SIZE", "8"}});
            }).find("no rank of its own"),
            std::string::npos);
}

TEST(Launcher, RanksThatDoNotKnowEachOther) {
  const auto alone = threads(1)[0];
  const Launcher torchrun = launched({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node1"}});
  const std::string what = failure([&] { check_launched(torchrun, *alone); });
  EXPECT_NE(what.find("torchrun started 4 processes, and threads knows this one alone"), std::string::npos) << what;
  EXPECT_NE(what.find("mpirun -n 4"), std::string::npos) << what;
  EXPECT_NE(what.find("srun --mpi=pmix -n 4"), std::string::npos) << what;
  check_launched(launched({}), *alone);
  check_launched(torchrun, *threads(4)[0]);
}

TEST(Launcher, DividesTheProcessors) {
  const int all = threads_of_rank(*threads(1)[0], {});
  EXPECT_GE(all, 1);
  EXPECT_EQ(threads_of_rank(*threads(1)[0], {.processors = 1}), 1);
  const auto thrown = test::run_ranks(Mesh({{"data", 2}}), [&](const Collectives& c) {
    EXPECT_EQ(threads_of_rank(c.communicator(), {}), std::max(1, all / 2));
  });
  for (const std::string& what : thrown) EXPECT_EQ(what, "");
}

TEST(Together, AllThrowWhatOneRankThrows) {
  const Mesh mesh({{"data", 2}, {"model", 2}});
  int reports = 0;
  std::mutex mutex;
  const auto thrown = test::run_ranks(mesh, [&](const Collectives& c) {
    c.together([] {});
    try {
      c.together([&] {
        if (c.rank() >= 2) throw Error("open", str_cat("rank ", c.rank(), " has no file"));
      });
    } catch (const Error& e) {
      const bool mine = c.communicator().fail(e.what());
      const std::lock_guard lock(mutex);
      reports += mine;
      throw;
    }
  });
  // A rank may have heard of it before it heard it.
  for (const std::string& what : thrown) EXPECT_NE(what.find("rank 2: open: rank 2 has no file"), what.npos) << what;
  EXPECT_EQ(reports, 1);
}

TEST(Together, AFailureIsToldToAll) {
  const auto thrown = test::run_ranks(Mesh({{"data", 3}}), [&](const Collectives& c) {
    if (c.rank() == 1) {
      EXPECT_TRUE(c.communicator().fail("rank 1 has no disk"));
      throw Error("", "rank 1 has no disk");
    }
    try {
      c.check_same("the mesh", "a");
    } catch (const Error& e) {
      EXPECT_FALSE(c.communicator().fail(e.what()));
      throw;
    }
  });
  for (const std::string& what : thrown) EXPECT_EQ(what.find("rank 1 has no disk") == std::string::npos, false) << what;
}

TEST(Together, PartsAreJoined) {
  const Mesh mesh({{"data", 2}, {"model", 2}});
  std::vector<std::int32_t> numbers(4 * 6 * 2);
  for (std::size_t k = 0; k < numbers.size(); ++k) numbers[k] = static_cast<std::int32_t>(k * k);
  const ArrayView whole{DType::I32, {4, 6, 2}, std::as_bytes(std::span(numbers))};
  const std::vector<std::vector<std::string>> all{
      {"data"}, {"", "model"}, {"model", "", "data"}, {"data+model"}, {"model+data"}, {"model", "data"}, {}};
  const auto thrown = test::run_ranks(mesh, [&](const Collectives& c) {
    for (const auto& axes : all) {
      const ShardSpecs specs{{"w", axes}};
      const ArrayPart part = part_of(mesh, c.rank(), specs, "w", whole);
      const ArrayPart joined = whole_of(c, specs, "w", part.view(), whole.shape);
      EXPECT_EQ(joined.shape, whole.shape);
      EXPECT_TRUE(std::ranges::equal(joined.bytes, whole.bytes)) << axes.size();
    }
  });
  for (const std::string& what : thrown) EXPECT_EQ(what, "");
}

}  // namespace
}  // namespace lc
