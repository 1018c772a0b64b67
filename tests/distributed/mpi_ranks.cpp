// What one rank of mpi_check.py does.
//
//   mpi_ranks collectives [BYTES]   every operation gives the bits of threads(), by messages of so many bytes
//   mpi_ranks training              so does every step of a sharded training
//   mpi_ranks planned               and it sends the bytes that were planned without the other ranks
//   mpi_ranks embedded              the program initialises MPI itself, and two communicators live at once
//   mpi_ranks unfit                 the program initialises MPI for one thread: an Error
//   mpi_ranks differ|late|ends|absent FOLDER
//                                   ranks call different operations, or do not come: FOLDER/R has rank R's Error, for
//                                   mpirun loses what ranks print at their end; the exit status is 1
//   mpi_ranks stopped FOLDER        the same if a rank is stopped before MPI begins
//   mpi_ranks unended FOLDER        one is stopped when MPI ends: the others' communicators end all the same
//   mpi_ranks endless FOLDER        exchanges until it is killed; FOLDER/PID says that it is there
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iostream>
#include <numeric>
#include <random>
#include <thread>

#include <mpi.h>
#include <unistd.h>

#include "lightcone/autograd/autograd.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/base/error.h"
#include "lightcone/distributed/launcher.h"
#include "lightcone/distributed/mpi/mpi.h"
#include "lightcone/distributed/planning/planned_ranks.h"
#include "lightcone/distributed/planning/step_plan.h"
#include "lightcone/distributed/sharding/shard.h"
#include "lightcone/distributed/sharding/strategies.h"
#include "lightcone/ops/loss.h"
#include "lightcone/ops/ops.h"
#include "lightcone/optim/optim.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"

namespace {
std::atomic<std::size_t> sent_bytes{0};  // in messages with data, which the transport's Tag::Data tells from others
constexpr int kDataTag = 2;
bool stops_at_end = false;  // rank 1, and not before its communicator has taken leave of the others
}  // namespace

// MPI's profiling interface has its functions under another name.
extern "C" int MPI_Finalize() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (stops_at_end && rank == 1) ::raise(SIGSTOP);
  return PMPI_Finalize();
}
// Counts what is sent.
extern "C" int MPI_Isend(const void* from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                         MPI_Request* request) {
  if (tag == kDataTag) sent_bytes += static_cast<std::size_t>(count);
  return PMPI_Isend(from, count, type, to, tag, comm, request);
}

namespace {

using namespace lc;
using Operation = Collective::Operation;
using Bytes = std::vector<std::byte>;

// ---- every operation ------------------------------------------------------------------------------------------------

struct Case {
  Operation operation;
  ReduceOp reduction;
  DType dtype;
  std::size_t n;
  std::vector<std::vector<int>> groups;  // every rank is in one
  int root = 0;
  std::vector<int> source = {};
};

const std::vector<int>& group_of(const Case& c, int rank) {
  return *std::ranges::find_if(c.groups, [&](const auto& g) { return std::ranges::count(g, rank) > 0; });
}

enum class Way : std::uint8_t { OneByOne, Together };

// The results for an array of c.n elements, and for two short ones.
Bytes run(const Case& c, unsigned seed, Communicator& ranks, Way way) {
  const std::vector<int>& group = group_of(c, ranks.rank());
  const bool takes = c.operation == Operation::ReduceScatter || c.operation == Operation::AllToAll,
             gives = c.operation == Operation::AllGather || c.operation == Operation::AllToAll;
  const std::size_t lengths[] = {c.n, 3, c.n / 1000}, places = group.size();
  std::mt19937 random(seed * 64 + static_cast<unsigned>(ranks.rank()));
  std::vector<Bytes> in, out;
  for (const std::size_t n : lengths) {
    const std::size_t row = n * size_of(c.dtype);
    in.emplace_back(row * (takes ? places : 1)), out.emplace_back(row * (gives ? places : 1), std::byte{170});
    // Any bits are a number, or no number, but those of bool.
    for (std::byte& b : in.back())
      b = static_cast<std::byte>(c.dtype == DType::Bool ? random() % 4 == 0 : random() >> 8 & 255);
  }
  const auto place = std::ranges::find(group, ranks.rank()) - group.begin();
  Collective one{.operation = c.operation,
                 .reduction = c.reduction,
                 .dtype = c.dtype,
                 .n = 0,
                 .group = group,
                 .place = static_cast<int>(place),
                 .root = c.root,
                 .source = c.source,
                 .tag = seed};
  std::vector<Piece> pieces;
  for (std::size_t k = 0; k < in.size(); ++k) pieces.push_back({in[k].data(), out[k].data(), lengths[k]});
  if (way == Way::Together) {
    for (const std::size_t n : lengths) one.n += n;
    ranks.run_together(one, pieces);
  } else {
    for (const Piece& p : pieces) one.n = p.n, ranks.run(one, p.in, p.out);
  }
  Bytes all;
  for (const Bytes& y : out) all.insert(all.end(), y.begin(), y.end());
  return all;
}

std::vector<Case> cases(int ranks) {
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::vector<std::vector<int>>> divisions{{all}, {{all.rbegin(), all.rend()}}};
  if (ranks == 4) divisions.insert(divisions.end(), {{{0, 1}, {2, 3}}, {{0, 2}, {3, 1}}, {{2, 0, 3}, {1}}});
  std::vector<Case> out;
  for (const auto& groups : divisions)
    for (const DType t : {DType::F32, DType::F64, DType::F16, DType::BF16, DType::F8E4M3FN, DType::I8, DType::I64,
                          DType::U16, DType::Bool})
      for (const std::size_t n : {0, 1, 7, 5000, 1000000}) {
        const bool usual = t == DType::F32 || t == DType::BF16;
        if ((n == 1000000 && t != DType::F32) || (groups != divisions[0] && (n == 1000000 || !usual))) continue;
        for (const ReduceOp r : {ReduceOp::Sum, ReduceOp::Max})
          for (const Operation o : {Operation::AllReduce, Operation::ReduceScatter})
            out.push_back({o, r, t, n, groups});
        for (const Operation o : {Operation::AllGather, Operation::AllToAll})
          out.push_back({o, ReduceOp::Sum, t, n, groups});
        if (groups.size() > 1 && groups[1].size() == 1) continue;
        const auto p = static_cast<int>(groups[0].size());
        std::vector<int> shifted(groups[0].size());
        for (int k = 0; k < p; ++k) shifted[static_cast<std::size_t>(k)] = k - 1;  // zeros for the first
        out.push_back({Operation::Permute, ReduceOp::Sum, t, n, groups, 0, shifted});
        shifted[0] = p - 1;
        out.push_back({Operation::Permute, ReduceOp::Sum, t, n, groups, 0, shifted});
        for (const int root : {0, p - 1}) out.push_back({Operation::Broadcast, ReduceOp::Sum, t, n, groups, root});
      }
  return out;
}

int collectives(std::size_t message_bytes) {
  const auto mpi = mpi_ranks({.message_bytes = message_bytes});
  const auto all = cases(mpi->size());
  // The oracle: the same by threads of this process, whose results of this rank count.
  std::vector<Bytes> expected(all.size());
  std::vector<std::thread> ranks;
  for (const auto& one : threads(mpi->size()))
    ranks.emplace_back([&, one] {
      for (std::size_t k = 0; k < all.size(); ++k) {
        Bytes y = run(all[k], static_cast<unsigned>(k), *one, Way::OneByOne);
        if (one->rank() == mpi->rank()) expected[k] = std::move(y);
      }
    });
  for (std::thread& t : ranks) t.join();
  int wrong = 0;
  for (std::size_t k = 0; k < all.size(); ++k) {
    const Way way = k % 3 ? Way::Together : Way::OneByOne;
    if (run(all[k], static_cast<unsigned>(k), *mpi, way) == expected[k]) continue;
    ++wrong;
    std::cout << "rank " << mpi->rank() << ": other bits: " << name(all[k].operation) << " of " << all[k].n << ' '
              << name(all[k].dtype) << ", case " << k << std::endl;
  }
  if (mpi->rank() == 0) std::cout << all.size() << " operations among " << mpi->size() << " ranks" << std::endl;
  return wrong > 0;
}

// ---- training -------------------------------------------------------------------------------------------------------

using Floats = std::vector<float>;

Floats normal(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> d;
  Floats v(n);
  for (float& x : v) x = d(random);
  return v;
}

Graph mlp() {
  Graph g;
  const Tensor x = g.input("x", {8, 12}), y = g.input("y", {8, 4});
  const Tensor up = g.parameter("up", {16, 12}), down = g.parameter("down", {4, 16});
  const Tensor loss = mean(square(sub(linear(relu(linear(x, up)), down), y)));
  g.output("loss", loss);
  const auto d = gradients(loss, {up, down});
  optim::step(optim::AdamW{.lr = 0.02}, {{up, d[0]}, {down, d[1]}});
  return g;
}

// The loss and the parameters of this rank, after each step. A stage of a pipeline has some of the parameters.
std::vector<Floats> train(const Collectives& ranks, const ShardSpecs& divided, const ShardOptions& options) {
  const Program program =
      compile(mlp(), shard(ranks, divided, options) | generic() | cpu({.threads = 1, .compiler = false}));
  const auto names = program.inputs();
  const auto has = [&](const char* name) { return std::ranges::find(names, name) != names.end(); };
  const ShardSpecs specs = without_serial(divided, options.serial);
  Context c(program);
  const auto set = [&](const char* name, std::vector<std::int64_t> shape, unsigned seed) {
    if (!has(name)) return;
    const Floats all = normal(static_cast<std::size_t>(shape[0] * shape[1]), seed);
    const ArrayPart p =
        part_of(ranks.mesh(), ranks.rank(), specs, name, {DType::F32, std::move(shape), std::as_bytes(std::span(all))});
    c.set_bytes(name, p.bytes.data(), p.bytes.size());
  };
  set("up", {16, 12}, 1), set("down", {4, 16}, 2);
  std::vector<Floats> steps;
  for (unsigned step = 0; step < 10; ++step) {
    set("x", {8, 12}, 10 + step % 3), set("y", {8, 4}, 20 + step % 3);
    c.run();
    Floats all{static_cast<float>(c.scalar("loss"))};
    for (const char* name : {"up", "down"}) {
      if (!has(name)) continue;
      const Floats v = c.get(name);
      all.insert(all.end(), v.begin(), v.end());
    }
    steps.push_back(std::move(all));
  }
  return steps;
}

int training() {
  const auto mpi = mpi_ranks();
  const int n = mpi->size(), half = n / 2;
  const Graph g = mlp();
  const ShardSpecs tensor{{"up", {"model"}}, {"down", {"", "model"}}};
  struct Way {
    Mesh mesh;
    ShardSpecs specs;
    ShardOptions options = {};
  };
  const ShardSpecs parts = data_parallel(g, "micro", 2);
  const std::vector<Way> ways{{Mesh({{"data", n}}), data_parallel(g, "data", n)},
                              {Mesh({{"data", n}}), joined(data_parallel(g, "data", n), fully_sharded(g, "data", n))},
                              {Mesh({{"model", n}}), tensor},
                              {Mesh({{"data", half}, {"model", 2}}), joined(data_parallel(g, "data", half), tensor)},
                              {Mesh({{"pipe", 2}, {"data", half}}),
                               joined(data_parallel(g, "data", half), parts),
                               {.serial = {{"micro", 2}}, .pipeline = "pipe"}}};
  int wrong = 0;
  for (std::size_t k = 0; k < ways.size(); ++k) {
    std::vector<Floats> expected;
    std::vector<std::thread> ranks;
    for (const auto& one : threads(n))
      ranks.emplace_back([&, one] {
        auto steps = train(Collectives(ways[k].mesh, one), ways[k].specs, ways[k].options);
        if (one->rank() == mpi->rank()) expected = std::move(steps);
      });
    for (std::thread& t : ranks) t.join();
    const auto got = train(Collectives(ways[k].mesh, mpi), ways[k].specs, ways[k].options);
    for (std::size_t step = 0; step < got.size(); ++step)
      if (std::memcmp(got[step].data(), expected[step].data(), got[step].size() * sizeof(float)) != 0) {
        ++wrong;
        std::cout << "rank " << mpi->rank() << ": way " << k << " differs in step " << step << std::endl;
      }
    if (!(got.back()[0] < got.front()[0])) ++wrong, std::cout << "way " << k << " does not learn" << std::endl;
  }
  if (mpi->rank() == 0) std::cout << ways.size() << " trainings among " << n << " ranks" << std::endl;
  return wrong > 0;
}

// ---- plans ----------------------------------------------------------------------------------------------------------

// A network whose arrays are larger than what ranks send to each other at once, and do not divide evenly.
Graph wide() {
  Graph g;
  const Tensor x = g.input("x", {8, 301}), y = g.input("y", {8, 64});
  const Tensor up = g.parameter("up", {512, 301}), down = g.parameter("down", {64, 512}), b = g.parameter("b", {64});
  const Tensor loss = mean(square(sub(linear(relu(linear(x, up)), down, b), y)));
  g.output("loss", loss);
  const auto d = gradients(loss, {up, down, b});
  optim::step(optim::AdamW{.lr = 0.02}, {{up, d[0]}, {down, d[1]}, {b, d[2]}});
  return g;
}

int planned() {
  const auto mpi = mpi_ranks();
  const int n = mpi->size();
  int wrong = 0;
  for (const Graph& g : {mlp(), wide()}) {
    const ShardSpecs data = data_parallel(g, "data", n), tensor{{"up", {"model"}}, {"down", {"", "model"}}};
    for (const auto& [axis, specs] : {std::pair("data", data),
                                      {"data", joined(data, fully_sharded(g, "data", n))},
                                      {"data", joined(data, fully_sharded(g, "data", n, ShardedState::Moments))},
                                      {"model", tensor}}) {
      const Mesh mesh({{axis, n}});
      const auto program = [&](std::shared_ptr<Communicator> ranks) {
        return compile(
            g, shard(Collectives(mesh, std::move(ranks)), specs) | generic() | cpu({.threads = 1, .compiler = false}));
      };
      Cluster cluster;
      cluster.flops_per_second = 1e9;
      const StepPlan plan = plan_step(program(planned_ranks(n, mpi->rank())), cluster);
      const Program mine = program(mpi);
      Context c(mine);
      for (NodeId id = 0; id < mine.graph().size(); ++id) {
        const Node& in = mine.graph()[id];
        if (in.op == Op::Input && mine.graph().live()[id])
          c.set(in.name, Floats(static_cast<std::size_t>(*product(in.shape).constant()), 0));
      }
      sent_bytes = 0;
      for (int k = 0; k < 3; ++k) c.run();
      if (static_cast<double>(sent_bytes) == 3 * plan.bytes_within && sent_bytes > 0) continue;
      ++wrong;
      std::cout << "rank " << mpi->rank() << ": " << sent_bytes / 3 << " bytes were sent, and " << plan.bytes_within
                << " planned, along " << axis << std::endl;
    }
  }
  if (mpi->rank() == 0 && !wrong) std::cout << "as planned among " << n << " ranks" << std::endl;
  return wrong > 0;
}

// ---- beginnings and ends --------------------------------------------------------------------------------------------

std::int64_t sum_of_ranks(Communicator& ranks, std::size_t n = 1) {
  std::vector<int> all(static_cast<std::size_t>(ranks.size()));
  std::iota(all.begin(), all.end(), 0);
  const std::vector<std::int64_t> in(n, ranks.rank());
  std::vector<std::int64_t> out(n);
  ranks.run({.dtype = DType::I64, .n = n, .group = all, .place = ranks.rank(), .tag = 9}, in.data(), out.data());
  return out[0];
}

int embedded() {
  int level = 0, rank = 0, size = 0, sum = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &size);
  bool right = true;
  for (int k = 0; k < 2; ++k) {
    const auto one = mpi_ranks(), two = mpi_ranks();
    right = right && one->rank() == rank && one->size() == size && one->name() == "MPI";
    right = right && sum_of_ranks(*one) == size * (size - 1) / 2 && sum_of_ranks(*two) == size * (size - 1) / 2;
  }
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);  // MPI is still there
  MPI_Finalize();
  if (rank == 0) std::cout << "embedded" << std::endl;
  try {
    mpi_ranks();
    right = false;
  } catch (const Error& e) {
    right = right && std::string(e.what()).find("cannot begin again") != std::string::npos;
  }
  return !right || sum != size * (size - 1) / 2;
}

int unfit() {
  int level = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SINGLE, &level);
  try {
    if (level < MPI_THREAD_SERIALIZED) mpi_ranks();
    std::cout << "level " << level << std::endl;
  } catch (const Error& e) {
    std::cout << e.what() << std::endl;
  }
  MPI_Finalize();
  return 0;
}

int fail(const std::string& how, const std::string& folder) {
  int rank = -1, level = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (how == "absent" && rank == 1) std::this_thread::sleep_for(std::chrono::seconds(4));
  try {
    const auto mpi = mpi_ranks({.timeout_s = how == "late" || how == "absent" ? 1.0 : 20.0});
    sum_of_ranks(*mpi, 100000);
    if (how == "late" && rank == 1) std::this_thread::sleep_for(std::chrono::seconds(4));
    if (how == "ends" && rank == 1) throw Error("test", "this rank has no disk");
    try {
      sum_of_ranks(*mpi, how == "differ" ? 100000 + static_cast<std::size_t>(rank) : 1);
    } catch (const Error& first) {
      try {
        sum_of_ranks(*mpi);
        std::ofstream(str_cat(folder, "/", rank)) << "it works again";
      } catch (const Error&) {
        throw first;
      }
    }
  } catch (const Error& e) {
    std::ofstream(str_cat(folder, "/", rank)) << e.what();
    return 1;
  }
  return 0;
}

// MPI begins when all ranks do.
int stopped(const std::string& folder) {
  const int rank = Launcher::of_this_process().rank;
  if (rank == 1) ::raise(SIGSTOP);
  try {
    mpi_ranks({.start_timeout_s = 3});
  } catch (const Error& first) {
    try {
      mpi_ranks();
    } catch (const Error& e) {
      if (std::string(e.what()) == first.what()) std::ofstream(str_cat(folder, "/", rank)) << e.what();
    }
    return 1;
  }
  return 0;
}

int unended(const std::string& folder) {
  stops_at_end = true;
  { mpi_ranks({.start_timeout_s = 3}); }
  std::ofstream(str_cat(folder, "/", Launcher::of_this_process().rank)) << "the communicator has ended";
  return 0;
}

int endless(const std::string& folder) {
  std::ofstream(str_cat(folder, "/", ::getpid())) << "here";
  const auto mpi = mpi_ranks({.timeout_s = 5});
  for (std::size_t n = 1;; n = n * 7 % 200003) sum_of_ranks(*mpi, n);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "collectives") return collectives(argc > 2 ? std::stoul(argv[2]) : std::size_t{1} << 30);
  if (what == "training") return training();
  if (what == "planned") return planned();
  if (what == "embedded") return embedded();
  if (what == "unfit") return unfit();
  if (what == "endless") {
    try {
      return endless(argv[2]);
    } catch (const Error& e) {
      return 1;
    }
  }
  if (what == "stopped") return stopped(argv[2]);
  if (what == "unended") return unended(argv[2]);
  return fail(what, argv[2]);
}
