// The commands of launches, recorded instead of executed: launches of kernels, calls of libraries, copies and fills
// with zeros.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lightcone/backends/cuda/device.h"
#include "lightcone/backends/cuda/launch.h"

namespace lc::backends::cuda {

struct Trace {
  enum class Kind : std::uint8_t { Launch, Call, Copy, Zero };
  struct Step {
    Kind kind;
    KernelCall call;                   // for a Launch
    std::size_t first = 0, count = 0;  // in values: arguments; words of a call; to, from, bytes; or to, bytes
    const StreamCall* work = nullptr;  // for a Call
    std::span<const std::uint64_t> in(const Trace& t) const { return {t.values.data() + first, count}; }
  };
  std::vector<Step> steps;
  std::vector<std::uint64_t> values;
  std::vector<std::size_t> ends;  // by launch: number of steps up to its end

  void clear() { steps.clear(), values.clear(), ends.clear(); }
  std::size_t begin_of(std::size_t launch) const { return launch ? ends[launch - 1] : 0; }
};

// Enqueues the step in a stream. Throws Error if a library fails.
api::Result enqueue(const Context& c, api::Stream* stream, const Trace& t, const Trace::Step& s);

// Appends the steps of one launch. Returns false, and appends no steps, if there are more than a graph should hold, or
// if the launch does anything else than such steps.
bool trace(const Launch& l, CudaDevice& device, Trace& to);

}  // namespace lc::backends::cuda
