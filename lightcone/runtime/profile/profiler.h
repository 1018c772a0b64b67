// Records a Profile while a context runs. All memory is allocated in the constructor.
#pragma once

#include <memory>
#include <string>

#include "lightcone/device/kernel.h"
#include "lightcone/device/parallel.h"
#include "lightcone/device/plan.h"
#include "lightcone/runtime/profile/profile.h"

namespace lc {

// Returns a short description of a node in the user's words: "linear [64, 784] x [784, 128], relu".
std::string title_of(const Node& n);
// Returns the user's calls and, if they differ, the operations that they became: "softmax (max, exp2, sum, mul)",
// "add".
std::string what_it_computes(const Node& n);
// Returns the user's lines of all calls that became this node: "model.cpp:12, model.cpp:14". Returns "" if they are
// unknown.
std::string lines_of(const Node& n);

// What a node computes and touches in one run: operations, and bytes of its operands and of its result.
struct NodeWork {
  Dim flops, read, written;
};
NodeWork work_of(const Graph& g, const MemoryPlan& plan, NodeId id);

// Wraps the threads that run kernels, to measure what each worker does. A device other than the host has no such
// threads.
class Profiler final : public Parallel {
 public:
  Profiler(const Graph& g, const MemoryPlan& plan, std::span<const NodeId> order, std::shared_ptr<Parallel> inner);

  void begin_run(const Bindings& sizes);
  void begin_kernel() { kernel_begin_ = now(); }
  void end_kernel(std::size_t k);  // `k`: index in the order of kernels
  void end_run();
  Profile result() const;

  int workers() const override { return inner_ ? inner_->workers() : 0; }
  void run(int tasks, void (*task)(void* arg, int task, int worker), void* arg) override;

 private:
  struct Row {
    NodeId node;
    NodeWork work;  // in one run
    std::int64_t calls = 0;
    double seconds = 0, flops_done = 0, bytes_read = 0, bytes_written = 0;
  };
  struct alignas(64) Worker {  // written by its own thread only
    double begin = 0, end = 0, busy = 0;
    int tasks = 0;
  };
  static double now();
  void keep(const ProfileEvent& e);

  const Graph& g_;
  const MemoryPlan& plan_;
  std::shared_ptr<Parallel> inner_;
  std::vector<Row> rows_;
  std::vector<Worker> workers_;
  std::vector<ProfileEvent> events_;
  std::int64_t left_out_ = 0, runs_ = 0;
  double start_ = 0, run_begin_ = 0, kernel_begin_ = 0, seconds_ = 0;
  void (*task_)(void*, int, int) = nullptr;
  void* arg_ = nullptr;
};

}  // namespace lc
