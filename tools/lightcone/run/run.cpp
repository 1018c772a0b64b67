// lightcone run: a model of a file on arrays, pictures, sounds, texts and numbers.
#include <algorithm>
#include <cstdio>

#include "../command.h"
#include "../onnx_options.h"
#include "draw.h"
#include "inputs.h"
#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"
#include "lightcone/io/printable.h"
#include "lightcone/passes/passes.h"
#include "model.h"
#include "outputs.h"

namespace lc::tool {
namespace {

// Throws an Error that lists every input that is missing.
void require_inputs(const ModelFile& m, const Inputs& given) {
  std::string missing;
  for (const Port& p : m.inputs())
    if (!given.arrays.contains(p.name))
      missing += str_cat("\n  ", in_quotes(p.name), ", ", printable(p.type, 200), ": --input ", printable(p.name, 100),
                         "=VALUE");
  if (!missing.empty()) throw Error("run", "inputs are missing:" + missing);
}

struct Times {
  double read = 0, compiled = 0, first = 0;
  std::vector<double> again = {};
};

void say(const RunOptions& o, Times t, const Program& p) {
  std::string line =
      str_cat("read in ", formatted("%.0f", t.read * 1e3), " ms, compiled in ", formatted("%.0f", t.compiled * 1e3),
              " ms, first run ", formatted("%.1f", t.first * 1e3), " ms");
  if (!t.again.empty()) {
    std::ranges::sort(t.again);
    line += str_cat(", then ", formatted("%.2f", t.again[t.again.size() / 2] * 1e3), " ms (median of ", o.repeat, ", ",
                    formatted("%.2f", t.again.front() * 1e3), " to ", formatted("%.2f", t.again.back() * 1e3), ")");
  }
  std::fprintf(stderr, "%s; %s in use\n", line.c_str(), human_bytes(peak_rss_bytes()).c_str());
  print_notes(p);
}

}  // namespace

OnnxOptions onnx_options(const std::vector<std::string>& sizes) {
  OnnxOptions options;
  for (const std::string& word : sizes) {
    const std::size_t at = std::min(word.rfind('='), word.size());
    const auto n = real_of<double>(std::string_view(word).substr(std::min(at + 1, word.size())));
    if (!n || *n < 0 || *n > 1e15 || *n != static_cast<double>(static_cast<std::int64_t>(*n)))
      throw Error("size", str_cat("--size is NAME=NUMBER, not ", in_quotes(word)));
    options.extents[word.substr(0, at)] = static_cast<std::int64_t>(*n);
  }
  return options;
}

int run_model(const RunOptions& o) {
  ModelFile m(o);
  const Inputs given = read_inputs(o, m);
  require_inputs(m, given);
  if (!o.quiet)
    for (const std::string& line : given.said) std::fprintf(stderr, "%s\n", line.c_str());
  if (!o.draw.out.empty() && !given.picture)
    throw Error("run", "--draw draws on the picture that --input gives, and there is none");
  Times t;
  double at = now();
  const auto lap = [&] {
    const double before = at;
    at = now();
    return at - before;
  };
  m.read(given.arrays);
  t.read = lap();
  const auto device = open_device(o.device);
  Program p = compile(m.graph(), compiler_for(device, {.threads = o.threads, .precision = o.precision}));
  m.load_weights(p);
  t.compiled = lap();
  Context c(p);
  for (const std::string& name : m.input_names()) c.set(name, given.arrays.at(name));
  lap();
  c.run();
  const std::vector<NamedOutput> outputs = outputs_of(m, c);
  t.first = lap();
  print_outputs(outputs);
  lap();
  for (int k = 0; k < o.repeat; ++k) {
    c.run();
    if (device) device->synchronise();
    t.again.push_back(lap());
  }
  if (!o.quiet) say(o, std::move(t), p);
  if (!o.output.empty()) write_outputs(outputs, o.output);
  if (wants_meaning(o.draw)) show_meaning(outputs, given, m, o);
  return o.compare.empty() || compare_outputs(outputs, o.compare, o.tolerance) ? 0 : 1;
}

}  // namespace lc::tool
