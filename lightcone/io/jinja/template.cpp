#include "lightcone/io/jinja/template.h"

#include <algorithm>
#include <deque>
#include <memory>

#include "lightcone/io/jinja/functions.h"
#include "lightcone/io/printable.h"

namespace lc::jinja {

// The variables of a scope. A macro keeps the frame in which it was defined, and all outer frames.
struct Frame {
  Frame* outer = nullptr;
  bool kept = false;
  std::vector<std::pair<std::string_view, Value>> variables = {};
};
struct Macro {
  const Node* node;
  Frame* scope;
};

namespace {

using NodeKind = Node::Kind;

class Renderer {
 public:
  Renderer(Meter& m, std::time_t now) : m_(m), now_(now) {}
  std::string run(const Node& root, const Variables& variables);
  std::uint32_t line() const { return line_; }

 private:
  enum class Flow : std::uint8_t { On, Break, Continue };

  // Opens a scope during its lifetime. Frames that no macro keeps are reused.
  class Scope {
   public:
    explicit Scope(Renderer& r) : Scope(r, r.frame_) {}
    Scope(Renderer& r, Frame* outer) : r_(r), before_(r.frame_) {
      if (r.free_.empty()) {
        r.m_.make(sizeof(Frame) + 64);
        r.frames_.emplace_back();
        r.free_.push_back(&r.frames_.back());
      }
      r.frame_ = r.free_.back();
      r.free_.pop_back();
      r.frame_->outer = outer;
    }
    ~Scope() {
      Frame* mine = r_.frame_;
      r_.frame_ = before_;
      if (mine->kept) return;
      mine->variables.clear();
      r_.free_.push_back(mine);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Renderer& r_;
    Frame* before_;
  };

  Flow run(const Node& n);
  Flow block(const Node& n);
  Flow branch(const Node& n);
  Flow loop(const Node& n);
  void define(const Node& n);
  Flow set_block(const Node& n);
  std::string captured(const Node& n, Flow* flow);
  void write(std::string_view s) { m_.make(s.size()), *out_ += s; }

  Value eval(const Node& n);
  Value compared(const Node& n);
  Value name(const Node& n);
  Value joined(const Node& n);
  Value list_of(const Node& n, bool tuple);
  Value dict_of(const Node& n);
  Value member_of(const Value& of, std::string_view name);
  Value item_of(const Node& n);
  Value sliced(const Node& n);
  Value called(const Node& n);
  Value call_macro(const Macro& macro, const Arguments& a);
  Value make_namespace(const Arguments& a);
  Value loop_method(Loop& l, std::string_view name, const Arguments& a);
  Value filtered(const Node& n, const Value* of);
  Arguments arguments(const Node& n, std::size_t first);

  void set(std::string_view name, Value v);
  void assign(const Node& target, const Value& v);

  Meter& m_;
  const std::time_t now_;
  int depth_ = 0;
  std::uint32_t line_ = 0;
  std::string* out_ = nullptr;
  Frame* frame_ = nullptr;
  std::deque<Frame> frames_;
  std::vector<Frame*> free_;
  std::deque<Macro> macros_;
  std::deque<Space> spaces_;
  std::deque<Loop> loops_;
};

std::string Renderer::run(const Node& root, const Variables& variables) {
  std::string out;
  out_ = &out;
  const Scope globals(*this);
  static constexpr std::pair<std::string_view, Function> kFunctions[] = {{"range", Function::Range},
                                                                         {"dict", Function::Dict},
                                                                         {"namespace", Function::Namespace},
                                                                         {"raise_exception", Function::RaiseException},
                                                                         {"strftime_now", Function::StrftimeNow}};
  for (const auto& [name, f] : kFunctions) set(name, {f});
  for (const auto& [name, v] : variables) set(name, v);
  const Scope top(*this);
  run(root);
  return out;
}

void Renderer::set(std::string_view name, Value v) {
  for (auto& [word, value] : frame_->variables) {
    m_.step();
    if (word == name) {
      value = std::move(v);
      return;
    }
  }
  m_.make(2 * sizeof(frame_->variables[0]));
  frame_->variables.emplace_back(name, std::move(v));
}

void Renderer::assign(const Node& target, const Value& v) {
  if (target.kind == NodeKind::Name) return set(target.text, v);
  if (target.kind == NodeKind::Member) {
    const Value of = name(*target.parts[0]);
    if (!of.as<Space*>()) fail("cannot assign attribute on non-namespace object");
    Space& space = **of.as<Space*>();
    for (auto& [word, value] : space.items) {
      m_.step();
      if (word == target.text) {
        value = v;
        return;
      }
    }
    m_.make(2 * (sizeof(space.items[0]) + target.text.size()));
    space.items.emplace_back(target.text, v);
    return;
  }
  const std::vector<Value> all = members(m_, v);
  if (all.size() != target.parts.size())
    fail(all.size() < target.parts.size() ? "not enough" : "too many", " values to unpack (expected ",
         target.parts.size(), ")");
  for (std::size_t i = 0; i < all.size(); ++i) assign(*target.parts[i], all[i]);
}

// ---- statements ---------------------------------------------------------------------------------

Renderer::Flow Renderer::run(const Node& n) {
  const Level level(depth_);
  m_.step();
  line_ = n.line;
  switch (n.kind) {
    case NodeKind::Data: write(*n.value.text()); return Flow::On;
    case NodeKind::Print: {
      const Value v = eval(*n.parts[0]);
      if (const std::string* s = v.text()) write(*s);
      else write(str(m_, v));
      return Flow::On;
    }
    case NodeKind::Block: return block(n);
    case NodeKind::If: return branch(n);
    case NodeKind::For: return loop(n);
    case NodeKind::Set: assign(*n.parts[0], eval(*n.parts[1])); return Flow::On;
    case NodeKind::SetBlock: return set_block(n);
    case NodeKind::Macro: define(n); return Flow::On;
    case NodeKind::FilterOf: {
      Flow flow = Flow::On;
      const Value inner = text(m_, captured(*n.parts[1], &flow));
      write(str(m_, filtered(*n.parts[0], &inner)));
      return flow;
    }
    case NodeKind::With: {
      std::vector<Value> values;
      for (std::size_t i = 2; i < n.parts.size(); i += 2) values.push_back(eval(*n.parts[i]));
      const Scope inner(*this);
      for (std::size_t i = 1; i < n.parts.size(); i += 2) assign(*n.parts[i], values[i / 2]);
      return run(*n.parts[0]);
    }
    case NodeKind::Scope: {
      const Scope inner(*this);
      return run(*n.parts[0]);
    }
    case NodeKind::Break: return Flow::Break;
    case NodeKind::Continue: return Flow::Continue;
    default: fail("an expression stands where a statement should");
  }
}

Renderer::Flow Renderer::block(const Node& n) {
  for (const Node* part : n.parts)
    if (const Flow flow = run(*part); flow != Flow::On) return flow;
  return Flow::On;
}

Renderer::Flow Renderer::branch(const Node& n) {
  std::size_t i = 0;
  for (; i + 1 < n.parts.size(); i += 2)
    if (truthy(eval(*n.parts[i]))) return run(*n.parts[i + 1]);
  return i < n.parts.size() ? run(*n.parts[i]) : Flow::On;
}

Renderer::Flow Renderer::loop(const Node& n) {
  std::vector<Value> all = members(m_, eval(*n.parts[1]));
  if (const Node* condition = n.parts[2]) {
    std::vector<Value> kept;
    for (Value& v : all) {
      const Scope inner(*this);
      assign(*n.parts[0], v);
      if (truthy(eval(*condition))) kept.push_back(std::move(v));
    }
    all = std::move(kept);
  }
  if (all.empty()) {
    const Scope inner(*this);
    return n.parts[4] ? run(*n.parts[4]) : Flow::On;
  }
  m_.make(sizeof(Loop) + sizeof(List));
  loops_.push_back({std::make_shared<const List>(List{std::move(all)}), 0, nullptr});
  Loop& l = loops_.back();
  for (; l.index < l.items->items.size(); ++l.index) {
    const Scope inner(*this);
    set("loop", {&l});
    assign(*n.parts[0], l.items->items[l.index]);
    const Flow flow = run(*n.parts[3]);
    if (flow == Flow::Break) break;
  }
  return Flow::On;
}

void Renderer::define(const Node& n) {
  for (Frame* f = frame_; f && !f->kept; f = f->outer) f->kept = true;
  m_.make(2 * sizeof(Macro));
  macros_.push_back({&n, frame_});
  set(n.text, {static_cast<const Macro*>(&macros_.back())});
}

std::string Renderer::captured(const Node& n, Flow* flow) {
  std::string inner;
  std::string* outer = std::exchange(out_, &inner);
  const Scope scope(*this);
  const Flow how = run(n);
  out_ = outer;
  if (flow) *flow = how;
  return inner;
}

Renderer::Flow Renderer::set_block(const Node& n) {
  Flow flow = Flow::On;
  Value v = text(m_, captured(*n.parts[2], &flow));
  if (n.parts[1]) v = filtered(*n.parts[1], &v);
  assign(*n.parts[0], v);
  return flow;
}

// ---- expressions --------------------------------------------------------------------------------

Value Renderer::eval(const Node& n) {
  const Level level(depth_);
  m_.step();
  line_ = n.line;
  switch (n.kind) {
    case NodeKind::Literal: return n.value;
    case NodeKind::Name: return name(n);
    case NodeKind::ListOf: return list_of(n, false);
    case NodeKind::TupleOf: return list_of(n, true);
    case NodeKind::DictOf: return dict_of(n);
    case NodeKind::Member: return member_of(eval(*n.parts[0]), n.text);
    case NodeKind::Item: return item_of(n);
    case NodeKind::Slice: return sliced(n);
    case NodeKind::Call: return called(n);
    case NodeKind::Filter: return filtered(n, nullptr);
    case NodeKind::Test: return {test(m_, n.text, arguments(n, 0))};
    case NodeKind::Unary: {
      const Value v = eval(*n.parts[0]);
      return n.text == "not" ? Value{!truthy(v)} : negative(v, n.text == "-");
    }
    case NodeKind::Binary: {
      const Value a = eval(*n.parts[0]), b = eval(*n.parts[1]);
      line_ = n.line;
      return binary(m_, n.text, a, b);
    }
    case NodeKind::Join: return joined(n);
    case NodeKind::Compare: return compared(n);
    case NodeKind::And: {
      Value a = eval(*n.parts[0]);
      return truthy(a) ? eval(*n.parts[1]) : a;
    }
    case NodeKind::Or: {
      Value a = eval(*n.parts[0]);
      return truthy(a) ? a : eval(*n.parts[1]);
    }
    case NodeKind::Condition:
      if (truthy(eval(*n.parts[0]))) return eval(*n.parts[1]);
      return n.parts[2] ? eval(*n.parts[2])
                        : undefined("the condition is false, and there is no value for that: an 'else' is missing");
    default: fail("a statement stands where an expression should");
  }
}

Value Renderer::name(const Node& n) {
  for (const Frame* f = frame_; f; f = f->outer)
    for (const auto& [word, v] : f->variables) {
      m_.step();
      if (word == n.text) return v;
    }
  m_.make(n.text.size() + 64);
  return undefined(str_cat(in_quotes(n.text), " is undefined"));
}

Value Renderer::joined(const Node& n) {
  std::string s;
  for (const Node* part : n.parts) {
    const std::string more = str(m_, eval(*part));
    m_.make(more.size());
    s += more;
  }
  return text(m_, std::move(s));
}

Value Renderer::list_of(const Node& n, bool tuple) {
  std::vector<Value> all;
  for (const Node* part : n.parts) all.push_back(eval(*part));
  return list(m_, std::move(all), tuple);
}

Value Renderer::dict_of(const Node& n) {
  std::vector<std::pair<Value, Value>> all;
  for (std::size_t i = 0; i + 1 < n.parts.size(); i += 2) {
    Value key = eval(*n.parts[i]);
    all.emplace_back(std::move(key), eval(*n.parts[i + 1]));
  }
  return dict(m_, std::move(all));
}

Value Renderer::compared(const Node& n) {
  Value left = eval(*n.parts[0]);
  for (std::size_t i = 0; i < n.words.size(); ++i) {
    Value right = eval(*n.parts[i + 1]);
    line_ = n.line;
    const std::string& op = n.words[i];
    bool holds;
    if (op == "==" || op == "!=") holds = equal(m_, left, right) == (op == "==");
    else if (op == "in" || op == "not in") holds = contains(m_, right, left) == (op == "in");
    else {
      const int order = compare(m_, left, right);
      holds = order != 2 && (op == "<" ? order < 0 : op == "<=" ? order <= 0 : op == ">" ? order > 0 : order >= 0);
    }
    if (!holds) return {false};
    left = std::move(right);
  }
  return {true};
}

Value Renderer::member_of(const Value& of, std::string_view name) {
  if (const auto* space = of.as<Space*>()) {
    for (const auto& [word, v] : (*space)->items) {
      m_.step();
      if (word == name) return v;
    }
    return undefined(str_cat("the namespace has no attribute ", in_quotes(name)));
  }
  const auto* loop = of.as<Loop*>();
  if (!loop) return member(m_, of, name);
  const Loop& l = **loop;
  const auto i = static_cast<std::int64_t>(l.index), n = static_cast<std::int64_t>(l.items->items.size());
  if (name == "index") return {i + 1};
  if (name == "index0") return {i};
  if (name == "revindex") return {n - i};
  if (name == "revindex0") return {n - i - 1};
  if (name == "first") return {i == 0};
  if (name == "last") return {i + 1 == n};
  if (name == "length") return {n};
  if (name == "depth") return {std::int64_t{1}};  // loops are not recursive
  if (name == "depth0") return {std::int64_t{0}};
  if (name == "previtem" && i > 0) return l.items->items[l.index - 1];
  if (name == "nextitem" && i + 1 < n) return l.items->items[l.index + 1];
  return undefined(name == "previtem"   ? "there is no previous item"
                   : name == "nextitem" ? "there is no next item"
                                        : str_cat("'loop' has no attribute ", in_quotes(name)));
}

Value Renderer::item_of(const Node& n) {
  const Value of = eval(*n.parts[0]), key = eval(*n.parts[1]);
  line_ = n.line;
  if ((of.as<Space*>() || of.as<Loop*>()) && key.text()) return member_of(of, *key.text());
  return item(m_, of, key);
}

Value Renderer::sliced(const Node& n) {
  const Value of = eval(*n.parts[0]);
  Value ends[3];
  for (std::size_t i = 0; i < 3; ++i) ends[i] = n.parts[i + 1] ? eval(*n.parts[i + 1]) : Value{None{}};
  line_ = n.line;
  return slice(m_, of, &ends[0], &ends[1], &ends[2]);
}

// Evaluates arguments. In a call, parts[0] is the callee, and the arguments follow.
Arguments Renderer::arguments(const Node& n, std::size_t first) {
  Arguments a;
  for (std::size_t i = first; i < n.parts.size(); ++i) a.given.push_back(eval(*n.parts[i]));
  for (const auto& [word, part] : n.named) a.named.emplace_back(word, eval(*part));
  line_ = n.line;
  return a;
}

Value Renderer::filtered(const Node& n, const Value* of) {
  Arguments a;
  // A chain of filters after a block begins with the text of the block.
  a.given.push_back(!n.parts[0]                                  ? *of
                    : n.parts[0]->kind == NodeKind::Filter && of ? filtered(*n.parts[0], of)
                                                                 : eval(*n.parts[0]));
  for (std::size_t i = 1; i < n.parts.size(); ++i) a.given.push_back(eval(*n.parts[i]));
  for (const auto& [word, part] : n.named) a.named.emplace_back(word, eval(*part));
  line_ = n.line;
  return filter(m_, n.text, std::move(a));
}

Value Renderer::called(const Node& n) {
  const Node& what = *n.parts[0];
  Value object, f;
  if (what.kind == NodeKind::Member) {
    object = eval(*what.parts[0]);
    if (object.as<Space*>()) f = member_of(object, what.text);
  } else {
    f = eval(what);
  }
  const Arguments a = arguments(n, 1);
  if (what.kind == NodeKind::Member && object.as<Loop*>()) return loop_method(**object.as<Loop*>(), what.text, a);
  if (what.kind == NodeKind::Member && !object.as<Space*>()) return method(m_, object, what.text, a);
  if (const auto* macro = f.as<const Macro*>()) return call_macro(**macro, a);
  if (const auto* function = f.as<Function>())
    return *function == Function::Namespace ? make_namespace(a) : jinja::function(m_, *function, a, now_);
  if (f.undefined()) fail(*f.as<Undefined>()->why);
  fail("'", type_name(f), "' object is not callable");
}

Value Renderer::call_macro(const Macro& macro, const Arguments& a) {
  const Node& n = *macro.node;
  const Level level(depth_);
  if (a.given.size() > n.words.size() && !n.rest)
    fail("macro ", in_quotes(n.text), " takes not more than ", n.words.size(), " argument(s)");
  for (const auto& [word, v] : a.named)
    if (!n.named_rest && std::find(n.words.begin(), n.words.end(), word) == n.words.end())
      fail("macro ", in_quotes(n.text), " takes no keyword argument ", in_quotes(word));
  const Scope scope(*this, macro.scope);
  for (std::size_t i = 0; i < n.words.size(); ++i) {
    const Value* given = a.find(i, n.words[i]);
    const Node* otherwise = n.parts[i + 1];
    set(n.words[i], given       ? *given
                    : otherwise ? eval(*otherwise)
                                : undefined(str_cat("parameter ", in_quotes(n.words[i]), " was not provided")));
  }
  if (n.rest) {
    const std::size_t from = std::min(a.given.size(), n.words.size());
    set("varargs", list(m_, {a.given.begin() + static_cast<std::ptrdiff_t>(from), a.given.end()}, true));
  }
  if (n.named_rest) {
    std::vector<std::pair<Value, Value>> rest;
    for (const auto& [word, v] : a.named)
      if (std::find(n.words.begin(), n.words.end(), word) == n.words.end())
        rest.emplace_back(text(m_, std::string(word)), v);
    set("kwargs", dict(m_, std::move(rest)));
  }
  return text(m_, captured(*n.parts[0], nullptr));
}

Value Renderer::make_namespace(const Arguments& a) {
  m_.make(sizeof(Space) + a.named.size() * 128);
  spaces_.emplace_back();
  Space& s = spaces_.back();
  if (const Value* from = a.find(0, "")) {
    if (!from->dict()) fail("namespace() takes a dict, or names with values");
    for (const auto& [key, value] : from->dict()->items) {
      if (!key.text()) fail("the names of a namespace are texts");
      m_.make(128 + key.text()->size());
      s.items.emplace_back(*key.text(), value);
    }
  }
  for (const auto& [name, value] : a.named) s.items.emplace_back(std::string(name), value);
  return {&s};
}

Value Renderer::loop_method(Loop& l, std::string_view name, const Arguments& a) {
  if (name == "cycle") {
    if (a.given.empty()) fail("no items for cycling given");
    return a.given[l.index % a.given.size()];
  }
  if (name != "changed") fail("'loop' has no method ", in_quotes(name));
  const Value now = list(m_, a.given);
  const bool same = l.last_changed && equal(m_, {l.last_changed}, now);
  l.last_changed = *now.as<std::shared_ptr<const List>>();
  return {!same};
}

}  // namespace

Template::Template(std::string_view source, std::string name) : name_(std::move(name)) {
  if (source.size() > kLongestTemplate)
    refuse(0, str_cat("a template of ", source.size(), " bytes, and at most ", kLongestTemplate, " are read"));
  try {
    tree_ = parse(source);
  } catch (const SyntaxFault& wrong) {
    refuse(wrong.line, wrong.what);
  } catch (const Fault& wrong) {
    refuse(0, wrong.what);
  }
}

void Template::refuse(std::uint32_t line, const std::string& what) const {
  throw file_error("chat template", name_, line ? str_cat("line ", line, ": ") : "", what);
}

std::string Template::run(Meter& m, Variables variables, std::time_t now) const {
  Renderer r(m, now);
  try {
    return r.run(*tree_.root, variables);
  } catch (const Fault& wrong) {
    refuse(r.line(), wrong.what);
  }
}

}  // namespace lc::jinja
