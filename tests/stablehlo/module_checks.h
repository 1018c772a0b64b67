// Runs modules that check themselves (StableHLO's own test programs) and reports the outcome of each.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "lightcone/lightcone.h"
#include "lightcone/stablehlo/read.h"
#include "lightcone/verify/verify.h"

namespace lc::test {

// Returns how many numbers of the type lie between two elements; two NaNs are equal.
inline double units_apart(const lc::Value& a, const lc::Value& b, std::size_t k) {
  if (!is_float(a.dtype)) return std::abs(static_cast<double>(a.i[k]) - static_cast<double>(b.i[k]));
  const double x = a.f[k], y = b.f[k];
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) == std::isnan(y) ? 0 : INFINITY;
  const auto place = [&](double v) {
    std::uint64_t raw = 0;
    store_f64(&raw, a.dtype, 0, v);
    const std::uint64_t sign = std::uint64_t{1} << (8 * size_of(a.dtype) - 1);
    const auto size = static_cast<std::int64_t>(raw & (sign - 1));
    return raw & sign ? -size : size;
  };
  const std::int64_t p = place(x), q = place(y);
  return static_cast<double>(p > q ? static_cast<std::uint64_t>(p) - static_cast<std::uint64_t>(q)
                                   : static_cast<std::uint64_t>(q) - static_cast<std::uint64_t>(p));
}

// Returns "" or the error. `exact`, if given, is the f64 reference's value with error bounds: a sum in another order
// than the module's author used may differ by more units than the check allows, and is accepted if both values lie
// within that bound.
inline std::string failed(const StableHloProgram::Check& c, const lc::Value& actual, const lc::Value& expected,
                          const lc::Value* exact = nullptr) {
  using Kind = StableHloProgram::Check::Kind;
  for (std::size_t k = 0; k < actual.size(); ++k) {
    const double x = actual.at(k), y = expected.at(k);
    const bool nan = std::isnan(x) && std::isnan(y);
    const bool right = c.kind == Kind::Ulps ? units_apart(actual, expected, k) <= c.limit
                       : c.kind == Kind::Tolerance
                           ? nan || x == y || std::abs(x - y) <= c.limit
                           : nan || (is_float(actual.dtype) ? x == y : actual.i[k] == expected.i[k]);
    // an infinite bound means undecided, and accepts nothing
    const auto in_bound = [&](double v) {
      return std::isfinite(exact->error_at(k)) && std::abs(v - exact->at(k)) <= exact->error_at(k);
    };
    if (right || (exact && in_bound(x) && in_bound(y))) continue;
    char text[200];
    std::snprintf(text, sizeof text, "line %d: element %zu of %zu is %.9g, not %.9g (%.0f units)", c.line, k,
                  actual.size(), x, y, units_apart(actual, expected, k));
    return text;
  }
  return {};
}

struct Outcome {
  enum class Kind : std::uint8_t { Pass, Unsupported, Fail, Nothing } kind = Kind::Nothing;
  std::string why;
  int checks = 0;
  int by_bounds = 0;  // how many of them are right only by the reference's bounds
};

// ---- extents that a module leaves open ------------------------------------------------------------

inline bool leaves_open(const stablehlo::Module& m, const stablehlo::ValueId v) {
  const auto& shape = m.values[static_cast<std::size_t>(v)].type.shape;
  return std::ranges::find(shape, stablehlo::kDynamic) != shape.end();
}
inline bool leaves_open(const stablehlo::Module& m, const stablehlo::Function& f) {
  return std::ranges::any_of(f.body.arguments, [&](stablehlo::ValueId v) { return leaves_open(m, v); });
}

// Binds every '?', and the leading integer arguments, to n. (JAX passes sizes as leading arguments.)
inline StableHloOptions bound_to(std::int64_t n, const stablehlo::Module& m, const stablehlo::Function& f) {
  StableHloOptions o{.function = f.name};
  bool in_front = true;
  for (int k = 0; const stablehlo::ValueId v : f.body.arguments) {
    const stablehlo::Type& t = m.values[static_cast<std::size_t>(v)].type;
    in_front = in_front && t == stablehlo::Type{.element = "i64"};
    if (in_front) o.sizes[k] = n;
    if (leaves_open(m, v)) {
      o.shapes[k] = t.shape;
      std::ranges::replace(o.shapes[k], stablehlo::kDynamic, n);
    }
    ++k;
  }
  return o;
}
// Binds the module to the first of a few numbers that its arithmetic on sizes accepts.
inline StableHloProgram read_open(const stablehlo::Module& m, const stablehlo::Function& f,
                                  StableHloOptions* used = nullptr) {
  for (const std::int64_t n : {3, 4, 2, 8}) try {
      const StableHloOptions o = bound_to(n, m, f);
      StableHloProgram s = read_stablehlo(m, o);
      if (used) *used = o;
      return s;
    } catch (const Error&) {
    }
  return read_stablehlo(m, bound_to(3, m, f));
}

// These modules state no results, so they are compared with the f64 reference.
inline Outcome run_open(const stablehlo::Module& m, const stablehlo::Function& f, const Compiler& compiler) {
  StableHloProgram s;
  try {
    s = read_open(m, f);
  } catch (const Error& e) {
    return {Outcome::Kind::Unsupported, e.problem()};
  }
  try {
    VerifyOptions o{.trials = 1, .wild = false};
    for (const auto& c : s.constants) o.values[c.name] = read_value(c.bytes->data(), c.dtype, c.shape);
    const VerifyReport r = verify(s.graph, compiler, o);
    if (r.fault) return {Outcome::Kind::Fail, r.str()};
    if (!r.compared()) return {Outcome::Kind::Nothing, "the reference decides no value"};
    return {Outcome::Kind::Pass, {}, static_cast<int>(s.outputs.size())};
  } catch (const Error& e) {
    return {Outcome::Kind::Fail, e.what()};
  }
}

// ---- modules and files ----------------------------------------------------------------------------

inline Outcome run_module(const stablehlo::Module& m, const std::string& function, const Compiler& compiler) {
  StableHloProgram s;
  try {
    s = read_stablehlo(m, {.function = function});
  } catch (const Error& e) {
    return {Outcome::Kind::Unsupported, e.problem()};
  }
  if (s.checks.empty()) return {Outcome::Kind::Nothing, "checks nothing"};
  try {
    Program p = compile(s.graph, compiler);
    s.load_constants(p);
    Context c(p);
    c.run();
    Outcome o{Outcome::Kind::Pass, {}, static_cast<int>(s.checks.size())};
    for (const auto& check : s.checks) {
      const lc::Value actual = c.value(check.actual), expected = c.value(check.expected);
      o.why = failed(check, actual, expected);
      if (o.why.empty()) continue;
      std::map<std::string, lc::Value> given;
      for (const auto& each : s.constants) given[each.name] = read_value(each.bytes->data(), each.dtype, each.shape);
      const Results exact = interpret(s.graph, given, {}, Rounding::Wide, true);
      if (check.kind != StableHloProgram::Check::Kind::Equal &&
          failed(check, actual, expected, &exact.outputs.at(check.actual)).empty()) {
        ++o.by_bounds;
        o.why.clear();
        continue;
      }
      o.kind = Outcome::Kind::Fail;
      return o;
    }
    return o;
  } catch (const Error& e) {
    return {Outcome::Kind::Fail, e.what()};
  }
}

// A file may hold several modules, separated by "// -----", each with several functions without arguments.
inline Outcome run_file(const std::string& text, const Compiler& compiler) {
  Outcome all;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t to = std::min(text.find("// -----", from), text.size());
    const std::string part = text.substr(from, to - from);
    from = to == text.size() ? to : text.find('\n', to);
    if (part.find("func") == std::string::npos) continue;
    std::vector<Outcome> each;
    try {
      const stablehlo::Module m = stablehlo::parse(part);
      const bool has_main = m.function("main") != nullptr;
      for (const stablehlo::Function& f : m.functions)
        if (has_main ? f.name == "main" : f.is_public && f.body.arguments.empty())
          each.push_back(leaves_open(m, f) ? run_open(m, f, compiler) : run_module(m, f.name, compiler));
    } catch (const Error& e) {
      each.push_back({Outcome::Kind::Unsupported, e.problem()});
    }
    for (Outcome& o : each) {
      all.checks += o.checks, all.by_bounds += o.by_bounds;
      const auto weight = [](Outcome::Kind k) {
        return k == Outcome::Kind::Fail ? 3 : k == Outcome::Kind::Unsupported ? 2 : k == Outcome::Kind::Pass ? 1 : 0;
      };
      if (weight(o.kind) > weight(all.kind)) all.kind = o.kind, all.why = o.why;
    }
  }
  return all;
}

}  // namespace lc::test
