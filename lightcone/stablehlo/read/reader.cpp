// Reads a function of a module, operation by operation. Problems are collected, so that one Error lists all of them.
#include "lightcone/stablehlo/read/reader.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>
#include <utility>

#include "lightcone/readers/at_end.h"

namespace lc::stablehlo {
namespace {

using readers::AtEnd;

constexpr std::int64_t kMostOperations = 1'000'000;  // operations after inlining every call
constexpr std::int64_t kMostValues = 10'000'000;     // their operands and results
constexpr int kDeepest = 200;                        // nesting of calls and regions, each of which takes stack
constexpr std::size_t kMostProblems = 20;

const Rules& rules() {
  static const Rules all = [] {
    Rules r;
    for (const auto& add : {add_elementwise, add_complex, add_quantized, add_narrow_integers, add_bits, add_shapes,
                            add_slices, add_reductions, add_windows, add_products, add_norms, add_collectives,
                            add_gather_scatter, add_sort, add_control, add_random, add_checks})
      add(r);
    return r;
  }();
  return all;
}

bool is_return(const Operation& op) { return op.name == "func.return" || op.name == "stablehlo.return"; }

bool holds_others(const Operation& op) {
  static const std::set<std::string_view> names = {"func.call",    "stablehlo.composite", "stablehlo.while",
                                                   "stablehlo.if", "stablehlo.case",      "chlo.scan"};
  return names.contains(op.name);
}
// Returns "add" for "stablehlo.add", which must be a literal of a table.
const char* short_name(std::string_view rule) { return rule.data() + rule.find('.') + 1; }

}  // namespace

Rule Reader::rule(std::string_view name) {
  for (const char* dialect : {"stablehlo.", "chlo."})
    if (const auto found = rules().find(str_cat(dialect, name)); found != rules().end()) return found->second;
  throw Error("", str_cat("there is no operation ", name));
}

Reader::Reader(const Module& m, const StableHloOptions& o, Problems* surveyed) : m_(m), o_(o), surveyed_(surveyed) {
  for (const Function& f : m.functions) functions_.try_emplace(f.name, &f);
}

// ---- blocks ---------------------------------------------------------------------------------------

std::vector<Tensor> Reader::block(const Block& b, std::span<const Tensor> arguments) {
  if (arguments.size() != b.arguments.size())
    throw Error("", str_cat("a region of ", b.arguments.size(), " arguments is given ", arguments.size()));
  const AtEnd up([this] { --depth_; });
  if (++depth_ > kDeepest)
    throw Error("stablehlo", str_cat(b.operations.empty() ? "line ?" : str(b.operations[0].at),
                                     ": calls and regions are nested more than ", kDeepest, " deep"));
  for (std::size_t k = 0; k < arguments.size(); ++k) values_[b.arguments[k]] = arguments[k];
  for (const Operation& op : b.operations) {
    if (is_return(op)) {
      std::vector<Tensor> r;
      for (const ValueId v : op.operands) r.push_back(value(v));
      return r;
    }
    operation(op);
  }
  if (b.operations.empty()) return {};
  throw Error("stablehlo", str_cat(str(b.operations.back().at), ": a region or a function ends without returning"));
}

std::vector<Tensor> Reader::elementwise(const Block& b, std::span<const Tensor> arguments, bool widened) {
  ++lifted_;
  const AtEnd lower([this, before = std::exchange(widened_, widened)] { --lifted_, widened_ = before; });
  std::vector<Tensor> r = block(b, arguments);
  for (Tensor& t : r) {
    if (!t.defined()) throw Error("", "its body is not all supported");
    t = to_shape(widened && is_narrow(t.dtype()) ? prim::cast(t, DType::F32) : t, arguments[0].shape());
  }
  return r;
}

std::vector<Tensor> Reader::function(const std::string& name, std::span<const Tensor> arguments) {
  const auto found = functions_.find(name);
  const Function* f = found == functions_.end() ? nullptr : found->second;
  if (!f || f->body.operations.empty()) throw Error("", str_cat("there is no function @", name));
  if (std::ranges::find(calls_, name) != calls_.end()) throw Error("", str_cat("@", name, " calls itself"));
  calls_.push_back(name);
  const AtEnd pop([this] { calls_.pop_back(); });
  return block(f->body, arguments);
}

void Reader::operation(const Operation& op) {
  if (++operations_ > kMostOperations)
    throw Error("stablehlo", str_cat(str(op.at), ": the module has more than ", kMostOperations,
                                     " operations when its calls are inlined"));
  values_handed_ += static_cast<std::int64_t>(op.operands.size() + op.results.size());
  if (values_handed_ > kMostValues)
    throw Error("stablehlo", str_cat(str(op.at), ": the module's operations have more than ", kMostValues,
                                     " operands and results when its calls are inlined"));
  std::vector<Tensor> r(op.results.size());
  const bool known = std::ranges::all_of(op.operands, [&](ValueId v) { return value(v).defined(); });
  // Inputs stand for the floats that an unsupported operation gives, so that what follows is examined. Its integers
  // stay undefined, and so does everything that depends on them: they may have to be known.
  if (known) {
    try {
      r = results_of(op);
    } catch (const Error& e) {
      const std::string_view all = e.what();
      if (all.starts_with("stablehlo: line") || all.starts_with("stablehlo: byte")) throw;
      problem(op.at, str_cat(op.name, ": ", e.problem()));
      for (std::size_t k = 0; k < r.size(); ++k) r[k] = stand_in(op.results[k]);
    }
  }
  for (std::size_t k = 0; k < r.size(); ++k) values_[op.results[k]] = r[k];
}

Tensor Reader::stand_in(ValueId v) {
  const Type& t = m_.values[static_cast<std::size_t>(v)].type;
  const auto known = t.is_tensor ? dtype_of(t.element) : std::nullopt;
  const DType dtype = known.value_or(DType::Bool);  // which is no float, either
  if (lifted_ || depth_ != static_cast<int>(calls_.size()) || !is_float(dtype) || too_large(t.shape)) return {};
  if (std::ranges::find(t.shape, kDynamic) != t.shape.end()) return {};
  return graph().input(str_cat("unsupported.", problems_.size(), ".", v), shape_of(t.shape), dtype);
}

std::vector<Tensor> Reader::results_of(const Operation& op) {
  const auto rule = rules().find(op.name);
  if (rule == rules().end()) throw Error("", "is not supported");
  Call c{*this, op, {}, {}, {}};
  for (const ValueId v : op.operands) {
    const Tensor t = value(v);
    c.in.push_back(widened_ && is_narrow(t.dtype()) ? prim::cast(t, DType::F32) : t);
    c.types.push_back(m_.values[v].type);
  }
  for (const ValueId v : op.results) c.results.push_back(m_.values[v].type);
  for (const Type& t : c.results)
    if (t.is_tensor && (!dtype_of(t.element) || too_large(t.shape)))
      throw Error("", str_cat(str(t), dtype_of(t.element) ? " has too many elements"
                                                          : " has an element type that is not supported"));
  // Profiles, pictures and errors use lines of the module. Operations in a call or a branch have their own lines.
  std::optional<OpScope> scope;
  if (!holds_others(op))
    scope.emplace(Location{"module", static_cast<std::uint32_t>(op.at.line), short_name(rule->first)});
  std::vector<Tensor> r = rule->second(c);
  hold_against_types(op, r);
  return r;
}

// Refuses a text whose types disagree with its operations, so that later code can rely on them.
void Reader::hold_against_types(const Operation& op, const std::vector<Tensor>& r) const {
  if (r.size() != op.results.size())
    throw Error("", str_cat("gives ", r.size(), " results, and ", op.results.size(), " are named"));
  for (std::size_t k = 0; k < r.size(); ++k) {
    const Type& t = m_.values[op.results[k]].type;
    if (!r[k].defined() || !t.is_tensor) continue;
    const bool same_shape = [&] {
      if (lifted_ && t.shape.empty()) return true;
      if (r[k].rank() != static_cast<int>(t.shape.size())) return false;
      for (int a = 0; a < r[k].rank(); ++a) {
        const std::int64_t n = t.shape[a];
        if (n != kDynamic && !(r[k].extent(a) == Dim(n))) return false;
      }
      return true;
    }();
    const DType declared = *dtype_of(t.element);
    const bool same_type = r[k].dtype() == declared || (widened_ && is_narrow(declared) && r[k].dtype() == DType::F32);
    if (!same_shape || !same_type)
      throw Error("",
                  str_cat("gives ", name(r[k].dtype()), " ", lc::str(r[k].shape()), ", and its type says ", str(t)));
  }
}

void Reader::problem(Place at, const std::string& what) {
  std::string line = str_cat(str(at), ": ", what);
  if (known_problems_.insert(line).second) problems_.push_back(std::move(line));
}

// ---- functions ------------------------------------------------------------------------------------

StableHloProgram Reader::run() {
  const Function* f = m_.function(o_.function);
  if (!f) {
    std::string all;
    for (const Function& other : m_.functions)
      if (other.is_public && all.size() < 200) all += (all.empty() ? "@" : ", @") + other.name;
    throw Error("stablehlo",
                str_cat("the module has no function @", o_.function, all.empty() ? "" : "; it has " + all));
  }
  values_.resize(m_.values.size());
  inputs(*f);
  std::vector<Tensor> arguments;
  for (const ValueId v : f->body.arguments) arguments.push_back(value(v));
  calls_.push_back(f->name);
  const std::vector<Tensor> results = block(f->body, arguments);
  if (surveyed_) {
    *surveyed_ = std::move(problems_);
    return {};
  }
  if (!problems_.empty()) {
    std::string all;
    for (std::size_t k = 0; k < std::min(problems_.size(), kMostProblems); ++k) all += "\n  " + problems_[k];
    if (problems_.size() > kMostProblems) all += str_cat("\n  and ", problems_.size() - kMostProblems, " more");
    throw Error("stablehlo", str_cat("not all of the module can be read:", all));
  }
  outputs(*f, results);
  return std::move(program_);
}

void Reader::outputs(const Function& f, const std::vector<Tensor>& results) {
  if (results.size() != f.results.size())
    throw Error("stablehlo",
                str_cat(str(f.at), ": @", f.name, " has ", f.results.size(), " results and returns ", results.size()));
  for (std::size_t k = 0; k < results.size(); ++k) {
    program_.outputs.push_back(str_cat("out", k));
    graph().output(program_.outputs.back(), results[k]);
  }
  std::erase_if(program_.donated,
                [&](const auto& d) { return d.second < 0 || d.second >= static_cast<int>(results.size()); });
  for (std::size_t k = 0; k < checked_.size(); ++k) {
    StableHloProgram::Check& c = program_.checks[k];
    c.actual = str_cat("actual", k), c.expected = str_cat("expected", k);
    graph().output(c.actual, checked_[k].first);
    graph().output(c.expected, checked_[k].second);
  }
}

void Reader::check(const Call& c, const Tensor& actual, const Tensor& expected, StableHloProgram::Check::Kind kind,
                   double limit) {
  program_.checks.push_back({.actual = {}, .expected = {}, .kind = kind, .limit = limit, .line = c.op.at.line});
  checked_.emplace_back(actual, expected);
}

// ---- constants ------------------------------------------------------------------------------------

namespace {

// Returns a + b k if the elements have this form for all k: an expression, whereas an array would take memory.
std::optional<Dim> progression(const std::vector<std::int64_t>& v, const Shape& s) {
  if (s.size() != 1 || v.size() < 2) return std::nullopt;
  constexpr std::int64_t kSmall = std::int64_t{1} << 40;
  const auto small = [](std::int64_t n) { return n >= -kSmall && n <= kSmall; };  // a sum of two fits in 64 bits
  if (!small(v[0]) || !small(v[1])) return std::nullopt;
  const std::int64_t first = v[0], step = v[1] - v[0];
  for (std::size_t k = 2; k < v.size(); ++k)
    if (!small(v[k]) || v[k] != v[k - 1] + step) return std::nullopt;
  return Dim(first) + Dim::index(0, s[0]) * Dim(step);
}

}  // namespace

Tensor Reader::constant(const Attribute& dense) {
  const auto dtype = dtype_of(dense.type.element);
  if (!dtype) throw Error("", str_cat("elements of type ", dense.type.element, " are not supported"));
  const Shape s = shape_of(dense.type.shape);
  const std::size_t n = dense.data.size() / size_of(*dtype);
  if (n == 0) return full(graph(), s, 0, *dtype);
  if (std::ranges::equal(dense.data.begin(), dense.data.end() - static_cast<std::ptrdiff_t>(size_of(*dtype)),
                         dense.data.begin() + static_cast<std::ptrdiff_t>(size_of(*dtype)), dense.data.end())) {
    if (is_float(*dtype)) return full(graph(), s, load_f64(dense.data.data(), *dtype, 0), *dtype);
    return full(graph(), s, load_i64(dense.data.data(), *dtype, 0), *dtype);
  }
  if (!is_float(*dtype) && *dtype != DType::Bool) {
    Integers v;
    for (std::size_t k = 0; k < n; ++k) v.push_back(load_i64(dense.data.data(), *dtype, k));
    if (const auto e = progression(v, s)) return graph().index(s, *e, *dtype);
  }
  const std::string name = str_cat("constant", program_.constants.size());
  program_.constants.push_back(
      {name, *dtype, dense.type.shape, std::make_shared<const std::vector<std::byte>>(dense.data)});
  return graph().parameter(name, s, *dtype);
}

// The data of a constant of the program, which constant() has named by its number.
std::optional<ArrayView> Reader::constant_data(const std::string& name) const {
  constexpr std::string_view kName = "constant";
  std::size_t k = 0;
  const char* end = name.data() + name.size();
  if (!name.starts_with(kName) || std::from_chars(name.data() + kName.size(), end, k).ptr != end) return std::nullopt;
  if (k >= program_.constants.size() || program_.constants[k].name != name) return std::nullopt;
  const StableHloProgram::Constant& c = program_.constants[k];
  return ArrayView{c.dtype, c.shape, *c.bytes};
}

std::optional<Integers> Reader::known(const Tensor& t) {
  const auto elements = known_.integers(t);
  if (!elements) return std::nullopt;
  Integers r;
  for (const Dim& d : *elements) {
    const auto c = d.constant();
    if (!c) return std::nullopt;
    r.push_back(*c);
  }
  return r;
}

// ---- attributes -----------------------------------------------------------------------------------

Graph& Call::graph() const { return reader.graph(); }
const Tensor& Call::x() const {
  if (in.empty()) refuse("has no operands");
  return in[0];
}
bool Call::lifted() const {
  for (std::size_t k = 0; k < in.size(); ++k)
    if (is_scalar(types[k]) && in[k].rank() > 0) return true;
  return false;
}
void Call::refuse(const std::string& why) const { throw Error("", why); }

namespace {

const Attribute* find(const AttributeList& fields, std::string_view name) {
  for (const auto& [key, value] : fields)
    if (key == name) return &value;
  return nullptr;
}

Integers integers_in(const Attribute& a) {
  using Kind = Attribute::Kind;
  Integers r;
  switch (a.kind) {
    case Kind::Integers: return a.integers;
    case Kind::Integer:
    case Kind::Bool: return {a.integer};
    case Kind::List:
      for (const Attribute& each : a.list) {
        if (each.kind != Kind::Integer && each.kind != Kind::Bool)
          throw Error("", "a list of numbers holds something else");
        r.push_back(each.integer);
      }
      return r;
    case Kind::Dense: {
      const auto dtype = dtype_of(a.type.element == "index" ? "i64" : a.type.element);
      if (!dtype || is_float(*dtype)) throw Error("", "whole numbers are expected in dense<>");
      std::int64_t n = 1;
      for (const std::int64_t d : a.type.shape)
        if ((n *= d) > 4096) throw Error("", "an attribute of so many numbers is not read");
      for (std::int64_t k = 0; k < n; ++k)
        r.push_back(load_i64(a.data.data(), *dtype, a.splat ? 0 : static_cast<std::size_t>(k)));
      return r;
    }
    default: throw Error("", "whole numbers are expected");
  }
}

}  // namespace

Integers integers_of(const AttributeList& fields, std::string_view name) {
  const Attribute* a = find(fields, name);
  return a ? integers_in(*a) : Integers();
}
std::int64_t integer_of(const AttributeList& fields, std::string_view name, std::int64_t otherwise) {
  const Attribute* a = find(fields, name);
  if (a && a->kind != Attribute::Kind::Integer && a->kind != Attribute::Kind::Bool)
    throw Error("", str_cat(name, " is not a whole number"));
  return a ? a->integer : otherwise;
}

Integers Call::integers(std::string_view attribute) const {
  const Attribute* a = op.find(attribute);
  if (!a) refuse(str_cat("has no ", attribute));
  return integers_in(*a);
}
Integers Call::integers(std::string_view attribute, std::size_t n, std::int64_t otherwise) const {
  const Attribute* a = op.find(attribute);
  Integers r = a ? integers_in(*a) : Integers(n, otherwise);
  if (r.size() != n) refuse(str_cat(attribute, " has ", r.size(), " numbers, not ", n));
  return r;
}
std::int64_t Call::integer(std::string_view attribute, std::int64_t otherwise) const {
  return integer_of(op.attributes, attribute, otherwise);
}
double Call::number(std::string_view attribute, double otherwise) const {
  const Attribute* a = op.find(attribute);
  return !a ? otherwise : a->kind == Attribute::Kind::Real ? a->real : static_cast<double>(a->integer);
}
bool Call::flag(std::string_view attribute) const {
  const Attribute* a = op.find(attribute);
  return a && (a->kind == Attribute::Kind::Unit || a->integer != 0);
}
std::string Call::word(std::string_view attribute, std::string_view otherwise) const {
  const Attribute* a = op.find(attribute);
  return std::string(a ? std::string_view(a->text) : otherwise);
}
const AttributeList& Call::fields(std::string_view attribute) const {
  const Attribute* a = op.find(attribute);
  if (!a || a->kind != Attribute::Kind::Struct) refuse(str_cat("has no ", attribute));
  return a->fields;
}
DType Call::dtype(std::size_t result) const {
  if (result >= results.size()) refuse(str_cat("has no result ", result));
  const Type& t = results[result];
  const auto dtype = t.is_tensor ? dtype_of(t.element) : std::nullopt;
  if (!dtype) refuse(str_cat("gives ", str(t), ", which is no tensor of numbers"));
  return *dtype;
}
const Block& Call::region(std::size_t k, std::size_t arguments, std::size_t wanted) const {
  if (k >= op.regions.size()) refuse(str_cat("has ", op.regions.size(), " regions"));
  const Block& b = op.regions[k];
  if (b.arguments.size() != arguments)
    refuse(str_cat("has a region of ", b.arguments.size(), " arguments, not ", arguments));
  for (std::size_t n = 0; n < b.operations.size(); ++n)
    if (is_return(b.operations[n]) != (n + 1 == b.operations.size()))
      refuse("has a region that does not return at its end");
  if (b.operations.empty() || b.operations.back().operands.size() != wanted)
    refuse(str_cat("has a region that does not return ", wanted, " values"));
  return b;
}

// ---- helpers --------------------------------------------------------------------------------------

Shape shape_of(const Integers& extents) { return Shape(extents.begin(), extents.end()); }
Integers extents(const Tensor& t) {
  Integers r;
  for (const Dim& d : t.shape()) {
    if (!d.constant()) throw Error("", str_cat("an extent of ", lc::str(t.shape()), " is not known"));
    r.push_back(*d.constant());
  }
  return r;
}
bool too_large(const Integers& shape) {
  constexpr std::int64_t kMostElements = std::int64_t{1} << 48;
  std::int64_t n = 1;
  for (const std::int64_t d : shape) {
    if (d > 0 && n > kMostElements / d) return true;
    n *= std::max<std::int64_t>(d, 1);
  }
  return false;
}
const Integers& static_shape(const Call& c, std::size_t result) {
  const Integers& s = c.results.at(result).shape;
  if (std::ranges::find(s, kDynamic) != s.end()) c.refuse("needs a shape of numbers");
  return s;
}
bool is_scalar(const Type& t) { return t.is_tensor && t.shape.empty(); }
Tensor to_shape(const Tensor& t, const Shape& s) {
  if (t.rank() != 0 || s.empty()) return t;
  return t.reshape(Shape(s.size(), 1)).expand(s);
}
Tensor scalar_like(const Tensor& t, double v) { return full_like(t, v); }
Tensor index_along(Graph& g, const Shape& s, int axis) { return g.index(s, Dim::index(axis, s[axis]), DType::I64); }

DType signed_of(DType t) {
  switch (size_of(t)) {
    case 1: return DType::I8;
    case 2: return DType::I16;
    case 4: return DType::I32;
    default: return DType::I64;
  }
}

namespace {

// Reads a module, or collects in `surveyed` what is not supported.
StableHloProgram read(const Module& m, const StableHloOptions& o, Problems* surveyed) {
  if (has_quantized(m) || has_narrow_integers(m)) {
    Module whole = widen_integers(expand_quantized(m));
    if (!has_quantized(whole)) return read(whole, o, surveyed);
    return Reader(whole, o, surveyed).run();  // reports what is not supported
  }
  if (!has_complex(m)) return Reader(m, o, surveyed).run();
  std::set<int> inputs, outputs;
  StableHloOptions options = o;
  if (const Function* f = m.function(o.function)) {
    for (std::size_t k = 0; k < f->body.arguments.size(); ++k)
      if (is_complex(m.values[static_cast<std::size_t>(f->body.arguments[k])].type)) inputs.insert(static_cast<int>(k));
    for (std::size_t k = 0; k < f->results.size(); ++k)
      if (is_complex(f->results[k])) outputs.insert(static_cast<int>(k));
  }
  for (auto& [k, shape] : options.shapes)
    if (inputs.contains(k)) shape.push_back(2);
  StableHloProgram p = Reader(split_complex(m, o.function), options, surveyed).run();
  p.complex_inputs = std::move(inputs), p.complex_outputs = std::move(outputs);
  return p;
}

}  // namespace
}  // namespace lc::stablehlo

namespace lc {

StableHloProgram read_stablehlo(std::string_view text, const StableHloOptions& o) {
  return read_stablehlo(stablehlo::parse(text), o);
}
StableHloProgram read_stablehlo(const stablehlo::Module& m, const StableHloOptions& o) {
  return stablehlo::read(m, o, nullptr);
}
std::vector<std::string> survey_stablehlo(const stablehlo::Module& m, const StableHloOptions& o) {
  std::vector<std::string> problems;
  stablehlo::read(m, o, &problems);
  return problems;
}

}  // namespace lc
