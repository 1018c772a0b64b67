// Where the time of a program goes, kernel by kernel.
//
//   c.profile(true);
//   for (int i = 0; i < 10; ++i) c.run();
//   std::cout << c.profile().table({.bytes_per_second = 40e9, .flops_per_second = 400e9});
//
// Profiling costs nothing while it is off and allocates nothing inside run() while it is on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lightcone/core/graph.h"

namespace lc {

// What the machine can do, measured (backends/cpu/limits.h): what speeds are compared with. Zeros: nobody knows, as of
// GPUs so far, and nothing is compared.
struct MachineLimits {
  double bytes_per_second = 0, flops_per_second = 0;
  bool known() const { return bytes_per_second > 0 || flops_per_second > 0; }
};

struct KernelProfile {
  NodeId node = 0;
  std::string name;   // of the kernel: what source() is asked for
  std::string title;  // "linear [64, 784] x [784, 128], relu": what it computes, as pictures say it
  std::string what;   // "softmax (max, exp2, sum, mul)": the user's operations and what they became
  std::string where;  // the user's lines, "model.cpp:12, model.cpp:14"
  std::string shape;  // "f32[8, 64]" of the result
  std::string pass;   // that made it
  std::int64_t calls = 0;
  double seconds = 0, flops = 0, bytes_read = 0, bytes_written = 0;  // of all calls
  double bytes() const { return bytes_read + bytes_written; }
  // The least time the machine could take over the time taken; above 1 when the data stays in caches.
  double share_of(const MachineLimits& m) const;
};

// A stretch of time: a kernel as the caller saw it, or one worker's part of it.
struct ProfileEvent {
  NodeId node = 0;
  int worker = -1;                      // -1: the whole kernel
  double begin = 0, end = 0, busy = 0;  // seconds since profiling began; busy: inside tasks
};

struct Profile {
  std::int64_t runs = 0;
  double seconds = 0;                  // inside run(), kernels and all else
  std::vector<KernelProfile> kernels;  // in the order they run
  std::vector<ProfileEvent> events;    // of the first runs, as many as there was room for
  std::int64_t events_left_out = 0;
  std::vector<std::string> notes;  // of the program: why its kernels are slow, for one

  // Slowest first. Kernels of one name, shape and origin are one row, unless `grouped` is false.
  std::string table(const MachineLimits& limits, bool grouped = true) const;
  std::string json(const MachineLimits& limits) const;
  // For chrome://tracing and ui.perfetto.dev: a row for the program, one for each worker.
  std::string trace() const;
};

}  // namespace lc
