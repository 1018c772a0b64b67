// A chat template: the part of Jinja2 that checkpoints use in `chat_template`, with the settings of transformers
// (trim_blocks, lstrip_blocks, loop controls, {% generation %}, tojson, raise_exception, strftime_now).
//
// Supported are text, comments, raw, print, if, for (else, filters, unpacking, loop.*), set (blocks, namespaces),
// macro, with, filter; Python's operators, slices and methods of texts and dicts; filters and tests that need no other
// file. Not supported are include, import, extends, block, call, recursive loops and formatting by %. Using one of
// these is an Error that names it.
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

// A parsed template, which can be rendered any number of times.
class Template {
 public:
  // `name` begins the message of every Error: "FILE: line 3: ...". Throws Error if the text is not a template.
  Template(std::string_view source, std::string name);
  // Renders the template. `make` is called once to make the variables, whose cost counts against the same limits. `now`
  // is the time for strftime_now(). Throws Error, with the line, if the template fails or exceeds the limits.
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
