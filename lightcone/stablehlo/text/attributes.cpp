#include "lightcone/stablehlo/text/attributes.h"

#include <charconv>

#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"

namespace lc::stablehlo {
namespace {

using Kind = Attribute::Kind;

Attribute of_kind(Kind k, std::string text = {}, std::string name = {}) {
  Attribute a;
  a.kind = k, a.text = std::move(text), a.name = std::move(name);
  return a;
}

}  // namespace

// ---- types ----------------------------------------------------------------------------------------

// Parses tensor<2x?x3xf32>, tensor<f32>, tensor<?x4xf32, #stablehlo.bounds<...>>, after the word.
Type AttributeParser::tensor() {
  Type t;
  if (s_.peek() != '<') s_.expected("'<'");
  s_.eat("<");
  while (is_digit(s_.peek()) || s_.peek() == '?') {
    if (s_.peek() == '?') {
      s_.take();
      t.shape.push_back(kDynamic);
    } else {
      std::uint64_t n = 0;
      for (; is_digit(s_.peek()); s_.take()) {
        n = n * 10 + static_cast<std::uint64_t>(s_.peek() - '0');
        if (n >= std::uint64_t{1} << 48) s_.fail("an extent above 2^48");
      }
      t.shape.push_back(static_cast<std::int64_t>(n));
    }
    if (s_.peek() != 'x') s_.expected("'x'");
    s_.take();
    if (t.shape.size() > 64) s_.fail("a tensor of more than 64 axes");
  }
  if (s_.peek() == '*') {  // unranked
    t.is_tensor = false, t.element = "tensor<*>";
    s_.balanced('<', '>');
    return t;
  }
  const std::size_t from = s_.at();
  if (s_.peek() == '!') s_.take();
  s_.word();
  if (s_.peek() == '<') s_.balanced('<', '>');
  t.element = s_.since(from);
  while (!t.element.empty() && t.element.back() == ' ') t.element.pop_back();
  if (s_.eat(",")) s_.sees("#stablehlo.bounds") ? bounds(t) : (void)attribute();  // another encoding is a layout
  s_.expect(">");
  return t;
}

// Parses #stablehlo.bounds<8, ?>, the upper bounds of the extents.
void AttributeParser::bounds(Type& t) {
  s_.expect("#stablehlo.bounds");
  s_.expect("<");
  do t.bounds.push_back(s_.eat("?") ? kDynamic : s_.integer());
  while (t.bounds.size() < t.shape.size() && s_.eat(","));
  if (t.bounds.size() != t.shape.size()) s_.fail("bounds are one for each axis");
  s_.expect(">");
}

Type AttributeParser::type() {
  const Nested nested(depth_, s_);
  if (s_.eat_word("tensor")) return tensor();
  Type t;
  t.is_tensor = false;
  const std::size_t from = s_.at();
  if (s_.peek() == '(') {  // a function type
    s_.balanced('(', ')');
    if (s_.eat("->")) s_.peek() == '(' ? (void)s_.balanced('(', ')') : (void)type();
  } else if (s_.peek() == '!') {
    s_.take();
    const std::string name = s_.suffix();
    if (const auto it = type_aliases_.find(name); it != type_aliases_.end())
      return pay(memory_of(it->second)), it->second;
    if (s_.peek() == '<') s_.balanced('<', '>');
  } else {
    s_.word();
    if (s_.peek() == '<') s_.balanced('<', '>');
  }
  t.element = s_.since(from);
  while (!t.element.empty() && t.element.back() <= ' ') t.element.pop_back();
  return t;
}

std::vector<Type> AttributeParser::types() {
  std::vector<Type> all;
  do all.push_back(type());
  while (s_.eat(","));
  return all;
}

std::vector<Type> AttributeParser::types_in_round() {
  s_.expect("(");
  if (s_.eat(")")) return {};
  std::vector<Type> all = types();
  s_.expect(")");
  return all;
}

// ---- attributes -----------------------------------------------------------------------------------

Attribute AttributeParser::attribute() {
  const Nested nested(depth_, s_);
  const char c = s_.peek();
  if (s_.sees_number()) return number(true);
  if (c == '"') {
    Attribute a = of_kind(Kind::String, s_.string());
    if (s_.eat(":")) type();
    return a;
  }
  if (c == '[') return list();
  if (c == '{') return fields({});
  if (c == '@') {
    s_.take();
    Attribute a = of_kind(Kind::Symbol, s_.suffix());
    while (s_.eat("::")) s_.expect("@"), a.text += "::" + s_.suffix();
    return a;
  }
  if (c == '#') return dialect();
  if (s_.eat_word("true") || s_.sees_word("false")) {
    Attribute a = of_kind(Kind::Bool);
    a.integer = !s_.eat_word("false");
    return a;
  }
  if (s_.eat_word("unit")) return of_kind(Kind::Unit);
  if (s_.eat_word("array")) return array();
  if (s_.eat_word("dense")) return dense();
  if (s_.sees_word("dense_resource")) s_.fail("the elements of dense_resource<> are not in the text");
  if (s_.eat_word("loc")) {
    s_.balanced('(', ')');
    return of_kind(Kind::Unit);
  }
  for (const char* map : {"affine_map", "affine_set", "strided", "sparse", "opaque"})
    if (s_.eat_word(map)) return of_kind(Kind::String, std::string(s_.balanced('<', '>')));
  Attribute a = of_kind(Kind::Type);
  a.type = type();
  return a;
}

Attribute AttributeParser::number(bool with_type) {
  const Place at = s_.place();
  const std::string_view n = s_.number();
  const bool hex = n.find('x') != std::string_view::npos;
  Attribute a = of_kind(!hex && n.find_first_of(".eE") != std::string_view::npos ? Kind::Real : Kind::Integer);
  a.type.shape = {};
  if (a.kind == Kind::Real) {
    a.real = *real_of<double>(n);
    a.type.element = "f64";
  } else {
    Scanner digits(n);
    try {
      a.integer = digits.integer();
    } catch (const Error&) {
      Scanner::fail_at(at, str_cat("'", n.substr(0, 40), "' is not a whole number of 64 bits"));
    }
    a.type.element = "i64";
  }
  if (with_type && s_.eat(":")) a.type = type();
  return a;
}

Attribute AttributeParser::list() {
  Attribute a = of_kind(Kind::List);
  s_.expect("[");
  while (!s_.eat("]")) {
    a.list.push_back(attribute());
    if (!s_.eat(",") && s_.peek() != ']') s_.expected("',' or ']'");
  }
  return a;
}

std::vector<std::int64_t> AttributeParser::integers() {
  std::vector<std::int64_t> all;
  s_.expect("[");
  while (!s_.eat("]")) {
    if (s_.eat_word("true")) all.push_back(1);
    else if (s_.eat_word("false")) all.push_back(0);
    else all.push_back(s_.integer());
    if (!s_.eat(",") && s_.peek() != ']') s_.expected("',' or ']'");
  }
  return all;
}

// Parses array<i64: 1, 2>, array<i1: true>, array<i64>, after the word.
Attribute AttributeParser::array() {
  Attribute a = of_kind(Kind::Integers);
  s_.expect("<");
  a.type.element = s_.word();
  if (a.type.element.starts_with("f")) s_.fail("an array of floats is not read");
  if (s_.eat(":")) do
      a.integers.push_back(s_.eat_word("true") ? 1 : s_.eat_word("false") ? 0 : s_.integer());
    while (s_.eat(","));
  s_.expect(">");
  return a;
}

AttributeList AttributeParser::dictionary() {
  AttributeList all;
  s_.expect("{");
  while (!s_.eat("}")) {
    std::string name = s_.peek() == '"' ? s_.string() : std::string(s_.word());
    all.emplace_back(std::move(name), s_.eat("=") ? attribute() : of_kind(Kind::Unit));
    if (!s_.eat(",") && s_.peek() != '}') s_.expected("',' or '}'");
  }
  return all;
}

Attribute AttributeParser::fields(std::string name) {
  Attribute a = of_kind(Kind::Struct, {}, std::move(name));
  a.fields = dictionary();
  return a;
}

// Parses #stablehlo<comparison_direction LT>, #stablehlo.gather<a = [1], b = 2>, #alias.
Attribute AttributeParser::dialect() {
  s_.take();
  const std::string name = s_.suffix();
  if (const auto it = aliases_.find(name); it != aliases_.end()) return pay(memory_of(it->second)), it->second;
  if (s_.peek() != '<') s_.fail(str_cat("#", name, " is not defined"));
  if (name == "stablehlo.conv") return convolution_dimensions(true);
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos) {  // an enumeration; others are kept as their text
    Scanner inside(s_.balanced('<', '>'));
    const std::string_view kind = inside.word_or_nothing(), value = inside.word_or_nothing();
    return of_kind(Kind::Enum, std::string(value.empty() ? kind : value), std::string(kind));
  }
  if (!name.starts_with("stablehlo.") && !name.starts_with("mhlo."))
    return of_kind(Kind::String, std::string(s_.balanced('<', '>')), name);
  Attribute a = of_kind(Kind::Struct, {}, name.substr(dot + 1));
  s_.expect("<");
  while (!s_.eat(">")) {
    if (s_.peek() == '[' || s_.sees_number()) {
      a.list.push_back(attribute());
    } else {
      std::string field(s_.word());
      a.fields.emplace_back(std::move(field), s_.eat("=") ? attribute() : of_kind(Kind::Unit));
    }
    if (!s_.eat(",") && s_.peek() != '>') s_.expected("',' or '>'");
  }
  return a;
}

// Parses <[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>: the batch, feature and spatial axes of each operand.
Attribute AttributeParser::convolution_dimensions(bool in_angles) {
  if (in_angles) s_.expect("<");
  Attribute a = of_kind(Kind::Struct, {}, "conv");
  const auto side = [&](const std::string& which, const char* first, char first_letter, const char* second,
                        char second_letter) {
    s_.expect("[");
    std::int64_t one = -1, two = -1, axis = 0;
    std::map<std::int64_t, std::int64_t> spatial;
    for (; !s_.eat("]"); ++axis) {
      if (s_.peek() == first_letter) s_.take(), s_.skip(), one = axis;
      else if (s_.peek() == second_letter) s_.take(), s_.skip(), two = axis;
      else if (s_.peek() == '?') s_.take(), s_.skip();
      else spatial[s_.integer()] = axis;
      if (!s_.eat(",") && s_.peek() != ']') s_.expected("',' or ']'");
    }
    if (one < 0 || two < 0)
      s_.fail(
          str_cat("the axes of the ", which, " lack '", std::string(1, one < 0 ? first_letter : second_letter), "'"));
    Attribute n = of_kind(Kind::Integer);
    n.integer = one, a.fields.emplace_back(which + first, n);
    n.integer = two, a.fields.emplace_back(which + second, n);
    Attribute axes = of_kind(Kind::Integers);
    for (std::int64_t k = 0; const auto& [number, at] : spatial) {
      if (number != k++) s_.fail(str_cat("the spatial axes of the ", which, " are not 0, 1, ..."));
      axes.integers.push_back(at);
    }
    a.fields.emplace_back(which + "_spatial_dimensions", axes);
  };
  side("input", "_batch_dimension", 'b', "_feature_dimension", 'f');
  s_.expect("x");
  side("kernel", "_input_feature_dimension", 'i', "_output_feature_dimension", 'o');
  s_.expect("->");
  side("output", "_batch_dimension", 'b', "_feature_dimension", 'f');
  if (in_angles) s_.expect(">");
  return a;
}

// Parses <elements> : type.
Attribute AttributeParser::dense() {
  const Place at = s_.place();
  // The type follows the elements and is needed to read them.
  Scanner elements = s_;
  s_.balanced('<', '>');
  s_.expect(":");
  Attribute a = of_kind(Kind::Dense);
  a.type = type();
  if (!a.type.is_tensor) Scanner::fail_at(at, "dense<> is not of a tensor's type");
  elements.expect("<");
  read_elements(elements, a, a.type);
  elements.expect(">");
  return a;
}

void AttributeParser::pay(std::size_t bytes) {
  if (bytes > left_)
    s_.fail(str_cat("the module takes more than 256 times the memory of its text, which has ", text_, " bytes"));
  left_ -= bytes;
}

void AttributeParser::skip_location() {
  if (s_.eat_word("loc")) s_.balanced('(', ')');
}

void AttributeParser::alias() {
  const bool is_type = s_.peek() == '!';
  s_.take();
  const std::string name = s_.suffix();
  s_.expect("=");
  if (is_type) {
    type_aliases_[name] = type();
  } else {
    aliases_[name] = attribute();
  }
}

}  // namespace lc::stablehlo
