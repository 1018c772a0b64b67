// The protocol of a runner: it reads commands on stdin, a line each, and answers each with a line of JSON:
//
//   load {"kind": "gemm", ...}   builds and warms up: {"ok": true, "answer": ..., "build_s": ..., ...}
//   go {"seconds": 0.2}          runs for about this time: {"s": seconds a call, "cpu_s": of processor time, "calls":
//   n};
//                                with "limit": true and a known limit also "limit_rate": the work a second that bounds
//                                it; with "calls": n, exactly so many calls, which all of several ranks are told
//   write {"path": ..., ...}     writes a checkpoint: {"ok": true}
//   quit
//
// Between commands it blocks in a read, so that it takes nothing from the runner whose turn it is.
#include "protocol.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <thread>

namespace lc::bench {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double peak_rss_bytes() {
  rusage u{};
  ::getrusage(RUSAGE_SELF, &u);
  return static_cast<double>(u.ru_maxrss) * 1024;
}

double cpu_seconds() {
  rusage u{};
  ::getrusage(RUSAGE_SELF, &u);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(u.ru_utime) + seconds(u.ru_stime);
}

double Workload::timed_call() {
  const double t = now();
  call();
  return now() - t;
}

Json Workload::measure(int calls) {
  const double cpu = cpu_seconds();
  double total = 0;
  for (int k = 0; k < calls; ++k) total += timed_call();
  return {{"s", total / calls}, {"cpu_s", (cpu_seconds() - cpu) / calls}, {"calls", calls}};
}

std::uint32_t seed_of(std::string_view name) {
  std::uint32_t h = 2166136261u;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 16777619u;
  return h;
}

std::vector<float> input_values(const std::string& name, std::size_t count, float scale) {
  const std::uint32_t seed = seed_of(name);
  std::vector<float> v(count);
  for (std::size_t i = 0; i < count; ++i) v[i] = uniform(seed, static_cast<std::uint32_t>(i)) * scale;
  return v;
}

std::vector<std::int64_t> class_values(const std::string& name, std::size_t count, std::int64_t classes) {
  const std::uint32_t seed = seed_of(name);
  std::vector<std::int64_t> v(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double in_0_1 = 0.5 * (static_cast<double>(uniform(seed, static_cast<std::uint32_t>(i))) + 1);
    v[i] = static_cast<std::int64_t>(in_0_1 * static_cast<double>(classes));
  }
  return v;
}

std::vector<float> parameter_values(const std::string& name, const std::vector<std::int64_t>& shape) {
  std::size_t count = 1;
  for (const std::int64_t n : shape) count *= static_cast<std::size_t>(n);
  if (shape.size() < 2) {
    const bool around_one = name.ends_with("norm.weight") || name.ends_with("running_var");
    std::vector<float> v = input_values(name, count, 0.1f);
    if (around_one)
      for (float& x : v) x += 1;
    return v;
  }
  // variance 2 / fan_in (He): signals neither vanish nor explode through ReLU
  const float fan_in = static_cast<float>(count / static_cast<std::size_t>(shape[0]));
  return input_values(name, count, std::sqrt(6.0f / fan_in));
}

Json summary(std::span<const float> values) {
  constexpr std::size_t kSamples = 32;
  double square = 0;
  for (const float v : values) square += static_cast<double>(v) * static_cast<double>(v);
  Json samples = Json::array();
  for (std::size_t k = 0; k < kSamples; ++k) samples.push_back(values[k * 2654435761u % values.size()]);
  return {
      {"count", values.size()}, {"rms", std::sqrt(square / static_cast<double>(values.size()))}, {"samples", samples}};
}

namespace {

Json load(std::unique_ptr<Workload>& workload, const Runner& runner, const Json& w) {
  const double begin = now();
  workload = runner.make(w);
  const double build = now() - begin;
  workload->call();
  Json reply{{"ok", true},
             {"version", runner.version},
             {"build_s", build},
             {"first_s", now() - begin - build},
             {"answer", workload->answer()}};
  reply["facts"] = workload->facts();
  reply["peak_rss"] = peak_rss_bytes();
  return reply;
}

// Measures calls. A core that slept is slow at first, so short calls run for a few milliseconds that are not counted.
Json go(Workload& workload, double slice) {
  const double warm = std::min(0.03, slice / 4);
  double cpu = cpu_seconds();
  double total = workload.timed_call();
  if (total > slice) return {{"s", total}, {"cpu_s", cpu_seconds() - cpu}, {"calls", 1}};
  for (const double begin = now(); now() - begin < warm;) workload.timed_call();
  int calls = 0;
  cpu = cpu_seconds();
  for (total = 0; total < slice || calls == 0; ++calls) total += workload.timed_call();
  return {{"s", total / calls}, {"cpu_s", (cpu_seconds() - cpu) / calls}, {"calls", calls}};
}

Json go_beside_limit(Workload& workload, const Json& o) {
  if (o.contains("calls")) return workload.measure(o.at("calls").get<int>());
  const double slice = o.value("seconds", 0.2);
  Json reply = go(workload, slice);
  if (!o.value("limit", false)) return reply;
  if (Workload* limit = workload.limit()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));  // threads of the workload that spin go to sleep
    const double s = go(*limit, slice).at("s").get<double>();
    reply["limit_rate"] = limit->facts().at("work").get<double>() / s;
  }
  return reply;
}

}  // namespace

int serve(const Runner& runner) {
  std::unique_ptr<Workload> workload;
  for (std::string line; std::getline(std::cin, line);) {
    const std::size_t space = line.find(' ');
    const std::string command = line.substr(0, space);
    if (command == "quit") break;
    Json reply;
    try {
      const Json o = space == std::string::npos ? Json::object() : Json::parse(line.substr(space + 1));
      if (command == "load") reply = load(workload, runner, o);
      else if (command == "write" && runner.write) runner.write(o), reply = {{"ok", true}};
      else if (command == "go" && workload) reply = go_beside_limit(*workload, o);
      else reply = {{"missing", "no such command: " + line}};
    } catch (const std::exception& e) {
      reply = {{"missing", e.what()}};
    }
    reply["peak_rss"] = peak_rss_bytes();
    std::puts(reply.dump().c_str());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace lc::bench
