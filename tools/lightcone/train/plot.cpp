// The page with the curves of a run.
#include <algorithm>
#include <cmath>

#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"
#include "lightcone/io/printable.h"
#include "run_log.h"

namespace lc::tool {
namespace {

struct Point {
  double x, y;
};
using Curve = std::vector<Point>;

std::string number(double v, int behind_point = -1) {
  return behind_point < 0 ? formatted("%.4g", v) : formatted("%.*f", behind_point, v);
}

std::string escaped(const std::string& text) {
  std::string s;
  for (const char c : printable(text, 1000)) {
    if (c == '&') s += "&amp;";
    else if (c == '<') s += "&lt;";
    else if (c == '>') s += "&gt;";
    else if (c == '"') s += "&quot;";
    else s += c;
  }
  return s;
}

// Returns a round step that divides a range into about `parts`.
double round_step(double range, int parts) {
  const double raw = range / parts, unit = std::pow(10, std::floor(std::log10(raw)));
  for (const double m : {1.0, 2.0, 5.0})
    if (raw <= m * unit) return m * unit;
  return 10 * unit;
}

// Returns the numbers 1, 2 and 5 times powers of ten, from the last below `low` to the first above `high`.
std::vector<double> logarithmic_ticks(double low, double high) {
  std::vector<double> ticks;
  for (double unit = std::pow(10, std::floor(std::log10(low))); unit <= high; unit *= 10)
    for (const double m : {1.0, 2.0, 5.0}) {
      if (!ticks.empty() && m * unit <= low * (1 + 1e-9)) ticks.clear();
      if (ticks.empty() || ticks.back() < high) ticks.push_back(m * unit);
    }
  if (ticks.back() < high) ticks.push_back(10 * std::pow(10, std::floor(std::log10(high))));
  return ticks;
}
std::vector<double> linear_ticks(double low, double high) {
  const double step = round_step(high - low, 6);
  std::vector<double> ticks;
  for (double k = std::floor(low / step); ticks.empty() || ticks.back() < high - step * 1e-9; ++k)
    ticks.push_back(k * step);
  return ticks;
}

// The axes of a chart: steps to the right, losses upwards, each from one round number to another. Losses that fall far
// are drawn by their logarithms, because the end of the run would be at the bottom otherwise.
class Chart {
 public:
  static constexpr double kWidth = 900, kHeight = 460, kLeft = 64, kRight = 20, kTop = 16, kBottom = 44;
  explicit Chart(const std::vector<const Curve*>& curves) {
    double low = INFINITY, high = -INFINITY;
    for (const Curve* c : curves)
      for (const Point& p : *c) low = std::min(low, p.y), high = std::max(high, p.y), last_ = std::max(last_, p.x);
    if (!(low <= high)) low = 0, high = 1;
    if (last_ <= 0) last_ = 1;
    if (high - low < 1e-9) high = low + 1e-9 + std::abs(low) * 0.1;
    log_ = low > 0 && high > 4 * low;
    ticks_ = log_ ? logarithmic_ticks(low, high) : linear_ticks(low, high);
  }
  std::string axes() const;
  std::string at(const Point& p) const { return number(x(p.x), 1) + "," + number(y(p.y), 1); }
  double x(double v) const { return kLeft + v / last_ * (kWidth - kLeft - kRight); }
  double y(double v) const {
    const double low = scaled(ticks_.front()), high = scaled(ticks_.back());
    return kHeight - kBottom - (scaled(v) - low) / (high - low) * (kHeight - kTop - kBottom);
  }

 private:
  double scaled(double v) const { return log_ ? std::log10(v) : v; }
  std::vector<double> ticks_;
  double last_ = 0;
  bool log_ = false;
};

std::string Chart::axes() const {
  std::string s;
  const auto line = [&](double x1, double y1, double x2, double y2) {
    s += str_cat("<line class=\"grid\" x1=\"", number(x1, 1), "\" y1=\"", number(y1, 1), "\" x2=\"", number(x2, 1),
                 "\" y2=\"", number(y2, 1), "\"/>\n");
  };
  const auto text = [&](double tx, double ty, const char* anchor, const std::string& what) {
    s += str_cat("<text x=\"", number(tx, 1), "\" y=\"", number(ty, 1), "\" text-anchor=\"", anchor, "\">", what,
                 "</text>\n");
  };
  for (const double v : ticks_) {
    line(kLeft, y(v), kWidth - kRight, y(v));
    text(kLeft - 8, y(v) + 4, "end", number(v));
  }
  const double each = std::max(1.0, round_step(last_, 8));
  for (double v = 0; v <= last_ * 1.0001; v += each) {
    line(x(v), kHeight - kBottom, x(v), kHeight - kBottom + 5);
    text(x(v), kHeight - kBottom + 20, "middle", number(v, 0));
  }
  text((kLeft + kWidth - kRight) / 2, kHeight - 6, "middle", "step");
  return s;
}

std::string polyline(const Chart& chart, const Curve& c, const char* kind) {
  std::string s = str_cat("<polyline class=\"", kind, "\" points=\"");
  for (const Point& p : c) s += chart.at(p) + " ";
  return s + "\"/>\n";
}

// Returns the mean of the nearest tenth or so of a noisy curve, weighted towards the middle.
Curve smooth(const Curve& c) {
  const auto n = static_cast<std::ptrdiff_t>(c.size()), reach = std::max<std::ptrdiff_t>(1, n / 40);
  Curve out;
  for (std::ptrdiff_t i = 0; i < n; ++i) {
    double sum = 0, weight = 0;
    for (std::ptrdiff_t k = std::max<std::ptrdiff_t>(0, i - reach); k <= std::min(n - 1, i + reach); ++k) {
      const double w = static_cast<double>(reach + 1 - std::abs(k - i));
      sum += w * c[static_cast<std::size_t>(k)].y, weight += w;
    }
    out.push_back({c[static_cast<std::size_t>(i)].x, sum / weight});
  }
  return out;
}

constexpr const char* kStyle = R"(
body { font: 15px/1.5 system-ui, sans-serif; max-width: 940px; margin: 32px auto; padding: 0 16px; }
body { color: #1d2733; background: #fff; }
h1 { font-size: 22px; margin: 0 0 4px; }
svg { width: 100%; height: auto; }
text { font-size: 12px; fill: #667; }
.grid { stroke: #e3e7ec; }
.raw { fill: none; stroke: #9db8dd; stroke-width: 1; }
.line { fill: none; stroke: #2563c4; stroke-width: 2; }
.held { fill: none; stroke: #d9622b; stroke-width: 2; }
.dot { fill: #d9622b; }
.best { fill: #fff; stroke: #d9622b; stroke-width: 2.5; }
table { border-collapse: collapse; margin-top: 16px; }
td { padding: 2px 20px 2px 0; vertical-align: top; }
td:first-child { color: #667; }
.key { display: inline-block; width: 22px; height: 3px; vertical-align: middle; margin: 0 6px 0 18px; }
@media (prefers-color-scheme: dark) {
  body { background: #14181d; color: #dde4ec; }
  .grid { stroke: #2b323b; }
  .raw { stroke: #3d5579; }
  .best { fill: #14181d; }
  text { fill: #98a4b3; }
  td:first-child { color: #98a4b3; }
}
)";

std::string table(const std::string& facts) {
  std::string s = "<table>\n";
  for (std::size_t at = 0; at < facts.size();) {
    const std::size_t end = std::min(facts.find('\n', at), facts.size());
    const std::string line = facts.substr(at, end - at);
    const std::size_t gap = std::min(line.find("  "), line.size());
    s += str_cat("<tr><td>", escaped(line.substr(0, gap)), "</td><td>",
                 escaped(line.substr(std::min(line.find_first_not_of(' ', gap), line.size()))), "</td></tr>\n");
    at = end + 1;
  }
  return s + "</table>\n";
}

}  // namespace

std::string loss_page(const std::string& title, const std::string& facts, const std::string& measure,
                      const std::vector<LogLine>& lines) {
  Curve losses, held;
  const LogLine* best = nullptr;
  for (const LogLine& l : lines) {
    const auto x = static_cast<double>(l.step);
    if (l.loss && std::isfinite(*l.loss)) losses.push_back({x, *l.loss});
    if (l.held_out_loss && std::isfinite(*l.held_out_loss)) held.push_back({x, *l.held_out_loss});
    if (l.best) best = &l;
  }
  const auto measured = [&](const LogLine& l) {
    return str_cat(number(*l.held_out_loss), l.measure ? str_cat(", ", measure, " ", number(*l.measure)) : "");
  };
  const Chart chart({&losses, &held});
  std::string s = str_cat("<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n",
                          "<head><meta charset=\"utf-8\"/><title>", escaped(title), "</title>\n<style>", kStyle,
                          "</style></head>\n<body>\n<h1>", escaped(title), "</h1>\n");
  s += "<p>loss<span class=\"key\" style=\"background:#2563c4\"></span>training"
       "<span class=\"key\" style=\"background:#d9622b\"></span>held out";
  if (best) s += str_cat("; best ", measured(*best), " at step ", best->step);
  s += str_cat("</p>\n<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", Chart::kWidth, " ", Chart::kHeight,
               "\">\n", chart.axes(), polyline(chart, losses, "raw"), polyline(chart, smooth(losses), "line"),
               polyline(chart, held, "held"));
  for (const LogLine& l : lines)
    if (l.held_out_loss && std::isfinite(*l.held_out_loss)) {
      const Point p{static_cast<double>(l.step), *l.held_out_loss};
      s += str_cat("<circle class=\"", &l == best ? "best" : "dot", "\" cx=\"", number(chart.x(p.x), 1), "\" cy=\"",
                   number(chart.y(p.y), 1), "\" r=\"", &l == best ? 6 : 3, "\"><title>step ", l.step, ": ", measured(l),
                   "</title></circle>\n");
    }
  return s + "</svg>\n" + table(facts) + "</body>\n</html>\n";
}

}  // namespace lc::tool
