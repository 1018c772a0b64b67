// StepPlan: what one run of a rank's program will need, known without the other ranks: memory, messages and time.
//
//   const Collectives ranks(mesh, planned_ranks(mesh.size()));
//   const Program program = compile(graph, shard(ranks, specs) | generic() | cpu());
//   std::cout << plan_step(program, cluster).seconds;
//
// Ranks of a mesh are alike, so that rank 0 stands for all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lightcone/distributed/planning/messages.h"
#include "lightcone/runtime/program.h"

namespace lc {

// Bytes of one rank. The program's plan is exact; what its arena is used for is told at the step that uses most of it.
struct PlannedMemory {
  std::size_t parameters = 0;
  std::size_t states = 0;     // all other states: the optimiser's moments, counters, running statistics
  std::size_t inputs = 0;     // batches
  std::size_t gradients = 0;  // in the arena: values from which a state's next value is computed, as large
  std::size_t gathered = 0;   // in the arena: what other ranks sent
  std::size_t values = 0;     // the rest of the arena: activations, scratch memory, and what lies between values
  std::size_t program = 0;    // MemoryPlan::total_bytes(), which has all of the above, each rounded to cache lines
  std::size_t transport = 0;  // what the transport needs besides: the numbers of others that it adds up
  std::size_t total() const { return program + transport; }
};

// A collective operation that occurs so many times in a run, with the same elements among the same ranks.
struct PlannedCollective {
  Collective::Operation operation = Collective::Operation::AllReduce;
  DType dtype = DType::F32;
  std::size_t n = 0;  // elements, as Collective::n, in all arrays that are exchanged at once
  std::size_t arrays = 1;
  std::string axes;       // mesh axes of the group, joined by +
  std::size_t ranks = 0;  // in the group
  std::string first_use;  // what the first of them is for, in the user's words
  std::size_t times = 0;
  distributed::Messages messages;  // in each of them
  double seconds = 0;              // each of them takes so long
};

// One of the things that a run does.
struct PlannedStep {
  enum class Kind : std::uint8_t {
    Kernel,
    Exchange,  // until it is done; a message to another stage of a pipeline is one, too
    Start,     // the same, in the background
    Wait,      // for what has been started
    Receive,   // a message of another stage
  } kind = Kind::Kernel;
  double seconds = 0;
  double busy_seconds = 0;    // Start: a processor is busy that kernels need
  NodeId node = 0;            // Start's own; Wait's is that of its Start
  bool sends = false;         // a message to another stage
  std::uint64_t message = 0;  // the number of what is sent or received
};

struct StepPlan {
  PlannedMemory memory;
  std::vector<PlannedCollective> collectives;  // in the order of their first use
  std::size_t kernels = 0;
  double flops = 0, memory_traffic = 0;  // operations, and bytes that kernels read and write
  // Bytes that a rank sends in a run, to ranks on other machines and on its own.
  double bytes_between = 0, bytes_within = 0;
  // Seconds of kernels that arithmetic bounds, of those that traffic with memory does, and of the exchanges.
  double arithmetic_seconds = 0, traffic_seconds = 0, exchange_seconds = 0;
  // The exchanges' seconds by what they are spent on: they need not add up, for links are used at the same time.
  double latency_seconds = 0, between_seconds = 0, within_seconds = 0, sum_seconds = 0;
  double other_seconds = 0;        // outside of kernels
  double exposed_seconds = 0;      // exchanges that no kernel hides
  double waiting_seconds = 0;      // for other stages of a pipeline (pipeline_plan.h)
  double seconds = 0;              // the whole run
  std::vector<PlannedStep> steps;  // in the order of a run
  double computing_seconds() const { return arithmetic_seconds + traffic_seconds + other_seconds; }
  std::string bound() const;  // what takes longest: "arithmetic", "memory traffic", "the links between machines", ...
};

struct StepPlanOptions {
  // Whether exchanges go on while kernels run that do not need them. It is what a transport with a thread of its own
  // could reach at best: each exchange begins when its operand is there, and the first kernel that can run does.
  bool overlap = false;
  // Seconds of each kernel, by NodeId of the program's graph, measured while all ranks of a machine computed. Empty:
  // computed from the cluster's rates.
  std::vector<double> kernel_seconds = {};
  double other_seconds = 0;  // what a run spends outside of its kernels, measured too
};

// What a stage of a pipeline receives is there at once; join_stages() (pipeline_plan.h) lets stages wait for each
// other. Throws Error for a program with open sizes, and if neither rates nor seconds of kernels are known.
StepPlan plan_step(const Program& program, const Cluster& cluster, const StepPlanOptions& o = {});

}  // namespace lc
