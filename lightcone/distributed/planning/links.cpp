#include "lightcone/distributed/planning/links.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"

namespace lc {
namespace {

struct Unit {
  std::string_view name;
  double value;
};
constexpr std::array kSeconds{Unit{"s", 1}, Unit{"ms", 1e-3}, Unit{"us", 1e-6}, Unit{"ns", 1e-9}};
constexpr std::array kPrefixes{Unit{"", 1},    Unit{"k", 1e3},  Unit{"M", 1e6},
                               Unit{"G", 1e9}, Unit{"T", 1e12}, Unit{"P", 1e15}};

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

// The number at the beginning of a text, and what stands behind it.
std::optional<std::pair<double, std::string_view>> number_and_unit(std::string_view text) {
  text = trimmed(text);
  const std::size_t end = std::min(text.find_first_not_of("0123456789.eE+-"), text.size());
  // "5e-6s": the e belongs to the number, and in "5E" it is no unit of ours.
  const auto value = real_of<double>(text.substr(0, end));
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return std::pair(*value, trimmed(text.substr(end)));
}

std::optional<double> with_prefix(std::string_view text, std::string_view unit) {
  const auto n = number_and_unit(text);
  if (!n) return std::nullopt;
  for (const Unit& p : kPrefixes)
    if (n->second == std::string(p.name) + std::string(unit)) return n->first * p.value;
  return std::nullopt;
}

[[noreturn]] void wrong_link(std::string_view text) {
  throw Error("links", str_cat("'", text, "' is no link: it is written as latency,bandwidth as in 5us,46GB/s, or with ",
                               "the time per message behind them, 5us,46GB/s,1us"));
}

double seconds_of(std::string_view text, std::string_view whole) {
  const auto n = number_and_unit(text);
  if (n && n->first >= 0)
    for (const Unit& u : kSeconds)
      if (n->second == u.name) return n->first * u.value;
  wrong_link(whole);
}

double bandwidth_of(std::string_view text, std::string_view whole) {
  const auto bytes = with_prefix(text, "B/s"), bits = with_prefix(text, "bit/s");
  const double found = bytes ? *bytes : bits ? *bits / 8 : 0;
  if (!(found > 0)) wrong_link(whole);
  return found;
}

std::string short_seconds(double s) {
  for (const Unit& u : kSeconds)
    if (s >= u.value || u.name == "ns") return formatted("%.4g %s", s / u.value, std::string(u.name).c_str());
  return "";
}

}  // namespace

double Link::seconds(double rounds, double messages, double bytes) const {
  return rounds * latency + std::max(0.0, messages - rounds) * seconds_per_message + bytes * seconds_per_byte;
}

Link parse_link(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::string_view rest = text;;) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    parts.push_back(rest.substr(0, comma));
    if (comma == rest.size()) break;
    rest.remove_prefix(comma + 1);
  }
  if (parts.size() != 2 && parts.size() != 3) wrong_link(text);
  Link l;
  l.latency = seconds_of(parts[0], text);
  l.seconds_per_byte = 1 / bandwidth_of(parts[1], text);
  l.seconds_per_message = parts.size() == 3 ? seconds_of(parts[2], text) : l.latency;
  return l;
}

std::string str(const Link& l) {
  return str_cat(short_seconds(l.latency), ", ",
                 l.seconds_per_byte > 0 ? formatted("%.4g GB/s", 1e-9 / l.seconds_per_byte) : "any bandwidth", ", ",
                 short_seconds(l.seconds_per_message), " a message");
}

double parse_quantity(std::string_view text, std::string_view unit) {
  const auto plain = number_and_unit(text);
  const auto found = plain && plain->second.empty() ? std::optional(plain->first) : with_prefix(text, unit);
  if (!found || !(*found > 0))
    throw Error("plan", str_cat("'", text, "' is no positive number of ", unit, ", as in 40G", unit));
  return *found;
}

}  // namespace lc
