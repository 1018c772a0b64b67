// What launches ask of a device, written down instead of done: starts of kernels, products of a library, copies and
// zeros.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lightcone/backends/cuda/device.h"
#include "lightcone/backends/cuda/launch.h"

namespace lc::backends::cuda {

struct Trace {
  enum class Kind : std::uint8_t { Launch, Product, Copy, Zero };
  struct Step {
    Kind kind;
    KernelCall call;                   // Start
    std::size_t first = 0, count = 0;  // of values: arguments; a, b, to, scratch; to, from, bytes; or to, bytes
    const CublasLtProduct* product = nullptr;
    std::span<const std::uint64_t> in(const Trace& t) const { return {t.values.data() + first, count}; }
  };
  std::vector<Step> steps;
  std::vector<std::uint64_t> values;
  std::vector<std::size_t> ends;  // by launch: how many steps there are up to its end

  void clear() { steps.clear(), values.clear(), ends.clear(); }
  std::size_t begin_of(std::size_t launch) const { return launch ? ends[launch - 1] : 0; }
};

// Does the step in a stream. An Error where a library fails.
api::Result enqueue(const api::Driver& a, api::Stream* stream, const Trace& t, const Trace::Step& s);

// Writes down what one launch asks for, behind the others. False, and nothing is written, when that is more than a
// graph should hold, or something else than those steps.
bool trace(const Launch& l, CudaDevice& device, Trace& to);

}  // namespace lc::backends::cuda
