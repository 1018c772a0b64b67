#include "lightcone/runtime/profile/timeline.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "lightcone/core/graph_impl.h"
#include "lightcone/device/kernel.h"

namespace lc {
namespace {

template <class... Ts>
std::string format(const char* how, Ts... parts) {
  char text[512];
  std::snprintf(text, sizeof text, how, parts...);
  return text;
}

std::string human(std::size_t bytes) {
  const auto b = static_cast<double>(bytes);
  return b < 1e4 ? format("%.0f B", b) : b < 1e7 ? format("%.1f kB", b / 1e3) : format("%.1f MB", b / 1e6);
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
    if (n.op == Op::Kernel && n.kernel->part()) {  // in its owner's memory, by no step of its own
      span_of[id] = span_of[n.in[0].node];
      continue;
    }
    const std::size_t step = t.steps.size();
    t.steps.push_back(id);
    t.names.push_back(
        cat(describe(n), " -> ", name(n.dtype), str(n.shape), n.where.known() ? " at " : "", n.where.str()));
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
  std::string s =
      cat("arena ", human(arena_bytes), ", most in use ", human(most), " at step ", top, ": ", names[top], "\n");
  for (const MemorySpan& m : spans)
    if (m.first <= top && top <= m.last)
      s += format("  %10s at %-10zu steps %zu to %zu  %s\n", human(m.bytes).c_str(), m.offset, m.first, m.last,
                  m.scratch ? "scratch" : cat("%", m.node).c_str());
  s += "step      in use\n";
  for (std::size_t k = 0; k < steps.size(); ++k) {
    const std::size_t bar = most ? in_use[k] * 30 / most : 0;
    s += format("%4zu %11s |%-30s| ", k, human(in_use[k]).c_str(), std::string(bar, '#').c_str());
    s += cat("%", steps[k], " ", names[k], "\n");
  }
  return s;
}

std::string MemoryTimeline::html(const std::string& title) const {
  constexpr double width = 1400, height = 560;
  const double x = width / std::max<double>(1, static_cast<double>(steps.size()));
  const double y = height / std::max<double>(1, static_cast<double>(arena_bytes));
  std::string s =
      "<!doctype html><meta charset=utf-8><title>" + escape(title) +
      "</title><style>body{font:13px system-ui,sans-serif;margin:20px;color:#223}rect{stroke:#fff;stroke-width:.5}"
      "rect:hover{stroke:#000;stroke-width:1.5}pre{font-size:11px}</style><h2>" +
      escape(title) + "</h2><p>Steps from left to right, the " + human(arena_bytes) +
      " of the arena from bottom to top. A box is a value while it is needed; grey is scratch memory of one "
      "kernel.</p>";
  s += format("<svg viewBox=\"0 0 %.0f %.0f\" width=\"100%%\" style=\"background:#f4f5f8\">", width, height);
  for (const MemorySpan& m : spans) {
    const double w = static_cast<double>(m.last - m.first + 1) * x, h = static_cast<double>(m.bytes) * y;
    s += format("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"", static_cast<double>(m.first) * x,
                height - static_cast<double>(m.offset) * y - h, w, h);
    s += m.scratch ? std::string("#b8bcc6") : format("hsl(%u,55%%,62%%)", m.node * 47 % 360);
    s += "\"><title>" +
         escape(cat(m.scratch ? "scratch of " : "", "%", m.node, " ", names[m.first], "\n", human(m.bytes), " at ",
                    m.offset, ", steps ", m.first, " to ", m.last)) +
         "</title></rect>";
  }
  return s + "</svg><pre>" + escape(text()) + "</pre>\n";
}

}  // namespace lc
