// The memory plan over the steps of a run: which value has which part of the arena, and when.
#pragma once

#include <string>
#include <vector>

#include "lightcone/device/plan.h"

namespace lc {

// The location and lifetime of a value, or of a kernel's scratch memory.
struct MemorySpan {
  NodeId node = 0;
  bool scratch = false;
  std::size_t offset = 0, bytes = 0;
  std::size_t first = 0, last = 0;  // steps, inclusive
};

// The contents of the arena at each step.
struct MemoryTimeline {
  std::vector<NodeId> steps;
  std::vector<std::string> names;   // names of the steps
  std::vector<MemorySpan> spans;    // in the order of the steps that make them; no two overlap in both place and time
  std::vector<std::size_t> in_use;  // bytes in use at each step
  std::size_t arena_bytes = 0;
  std::size_t peak() const;  // step with the most bytes in use
  // Returns the timeline as plain text.
  std::string text() const;
  std::string html(const std::string& title) const;  // a page with a drawing; needs no network
};

// Computes the timeline of a compiled graph, as in memory_timeline(p.graph(), p.plan()).
MemoryTimeline memory_timeline(const Graph& g, const MemoryPlan& plan);

}  // namespace lc
