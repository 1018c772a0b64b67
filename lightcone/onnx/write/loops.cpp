// Loops. What the body returns unchanged is read from outside of it, and rows that a step writes into a stack are
// scanned outputs, so that no step copies the stack.
#include <algorithm>

#include "lightcone/base/error.h"
#include "lightcone/onnx/write/translate.h"

namespace lc::onnx {
namespace {

const Operation* maker_of(const Block& b, ValueId v) {
  for (const Operation& o : b.operations)
    if (std::ranges::find(o.results, v) != o.results.end()) return &o;
  return nullptr;
}

int reads_of(const Block& b, ValueId v) {
  int n = 0;
  for (const Operation& o : b.operations) n += static_cast<int>(std::ranges::count(o.operands, v));
  return n;
}

class LoopTranslator {
 public:
  LoopTranslator(Translator& t, const Operation& o)
      : t_(t), e_(t.emitter()), o_(o), condition_(o.regions.at(0)), body_(o.regions.at(1)) {
    const auto& next = body_.operations.back().operands;
    for (std::size_t k = 1; k < next.size(); ++k) {
      if (next[k] == body_.arguments[k]) roles_.push_back(Role::Same);
      else roles_.push_back(row_of(k) ? Role::Stack : Role::Carried);
    }
  }

  void write() {
    const auto length = counted();
    for (std::size_t k = 1; k < o_.operands.size(); ++k)
      if (role(k) == Role::Carried || !e_.is_splat(t_.in(o_, k))) e_.name(t_.in(o_, k));  // outside of the body
    std::vector<std::string> inputs{length ? e_.scalar(*length) : std::string(), {}};
    if (!length) inputs[1] = e_.name(goes_on([&](std::size_t k) { return t_.in(o_, k); }));
    for (std::size_t k = 1; k < o_.operands.size(); ++k)
      if (role(k) == Role::Carried) inputs.push_back(e_.name(t_.in(o_, k)));
    auto g = std::make_shared<OutGraph>();
    g->name = "body";
    e_.inside(*g, [&] { write_body(*g, length.has_value()); });
    const std::size_t count = g->outputs.size() - 1;
    const auto made = e_.nodes("Loop", std::move(inputs), count, {{"body", std::move(g)}});
    take(made);
  }

 private:
  enum class Role : std::uint8_t { Same, Stack, Carried };
  Role role(std::size_t k) const { return roles_[k - 1]; }

  // The operation that writes a row into the stack k, if that is all that happens to it.
  const Operation* row_of(std::size_t k) const {
    const Operation* o = maker_of(body_, body_.operations.back().operands[k]);
    const ValueId stack = body_.arguments[k];
    if (!o || o->name != "stablehlo.dynamic_update_slice" || o->operands[0] != stack || reads_of(body_, stack) != 1 ||
        reads_of(condition_, condition_.arguments[k]) != 0)
      return nullptr;
    return is_forward(*o) || is_backward(*o) ? o : nullptr;
  }
  bool is_forward(const Operation& o) const { return o.operands[2] == body_.arguments[0]; }
  bool is_backward(const Operation& o) const {
    const Operation* at = maker_of(body_, o.operands[2]);
    return at && at->name == "stablehlo.subtract" && at->operands[1] == body_.arguments[0];
  }

  // The number of steps, if nothing else ends the loop.
  std::optional<std::int64_t> counted() {
    const Operation* c = maker_of(condition_, condition_.operations.back().operands[0]);
    if (!c || c->name != "stablehlo.compare" || c->operands[0] != condition_.arguments[0]) return std::nullopt;
    const Operation* n = maker_of(condition_, c->operands[1]);
    if (!n || n->name != "stablehlo.constant") return std::nullopt;
    return load_i64(attribute(*n, "value").data.data(), DType::I64, 0);
  }

  Ref goes_on(const std::function<Ref(std::size_t)>& value) {
    for (std::size_t k = 0; k < condition_.arguments.size(); ++k) t_.give(condition_.arguments[k], value(k));
    return t_.block(condition_)[0];
  }

  OutPort port(const std::string& name, const Type& type) const {
    OutPort p{name, dtype_of_element(type.element), {}};
    if (!is_dynamic(type.shape)) p.shape = Shape(type.shape.begin(), type.shape.end());
    return p;
  }

  void write_body(OutGraph& g, bool counted) {
    const std::string step = e_.fresh(), before = e_.fresh();
    g.inputs = {port(step, {true, "i64", {}}), port(before, {true, "i1", {}})};
    t_.give(body_.arguments[0], e_.value(step, {true, "i64", {}}));
    for (std::size_t k = 1; k < body_.arguments.size(); ++k) {
      Ref r = t_.in(o_, k);
      if (role(k) == Role::Carried) {
        g.inputs.push_back(port(e_.fresh(), e_.type(r)));
        r = e_.value(g.inputs.back().name, e_.type(r));
      }
      t_.give(body_.arguments[k], r);
    }
    const std::vector<Ref> next = t_.block(body_);
    const auto returns = [&](const std::string& name, const Type& type) {
      g.outputs.push_back(port(e_.node("Identity", {name}), type));
    };
    returns(counted ? before : e_.name(goes_on([&](std::size_t k) { return next[k]; })), {true, "i1", {}});
    for (std::size_t k = 1; k < next.size(); ++k)
      if (role(k) == Role::Carried) returns(e_.name(next[k]), e_.type(next[k]));
    for (std::size_t k = 1; k < next.size(); ++k) {
      if (role(k) != Role::Stack) continue;
      const Ref row = t_[row_of(k)->operands[1]];
      Type type = e_.type(row);
      type.shape.erase(type.shape.begin());
      returns(e_.squeeze(e_.name(row), {0}), type);
    }
  }

  void take(const std::vector<std::string>& made) {
    std::size_t at = 0;
    t_.give(o_.results[0], t_.in(o_, 0));  // nobody reads the counter
    for (std::size_t k = 1; k < o_.results.size(); ++k) {
      if (role(k) == Role::Same) t_.give(o_.results[k], t_.in(o_, k));
      if (role(k) == Role::Carried) t_.give(o_.results[k], e_.value(made[at++], t_.result_type(o_, k)));
    }
    for (std::size_t k = 1; k < o_.results.size(); ++k) {
      if (role(k) != Role::Stack) continue;
      std::string rows = made[at++];
      if (!is_forward(*row_of(k))) rows = e_.slice(rows, {-1}, {INT64_MIN}, {0}, {-1});
      t_.give(o_.results[k], e_.value(rows, t_.result_type(o_, k)));
    }
  }

  Translator& t_;
  Emitter& e_;
  const Operation& o_;
  const Block &condition_, &body_;
  std::vector<Role> roles_;
};

constexpr Entry kLoopEntries[] = {
    {"stablehlo.while", [](Translator& t, const Operation& o) { LoopTranslator(t, o).write(); }},
};

}  // namespace

std::span<const Entry> loop_entries() { return kLoopEntries; }

}  // namespace lc::onnx
