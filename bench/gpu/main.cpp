// The measuring half of bench/gpu_check: prints each row as a line of JSON. Uses the device of LIGHTCONE_CUDA_DRIVER
// and LIGHTCONE_NVRTC, or the first of the system.
//   lightcone_gpu_bench STORY.gguf [--tiny] [--seconds S] [--only PREFIX]
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "lightcone/backends/cuda/cuda.h"
#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"
#include "rows.h"

namespace lc::gpu_bench {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double time_of(const Setting& s, const std::function<void()>& call) {
  constexpr int kRounds = 5;
  const auto round = [&](int calls) {
    s.device->synchronise();
    const double begin = now();
    for (int k = 0; k < calls; ++k) call();
    s.device->synchronise();
    return (now() - begin) / calls;
  };
  round(1);  // work that happens once
  const double one = round(1);
  const int calls = std::clamp(static_cast<int>(s.seconds / kRounds / std::max(one, 1e-7)), 1, 100000);
  std::vector<double> times;
  for (int k = 0; k < kRounds; ++k) times.push_back(round(calls));
  std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
  return times[kRounds / 2];
}

namespace {

// Measures a row. A failure becomes a row, too, and the next ones are measured all the same.
Json measured(const Row& row, const Setting& s) {
  Json line{{"row", row.name}};
  const double begin = now();
  try {
    line.update(row.measure(s));
  } catch (const std::exception& e) {
    line["error"] = e.what();
  }
  line["took_s"] = now() - begin;
  return line;
}

int run(Setting s, const std::string& only) {
  s.device = backends::cuda::open_device({.cache = "off"});
  const backends::gpu::Limits& l = s.device->limits();
  std::puts(Json{{"device", l.name},
                 {"architecture", l.architecture},
                 {"driver", l.driver},
                 {"processors", l.multiprocessors},
                 {"memory", l.memory}}
                .dump()
                .c_str());
  bool failed = false;
  const std::vector<Row> none;
  for (const auto& rows :
       {ceilings(), functions(), models(), values(), only.empty() ? none : nccl_rows(), only.empty() ? none : faults()})
    for (const Row& row : rows) {
      if (!row.name.starts_with(only)) continue;
      const Json line = measured(row, s);
      failed = failed || line.contains("error");
      std::puts(line.dump().c_str());
      std::fflush(stdout);
    }
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace lc::gpu_bench

int main(int argc, char** argv) try {
  lc::gpu_bench::Setting s;
  std::string only;
  for (int k = 1; k < argc; ++k) {
    const std::string a = argv[k];
    if (a == "--tiny") s.tiny = true, s.seconds = 0.01;
    else if (a == "--seconds" && k + 1 < argc) s.seconds = lc::real_of<double>(argv[++k]).value_or(0);
    else if (a == "--only" && k + 1 < argc) only = argv[++k];
    else if (s.story.empty() && a[0] != '-') s.story = a;
    else return std::fputs("usage: lightcone_gpu_bench STORY.gguf [--tiny] [--seconds S] [--only PREFIX]\n", stderr), 2;
  }
  if (s.story.empty()) return std::fputs("the story model's file is missing\n", stderr), 2;
  return lc::gpu_bench::run(std::move(s), only);
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
