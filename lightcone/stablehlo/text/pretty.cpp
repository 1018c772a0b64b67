// The pretty form of StableHLO's operations: words, lists and types in eight patterns.
#include <algorithm>
#include <array>

#include "lightcone/base/error.h"
#include "lightcone/stablehlo/text/parser.h"

namespace lc::stablehlo {
namespace {

using Kind = Attribute::Kind;

Attribute whole(std::int64_t v) {  // integers without a type have 32 bits in the pretty form
  Attribute a;
  a.kind = Kind::Integer, a.integer = v, a.type.element = "i32";
  return a;
}
Attribute wholes(std::vector<std::int64_t> v) {
  Attribute a;
  a.kind = Kind::Integers, a.integers = std::move(v), a.type.element = "i64";
  return a;
}
Attribute enumeration(std::string value, std::string name) {
  Attribute a;
  a.kind = Kind::Enum, a.text = std::move(value), a.name = std::move(name);
  return a;
}
Attribute text(std::string value, Kind kind = Kind::String) {
  Attribute a;
  a.kind = kind, a.text = std::move(value);
  return a;
}

Attribute* find(Operation& op, std::string_view name) {
  for (auto& [key, value] : op.attributes)
    if (key == name) return &value;
  return nullptr;
}

struct Rename {
  std::string_view op, pretty, generic;
};
constexpr std::array kRenames = {
    Rename{"stablehlo.broadcast_in_dim", "dims", "broadcast_dimensions"},
    Rename{"stablehlo.dynamic_broadcast_in_dim", "dims", "broadcast_dimensions"},
    Rename{"stablehlo.transpose", "dims", "permutation"},
    Rename{"stablehlo.reverse", "dims", "dimensions"},
    Rename{"stablehlo.concatenate", "dim", "dimension"},
    Rename{"stablehlo.get_dimension_size", "dim", "dimension"},
    Rename{"stablehlo.set_dimension_size", "dim", "dimension"},
    Rename{"stablehlo.iota", "dim", "iota_dimension"},
    Rename{"stablehlo.dynamic_iota", "dim", "iota_dimension"},
    Rename{"stablehlo.pad", "low", "edge_padding_low"},
    Rename{"stablehlo.pad", "high", "edge_padding_high"},
    Rename{"stablehlo.pad", "interior", "interior_padding"},
    Rename{"stablehlo.dynamic_slice", "sizes", "slice_sizes"},
    Rename{"stablehlo.broadcast", "sizes", "broadcast_sizes"},
    Rename{"stablehlo.fft", "type", "fft_type"},
    Rename{"stablehlo.fft", "length", "fft_length"},
    Rename{"stablehlo.rng_bit_generator", "algorithm", "rng_algorithm"},
    Rename{"stablehlo.rng", "distribution", "rng_distribution"},
};

}  // namespace

void rename_pretty_attributes(Operation& op) {
  for (const Rename& r : kRenames)
    if (op.name == r.op)
      if (auto it = std::ranges::find(op.attributes, r.pretty, &NamedAttribute::first); it != op.attributes.end()) {
        it->first = r.generic;
        if (it->second.kind == Kind::Enum) it->second.name = r.generic;
      }
  if (op.name == "stablehlo.reduce_precision")
    if (const Attribute* format = op.find("format"); format && !format->text.empty()) {  // e5m10
      Scanner s(std::string_view(format->text).substr(1));
      const std::int64_t exponent = s.integer();
      if (!s.eat("m")) s.expected("e<bits>m<bits>");
      const std::int64_t mantissa = s.integer();
      std::erase_if(op.attributes, [](const NamedAttribute& a) { return a.first == "format"; });
      op.attributes.emplace_back("exponent_bits", whole(exponent));
      op.attributes.emplace_back("mantissa_bits", whole(mantissa));
    }
}

void Parser::pretty(Operation& op, const std::vector<Result>& left) {
  const std::string_view n = op.name;
  if (n == "stablehlo.constant" || n == "chlo.constant") return constant(op, left);
  if (n == "stablehlo.reduce" && s_.peek() == '(') return reduce(op, left);
  if (n == "stablehlo.while") return while_loop(op, left);
  if (n == "chlo.scan") return scan(op, left);
  if (n == "func.call" || n == "stablehlo.custom_call") return symbol_call(op, left);
  if (n == "stablehlo.convolution" || n == "stablehlo.dynamic_conv") return convolution(op, left);
  if (s_.peek() == '"' && n == "stablehlo.composite") {
    op.attributes.emplace_back("name", text(s_.string()));
    items(op);
  } else if (s_.eat("(")) {  // chlo.top_k(%0, k = 2)
    items(op);
    s_.expect(")");
  } else {
    items(op);
  }
  for (auto& a : attributes_.dictionary_or_nothing()) op.attributes.push_back(std::move(a));
  signature(op, left);
  rename_pretty_attributes(op);
}

void Parser::items(Operation& op) {
  for (bool first = true;; first = false) {
    if (!item(op)) {
      if (!first) s_.expected("an operand or an attribute");
      return;
    }
    if (op.name == "stablehlo.slice" && s_.peek() == '[') slice_ranges(op);
    if (!s_.eat(",")) return;
  }
}

bool Parser::item(Operation& op) {
  if (s_.peek() == '%') {
    op.operands.push_back(operand());
    if (op.name == "stablehlo.get_tuple_element" && s_.eat("[")) {
      op.attributes.emplace_back("index", whole(s_.integer()));
      s_.expect("]");
    }
    return true;
  }
  if (s_.sees_word("dense")) {  // check.expect_eq_const %0, dense<...> : T; the type is also the operand's
    s_.eat_word("dense");
    op.attributes.emplace_back("value", attributes_.dense());
    return true;
  }
  const std::string key(s_.word_or_nothing());
  if (key.empty()) return false;
  if (!s_.eat("=")) {  // compare LT, ..., FLOAT
    const bool first = op.operands.empty();
    op.attributes.emplace_back(first ? "comparison_direction" : "compare_type",
                               enumeration(key, first ? "comparison_direction" : "comparison_type"));
    return true;
  }
  if (key == "batching_dims" || key == "contracting_dims") dot_dimensions(op, key);
  else if (key == "precision") precision(op);
  else if (key == "algorithm" && s_.peek() == '<') s_.balanced('<', '>');
  else if (s_.peek() == '[') op.attributes.emplace_back(key, wholes(attributes_.integers()));
  else if (key == "format") op.attributes.emplace_back(key, text(std::string(s_.word())));
  else if (key == "algorithm" || key == "distribution" || key == "type")
    op.attributes.emplace_back(key, enumeration(std::string(s_.word()), key));
  else if (s_.peek() == '"') op.attributes.emplace_back(key, text(s_.string()));
  else op.attributes.emplace_back(key, s_.sees_number() ? attributes_.number(false) : attributes_.attribute());
  return true;
}

// Parses the forms of types: none; (A, B) -> C; (A, B) -> (C, D); A, B -> C; one type for all; or one for each operand,
// of which the last one is also the result's.
void Parser::signature(Operation& op, const std::vector<Result>& left) {
  if (op.name == "func.return" || op.name == "stablehlo.return") {
    if (s_.eat(":")) {
      const Place at = s_.place();
      check_types(op, attributes_.types(), at);
    }
    return;
  }
  if (!s_.eat(":")) {
    if (op.find("value") || left.empty()) return;  // check.expect_eq_const has parsed its type
    s_.expected("':' and types");
  }
  const Place at = s_.place();
  const bool round = s_.peek() == '(';
  std::vector<Type> in = round ? attributes_.types_in_round() : attributes_.types();
  if (s_.eat("->")) {
    check_types(op, in, at);
    return define(op, left, s_.peek() == '(' ? attributes_.types_in_round() : attributes_.types(), op.at);
  }
  if (round) s_.expected("'->'");
  if (op.name == "stablehlo.select" && in.size() == 2 && op.operands.size() == 3) in = {in[0], in[1], in[1]};
  if (op.name == "stablehlo.clamp" && in.size() == 1) {  // bounds may be scalars
    if (op.operands.size() != 3) Scanner::fail_at(at, "stablehlo.clamp has three operands");
  } else if (in.size() == 1 && op.name != "stablehlo.complex") {  // stablehlo.complex has the type of its result
    for (const ValueId v : op.operands) check_type(v, in[0], at);
  } else if (in.size() > 1) {
    check_types(op, in, at);
  }
  std::int64_t wanted = 0;
  for (const Result& r : left) wanted += r.count;
  attributes_.pay(static_cast<std::size_t>(wanted) * memory_of(in.back()));
  define(op, left, std::vector<Type>(static_cast<std::size_t>(wanted), in.back()), op.at);
}

void Parser::constant(Operation& op, const std::vector<Result>& left) {
  op.attributes = attributes_.dictionary_or_nothing();
  if (!s_.eat_word("dense")) {
    if (s_.sees_word("dense_resource")) s_.fail("the elements of dense_resource<> are not in the text");
    s_.expected("dense<...>");
  }
  Attribute value = attributes_.dense();
  const Type t = value.type;
  op.attributes.emplace_back("value", std::move(value));
  define(op, left, {t}, op.at);
}

// ---- reduce ---------------------------------------------------------------------------------------

// Parses one of the two forms
//   (%x init: %z), (%y init: %w) applies stablehlo.add across dimensions = [1] : types
//   (%x init: %z) across dimensions = [1] : types reducer(%a: T, %b: T) { ... }
void Parser::reduce(Operation& op, const std::vector<Result>& left) {
  std::vector<ValueId> init;
  do {
    s_.expect("(");
    op.operands.push_back(operand());
    if (!s_.eat_word("init")) s_.expected("'init:'");
    s_.expect(":");
    init.push_back(operand());
    s_.expect(")");
  } while (s_.eat(","));
  op.operands.insert(op.operands.end(), init.begin(), init.end());
  std::string applied;
  if (s_.eat_word("applies")) applied = s_.word();
  if (!s_.eat_word("across")) s_.expected("'across dimensions'");
  if (!s_.eat_word("dimensions")) s_.expected("'dimensions'");
  s_.expect("=");
  op.attributes.emplace_back("dimensions", wholes(attributes_.integers()));
  for (auto& a : attributes_.dictionary_or_nothing()) op.attributes.push_back(std::move(a));
  s_.expect(":");
  const Place at = s_.place();
  check_types(op, attributes_.types_in_round(), at);
  s_.expect("->");
  const std::vector<Type> types = s_.peek() == '(' ? attributes_.types_in_round() : std::vector{attributes_.type()};
  reduce_body(op, applied, types);
  define(op, left, types, op.at);
}

void Parser::reduce_body(Operation& op, std::string_view applied, const std::vector<Type>& types) {
  Block b;
  scopes_.emplace_back();
  if (!applied.empty()) {
    if (types.empty()) s_.fail("a reduction of nothing");
    const Type scalar{.element = types[0].element};
    b.arguments = {m_.value(scalar), m_.value(scalar)};
    const ValueId joined = m_.value(scalar);
    b.operations.push_back(
        {.name = std::string(applied), .operands = b.arguments, .results = {joined}, .regions = {}, .at = op.at});
    b.operations.push_back({.name = "stablehlo.return", .operands = {joined}, .regions = {}, .at = op.at});
  } else {
    if (!s_.eat_word("reducer")) s_.expected("'reducer'");
    // The text has pairs (%a0: T, %b0: T) (%a1: U, %b1: U); the region takes all first arguments before all second
    // ones.
    std::vector<ValueId> first, second;
    while (s_.peek() == '(') {
      Block pair;
      block_arguments(pair);
      if (pair.arguments.size() != 2) s_.fail("a reducer takes pairs");
      first.push_back(pair.arguments[0]), second.push_back(pair.arguments[1]);
    }
    b.arguments = first;
    b.arguments.insert(b.arguments.end(), second.begin(), second.end());
    s_.expect("{");
    operations(b);
  }
  scopes_.pop_back();
  op.regions.push_back(std::move(b));
}

// ---- while, calls -----------------------------------------------------------------------------------

// Parses (%a = %x, %b = %y) : A, B cond { ... } do { ... }.
void Parser::while_loop(Operation& op, const std::vector<Result>& left) {
  std::vector<std::string> names;
  s_.expect("(");
  while (!s_.eat(")")) {
    s_.expect("%");
    names.push_back(s_.suffix());
    s_.expect("=");
    op.operands.push_back(operand());
    if (!s_.eat(",") && s_.peek() != ')') s_.expected("',' or ')'");
  }
  std::vector<Type> types;
  const Place at = s_.place();
  if (s_.eat(":")) types = attributes_.types();
  check_types(op, types, at);
  if (s_.eat_word("attributes")) op.attributes = attributes_.dictionary();
  for (const char* part : {"cond", "do"}) {
    if (!s_.eat_word(part)) s_.expected(str_cat("'", part, "'"));
    Block b;
    scopes_.emplace_back();
    for (std::size_t k = 0; k < names.size(); ++k) {
      b.arguments.push_back(m_.value(types[k], names[k]));
      define(names[k], {b.arguments.back()}, at);
    }
    s_.expect("{");
    operations(b);
    scopes_.pop_back();
    op.regions.push_back(std::move(b));
  }
  define(op, left, types, op.at);
}

// Parses (%x, %y) inits(%z) dimension = 0 attributes {is_reverse = true} { ^bb0(...): ... } : types.
void Parser::scan(Operation& op, const std::vector<Result>& left) {
  operands_in_round(op);
  const auto inputs = static_cast<std::int64_t>(op.operands.size());
  if (!s_.eat_word("inits")) s_.expected("'inits'");
  operands_in_round(op);
  const std::int64_t inits = static_cast<std::int64_t>(op.operands.size()) - inputs;
  op.attributes.emplace_back("operandSegmentSizes", wholes({inputs, inits}));
  if (!s_.eat_word("dimension")) s_.expected("'dimension'");
  s_.expect("=");
  op.attributes.emplace_back("dimension", whole(s_.integer()));
  if (s_.eat_word("attributes"))
    for (NamedAttribute& a : attributes_.dictionary()) op.attributes.push_back(std::move(a));
  op.regions.push_back(region());
  signature(op, left);
}

// Parses @f(%a, %b) {attributes} : (A, B) -> C.
void Parser::symbol_call(Operation& op, const std::vector<Result>& left) {
  s_.expect("@");
  if (op.name == "func.call") op.attributes.emplace_back("callee", text(s_.suffix(), Kind::Symbol));
  else op.attributes.emplace_back("call_target_name", text(s_.suffix()));
  operands_in_round(op);
  for (auto& a : attributes_.dictionary_or_nothing()) op.attributes.push_back(std::move(a));
  s_.expect(":");
  const Place at = s_.place();
  check_types(op, attributes_.types_in_round(), at);
  s_.expect("->");
  define(op, left, s_.peek() == '(' ? attributes_.types_in_round() : std::vector{attributes_.type()}, op.at);
}

// ---- the parts of single operations ---------------------------------------------------------------

void Parser::convolution(Operation& op, const std::vector<Result>& left) {
  operands_in_round(op);
  while (true) {
    const std::string key(s_.word_or_nothing());
    if (key.empty()) break;
    s_.expect("=");
    if (key == "window") window(op);
    else if (key == "dim_numbers")
      op.attributes.emplace_back("dimension_numbers", attributes_.convolution_dimensions(false));
    else s_.fail(str_cat("'", key, "' of a convolution is not known"));
    if (!s_.eat(",")) break;
  }
  for (auto& a : attributes_.dictionary_or_nothing()) op.attributes.push_back(std::move(a));
  signature(op, left);
}

// Parses {stride = [1, 1], pad = [[1, 1], [2, 2]], lhs_dilate = [2, 2], rhs_dilate = .., reverse = [false, true]}.
void Parser::window(Operation& op) {
  s_.expect("{");
  while (!s_.eat("}")) {
    const std::string key(s_.word());
    s_.expect("=");
    if (key == "pad") {
      Attribute a;
      a.kind = Kind::Dense, a.type.element = "i64";
      s_.expect("[");
      while (!s_.eat("]")) {
        for (const std::int64_t v : attributes_.integers()) {
          const auto* bytes = reinterpret_cast<const std::byte*>(&v);
          a.data.insert(a.data.end(), bytes, bytes + sizeof v);
        }
        if (!s_.eat(",") && s_.peek() != ']') s_.expected("',' or ']'");
      }
      a.type.shape = {static_cast<std::int64_t>(a.data.size() / 16), 2};
      op.attributes.emplace_back("padding", std::move(a));
    } else {
      const std::string name = key == "stride"       ? "window_strides"
                               : key == "lhs_dilate" ? "lhs_dilation"
                               : key == "rhs_dilate" ? "rhs_dilation"
                               : key == "reverse"    ? "window_reversal"
                                                     : key;
      op.attributes.emplace_back(name, wholes(attributes_.integers()));
    }
    if (!s_.eat(",") && s_.peek() != '}') s_.expected("',' or '}'");
  }
}

// Parses [0:1, 0:6:2]: from, to, step.
void Parser::slice_ranges(Operation& op) {
  std::vector<std::int64_t> start, limit, stride;
  s_.expect("[");
  while (!s_.eat("]")) {
    start.push_back(s_.integer());
    s_.expect(":");
    limit.push_back(s_.integer());
    stride.push_back(s_.eat(":") ? s_.integer() : 1);
    if (!s_.eat(",") && s_.peek() != ']') s_.expected("',' or ']'");
  }
  op.attributes.emplace_back("start_indices", wholes(start));
  op.attributes.emplace_back("limit_indices", wholes(limit));
  op.attributes.emplace_back("strides", wholes(stride));
}

// Parses [0] x [1].
void Parser::dot_dimensions(Operation& op, const std::string& key) {
  Attribute* dims = find(op, "dot_dimension_numbers");
  if (!dims) {
    Attribute a;
    a.kind = Kind::Struct, a.name = "dot";
    op.attributes.emplace_back("dot_dimension_numbers", std::move(a));
    dims = &op.attributes.back().second;
  }
  const std::string what = key == "batching_dims" ? "_batching_dimensions" : "_contracting_dimensions";
  Attribute lhs = wholes(attributes_.integers());
  if (!s_.eat("x")) s_.expected("'x'");
  dims->fields.emplace_back("lhs" + what, std::move(lhs));
  dims->fields.emplace_back("rhs" + what, wholes(attributes_.integers()));
}

void Parser::precision(Operation& op) {
  Attribute a;
  a.kind = Kind::List;
  s_.expect("[");
  while (!s_.eat("]")) {
    a.list.push_back(enumeration(std::string(s_.word()), "precision"));
    if (!s_.eat(",") && s_.peek() != ']') s_.expected("',' or ']'");
  }
  op.attributes.emplace_back("precision_config", std::move(a));
}

}  // namespace lc::stablehlo
