#include "explain.h"

#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "command.h"
#include "lightcone/backends/cpu/target/limits.h"
#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/base/error.h"
#include "lightcone/io/atomic_file.h"
#include "lightcone/runtime/profile/timeline.h"

namespace lc::tool {

MachineLimits measure_limits(int threads, const DeviceChoice& device) {
  if (!device.is_cpu()) return {};
  const auto pool = backends::cpu::threads(threads);
  return {backends::cpu::read_bandwidth(*pool), backends::cpu::fma_rate(*pool)};
}

nlohmann::ordered_json explain(const std::string& title, const Program& p, Context& c, const MachineLimits& limits,
                               const std::function<void()>& step, const ExplainOptions& o, bool json) {
  c.profile(true);
  for (int i = 0; i < 5; ++i) step();
  const Profile found = c.profile();
  c.profile(false);
  if (!o.trace.empty()) write_file(o.trace, found.trace());
  if (json) return nlohmann::ordered_json::parse(found.json(limits));
  const MemoryTimeline memory = memory_timeline(p.graph(), p.plan());
  std::string s = title + ": " + found.table(limits);
  if (const std::string choices = found.choices(); !choices.empty())
    s += "algorithms chosen, and why others were not:\n" + choices;
  s += str_cat("arena ", human_bytes(static_cast<double>(memory.arena_bytes)), ", most in use at step ", memory.peak(),
               " of ", memory.steps.size(), "\n");
  if (!o.source.empty()) {
    const std::string text = p.source(o.source);
    if (!text.empty()) s += text;
    else s += str_cat("no kernel '", o.source, "' with a C text in this program\n");
  }
  write_stdout(s + "\n");
  return {};
}

// Writes a regular file as a whole or not at all; writes to anything else, such as /dev/stdout or a pipe, directly.
void write_file(const std::string& path, const std::string& text) {
  std::error_code none;
  if (const auto there = std::filesystem::status(path, none); !exists(there) || is_regular_file(there)) {
    io::AtomicFile file("write", path);
    file.write(text);
    return file.commit();
  }
  std::ofstream f(path, std::ios::binary);
  f << text;
  f.close();
  if (!f) throw Error("write", str_cat("cannot write ", path));
}

}  // namespace lc::tool
