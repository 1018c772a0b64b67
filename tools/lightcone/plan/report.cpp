#include "report.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "../command.h"
#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"

namespace lc::tool {
namespace {

std::string line(const char* what, double bytes, const char* more = "") {
  return formatted("  %-22s %10s%s\n", what, human_bytes(bytes).c_str(), more);
}
double real(std::size_t n) { return static_cast<double>(n); }

std::string memory_text(const Planned& p, const Cluster& cluster) {
  const PlannedMemory& m = p.step.memory;
  const double total = real(m.total());
  std::string s = str_cat("memory a rank ", human_bytes(total));
  if (p.pipeline) s += str_cat(" in stage ", p.pipeline->fullest, ", the fullest,");
  if (cluster.memory_bytes > 0)
    s += str_cat(" of ", human_bytes(cluster.memory_bytes),
                 total <= cluster.memory_bytes ? ": it fits" : ": it does not fit");
  s += "\n" + line("parameters", real(m.parameters)) + line("states of the optimiser", real(m.states)) +
       line("batch", real(m.inputs)) + line("gradients", real(m.gradients)) +
       line("exchanged numbers", real(m.gathered)) + line("activations, scratch", real(m.values));
  if (m.transport) s += line("transport", real(m.transport));
  return s;
}

std::string exchange_text(const Planned& p, const Cluster& cluster) {
  const StepPlan& step = p.step;
  if (step.collectives.empty()) return "nothing is exchanged\n";
  std::string s = p.pipeline ? str_cat("exchanges a step of a rank in stage ", p.pipeline->slowest, ", the slowest\n")
                             : "exchanges a step\n";
  s += "  times  operation          MB each  along       ranks   MB sent between, within    ms each  first for\n";
  for (const PlannedCollective& c : step.collectives)
    s += formatted("  %5zu  %-15s %10.3f  %-10s %6zu  %12.3f %12.3f  %9.4f  %s\n", c.times,
                   std::string(name(c.operation)).c_str(), 1e-6 * real(c.n * size_of(c.dtype)), c.axes.c_str(), c.ranks,
                   1e-6 * c.messages.between.bytes, 1e-6 * c.messages.within.bytes, 1e3 * c.seconds,
                   c.first_use.substr(0, 40).c_str());
  const double here = std::min(cluster.ranks_per_machine, p.layout.mesh().size());
  s += str_cat("  a rank sends ", human_bytes(step.bytes_between), " to other machines and ",
               human_bytes(step.bytes_within), " within its own; a machine sends ",
               human_bytes(here * step.bytes_between), "\n");
  return s;
}

std::string time_text(const Planned& p, std::int64_t batch) {
  const StepPlan& t = p.step;
  const auto part = [&](const char* what, double seconds) {
    return formatted("  %-22s %10s %5.1f %%\n", what, human_seconds(seconds).c_str(), 100 * seconds / t.seconds);
  };
  std::string s = str_cat("time a step ", human_seconds(t.seconds), ", ",
                          formatted("%.4g samples a second", static_cast<double>(batch) / t.seconds), "; bound by ",
                          t.bound(), "\n");
  s += part("arithmetic", t.arithmetic_seconds) + part("memory traffic", t.traffic_seconds);
  if (t.other_seconds > 0) s += part("outside of kernels", t.other_seconds);
  s += part("exchanges, exposed", t.exposed_seconds);
  if (p.pipeline) s += part("waiting for stages", t.waiting_seconds);
  s += str_cat("  exchanges take ", human_seconds(t.exchange_seconds), ": latency ", human_seconds(t.latency_seconds),
               ", bytes between machines ", human_seconds(t.between_seconds), ", within them ",
               human_seconds(t.within_seconds), ", sums ", human_seconds(t.sum_seconds), "\n");
  s += formatted("  %.4g TFLOP and %.4g GB of memory traffic in %zu kernels\n", 1e-12 * t.flops,
                 1e-9 * t.memory_traffic, t.kernels);
  return s;
}

// The ranks, and how they differ.
std::string ranks_text(const Planned& p) {
  const Layout& l = p.layout;
  const int ranks = l.mesh().size();
  std::string s = str_cat(ranks, ranks == 1 ? " rank" : str_cat(" ranks (", l.mesh(), ")"));
  if (ranks > 1) s += p.pipeline ? ", which are alike within a stage" : ", which are alike";
  if (l.microbatches > 1) s += str_cat("; a batch in ", l.microbatches, " parts");
  return str_cat(s, "; divided states: ", l.ranks.shard, "\n");
}

std::string stages_text(const PipelinePlan& pipeline) {
  std::string s = "stages\n  stage  memory a rank   computing  exchanges, exposed    waiting\n";
  for (std::size_t k = 0; k < pipeline.stages.size(); ++k) {
    const StepPlan& t = pipeline.stages[k];
    s += formatted("  %5zu  %13s  %10s  %8s, %8s  %9s\n", k, human_bytes(real(t.memory.total())).c_str(),
                   human_seconds(t.computing_seconds()).c_str(), human_seconds(t.exchange_seconds).c_str(),
                   human_seconds(t.exposed_seconds).c_str(), human_seconds(t.waiting_seconds).c_str());
  }
  return s;
}

}  // namespace

std::string human_seconds(double s) {
  return s >= 1 ? formatted("%.3g s", s) : s >= 1e-3 ? formatted("%.3g ms", 1e3 * s) : formatted("%.3g us", 1e6 * s);
}

std::string text_of(const Planned& p, const Cluster& cluster, std::int64_t batch) {
  return ranks_text(p) + memory_text(p, cluster) + (p.pipeline ? stages_text(*p.pipeline) : "") +
         exchange_text(p, cluster) + time_text(p, batch);
}

namespace {

using Json = nlohmann::ordered_json;

Json memory_json(const PlannedMemory& m) {
  return Json{{"total", m.total()},      {"program", m.program}, {"parameters", m.parameters},
              {"states", m.states},      {"inputs", m.inputs},   {"gradients", m.gradients},
              {"exchanged", m.gathered}, {"values", m.values},   {"transport", m.transport}};
}

}  // namespace

Json json_of(const Planned& p, const Cluster& cluster) {
  const StepPlan& t = p.step;
  Json j;
  j["mesh"] = p.layout.mesh().str();
  j["ranks"] = p.layout.mesh().size();
  j["sharding"] = p.layout.ranks.shard;
  if (p.layout.microbatches > 1) j["microbatches"] = p.layout.microbatches;
  j["memory"] = memory_json(t.memory);
  if (cluster.memory_bytes > 0) j["fits"] = real(t.memory.total()) <= cluster.memory_bytes;
  j["exchanges"] = Json::array();
  for (const PlannedCollective& c : t.collectives)
    j["exchanges"].push_back(Json{{"operation", name(c.operation)},
                                  {"dtype", name(c.dtype)},
                                  {"elements", c.n},
                                  {"along", c.axes},
                                  {"ranks", c.ranks},
                                  {"times", c.times},
                                  {"messages", c.messages.between.messages + c.messages.within.messages},
                                  {"bytes_between", c.messages.between.bytes},
                                  {"bytes_within", c.messages.within.bytes},
                                  {"seconds", c.seconds},
                                  {"first_use", c.first_use}});
  j["bytes_between"] = t.bytes_between, j["bytes_within"] = t.bytes_within;
  j["flops"] = t.flops, j["memory_traffic"] = t.memory_traffic, j["kernels"] = t.kernels;
  j["seconds"] = Json{{"step", t.seconds},
                      {"arithmetic", t.arithmetic_seconds},
                      {"memory_traffic", t.traffic_seconds},
                      {"other", t.other_seconds},
                      {"exchanges", t.exchange_seconds},
                      {"exposed", t.exposed_seconds},
                      {"latency", t.latency_seconds},
                      {"between", t.between_seconds},
                      {"within", t.within_seconds},
                      {"sums", t.sum_seconds}};
  if (p.pipeline) {
    j["seconds"]["waiting"] = t.waiting_seconds;
    j["fullest_stage"] = p.pipeline->fullest, j["slowest_stage"] = p.pipeline->slowest;
    for (const StepPlan& stage : p.pipeline->stages)
      j["stages"].push_back(Json{{"memory", memory_json(stage.memory)},
                                 {"computing", stage.computing_seconds()},
                                 {"exchanges", stage.exchange_seconds},
                                 {"exposed", stage.exposed_seconds},
                                 {"waiting", stage.waiting_seconds}});
  }
  j["bound"] = t.bound();
  return j;
}

}  // namespace lc::tool
