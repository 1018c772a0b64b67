#include "driver/driver.h"

#include <algorithm>

namespace lc::simulators::cuda {

Driver& driver() {
  static Driver* const only = new Driver;  // never destroyed: calls may come while the process ends
  return *only;
}

int count_call() {
  Settings& s = settings();
  const long number = ++s.calls;
  long due = s.fail_at;
  if (due != number || !s.fail_at.compare_exchange_strong(due, 0)) return kSuccess;
  return static_cast<int>(s.fail_code.load());
}

Code Driver::refuse(unsigned rules, bool& still_works) {
  const bool works = still_works;
  still_works = false;
  if ((rules & (kInitialized | kCurrentContext)) != 0 && !initialized) return kNotInitialized;
  if ((rules & kCurrentContext) == 0) return still_works = works, kSuccess;
  if (!has_current_context()) return kInvalidContext;
  if (!alive) return kContextIsDestroyed;
  if ((rules & kForbiddenInCapture) != 0)
    if (const Code code = forbid_in_capture(); code != kSuccess) return code;
  still_works = works;
  return fault;
}

bool Driver::room_for(std::size_t bytes) const {
  const auto limit = static_cast<std::size_t>(std::max(0l, settings().memory.load()));
  const std::size_t used = allocations.used() + addresses.used();
  return used <= limit && bytes <= limit - used;
}

// Drops pending work; calls that wait for it return the fault.
void Driver::set_fault(Code code, std::string words) {
  if (fault != kSuccess) return;
  fault = code;
  fault_words = std::move(words);
  const auto reach_all = [](Stream& s) {
    for (Operation& o : s.pending)
      if (auto* mark = std::get_if<std::shared_ptr<Mark>>(&o)) (*mark)->reached = true;
    s.pending.clear();
  };
  reach_all(*default_stream);
  for (const auto& [handle, s] : streams) reach_all(*s);
}

void Driver::clear() {
  streams.clear();
  default_stream = std::make_shared<Stream>();
  events.clear();
  graphs.clear();
  execs.clear();
  functions.clear();
  modules.clear();
  allocations.clear();
  addresses.clear();
  pinned.clear();
  if (settings().sticky == 0) fault = kSuccess;
}

}  // namespace lc::simulators::cuda
