#include "lightcone/distributed/planning/walk.h"

#include <algorithm>
#include <utility>

namespace lc::distributed {

using Kind = PlannedStep::Kind;

bool Walk::run(Arrivals* arrivals) {
  const std::size_t from = next_;
  while (next_ < steps_.size() && take(steps_[next_], arrivals)) ++next_;
  return next_ > from;
}

bool Walk::take(const PlannedStep& s, Arrivals* arrivals) {
  switch (s.kind) {
    case Kind::Kernel: clock_ += s.seconds; break;
    case Kind::Exchange:
    case Kind::Start:
      link_ = std::max(link_, clock_) + s.seconds;
      if (s.sends && arrivals) (*arrivals)[s.message] = link_;
      if (s.kind == Kind::Exchange) clock_ = link_;
      else ends_[s.node] = link_, owed_ += s.busy_seconds;
      break;
    case Kind::Wait: clock_ = std::max(clock_ + std::exchange(owed_, 0), ends_.at(s.node)); break;
    case Kind::Receive: return receive(s, arrivals);
  }
  return true;
}

bool Walk::receive(const PlannedStep& s, const Arrivals* arrivals) {
  if (arrivals && !arrivals->contains(s.message)) return false;
  clock_ = std::max(clock_, link_);  // messages and exchanges have one order
  const double there = arrivals ? arrivals->at(s.message) : clock_;
  waited_ += std::max(0.0, there - clock_);
  link_ = clock_ = std::max(clock_, there);
  return true;
}

}  // namespace lc::distributed
