// The steps of a run as times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "lightcone/distributed/planning/step_plan.h"

namespace lc::distributed {

// When messages have arrived, by their number. Numbers count the messages of all stages.
using Arrivals = std::unordered_map<std::uint64_t, double>;

// One rank on its way through its steps.
class Walk {
 public:
  explicit Walk(const std::vector<PlannedStep>& steps) : steps_(steps) {}

  // Goes on until the end, or to a message that has not been sent. Returns false if it could not take a single step.
  // Without `arrivals` messages are there at once.
  bool run(Arrivals* arrivals);
  bool done() const { return next_ == steps_.size(); }
  double clock() const { return clock_; }
  double waited() const { return waited_; }  // for messages

 private:
  bool take(const PlannedStep& s, Arrivals* arrivals);
  bool receive(const PlannedStep& s, const Arrivals* arrivals);

  const std::vector<PlannedStep>& steps_;
  std::size_t next_ = 0;
  double clock_ = 0, link_ = 0, waited_ = 0;  // when the processor and the link are free
  double owed_ = 0;                           // the processor's work on exchanges that have begun
  std::unordered_map<NodeId, double> ends_;
};

}  // namespace lc::distributed
