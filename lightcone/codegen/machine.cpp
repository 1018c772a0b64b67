#include "lightcone/codegen/machine.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "lightcone/base/error.h"

namespace lc {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 40;

// Calls see(name, value, least, most) for every integer of a profile.
template <class M, class F>
void each_number(M& m, const F& see) {
  see("l1", m.l1, 1 << 10, 1 << 24);
  see("l2", m.l2, 1 << 12, 1 << 30);
  see("l3", m.l3, 0, kMost);
  see("vector", m.vector, 16, 64);
  see("stream", m.stream, 0, kMost);
  see("fetch", m.fetch, 0, 1 << 20);
  see("fetch_rows", m.fetch_rows, 0, 1 << 20);
  see("fetch_level", m.fetch_level, 1, 2);
  see("streams", m.streams, 1, 4);
}
template <class M, class F>
void each_rate(M& m, const F& see) {
  see("read_bandwidth", m.read_bandwidth);
  see("copy_bandwidth", m.copy_bandwidth);
  see("fma_rate", m.fma_rate);
}

[[noreturn]] void refuse(std::string_view name, std::string_view value, std::string_view why) {
  throw Error("machine", str_cat("the profile's '", name.substr(0, 40), "' is '", value.substr(0, 40), "': ", why));
}

template <class T>
T number(std::string_view name, std::string_view text) {
  T v{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (problem != std::errc() || end != text.data() + text.size()) refuse(name, text, "a number is wanted");
  return v;
}

void put(Machine& m, std::string_view name, std::string_view value) {
  bool known = name == "processor" || name == "pipeline";
  if (name == "processor") m.processor = value;
  if (name == "pipeline") {
    if (value != "true" && value != "false") refuse(name, value, "true or false is wanted");
    m.pipeline = value == "true";
  }
  each_number(m, [&](std::string_view n, std::int64_t& v, std::int64_t least, std::int64_t most) {
    if (n != name) return;
    known = true, v = number<std::int64_t>(name, value);
    if (v < least || v > most) refuse(name, value, str_cat("it is to be between ", least, " and ", most));
  });
  each_rate(m, [&](std::string_view n, double& v) {
    if (n != name) return;
    known = true, v = number<double>(name, value);
    if (!(v >= 0 && v < 1e18)) refuse(name, value, "it is to be a rate a second");
  });
  if (name == "vector" && m.vector != 16 && m.vector != 32 && m.vector != 64) refuse(name, value, "16, 32 or 64");
  if (!known) refuse(name, value, "a profile has no such line");
}

}  // namespace

std::string str(const Machine& m) {
  std::string s = str_cat("processor ", m.processor, "\n");
  each_number(m,
              [&](std::string_view n, std::int64_t v, std::int64_t, std::int64_t) { s += str_cat(n, " ", v, "\n"); });
  s += str_cat("pipeline ", m.pipeline ? "true" : "false", "\n");
  each_rate(m, [&](std::string_view n, double v) {
    if (v > 0) s += str_cat(n, " ", v, "\n");
  });
  return s;
}

Machine parse_machine(std::string_view text) {
  if (text.size() > 4096) throw Error("machine", "a profile of a machine has some ten lines; this is something else");
  Machine m;
  std::set<std::string_view> seen;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty() || line[0] == '#') continue;
    const std::size_t space = line.find(' ');
    const std::string_view name = line.substr(0, space);
    if (space == std::string_view::npos) refuse(name, "", "a line is a name, a space and a value");
    if (!seen.insert(name).second) refuse(name, line.substr(space + 1), "it stands there twice");
    put(m, name, line.substr(space + 1));
  }
  return m;
}

}  // namespace lc
