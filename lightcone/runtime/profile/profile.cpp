#include "lightcone/runtime/profile/profile.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"
#include "lightcone/runtime/profile/profiler.h"

namespace lc {
namespace {

std::string in_quotes(std::string_view s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 32 ? ' ' : c;
  }
  return out + "\"";
}

std::string shortened(const std::string& s, std::size_t most) {
  return s.size() <= most ? s : s.substr(0, most - 3) + "...";
}

double ratio(double a, double b) { return b > 0 ? a / b : 0; }

struct Group {
  KernelProfile sum;
  int nodes = 0;
};

std::vector<Group> groups(const Profile& p, bool grouped) {
  std::vector<Group> all;
  std::map<std::string, std::size_t> known;
  for (const KernelProfile& k : p.kernels) {
    const std::string key =
        str_cat(k.name, '\n', k.title, '\n', k.what, '\n', k.where, '\n', k.shape, '\n', grouped ? 0 : k.node);
    const auto [it, fresh] = known.try_emplace(key, all.size());
    if (fresh) {
      all.push_back({k, 1});
      continue;
    }
    Group& g = all[it->second];
    ++g.nodes;
    g.sum.calls += k.calls;
    g.sum.seconds += k.seconds;
    g.sum.flops += k.flops;
    g.sum.bytes_read += k.bytes_read;
    g.sum.bytes_written += k.bytes_written;
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Group& a, const Group& b) { return a.sum.seconds > b.sum.seconds; });
  return all;
}

double in_kernels(const Profile& p) {
  double s = 0;
  for (const KernelProfile& k : p.kernels) s += k.seconds;
  return s;
}

}  // namespace

double KernelProfile::share_of(const MachineLimits& m) const {
  return ratio(std::max(ratio(bytes(), m.bytes_per_second), ratio(flops, m.flops_per_second)), seconds);
}

std::string Profile::table(const MachineLimits& limits, bool grouped) const {
  std::string s = formatted("%lld runs, %.3f ms each", static_cast<long long>(runs),
                            1e3 * ratio(seconds, static_cast<double>(runs)));
  if (limits.known())
    s += formatted("; limits %.1f GB/s, %.0f GFLOP/s", limits.bytes_per_second / 1e9, limits.flops_per_second / 1e9);
  s += "\n";
  for (const std::string& note : notes) s += "note: " + note + "\n";
  s += "     ms/run  share   GB/s  GFLOP/s  of limit  kB/call    kFLOP/call  calls/run  kernel\n";
  for (const Group& g : groups(*this, grouped)) {
    const KernelProfile& k = g.sum;
    const double calls = static_cast<double>(k.calls), each = static_cast<double>(runs);
    const std::string share = limits.known() ? formatted("%.0f%%", 100 * k.share_of(limits)) : "-";
    s += formatted("%11.4f %5.1f%% %6.1f %8.1f %9s %8.1f %13.1f %10.0f  ", 1e3 * ratio(k.seconds, each),
                   100 * ratio(k.seconds, seconds), ratio(k.bytes(), k.seconds) / 1e9, ratio(k.flops, k.seconds) / 1e9,
                   share.c_str(), ratio(k.bytes(), calls) / 1e3, ratio(k.flops, calls) / 1e3, ratio(calls, each));
    s += str_cat(shortened(k.title, 120), " -> ", k.shape, "\n", std::string(14, ' '), k.name, " [", k.pass, "]");
    s += str_cat(k.where.empty() ? "" : "  at " + shortened(k.where, 100), "\n");
  }
  const double rest = seconds - in_kernels(*this);
  s += formatted("%11.4f %5.1f%%  outside of kernels: sizes, checks, states\n",
                 1e3 * ratio(rest, static_cast<double>(runs)), 100 * ratio(rest, seconds));
  return s;
}

std::string Profile::choices() const {
  std::string s;
  std::set<std::string> known;
  for (const KernelProfile& k : kernels) {
    if (k.choice.empty()) continue;
    std::string entry = str_cat(shortened(k.title, 120), ": ", k.choice[0], "\n");
    for (std::size_t i = 1; i < k.choice.size(); ++i) entry += str_cat("  ", k.choice[i], "\n");
    if (known.insert(entry).second) s += entry;
  }
  return s;
}

std::string Profile::json(const MachineLimits& limits) const {
  std::string s =
      formatted("{\"runs\": %lld, \"seconds\": %.9g, \"limit_bytes_per_s\": %.6g, \"limit_flops_per_s\": %.6g",
                static_cast<long long>(runs), seconds, limits.bytes_per_second, limits.flops_per_second);
  s += ", \"notes\": [";
  for (const std::string& note : notes) s += (&note != notes.data() ? ", " : "") + in_quotes(note);
  s += "], \"kernels\": [";
  for (const KernelProfile& k : kernels) {
    if (&k != kernels.data()) s += ",";
    s += str_cat("\n  {\"node\": ", k.node, ", \"name\": ", in_quotes(k.name), ", \"title\": ", in_quotes(k.title),
                 ", \"what\": ", in_quotes(k.what), ", \"where\": ", in_quotes(k.where),
                 ", \"shape\": ", in_quotes(k.shape), ", \"pass\": ", in_quotes(k.pass));
    for (const std::string& line : k.choice)
      s += (&line == k.choice.data() ? ", \"choice\": [" : ", ") + in_quotes(line);
    s += k.choice.empty() ? "" : "]";
    s += formatted(
        ", \"calls\": %lld, \"seconds\": %.9g, \"flops\": %.17g, \"bytes_read\": %.17g, \"bytes_written\": %.17g",
        static_cast<long long>(k.calls), k.seconds, k.flops, k.bytes_read, k.bytes_written);
    s += limits.known() ? formatted(", \"share_of_limit\": %.4g}", k.share_of(limits)) : "}";
  }
  return s + "]}\n";
}

std::string Profile::trace() const {
  std::map<NodeId, const KernelProfile*> by_node;
  int workers = 0;
  for (const KernelProfile& k : kernels) by_node[k.node] = &k;
  for (const ProfileEvent& e : events) workers = std::max(workers, e.worker + 1);
  std::string s = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [";
  for (int row = 0; row <= workers; ++row)
    s += str_cat(row ? "," : "", "\n{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": 1, \"tid\": ", row,
                 ", \"args\": {\"name\": ", row ? in_quotes(str_cat("worker ", row - 1)) : "\"program\"", "}}");
  for (const ProfileEvent& e : events) {
    const KernelProfile& k = *by_node.at(e.node);
    s += str_cat(",\n{\"ph\": \"X\", \"pid\": 1, \"tid\": ", e.worker + 1, ", \"name\": ", in_quotes(k.title));
    s += formatted(", \"ts\": %.3f, \"dur\": %.3f, \"args\": {\"busy_us\": %.3f", 1e6 * e.begin,
                   1e6 * (e.end - e.begin), 1e6 * e.busy);
    if (e.worker < 0)
      s += str_cat(", \"kernel\": ", in_quotes(k.name), ", \"what\": ", in_quotes(k.what),
                   ", \"shape\": ", in_quotes(k.shape), ", \"where\": ", in_quotes(k.where),
                   formatted(", \"kB\": %.3f, \"kFLOP\": %.3f", ratio(k.bytes(), static_cast<double>(k.calls)) / 1e3,
                             ratio(k.flops, static_cast<double>(k.calls)) / 1e3));
    s += "}}";
  }
  return s + "\n]}\n";
}

}  // namespace lc
