// lightcone tune: measures this machine, and keeps the settings with which generated loops run best.
#include "lightcone/backends/cpu/tune.h"

#include <cstdio>

#include "command.h"
#include "commands.h"
#include "lightcone/backends/cpu/machine.h"
#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"

namespace lc::tool {

void tune(const TuneCommand& o) {
  if (o.once && backends::cpu::profile_is_kept()) return;
  Progress progress;
  constexpr double kSteps = 6;
  double step = 0;
  TuneOptions options{.threads = o.threads};
  options.said = [&](std::string_view what) { progress.show(what, step++ / kSteps); };
  const double begin = now();
  const Machine found = lc::tune(options);
  progress.clear();
  const bool kept = o.out.empty() && backends::cpu::keep_profile(found);
  if (!o.out.empty()) write_file(o.out, str(found));
  if (!o.once) write_stdout(str(found));
  if (o.once && !kept) return;  // there is nothing to report
  const std::string took = formatted("%.1f", now() - begin);
  std::fprintf(stderr, "lightcone: measured this machine in %s s%s\n", took.c_str(),
               !o.out.empty() ? ""
               : kept         ? "; later runs use the profile"
                              : "; it could not be kept: see LIGHTCONE_CACHE");
}

}  // namespace lc::tool
