#include "lightcone/verify/verify.h"

#include <algorithm>
#include <cmath>

#include "lightcone/base/numbers.h"
#include "lightcone/core/tensor.h"
#include "lightcone/passes/index_checks.h"
#include "lightcone/runtime/program.h"
#include "lightcone/verify/random_graph.h"

namespace lc {
namespace {

using Inputs = std::map<std::string, Value>;

std::string number(double v) { return formatted("%.9g", v); }

// The typical size of the values: the root mean square of the finite ones without the largest tenth, so that a few huge
// values do not hide the others.
double size_of_values(const Value& v) {
  std::vector<double> squares;
  for (const double x : v.f)
    if (std::isfinite(x)) squares.push_back(x * x);
  const std::size_t n = (squares.size() * 9 + 9) / 10;
  if (n == 0) return 0;
  std::nth_element(squares.begin(), squares.begin() + static_cast<std::ptrdiff_t>(n - 1), squares.end());
  double sum = 0;
  for (std::size_t k = 0; k < n; ++k) sum += squares[k];
  return std::sqrt(sum / static_cast<double>(n));
}
// True if the tolerance can tell a wrong value from a right one: it must be at most a hundredth of the larger of the
// value and `scale`; an eighth for 16-bit types and for products of rounded factors, a half for 8-bit types.
bool decides(const Value& want, std::size_t k, double scale, double slack, double products) {
  const double w = want.at(k);
  if (!is_float(want.dtype) || !std::isfinite(w)) return true;
  const double part = is_f8(want.dtype) ? 1.0 / 2 : is_half(want.dtype) || products > 0x1p-12 ? 1.0 / 8 : 1.0 / 100;
  return slack * want.error_at(k) <= part * std::max(std::fabs(w), scale) + 1e-30;
}

// Compares one value with its reference.
std::optional<Difference> compare_values(const std::string& name, const Value& want, const Value& got, double slack,
                                         VerifyReport::Checked* stats, double products) {
  if (want.shape != got.shape || want.dtype != got.dtype || want.size() != got.size())
    return Difference{name,
                      0,
                      0,
                      0,
                      0,
                      str_cat("has ", got.size(), " elements of ", lc::name(got.dtype), ", not ", want.size(), " of ",
                              lc::name(want.dtype))};
  const double scale = size_of_values(want);
  for (std::size_t k = 0; k < want.size(); ++k) {
    const double w = want.at(k), g = got.at(k), bound = want.error_at(k);
    const bool known = !std::isinf(bound) && !std::isnan(bound);
    if (stats) ++(known && decides(want, k, scale, slack, products) ? stats->elements : stats->undecided);
    if (!known) continue;
    if (std::isnan(w) && std::isnan(g)) continue;
    if (!is_float(want.dtype)) {
      if (want.i[k] != got.i[k]) return Difference{name, k, w, g, 0, ""};
      continue;
    }
    if (w == g) continue;
    const double allowed = slack * bound + 1e-300;
    const double largest = info(want.dtype).largest;
    // the tolerance extends beyond the largest finite number
    if ((g == kInf && w + allowed > largest) || (g == -kInf && w - allowed < -largest)) continue;
    const double error = std::abs(w - g);
    if (stats && allowed > 0 && error / allowed > stats->worst) stats->worst = error / allowed;
    if (!(error <= allowed)) return Difference{name, k, w, g, allowed, ""};
  }
  return std::nullopt;
}

Difference failed(const std::exception& e) {
  Difference d;
  d.problem = e.what();
  return d;
}

// Extracts a graph that computes `root` alone, with the nodes in `cut` replaced by inputs.
Graph piece(const Graph& g, NodeId root, const std::vector<NodeId>& cut) {
  Graph out;
  std::vector<NodeId> to(g.size(), 0);
  std::vector<bool> needed(g.size(), false);
  needed[root] = true;
  for (NodeId id = root + 1; id-- > 0;) {
    if (!needed[id] || std::find(cut.begin(), cut.end(), id) != cut.end()) continue;
    for (const Edge& e : g[id].in) needed[e.node] = true;
  }
  for (NodeId id = 0; id <= root; ++id) {
    if (!needed[id]) continue;
    if (std::find(cut.begin(), cut.end(), id) != cut.end()) {
      to[id] = out.input(str_cat("cut", id), g[id].shape, g[id].dtype).edge().node;
      continue;
    }
    std::vector<Edge> in;
    for (const Edge& e : g[id].in) in.push_back({to[e.node], e.view});
    to[id] = out.adopt(g[id], std::move(in));
  }
  out.output("result", Tensor(out, Edge{to[root], View(g[root].shape)}));
  return out;
}

class Verifier {
 public:
  Verifier(const Graph& g, const Compiler& c, const VerifyOptions& o) : g_(g), c_(c), o_(o) {}
  VerifyReport run();

  struct Trial {
    Bindings env;
    Inputs inputs;
    Results want;
    bool wild = false, drawn = false;  // drawn: another seed gives another trial
  };
  Trial trial(const Graph& g, std::uint64_t seed) const;

 private:
  // Returns the difference that the passes cause on this graph, if any.
  std::optional<Difference> check(const Graph& g, std::span<const Pass> passes, const Trial& t) const;
  std::optional<Difference> check(const Graph& done, const Trial& t, VerifyReport::Checked* stats) const;
  void accuse(const Pass& p, std::size_t k, const Difference& d, const Trial& t);
  void shrink(std::span<const Pass> passes);

  const Graph& g_;
  const Compiler& c_;
  VerifyOptions o_;
  VerifyReport report_;
};

Verifier::Trial Verifier::trial(const Graph& g, std::uint64_t seed) const {
  Trial t;
  t.env = random_bindings(g, seed);
  t.drawn = std::any_of(t.env.begin(), t.env.end(), [&](const auto& v) { return !o_.sizes.contains(v.first); });
  for (const auto& [name, v] : o_.sizes) t.env[name] = v;
  t.wild = o_.wild && seed % 2 == 0;
  t.inputs = fitting_inputs(g, t.env, seed, t.wild);
  for (NodeId id = 0; id < g.size(); ++id) {
    const Node& n = g[id];
    if (n.op != Op::Input) continue;
    const auto it = o_.values.find(n.name);
    auto given = it != o_.values.end() ? std::optional(it->second) : std::nullopt;
    if (!given && o_.load) given = o_.load(n, numbers(n.shape, t.env));
    if (given) t.inputs[n.name] = *std::move(given);
    else t.drawn = true;
  }
  t.want = interpret(g, t.inputs, t.env, Rounding::Wide, true, o_.products);
  return t;
}

std::optional<Difference> Verifier::check(const Graph& g, std::span<const Pass> passes, const Trial& t) const {
  try {
    Compiler some;
    for (const Pass& p : passes) some = some | Compiler(p);
    return check(transform(g, some).graph, t, nullptr);
  } catch (const Error& e) {
    return failed(e);
  }
}

// Checks a compiled graph. Without kernels, the reference runs it like a naive device, rounding each result.
std::optional<Difference> Verifier::check(const Graph& done, const Trial& t, VerifyReport::Checked* stats) const {
  try {
    bool kernels = false;
    for (NodeId id = 0; id < done.size(); ++id) kernels = kernels || done[id].op == Op::Kernel;
    VerifyReport::Checked seen;
    const auto d = compare(
        t.want, kernels ? run_values(done, t.inputs, t.env) : interpret(done, t.inputs, t.env, Rounding::Storage),
        o_.slack, &seen, o_.products);
    if (stats) {
      (t.wild ? stats->wild_elements : stats->elements) += seen.elements;
      (t.wild ? stats->wild_undecided : stats->undecided) += seen.undecided;
      stats->results += seen.results, stats->worst = std::max(stats->worst, seen.worst);
    }
    return d;
  } catch (const Error& e) {
    return failed(e);
  }
}

// Records the fault: finds the guilty rule of the pass and shrinks the graph.
void Verifier::accuse(const Pass& p, std::size_t k, const Difference& d, const Trial& t) {
  Fault f{p.name, "", d.output, d.element, d.want, d.got, d.allowed, d.problem, ""};
  std::vector<Pass> guilty(c_.passes().begin(), c_.passes().begin() + static_cast<std::ptrdiff_t>(k) + 1);
  for (const Pass& part : p.parts) {
    std::vector<Pass> passes = guilty;
    passes.back() = part;
    if (!check(g_, passes, t)) continue;
    f.rule = part.name;
    guilty = passes;
    break;
  }
  report_.fault = f;
  if (o_.shrink) shrink(guilty);
}

void Verifier::shrink(std::span<const Pass> passes) {
  // the first node that is wrong when it is the only result
  const auto wrong = [&](const Graph& g) -> std::optional<Difference> {
    for (std::uint64_t s = o_.seed; s < o_.seed + 3; ++s)
      if (const auto d = check(g, passes, trial(g, s))) return d;
    return std::nullopt;
  };
  const auto alive = g_.live();
  for (NodeId id = 0; id < g_.size(); ++id) {
    if (!alive[id] || info(g_[id].op).kind == Kind::Leaf) continue;
    Graph smallest = piece(g_, id, {});
    auto d = wrong(smallest);
    if (!d) continue;
    std::vector<NodeId> cut;
    for (NodeId k = id; k-- > 0;) {  // near nodes first: each cut drops everything before it
      if (info(g_[k].op).kind == Kind::Leaf) continue;
      cut.push_back(k);
      Graph less = piece(g_, id, cut);
      if (auto still = wrong(less)) {
        smallest = std::move(less);
        d = still;
      } else {
        cut.pop_back();
      }
    }
    report_.fault->graph = smallest.str();
    report_.fault->output = d->output, report_.fault->element = d->element;
    report_.fault->want = d->want, report_.fault->got = d->got, report_.fault->allowed = d->allowed,
    report_.fault->problem = d->problem;
    return;
  }
  report_.fault->graph = g_.str();  // only the whole graph reproduces it
}

VerifyReport Verifier::run() {
  const auto passes = c_.passes();
  std::vector<Graph> after;  // one per pass
  Trial t = trial(g_, o_.seed);
  for (const Pass& p : passes) {
    report_.passes.emplace_back().pass = p.name;
    try {
      Compiled done = transform(after.empty() ? g_ : after.back(), Compiler(p));
      if (!done.log.empty()) report_.passes.back().fired = done.log.back().fired;
      after.push_back(std::move(done.graph));
    } catch (const Error& e) {
      accuse(p, after.size(), failed(e), t);
      return report_;
    }
  }
  for (int i = 0; i < o_.trials; ++i) {
    if (i > 0 && !t.drawn) break;  // the user's own values: one trial suffices
    if (i > 0) t = trial(g_, o_.seed + static_cast<std::uint64_t>(i));
    for (std::size_t k = 0; k < passes.size(); ++k) {
      const auto d = check(after[k], t, &report_.passes[k]);
      if (!d) continue;
      accuse(passes[k], k, *d, t);
      return report_;
    }
  }
  return report_;
}

}  // namespace

std::string Difference::str() const {
  if (!problem.empty()) return output.empty() ? problem : str_cat("'", output, "' ", problem);
  return str_cat("'", output, "'[", element, "] is ", number(got), ", the reference says ", number(want), " within ",
                 number(allowed));
}

std::optional<Difference> compare(const Results& want, const Results& got, double slack, VerifyReport::Checked* stats,
                                  double products) {
  for (const auto side : {&Results::outputs, &Results::states})
    for (const auto& [name, v] : want.*side) {
      const auto it = (got.*side).find(name);
      if (it == (got.*side).end()) return Difference{name, 0, 0, 0, 0, "is missing"};
      if (const auto d = compare_values(name, v, it->second, slack, stats, products)) return d;
      if (stats) ++stats->results;
    }
  return std::nullopt;
}

Results results(const Program& p, const Context& c) {
  Results r;
  for (const Root& root : p.graph().roots()) r.outputs[root.name] = c.value(root.name);
  for (const Assignment& a : p.graph().assignments())
    r.states[p.graph()[a.state].name] = c.value(p.graph()[a.state].name);
  return r;
}

Results run_values(const Graph& g, const Inputs& inputs, const Bindings& env) {
  Program p = compile(g);
  std::map<std::string, std::vector<std::byte>> bytes;
  for (const std::string& name : p.inputs()) {
    const auto it = inputs.find(name);
    if (it == inputs.end()) throw Error("verify", str_cat("the input '", name, "' is missing"));
    std::vector<std::byte>& b = bytes[name];
    b.resize(it->second.size() * size_of(it->second.dtype));
    write_value(it->second, b.data());
    if (p.is_parameter(name)) p.load(name, b.data(), b.size());
  }
  Context c(p);
  for (const auto& [name, v] : env)
    if (p.has_symbol(name)) c.bind(name, v);  // a piece of the graph may lack some symbols
  for (const auto& [name, b] : bytes)
    if (!p.is_parameter(name)) c.set_bytes(name, b.data(), b.size());
  return results(p, c.run());
}

namespace {
// Returns a fault for an out-of-range index if all inputs it depends on were given by the user.
std::optional<Fault> index_fault(const Graph& g, const VerifyOptions& o) {
  const IndexChecks made = index_checks(g, false);
  const Graph needed = copy_graph(made.graph, [](Graph& dst, NodeId, Node n) {  // drops inputs that no index depends on
    const NodeId id = dst.add(std::move(n));
    return Edge{id, View(dst[id].shape)};
  });
  for (const IndexCheck& c : made.checks) {
    const Compiler none;
    const Verifier::Trial t = Verifier(needed, none, o).trial(needed, o.seed);
    if (t.drawn) return std::nullopt;
    const auto value = [&](const std::string& name) { return t.want.outputs.at(name).i[0]; };
    if (const auto problem = c.problem(value(c.low), value(c.high), c.below.eval(t.env))) {
      Fault f;
      f.pass = "checks", f.output = c.where.op, f.problem = *problem + " (at " + c.where.str() + ")";
      return f;
    }
  }
  return std::nullopt;
}
}  // namespace

// Compares passes up to one that redefines the graph with the original graph, and later ones with its result.
VerifyReport verify(const Graph& g, const Compiler& c, const VerifyOptions& o) {
  VerifyReport report;
  Graph judged = g.clone();
  Compiler some;
  const auto check = [&] {
    VerifyReport r = Verifier(judged, some, o).run();
    report.passes.insert(report.passes.end(), r.passes.begin(), r.passes.end());
    report.fault = std::move(r.fault);
    return !report.fault;
  };
  if (!o.values.empty() || o.load)
    if ((report.fault = index_fault(g, o))) return report;
  for (const Pass& p : c.passes()) {
    if (p.redefines) {
      if (!some.passes().empty() && !check()) return report;
      Compiled made = transform(judged, some | Compiler(p));
      judged = std::move(made.graph), some = Compiler();
      report.passes.push_back({.pass = p.name, .fired = made.log.back().fired});
    } else {
      some = some | Compiler(p);
    }
  }
  check();
  return report;
}

bool VerifyReport::compared() const {
  return std::any_of(passes.begin(), passes.end(), [](const Checked& p) {
    return p.elements + p.wild_elements > 0 || (p.results > 0 && p.undecided + p.wild_undecided == 0);
  });
}

double VerifyReport::Checked::decided() const {
  const auto all = static_cast<double>(elements + undecided);
  return all > 0 ? static_cast<double>(elements) / all : 1;
}
double VerifyReport::decided() const {
  double least = 1;
  for (const Checked& p : passes) least = std::min(least, p.decided());
  return least;
}

std::string VerifyReport::str() const {
  std::string s;
  if (!fault && !compared()) s += "NOTHING was compared: no pass, no result, or every value undecided\n";
  for (const Checked& p : passes)
    if (p.undecided > p.elements)
      s += str_cat("MOST of it was not compared: the error bound decides ", p.elements, " of ",
                   p.elements + p.undecided, " values after '", p.pass, "'\n");
  for (const Checked& p : passes) {
    // the counts of a faulty pass end at its first wrong value
    s += str_cat(p.pass, ": ", p.elements, " values compared, ", p.undecided, " of ", p.elements + p.undecided,
                 " undecided, worst error ", number(p.worst * 100), " % of what is allowed");
    if (const std::size_t wild = p.wild_elements + p.wild_undecided; wild > 0)
      s += str_cat("; with NaN, infinities and zeros among the inputs ", p.wild_elements, " compared, ",
                   p.wild_undecided, " of ", wild, " undecided");
    for (const auto& [rule, n] : p.fired) s += str_cat("\n  ", rule, " x", n);
    s += "\n";
  }
  if (!fault) return s;
  const Difference d{fault->output, fault->element, fault->want, fault->got, fault->allowed, fault->problem};
  return s + str_cat("WRONG: pass '", fault->pass, "'", fault->rule.empty() ? "" : ", rule '" + fault->rule + "'", ": ",
                     d.str(), "\non\n", fault->graph);
}

}  // namespace lc
