#include "lightcone/onnx/read/importer.h"

#include <algorithm>
#include <utility>

#include "lightcone/io/printable.h"
#include "lightcone/onnx/read/call.h"
#include "lightcone/onnx/read/describe.h"
#include "lightcone/onnx/read/extents.h"
#include "lightcone/readers/at_end.h"

namespace lc::onnx {
namespace {

using readers::AtEnd;

// How often each node may be read: in loops that are unrolled, in functions that are inlined, and again where two
// extents prove to be equal.
constexpr std::int64_t kMostTimes = 300, kLeastWork = 20'000;
constexpr std::size_t kLeastKept = 1 << 17, kKeptOfNode = 64;  // elements of all sequences
constexpr std::int64_t kStepsOfNode = 16;    // elements of shape arithmetic that take as long as a node
constexpr std::size_t kMostParts = 1 << 12;  // parts that the expression of an extent may have
constexpr int kDeepest = 64;                 // nesting of functions and subgraphs
constexpr std::size_t kMostProblems = 50;
// Memory is planned for the largest sizes. A tensor that would need more bytes than this lowers the extents of the
// model.
constexpr double kMostBytes = 0x1p43;
constexpr std::int64_t kLeastLimit = 256;  // below it no extent is lowered
constexpr int kMostRounds = 200;           // in each, one more extent is found to equal another

// A name with static storage for Location::op.
const char* static_name(const Operator& row) { return row.name.data(); }

// Extents that are long expressions make everything slow that looks at a shape.
void require_short(const Value& v) {
  if (!v.tensor.defined()) return;
  for (const Dim& d : v.tensor.shape())
    if (d.parts() > kMostParts)
      throw Error("", str_cat("an extent of its result is an expression of ", d.parts(), " parts, and it may have ",
                              kMostParts));
}

}  // namespace

Importer::Importer(const Model& m, const OnnxOptions& o)
    : m_(m),
      o_(o),
      limit_(o.most_extent),
      known_([this](const std::string& name) { return data_of(name); }),
      most_work_(kLeastWork + kMostTimes * count_nodes(m)) {
  for (const ValueInfo& v : m.graph.inputs)
    if (v.type.shape)
      for (const TypeInfo::Extent& e : *v.type.shape)
        if (!e.value) plain_extents_.insert(e.parameter);
}

void Importer::keep(std::size_t elements) {
  kept_ += elements;
  spend(static_cast<std::int64_t>(elements / 8));
  const std::size_t most = kLeastKept + kKeptOfNode * static_cast<std::size_t>((most_work_ - kLeastWork) / kMostTimes);
  if (kept_ > most) throw Error("read_onnx", str_cat("sequences have more than ", most, " elements in all"));
}
void Importer::spend(std::int64_t work) {
  work_ += work;
  if (work_ <= most_work_) return;
  throw Error("read_onnx",
              str_cat("loops, functions and sequences make more than ", most_work_, " nodes of the model's"));
}

std::optional<ArrayView> Importer::data_of(const std::string& parameter) const {
  const auto w = weight_of_.find(parameter);
  if (w == weight_of_.end()) return std::nullopt;
  return program_.weights[w->second].view;
}

OnnxProgram Importer::run() {
  if (const auto lines = unsupported(m_); !lines.empty()) {
    std::string all;
    for (const std::string& line : lines) all += "\n  " + line;
    throw Error("read_onnx", str_cat("not all of the model is supported:", all));
  }
  for (int rounds = 0;;) {
    try {
      OnnxProgram p = attempt();
      if (!again_ && !lower_limit(p.graph)) return p;
    } catch (const Error&) {
      if (!again_) throw;
    }
    next_round(rounds);
  }
}

// The model is read again, because extents of it proved to be equal.
void Importer::next_round(int& rounds) {
  again_ = false;
  spend(known_.steps() / kStepsOfNode);
  if (++rounds > kMostRounds) throw Error("read_onnx", "extents of the model contradict each other");
}

bool Importer::lower_limit(const Graph& g) {
  double most = 0;
  const auto look = [&](const Shape& shape, DType type) {
    double bytes = static_cast<double>(size_of(type));
    for (const Dim& d : shape) bytes *= static_cast<double>(d.bounds().hi);
    most = std::max(most, bytes);
  };
  const std::vector<bool> live = g.live();
  for (NodeId id = 0; id < g.size(); ++id)
    if (live[id]) look(g[id].shape, g[id].dtype);
  for (const Root& r : g.roots()) look(r.edge.view.shape(), g[r.edge.node].dtype);  // an output may be broadcast
  if (most <= kMostBytes || limit_ <= kLeastLimit) return false;
  limit_ /= 2;
  replaced_.clear();  // its symbols have the old limit
  return true;
}

std::vector<std::string> Importer::survey() {
  surveys_ = true;
  try {
    for (int rounds = 0;;) {
      try {
        read_all();
        if (!again_) break;
      } catch (const Error&) {
        if (!again_) throw;
      }
      next_round(rounds);
    }
  } catch (const Error& e) {
    problem(e.problem());
  }
  if (not_examined_)
    problem(str_cat(not_examined_, not_examined_ == 1 ? " node" : " nodes",
                    " behind these could be examined in part alone, because operands are missing"));
  return std::move(problems_);
}

OnnxProgram Importer::attempt() {
  read_all();
  if (!problems_.empty()) {
    std::string lines;
    for (std::size_t k = 0; k < std::min(problems_.size(), kMostProblems); ++k) lines += "\n  " + problems_[k];
    if (problems_.size() > kMostProblems) lines += str_cat("\n  and ", problems_.size() - kMostProblems, " more");
    throw Error("read_onnx", str_cat("not all of the model can be read:", lines));
  }
  return std::move(program_);
}

void Importer::read_all() {
  program_ = OnnxProgram();
  known_ = readers::KnownValues([this](const std::string& name) { return data_of(name); });
  weight_of_.clear(), problems_.clear(), known_problems_.clear(), frames_.clear();
  next_number_.clear();
  kept_ = 0, draws_ = 0, depth_ = 0, not_examined_ = 0;
  random_.reset();
  Scope all;
  scope_ = &all;
  const AtEnd leave([this] { scope_ = nullptr; });
  frames_.push_back({{}, &m_.opsets});
  program_.metadata = m_.metadata;
  program_.producer = str_cat(m_.producer, m_.producer_version.empty() ? "" : " ", m_.producer_version);
  for (const auto& [domain, version] : m_.opsets) program_.opsets[std::string(domain)] = version;
  for (const TensorData& t : m_.graph.initializers) define(t.name, constant(t, t.name));
  inputs();
  nodes(m_.graph.nodes);
  if (!again_) outputs();
}

void Importer::problem(const std::string& what) {
  const std::string line = printable(what, 2000);  // it may quote the file
  if (known_problems_.insert(line).second) problems_.push_back(line);
}

// ---- inputs and outputs ---------------------------------------------------------------------------

Dim Importer::symbol(const std::string& name) {
  const std::string unique = symbol_name(name);
  if (const auto r = replaced_.find(unique); r != replaced_.end()) return r->second;
  if (const auto given = o_.extents.find(name); given != o_.extents.end()) return given->second;
  // Caches of keys and values are empty at first.
  const std::int64_t least = name.find("past") == std::string::npos ? 1 : 0;
  return Dim::symbol(unique, least, limit_);
}

Dim Importer::extent_of(const ValueInfo& v, int axis, const TypeInfo::Extent& e) {
  if (e.value) return *e.value;
  const bool is_named = std::ranges::any_of(e.parameter, [](char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; });
  if (!is_named) return symbol(str_cat(v.name, "_", axis));  // "?", "-1", ""
  const auto known = [&](std::string_view name) -> std::optional<Dim> {
    return plain_extents_.contains(name) ? std::optional(symbol(std::string(name))) : std::nullopt;
  };
  if (const auto d = parse_extent(e.parameter, known)) return *d;
  return symbol(std::string(e.parameter));
}

Shape Importer::shape_of(const ValueInfo& v) {
  Shape s;
  const auto given = o_.shapes.find(std::string(v.name));
  if (!v.type.shape) {
    if (given == o_.shapes.end())
      throw Error("read_onnx",
                  str_cat("input ", in_quotes(v.name), " has no shape in the file; give one in OnnxOptions::shapes"));
    return Shape(given->second.begin(), given->second.end());
  }
  for (std::size_t k = 0; k < v.type.shape->size(); ++k)
    s.push_back(extent_of(v, static_cast<int>(k), (*v.type.shape)[k]));
  if (given == o_.shapes.end()) return s;
  if (given->second.size() != s.size())
    throw Error("read_onnx", str_cat("input ", in_quotes(v.name), " has ", s.size(), " axes, and the shape given has ",
                                     given->second.size()));
  for (std::size_t k = 0; k < s.size(); ++k) {
    if (given->second[k] == -1) continue;
    if (provably_different(s[k], given->second[k]))
      throw Error("read_onnx", str_cat("axis ", k, " of input ", in_quotes(v.name), " has extent ", s[k], ", not ",
                                       given->second[k]));
    same_extent(s[k], given->second[k]);
    s[k] = given->second[k];
  }
  return s;
}

Value Importer::given_value(const ValueInfo& v, DType dtype, const Shape& shape, const ArrayView& a) {
  if (a.dtype != dtype || a.shape.size() != shape.size())
    throw Error("read_onnx", str_cat("the value given for input ", in_quotes(v.name), " has another type or rank"));
  for (std::size_t k = 0; k < shape.size(); ++k) same_extent(shape[k], a.shape[k]);
  const auto bytes = std::make_shared<const std::vector<std::byte>>(a.bytes.begin(), a.bytes.end());
  return constant({.name = v.name, .type = v.type.element, .shape = a.shape, .bytes = *bytes, .owner = bytes}, v.name);
}

void Importer::inputs() {
  for (const ValueInfo& v : m_.graph.inputs) {
    const std::string name(v.name);
    if (lookup(v.name).defined()) continue;  // an initializer is its default value
    const OpScope scope(Location{"model", 0, "input"});
    if (v.type.kind != TypeInfo::Kind::Tensor) {
      problem(str_cat("input ", in_quotes(name), " is no tensor: sequences, optionals and maps cannot be inputs"));
      define(v.name, failed_value());
      continue;
    }
    const auto dtype = dtype_of(v.type.element);
    if (!dtype) {
      problem(str_cat("input ", in_quotes(name), " has elements of type ", onnx::name(v.type.element),
                      ", which are not supported"));
      define(v.name, failed_value());
      continue;
    }
    const Shape shape = shape_of(v);
    if (const auto given = o_.values.find(name); given != o_.values.end()) {
      define(v.name, given_value(v, *dtype, shape, given->second));
      continue;
    }
    Value value(graph().input(name, shape, *dtype));
    if (is_packed(v.type.element)) value.packed = v.type.element;
    define(v.name, value);
    program_.inputs.push_back({.name = name, .dtype = *dtype, .shape = shape});
  }
}

void Importer::outputs() {
  for (const ValueInfo& o : m_.graph.outputs) {
    const std::string name(o.name);
    const Value v = lookup(o.name);
    if (v.failed) continue;
    const Tensor t = v.labels ? v.labels->numbers : v.tensor;
    if (!t.defined()) {
      problem(str_cat("output ", in_quotes(name),
                      v.sequence ? " is a sequence"
                      : v.none   ? " is an optional without a value"
                                 : " is not computed",
                      ", and a graph's outputs are tensors"));
      continue;
    }
    graph().output(name, t);
    OnnxProgram::Port port{.name = name, .dtype = t.dtype(), .shape = t.shape()};
    if (v.labels) port.labels = v.labels->texts;
    if (v.count) {
      port.count = name + ".count", port.count_axis = v.count->axis;
      graph().output(port.count, v.count->number);
    }
    program_.outputs.push_back(std::move(port));
  }
}

// ---- nodes ----------------------------------------------------------------------------------------

Value Importer::lookup(std::string_view name) const {
  for (const Scope* s = scope_; s; s = s->outer)
    if (const auto v = s->values.find(name); v != s->values.end()) return v->second;
  return {};
}
void Importer::define(std::string_view name, Value v) { scope_->values.insert_or_assign(name, std::move(v)); }

const Attribute* Importer::bound(std::string_view reference) const {
  const auto& attributes = frames_.back().attributes;
  const auto found = attributes.find(reference);
  return found == attributes.end() ? nullptr : found->second;
}
std::int64_t Importer::opset(std::string_view domain) const {
  const auto& sets = *frames_.back().opsets;
  const auto found = sets.find(domain);
  return found == sets.end() ? 1 : found->second;
}

void Importer::nodes(const std::vector<NodeData>& all) {
  for (std::size_t k = 0; k < all.size() && !again_; ++k) node(all[k], k);
}

void Importer::node(const NodeData& n, std::size_t index) {
  spend(1);
  Values in, out;
  bool failed = surveys_ && !is_supported(m_, n);  // a line of unsupported() names it
  for (const std::string_view name : n.inputs) {
    in.push_back(name.empty() ? Value() : lookup(name));
    failed = failed || in.back().failed;
    if (!name.empty() && !in.back().defined()) {
      problem(str_cat(named(n), ": its operand ", in_quotes(name), " is not defined before it"));
      failed = true;
    }
  }
  not_examined_ += std::ranges::any_of(in, [](const Value& v) { return v.failed; });
  if (!failed) {
    try {
      const Operator* row = find_operator(n.domain, n.op);
      std::optional<OpScope> scope;
      if (row && std::ranges::none_of(n.attributes, [](const Attribute& a) { return !a.graphs.empty(); }))
        scope.emplace(Location{"node", static_cast<std::uint32_t>(index + 1), static_name(*row)});
      out = results_of(n, std::move(in));
      for (const Value& v : out) require_short(v);
    } catch (const Error& e) {
      if (again_ || e.op() == "read_onnx") throw;
      problem(str_cat(named(n), ": ", e.problem()));
      failed = true;
    }
  }
  for (std::size_t k = 0; k < n.outputs.size(); ++k) {
    if (n.outputs[k].empty()) continue;
    if (!failed && (k >= out.size() || !out[k].defined())) {
      problem(str_cat(named(n), ": its result ", k, " is not supported"));
      failed = true;
    }
    define(n.outputs[k], failed ? failed_value() : out[k]);
  }
}

Values Importer::results_of(const NodeData& n, Values in) {
  const Operator* row = find_operator(n.domain, n.op);
  if (!row || !row->rule) {
    const Function* f = function_of(m_, n);
    if (!f) throw Error("", "is not supported");
    return call(*f, n, in);
  }
  const std::int64_t version = opset(n.domain);
  if (version < row->since)
    throw Error("", str_cat("is read from operator set ", row->since, " on, and the model has ", version));
  Call c(*this, n, version, std::move(in));
  Values r = row->rule(c);
  if (const auto name = c.unread()) throw Error("", str_cat("its attribute ", in_quotes(*name), " is not known"));
  return r;
}

// ---- functions and subgraphs ----------------------------------------------------------------------

Values Importer::call(const Function& f, const NodeData& n, const Values& in) {
  if (depth_ >= kDeepest) throw Error("read_onnx", str_cat("functions are nested more than ", kDeepest, " deep"));
  if (in.size() > f.inputs.size()) throw Error("", str_cat("takes ", f.inputs.size(), " operands, not ", in.size()));
  Frame frame{.attributes = {}, .opsets = &f.opsets};
  for (const Attribute& a : f.defaults) frame.attributes[a.name] = &a;
  for (const Attribute& a : n.attributes) {
    const Attribute* given = a.reference.empty() ? &a : bound(a.reference);
    if (given) frame.attributes[a.name] = given;
  }
  Scope inner;
  for (std::size_t k = 0; k < in.size(); ++k) inner.values[f.inputs[k]] = in[k];
  Scope* const outside = std::exchange(scope_, &inner);
  frames_.push_back(std::move(frame));
  ++depth_;
  const AtEnd leave([&] { scope_ = outside, frames_.pop_back(), --depth_; });
  nodes(f.nodes);
  Values r;
  for (const std::string_view name : f.outputs) r.push_back(lookup(name));
  return r;
}

Values Importer::subgraph(const GraphData& g, std::span<const Value> arguments) {
  if (depth_ >= kDeepest) throw Error("read_onnx", str_cat("graphs are nested more than ", kDeepest, " deep"));
  if (arguments.size() != g.inputs.size())
    throw Error("", str_cat("its graph has ", g.inputs.size(), " inputs, not ", arguments.size()));
  Scope inner{.values = {}, .outer = scope_};
  scope_ = &inner;
  ++depth_;
  const AtEnd leave([&] { scope_ = inner.outer, --depth_; });
  spend(1 + static_cast<std::int64_t>(g.initializers.size()));
  for (const TensorData& t : g.initializers) define(t.name, constant(t, t.name));
  for (std::size_t k = 0; k < arguments.size(); ++k) define(g.inputs[k].name, arguments[k]);
  const std::size_t before = problems_.size();
  nodes(g.nodes);
  if (again_) throw Error("", "the model is read again");
  Values r;
  for (const ValueInfo& o : g.outputs) {
    r.push_back(lookup(o.name));
    if (r.back().failed || !r.back().defined())
      throw Error("", problems_.size() > before ? "its graph is not all supported"
                                                : str_cat("its graph does not compute ", in_quotes(o.name)));
  }
  return r;
}

bool Importer::tries(const std::function<void()>& f) {
  const std::size_t before = problems_.size();
  try {
    f();
    return problems_.size() == before;
  } catch (const Error&) {
    if (again_ || work_ > most_work_) throw;
    for (; problems_.size() > before; problems_.pop_back()) known_problems_.erase(problems_.back());
    return false;
  }
}

// ---- extents and constants ------------------------------------------------------------------------

void Importer::replace(const std::string& symbol, const Dim& by) {
  for (auto& [name, value] : replaced_)
    value = value.substitute([&](const std::string& s) { return s == symbol ? std::optional(by) : std::nullopt; });
  replaced_[symbol] = by;
  again_ = true;
}

void Importer::same_extent(const Dim& a, const Dim& b) {
  if (a == b) return;
  if (provably_different(a, b)) throw Error("", str_cat("extents differ: ", versus(a, b)));
  // min(x, 512) and x are equal if x is at most 512: the table of positions of many models.
  const auto limited = [&](const Dim& least, const Dim& of) {
    const auto name = of.name();
    const Bounds limits = of.bounds();
    const std::int64_t most = least.bounds().hi;
    if (!name || limits.lo > most || most >= limits.hi || !(min(of, most) == least)) return false;
    replace(*name, Dim::symbol(*name, limits.lo, most));
    return true;
  };
  const auto replaced = [&](const Dim& from, const Dim& to) {
    const auto name = from.name();
    if (!name || to.symbols().contains(*name)) return false;
    replace(*name, to);
    return true;
  };
  if (!limited(a, b) && !limited(b, a) && !replaced(a, b) && !replaced(b, a))
    throw Error("", str_cat("extents have to be equal, and it is not known whether they are: ", versus(a, b)));
  throw Error("", "the model is read again");
}

void Importer::at_least(const Dim& extent, std::int64_t least) {
  if (extent.bounds().lo >= least) return;
  const std::map<std::string, Bounds> symbols = extent.symbols();
  if (symbols.size() != 1) return;
  const auto& [name, limits] = *symbols.begin();
  const auto from = [&, &name = name, &limits = limits](std::int64_t lo) {
    return extent.substitute([&](const std::string& s) {
      return s == name ? std::optional(Dim::symbol(name, lo, limits.hi)) : std::nullopt;
    });
  };
  if (from(limits.hi).bounds().lo < least) return;
  std::int64_t low = limits.lo, high = limits.hi;  // `low` is too small, `high` is not
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (from(middle).bounds().lo < least ? low : high) = middle;
  }
  replace(name, Dim::symbol(name, high, limits.hi));
  throw Error("", "the model is read again");
}

Random& Importer::random() {
  if (loops_ > 0) throw Error("", "draws random numbers in a loop, and they would be the same in each step");
  if (!random_) random_.emplace(graph(), o_.seed, "onnx.random.step");
  return *random_;
}

Value Importer::constant(const TensorData& t, std::string_view name) {
  if (t.type == ElementType::String) {
    Value v;
    v.strings = &t;
    return v;
  }
  const auto dtype = dtype_of(t.type);
  if (!dtype) {
    problem(str_cat("constant ", in_quotes(name), " has elements of type ", onnx::name(t.type),
                    ", which are not supported"));
    return failed_value();
  }
  const ArrayView view{*dtype, t.shape, t.bytes};
  const auto typed = [&](const Tensor& tensor) {
    Value v(tensor);
    if (is_packed(t.type)) v.packed = t.type;
    return v;
  };
  // Floats that the file names stay parameters, which a program may train or replace.
  const bool is_weight = is_float(*dtype) && !name.empty() && t.bytes.size() > size_of(*dtype);
  if (const Tensor regular = regular_tensor(graph(), view); regular.defined() && !is_weight) return typed(regular);
  std::string unique(name.empty() ? "constant" : name);
  if (weight_of_.contains(unique)) {
    const std::string plain = unique;
    int& k = next_number_.try_emplace(plain, 2).first->second;
    do unique = str_cat(plain, ".", k++);
    while (weight_of_.contains(unique));
  }
  weight_of_[unique] = program_.weights.size();
  std::shared_ptr<const void> owner = t.owner ? t.owner : m_.file;
  program_.weights.push_back({unique, view, std::move(owner), t.owner ? t.file : m_.file});
  return typed(graph().parameter(unique, Shape(t.shape.begin(), t.shape.end()), *dtype));
}

}  // namespace lc::onnx

namespace lc {

// Protocol buffers align nothing.
OnnxProgram::Weight OnnxProgram::Weight::aligned() const {
  if (reinterpret_cast<std::uintptr_t>(view.bytes.data()) % size_of(view.dtype) == 0) return *this;
  const auto copy = std::make_shared<const std::vector<std::byte>>(view.bytes.begin(), view.bytes.end());
  return {.name = name, .view = {view.dtype, view.shape, *copy}, .owner = copy};
}

void OnnxProgram::Weight::release() const {
  if (file) file->release(view.bytes);
}

OnnxProgram read_onnx(const std::string& path, const OnnxOptions& o) {
  const auto file = o.read.map ? MappedFile::open(path) : MappedFile::read(path);
  return onnx::Importer(onnx::parse(file, o.read), o).run();
}
OnnxProgram read_onnx(std::span<const std::byte> bytes, const OnnxOptions& o) {
  return onnx::Importer(onnx::parse(MappedFile::view("model", bytes), o.read), o).run();
}

}  // namespace lc
