// Profiles of programs: the time of each kernel.
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

// Measured peak rates of the machine (backends/cpu/limits.h), to which kernels are compared. Zeros mean unknown, as for
// GPUs so far; nothing is compared then.
struct MachineLimits {
  double bytes_per_second = 0, flops_per_second = 0;
  bool known() const { return bytes_per_second > 0 || flops_per_second > 0; }
};

// The measurements of one kernel.
struct KernelProfile {
  NodeId node = 0;
  std::string name;   // name of the kernel, as Program::source() takes it
  std::string title;  // "linear [64, 784] x [784, 128], relu": short description, as in pictures
  std::string what;   // "softmax (max, exp2, sum, mul)": the user's operations and what they became
  std::string where;  // the user's lines: "model.cpp:12, model.cpp:14"
  std::string shape;  // type and shape of the result: "f32[8, 64]"
  std::string pass;   // pass that made the kernel
  // How its algorithm was chosen: the name, then why each of the others was not. Empty if there was no choice.
  std::vector<std::string> choice;
  std::int64_t calls = 0;
  double seconds = 0, flops = 0, bytes_read = 0, bytes_written = 0;  // totals over all calls
  double bytes() const { return bytes_read + bytes_written; }
  // Returns the least time the machine would need divided by the time taken. It exceeds 1 if the data stays in caches.
  double share_of(const MachineLimits& m) const;
};

// A time span: a kernel as the caller sees it, or one worker's part of it.
struct ProfileEvent {
  NodeId node = 0;
  int worker = -1;                      // -1: the whole kernel
  double begin = 0, end = 0, busy = 0;  // seconds since profiling began; busy: time inside of tasks
};

// The measurements of a context's runs.
struct Profile {
  std::int64_t runs = 0;
  double seconds = 0;                  // time inside of run(), kernels and everything else
  std::vector<KernelProfile> kernels;  // in the order in which they run
  std::vector<ProfileEvent> events;    // events of the first runs, as many as fit
  std::int64_t events_left_out = 0;
  std::vector<std::string> notes;  // Program::notes(), for example why kernels are slow

  // Returns a table, slowest kernel first. Kernels with the same name, shape and origin share a row if `grouped` is
  // true.
  std::string table(const MachineLimits& limits, bool grouped = true) const;
  // Returns how the algorithms of kernels were chosen and why others were refused: "conv [1, 64, 56, 56] x ...:
  // winograd" and a line for each of the others. Kernels of one title and choice share an entry. "" if there was no
  // choice.
  std::string choices() const;
  // Returns the profile as JSON.
  std::string json(const MachineLimits& limits) const;
  // Returns a trace for chrome://tracing and ui.perfetto.dev with one row for the program and one per worker.
  std::string trace() const;
};

}  // namespace lc
