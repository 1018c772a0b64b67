// Which value lives where in the arena, and when: the memory plan over the steps of a run.
#pragma once

#include <string>
#include <vector>

#include "lightcone/device/plan.h"

namespace lc {

struct MemorySpan {
  NodeId node = 0;
  bool scratch = false;
  std::size_t offset = 0, bytes = 0;
  std::size_t first = 0, last = 0;  // steps, both included
};

struct MemoryTimeline {
  std::vector<NodeId> steps;
  std::vector<std::string> names;   // of the steps
  std::vector<MemorySpan> spans;    // by the step that makes them; no two overlap in place and time
  std::vector<std::size_t> in_use;  // bytes, by step
  std::size_t arena_bytes = 0;
  std::size_t peak() const;  // the step that uses most
  std::string text() const;
  std::string html(const std::string& title) const;  // a page with a drawing; needs no network
};

MemoryTimeline memory_timeline(const Graph& g, const MemoryPlan& plan);

}  // namespace lc
