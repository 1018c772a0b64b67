// The interface for tests: fake_cuda_set, fake_cuda_get and fake_cuda_fault.
#include <string_view>

#include "driver/driver.h"
#include "nvrtc/compiler.h"
#include "scheduler/scheduler.h"

using namespace lc::simulators::cuda;

// Changes a setting (settings.h). Returns 0, or -1 if the name is unknown.
FAKE_CUDA_API int fake_cuda_set(const char* name, long value) {
  Settings::Value* const setting = find_setting(name);
  if (setting == nullptr) return -1;
  *setting = value;
  return 0;
}

namespace lc::simulators::cuda {
namespace {

struct Count {
  const char* name;
  bool of_objects;
  std::size_t (*of)(const Driver&);
};

constexpr Count kCounts[] = {
    {"contexts", true, [](const Driver& d) { return static_cast<std::size_t>(d.retained); }},
    {"allocations", true, [](const Driver& d) { return d.allocations.count(); }},
    {"allocated_bytes", false, [](const Driver& d) { return d.allocations.used() + d.addresses.used(); }},
    {"reservations", true, [](const Driver& d) { return d.addresses.reservations(); }},
    {"physical", true, [](const Driver& d) { return d.addresses.physical(); }},
    {"mappings", true, [](const Driver& d) { return d.addresses.mapped(); }},
    {"pinned", true, [](const Driver& d) { return d.pinned.count(); }},
    {"pinned_bytes", false, [](const Driver& d) { return d.pinned.bytes(); }},
    {"modules", true, [](const Driver& d) { return d.modules.size(); }},
    {"streams", true, [](const Driver& d) { return d.streams.size(); }},
    {"events", true, [](const Driver& d) { return d.events.size(); }},
    {"graphs", true, [](const Driver& d) { return d.graphs.size(); }},
    {"graph_execs", true, [](const Driver& d) { return d.execs.size(); }},
};

}  // namespace
}  // namespace lc::simulators::cuda

// Returns a setting, or the number of live objects of a kind; "live" is the sum over all kinds. Returns -1 if the name
// is unknown.
FAKE_CUDA_API long fake_cuda_get(const char* name) {
  if (const Settings::Value* const setting = find_setting(name)) return *setting;
  const std::string_view wanted = name;
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  if (wanted == "programs") return static_cast<long>(live_programs());
  if (wanted == "switches") return static_cast<long>(fibers::switches());
  long live = static_cast<long>(live_programs());
  for (const Count& c : kCounts) {
    const long n = static_cast<long>(c.of(d));
    if (wanted == c.name) return n;
    if (c.of_objects) live += n;
  }
  return wanted == "live" ? live : -1;
}

// Describes the last fault of a kernel; valid until the next fault.
FAKE_CUDA_API const char* fake_cuda_fault() { return driver().fault_words.c_str(); }
