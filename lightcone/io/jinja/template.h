// A chat template: the part of Jinja2 that checkpoints ship as `chat_template`, as transformers runs it
// (trim_blocks, lstrip_blocks, loop controls, {% generation %}, tojson, raise_exception, strftime_now).
//
// There are: text, comments, raw, print, if, for (else, filters, unpacking, loop.*), set (blocks, namespaces), macro,
// with, filter; Python's operators, slices and methods of texts and dicts; filters and tests that do not need another
// file. There are not: include, import, extends, block, call, recursive loops, formatting by %. What is not there is an
// Error that says so.
#pragma once

#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lightcone/io/jinja/parser.h"
#include "lightcone/io/jinja/value.h"

namespace lc::jinja {

using Variables = std::vector<std::pair<std::string, Value>>;

class Template {
 public:
  // `name` begins every sentence about it: "FILE: line 3: ...". Error where the text is no template.
  Template(std::string_view source, std::string name);
  // The text. `make` is called once for the variables, which are then paid for by the same meter. Error where the
  // template fails or takes more than the limits, with its line.
  template <class Make>
  std::string render(const Make& make, std::time_t now, const Limits& limits = {}) const {
    Meter m(limits);
    return run(m, guarded([&] { return make(m); }), now);
  }

 private:
  template <class F>
  auto guarded(const F& f) const {
    try {
      return f();
    } catch (const Fault& wrong) {
      refuse(0, wrong.what);
    }
  }
  [[noreturn]] void refuse(std::uint32_t line, const std::string& what) const;
  std::string run(Meter& m, Variables variables, std::time_t now) const;
  std::string name_;
  Tree tree_;
};

}  // namespace lc::jinja
