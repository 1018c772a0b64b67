// Profiles, for the commands that run something.
#pragma once

#include <functional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "device.h"
#include "lightcone/runtime/program.h"

namespace lc::tool {

struct ExplainOptions {
  bool on = false;
  std::string source;  // name of a kernel: print its C text
  std::string trace;   // file of a trace
  bool wanted() const { return on || !source.empty() || !trace.empty(); }
};

// Measures the CPU's limits now; of GPUs no limits are known so far.
MachineLimits measure_limits(int threads, const DeviceChoice& device);

// Runs `step` a few times under the profiler. Prints the profile, or returns it for a JSON report.
nlohmann::ordered_json explain(const std::string& title, const Program& p, Context& c, const MachineLimits& limits,
                               const std::function<void()>& step, const ExplainOptions& o, bool json);

void write_file(const std::string& path, const std::string& text);

}  // namespace lc::tool
