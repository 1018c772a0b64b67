#include <algorithm>

#include "lightcone/base/error.h"
#include "lightcone/stablehlo/text/parser.h"

namespace lc::stablehlo {

Module parse(std::string_view text) {
  if (text.starts_with("ML\xEFR")) return parse_bytecode(std::as_bytes(std::span(text)));
  return Parser(text).run();
}

Module Parser::run() {
  scopes_.emplace_back();
  top_level();
  return std::move(m_);
}

// Parses one module, or the functions of one without its brackets.
void Parser::top_level() {
  while (!s_.done()) {
    if (s_.peek() == '#' || s_.peek() == '!') {
      attributes_.alias();
    } else if (s_.sees("\"builtin.module\"")) {
      s_.string();
      s_.expect("(");
      s_.expect(")");
      Operation op;
      if (s_.eat("<")) op.attributes = attributes_.dictionary(), s_.expect(">");
      s_.expect("(");
      s_.expect("{");
      if (s_.eat("^")) s_.suffix(), s_.expect(":");
      module_body(true);
      s_.expect(")");
      for (auto& a : attributes_.dictionary_or_nothing()) op.attributes.push_back(std::move(a));
      s_.expect(":");
      attributes_.type();
      if (const Attribute* name = op.find("sym_name")) m_.name = name->text;
      m_.attributes = std::move(op.attributes);
    } else if (s_.eat_word("module") || s_.eat_word("builtin.module")) {
      if (s_.peek() == '@') s_.take(), m_.name = s_.suffix();
      if (s_.eat_word("attributes")) m_.attributes = attributes_.dictionary();
      s_.expect("{");
      module_body(true);
    } else {
      module_body(false);
    }
    attributes_.skip_location();
  }
}

void Parser::module_body(bool in_braces) {
  while (!(in_braces && s_.eat("}"))) {
    if (s_.done()) {
      if (in_braces) s_.expected("'}'");
      return;
    }
    if (s_.peek() == '#' || s_.peek() == '!') {
      attributes_.alias();
      continue;
    }
    if (s_.eat_word("func.func") || s_.eat_word("func")) {
      m_.functions.push_back(function());
    } else if (s_.sees("\"func.func\"")) {
      m_.functions.push_back(function_of(operation()));
    } else if (s_.sees_word("module") || s_.sees_word("builtin.module") || s_.sees("\"builtin.module\"")) {
      s_.fail("a module within a module is not read");
    } else {
      s_.expected("a function");
    }
    attributes_.skip_location();
  }
}

// ---- functions ------------------------------------------------------------------------------------

Function Parser::function() {
  Function f;
  f.at = s_.place();
  f.is_public = !s_.eat_word("private");
  s_.eat_word("public"), s_.eat_word("nested");
  s_.expect("@");
  f.name = s_.suffix();
  scopes_.emplace_back();
  function_arguments(f);
  if (s_.eat("->")) function_results(f);
  if (s_.eat_word("attributes")) attributes_.dictionary();
  if (s_.peek() == '{') {
    s_.expect("{");
    operations(f.body);
  }
  scopes_.pop_back();
  return f;
}

void Parser::function_arguments(Function& f) {
  s_.expect("(");
  bool any = false;
  while (!s_.eat(")")) {
    const Place at = s_.place();
    std::string name;
    if (s_.peek() == '%') s_.take(), name = s_.suffix(), s_.expect(":");  // missing in a declaration
    const ValueId v = m_.value(attributes_.type(), name);
    if (!name.empty()) define(name, {v}, at);
    f.body.arguments.push_back(v);
    f.argument_attributes.push_back(attributes_.dictionary_or_nothing());
    any |= !f.argument_attributes.back().empty();
    attributes_.skip_location();
    if (!s_.eat(",") && s_.peek() != ')') s_.expected("',' or ')'");
  }
  if (!any) f.argument_attributes.clear();
}

void Parser::function_results(Function& f) {
  if (s_.peek() != '(') return f.results.push_back(attributes_.type());
  s_.expect("(");
  bool any = false;
  while (!s_.eat(")")) {
    f.results.push_back(attributes_.type());
    f.result_attributes.push_back(attributes_.dictionary_or_nothing());
    any |= !f.result_attributes.back().empty();
    if (!s_.eat(",") && s_.peek() != ')') s_.expected("',' or ')'");
  }
  if (!any) f.result_attributes.clear();
}

// Converts "func.func"() <{function_type = (A) -> B, sym_name = "main"}> ({^bb0(%a: A): ...}) : () -> ().
Function Parser::function_of(const Operation& generic) {
  Function f;
  f.at = generic.at;
  const auto fail = [&](const std::string& what) { Scanner::fail_at(generic.at, "func.func " + what); };
  const Attribute *name = generic.find("sym_name"), *type = generic.find("function_type"),
                  *visible = generic.find("sym_visibility");
  if (!name || name->text.empty()) fail("has no sym_name");
  if (!type || type->kind != Attribute::Kind::Type) fail("has no function_type");
  if (generic.regions.size() != 1) fail("has no body");
  f.name = name->text;
  f.is_public = !visible || visible->text != "private";
  f.body = generic.regions[0];
  Scanner s(type->type.element);
  AttributeParser types(s);
  types.types_in_round();
  s.expect("->");
  f.results = s.peek() == '(' ? types.types_in_round() : types.types();
  const auto lists = [&](const char* attribute, std::vector<AttributeList>& into) {
    if (const Attribute* a = generic.find(attribute))
      for (const Attribute& each : a->list) into.push_back(each.fields);
  };
  lists("arg_attrs", f.argument_attributes);
  lists("res_attrs", f.result_attributes);
  if (f.argument_attributes.size() != f.body.arguments.size()) f.argument_attributes.clear();
  if (f.result_attributes.size() != f.results.size()) f.result_attributes.clear();
  return f;
}

// ---- regions --------------------------------------------------------------------------------------

void Parser::block_arguments(Block& b) {
  s_.expect("(");
  while (!s_.eat(")")) {
    const Place at = s_.place();
    s_.expect("%");
    const std::string name = s_.suffix();
    s_.expect(":");
    const ValueId v = m_.value(attributes_.type(), name);
    define(name, {v}, at);
    b.arguments.push_back(v);
    attributes_.skip_location();
    if (!s_.eat(",") && s_.peek() != ')') s_.expected("',' or ')'");
  }
}

Block Parser::region() {
  const Nested nested(depth_, s_);
  Block b;
  s_.expect("{");
  scopes_.emplace_back();
  if (s_.peek() == '^') {
    s_.take();
    s_.suffix();
    if (s_.peek() == '(') block_arguments(b);
    s_.expect(":");
  }
  operations(b);
  scopes_.pop_back();
  return b;
}

void Parser::operations(Block& b) {
  while (!s_.eat("}")) {
    if (s_.done()) s_.expected("'}'");
    if (s_.peek() == '^') {
      if (b.operations.empty() && b.arguments.empty()) {
        s_.take(), s_.suffix();
        if (s_.peek() == '(') block_arguments(b);
        s_.expect(":");
        continue;
      }
      s_.fail("a region of several blocks is not read");
    }
    b.operations.push_back(operation());
  }
}

// ---- operations -----------------------------------------------------------------------------------

Operation Parser::operation() {
  const Nested nested(depth_, s_);
  Operation op;
  const std::vector<Result> left = results();
  op.at = s_.place();
  if (s_.peek() == '"') {
    op.name = s_.string();
    generic(op, left);
  } else {
    op.name = s_.word();
    if (op.name.find('.') == std::string::npos) op.name = "func." + op.name;  // return, call
    pretty(op, left);
  }
  attributes_.skip_location();
  return op;
}

std::vector<Parser::Result> Parser::results() {
  std::vector<Result> left;
  while (s_.peek() == '%') {
    s_.take();
    Result r{s_.suffix()};
    if (s_.eat(":")) r.count = s_.integer();
    if (r.count < 1 || r.count > 10000) s_.fail("so many results are not read");
    left.push_back(std::move(r));
    if (!s_.eat(",")) {
      s_.expect("=");
      break;
    }
  }
  return left;
}

void Parser::generic(Operation& op, const std::vector<Result>& left) {
  operands_in_round(op);
  if (s_.eat("[")) s_.fail("successors are not read");
  generic_attributes(op);
  s_.expect(":");
  const Place at = s_.place();
  check_types(op, attributes_.types_in_round(), at);
  s_.expect("->");
  define(op, left, s_.peek() == '(' ? attributes_.types_in_round() : std::vector{attributes_.type()}, op.at);
}

// Parses <{properties}> ({region}, {region}) {attributes}.
void Parser::generic_attributes(Operation& op) {
  if (s_.eat("<")) op.attributes = attributes_.dictionary(), s_.expect(">");
  if (s_.eat("(")) {
    do op.regions.push_back(region());
    while (s_.eat(","));
    s_.expect(")");
  }
  for (auto& a : attributes_.dictionary_or_nothing()) op.attributes.push_back(std::move(a));
}

void Parser::operands_in_round(Operation& op) {
  s_.expect("(");
  while (!s_.eat(")")) {
    op.operands.push_back(operand());
    if (!s_.eat(",") && s_.peek() != ')') s_.expected("',' or ')'");
  }
}

ValueId Parser::operand() {
  const Place at = s_.place();
  if (s_.peek() != '%') s_.expected("a value");
  s_.take();
  const std::string name = s_.suffix();
  std::int64_t which = 0;
  const bool of_several = s_.peek() == '#';
  if (of_several) s_.take(), which = s_.integer();
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    if (const auto it = scope->find(name); it != scope->end()) {
      const auto& values = it->second.values;
      if (which < 0 || which >= static_cast<std::int64_t>(values.size()))
        Scanner::fail_at(at, str_cat("%", name, " has ", values.size(), " values, and no number ", which));
      return values[which];
    }
  Scanner::fail_at(at, str_cat("%", name, " is not defined"));
}

void Parser::define(const std::string& name, std::vector<ValueId> values, Place at) {
  if (!scopes_.back().try_emplace(name, Names{std::move(values)}).second)
    Scanner::fail_at(at, str_cat("%", name, " is defined twice"));
}

void Parser::define(Operation& op, const std::vector<Result>& left, const std::vector<Type>& types, Place at) {
  std::int64_t wanted = 0;
  for (const Result& r : left) wanted += r.count;
  if (!left.empty() && wanted != static_cast<std::int64_t>(types.size()))
    Scanner::fail_at(at, str_cat(op.name, " has ", types.size(), " results, not ", wanted));
  for (const Type& t : types) {
    attributes_.pay(sizeof(Value) + memory_of(t));
    op.results.push_back(m_.value(t));
  }
  std::size_t next = 0;
  for (const Result& r : left) {
    std::vector<ValueId> values;
    for (std::int64_t k = 0; k < r.count; ++k) values.push_back(op.results[next++]);
    m_.values[values[0]].name = r.name;
    define(r.name, std::move(values), at);
  }
}

void Parser::check_types(const Operation& op, const std::vector<Type>& types, Place at) const {
  if (types.size() != op.operands.size())
    Scanner::fail_at(
        at, str_cat(op.name, " has ", op.operands.size(), " operands and ", types.size(), " types of operands"));
  for (std::size_t k = 0; k < types.size(); ++k) check_type(op.operands[k], types[k], at);
}
void Parser::check_type(ValueId operand, const Type& t, Place at) const {
  const Value& v = m_.values[operand];
  if (!(v.type == t)) Scanner::fail_at(at, str_cat("%", v.name, " is ", str(v.type), ", not ", str(t)));
}

}  // namespace lc::stablehlo
