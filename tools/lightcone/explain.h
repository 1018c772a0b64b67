// What profiles say, for the commands that run something.
#pragma once

#include <functional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "device.h"
#include "lightcone/runtime/program.h"

namespace lc::tool {

struct ExplainOptions {
  bool on = false;
  std::string source;  // a kernel whose C text is wanted
  std::string trace;   // a file
  bool wanted() const { return on || !source.empty() || !trace.empty(); }
};

// The CPU's limits, measured now; of GPUs nothing is known so far.
MachineLimits measure_limits(int threads, const DeviceChoice& device);

// Runs `step` a few times under the profiler; prints what was found, or returns it for a JSON report.
nlohmann::ordered_json explain(const std::string& title, const Program& p, Context& c, const MachineLimits& limits,
                               const std::function<void()>& step, const ExplainOptions& o, bool json);

void write_file(const std::string& path, const std::string& text);

}  // namespace lc::tool
