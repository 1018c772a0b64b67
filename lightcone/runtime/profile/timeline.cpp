#include "lightcone/runtime/profile/timeline.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <numeric>

#include "lightcone/base/numbers.h"
#include "lightcone/core/graph_impl.h"
#include "lightcone/device/kernel.h"
#include "lightcone/runtime/profile/profiler.h"

namespace lc {
namespace {

// Formats bytes with binary units: "768 B", "1.5 KiB", "12 MiB".
std::string binary_bytes(std::size_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto b = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; b >= 1024 && unit + 1 < std::size(kUnits); ++unit) b /= 1024;
  return formatted(b < 10 && unit ? "%.3g %s" : "%.4g %s", b, kUnits[unit]);
}

std::string escape(std::string_view s) {
  std::string out;
  for (char c : s) out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

bool in_arena(const Placement& p) { return p.where == Placement::Where::Arena; }

}  // namespace

MemoryTimeline memory_timeline(const Graph& g, const MemoryPlan& plan) {
  MemoryTimeline t;
  t.arena_bytes = plan.arena_bytes;
  const auto live = g.live();
  std::vector<std::size_t> span_of(g.size(), ~std::size_t{0});
  for (NodeId id = 0; id < g.size(); ++id) {
    const Node& n = g[id];
    if (!live[id] || n.op == Op::Input) continue;
    if (n.op == Op::Kernel && n.kernel->part()) {  // in its owner's memory, made by no step of its own
      span_of[id] = span_of[n.in[0].node];
      continue;
    }
    const std::size_t step = t.steps.size();
    t.steps.push_back(id);
    t.names.push_back(
        str_cat(title_of(n), " -> ", name(n.dtype), str(n.shape), n.where.known() ? " at " : "", n.where.str()));
    const Placement& p = plan.nodes[id];
    for (const Edge& e : n.in)
      if (const std::size_t s = span_of[e.node]; s != ~std::size_t{0}) {
        const bool taken_over = in_arena(p) && t.spans[s].offset == p.offset && p.bytes > 0 && t.spans[s].bytes > 0;
        t.spans[s].last = taken_over ? step - 1 : step;
      }
    if (n.op == Op::Kernel)
      if (const Dim scratch = n.kernel->scratch_bytes(plan.workers); scratch.bounds().hi > 0)
        t.spans.push_back({id, true, plan.scratch[id], static_cast<std::size_t>(scratch.bounds().hi), step, step});
    if (!in_arena(p)) continue;
    span_of[id] = t.spans.size();
    t.spans.push_back({id, false, p.offset, p.bytes, step, step});
  }
  if (t.steps.empty()) return t;
  const std::size_t end = t.steps.size() - 1;
  const auto kept = [&](NodeId id) {
    if (span_of[id] != ~std::size_t{0}) t.spans[span_of[id]].last = end;
  };
  for (const Root& r : g.roots()) kept(r.edge.node);
  for (const Assignment& a : g.assignments()) kept(a.next.node);
  for (const auto& [state, offset] : plan.snapshots)
    t.spans.push_back({state, false, offset, plan.nodes[state].bytes, 0, end});
  t.in_use.assign(t.steps.size() + 1, 0);
  for (const MemorySpan& m : t.spans) {
    t.in_use[m.first] += m.bytes;
    t.in_use[m.last + 1] -= m.bytes;
  }
  t.in_use.pop_back();
  std::partial_sum(t.in_use.begin(), t.in_use.end(), t.in_use.begin());
  return t;
}

std::size_t MemoryTimeline::peak() const {
  return static_cast<std::size_t>(std::max_element(in_use.begin(), in_use.end()) - in_use.begin());
}

std::string MemoryTimeline::text() const {
  if (steps.empty()) return "nothing is computed\n";
  const std::size_t top = peak(), most = in_use[top];
  std::string s = str_cat("arena ", binary_bytes(arena_bytes), ", most in use ", binary_bytes(most), " at step ", top,
                          ": ", names[top], "\n");
  for (const MemorySpan& m : spans)
    if (m.first <= top && top <= m.last)
      s += formatted("  %10s at %-10zu steps %zu to %zu  %s\n", binary_bytes(m.bytes).c_str(), m.offset, m.first,
                     m.last, m.scratch ? "scratch" : str_cat("%", m.node).c_str());
  s += "step      in use\n";
  for (std::size_t k = 0; k < steps.size(); ++k) {
    const std::size_t bar = most ? in_use[k] * 30 / most : 0;
    s += formatted("%4zu %11s |%-30s| ", k, binary_bytes(in_use[k]).c_str(), std::string(bar, '#').c_str());
    s += str_cat("%", steps[k], " ", names[k], "\n");
  }
  return s;
}

namespace {

// Returns a round distance between ticks such that about `parts` of them make the whole: 1, 2 or 5 times a power of
// ten, or a power of two if `binary` is true.
std::size_t tick(std::size_t whole, std::size_t parts, bool binary) {
  std::size_t t = 1;
  for (int k = 0; whole / t > parts; ++k) t = binary ? t * 2 : k % 3 == 1 ? t / 2 * 5 : t * 2;
  return t;
}

constexpr std::string_view kStyle =
    R"(<style>:root{color-scheme:light dark;--back:#f6f7f9;--paper:#fff;--ink:#1c2430;--soft:#5d6877;--grid:#e3e7ec;--scratch:#b8bec8}
@media(prefers-color-scheme:dark){:root{--back:#14171c;--paper:#1d2127;--ink:#e4e8ee;--soft:#a0aab8;--grid:#2f353e;--scratch:#555d69}}
body{font:14px/1.5 Inter,"Segoe UI","Helvetica Neue","Noto Sans",Arial,system-ui,sans-serif;margin:0 auto;padding:20px 24px;max-width:1600px;color:var(--ink);background:var(--back)}
h1{font-size:19px;margin:0 0 2px}p{margin:0 0 12px;color:var(--soft)}
svg{display:block;width:100%;background:var(--paper);border:1px solid var(--grid);border-radius:8px}
text{font-size:11px;fill:var(--soft)}.name{fill:var(--ink);font-size:13px}.grid{stroke:var(--grid)}.peak{stroke:#e8a100;stroke-dasharray:4 3}
rect{stroke:var(--paper);stroke-width:.6}rect:hover{stroke:var(--ink);stroke-width:1.5}.scratch{fill:var(--scratch)}
.use{fill:none;stroke:#2f6feb;stroke-width:1.5}pre{font-size:11px;overflow:auto;color:var(--soft)}</style>)";

}  // namespace

std::string MemoryTimeline::html(const std::string& title) const {
  constexpr double left = 84, top = 14, width = 1290, height = 520, bottom = 56;
  const std::size_t count = std::max<std::size_t>(1, steps.size()), bytes = std::max<std::size_t>(1, arena_bytes);
  const double x = width / static_cast<double>(count), y = height / static_cast<double>(bytes);
  const auto across = [&](std::size_t step) { return left + static_cast<double>(step) * x; };
  const auto up = [&](std::size_t byte) { return top + height - static_cast<double>(byte) * y; };
  std::string s = str_cat(
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>",
      escape(title), "</title>", kStyle, "<h1>", escape(title), "</h1><p>The arena of ", binary_bytes(arena_bytes),
      " over the ", steps.size(),
      " steps of a run. A box is a value from the step that makes it to the last that reads it, at "
      "its addresses; grey is scratch memory of one kernel. The blue line is what is in use");
  if (!steps.empty()) s += str_cat(", ", binary_bytes(in_use[peak()]), " at most, at step ", peak());
  s += ".</p>";
  s += formatted("<svg viewBox=\"0 0 %.0f %.0f\">", left + width + 20, top + height + bottom);
  for (std::size_t byte = 0, each = tick(bytes, 10, true); byte <= bytes; byte += each)
    s += formatted(
        "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.2f\" y2=\"%.2f\"/><text x=\"%.1f\" y=\"%.2f\" "
        "text-anchor=\"end\">%s</text>",
        left, left + width, up(byte), up(byte), left - 8, up(byte) + 4, binary_bytes(byte).c_str());
  for (std::size_t step = 0, each = tick(count, 20, false); step < count; step += each)
    s += formatted(
        "<line class=\"grid\" x1=\"%.2f\" x2=\"%.2f\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%.2f\" y=\"%.1f\" "
        "text-anchor=\"middle\">%zu</text>",
        across(step), across(step), top + height, top + height + 5, across(step) + x / 2, top + height + 18, step);
  s += formatted("<text class=\"name\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">step</text>", left + width / 2,
                 top + height + 42);
  s += formatted(
      "<text class=\"name\" transform=\"translate(16 %.1f) rotate(-90)\" text-anchor=\"middle\">address in the "
      "arena</text>",
      top + height / 2);
  for (const MemorySpan& m : spans) {
    const double w = static_cast<double>(m.last - m.first + 1) * x, h = static_cast<double>(m.bytes) * y;
    s += formatted("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" ", across(m.first), up(m.offset) - h, w,
                   h);
    s += m.scratch ? std::string("class=\"scratch\"") : formatted("fill=\"hsl(%u,42%%,60%%)\"", m.node * 47 % 360);
    s += "><title>" +
         escape(str_cat(m.scratch ? "scratch of " : "", "%", m.node, " ", names[m.first], "\n", binary_bytes(m.bytes),
                        " at ", m.offset, ", steps ", m.first, " to ", m.last)) +
         "</title></rect>";
  }
  if (!steps.empty()) {
    std::string line;
    for (std::size_t k = 0; k < in_use.size(); ++k)
      line += k ? formatted(" V%.2f H%.2f", up(in_use[k]), across(k + 1))
                : formatted("M%.2f %.2f H%.2f", across(0), up(in_use[0]), across(1));
    s += "<path class=\"use\" d=\"" + line + "\"/>";
    s += formatted("<line class=\"peak\" x1=\"%.2f\" x2=\"%.2f\" y1=\"%.1f\" y2=\"%.1f\"/>", across(peak()) + x / 2,
                   across(peak()) + x / 2, top, top + height);
  }
  return s + "</svg><pre>" + escape(text()) + "</pre></html>\n";
}

}  // namespace lc
