#include "lightcone/io/jinja/parser.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "lightcone/base/numbers.h"
#include "lightcone/io/printable.h"

namespace lc::jinja {
namespace {

using NodeKind = Node::Kind;
using What = Token::Kind;
using Ref = const Node*;
using Names = std::initializer_list<std::string_view>;

class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(tokens_of(source)) {}
  Tree run() {
    tree_.root = block({});
    return std::move(tree_);
  }

 private:
  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  template <class... Ts>
  [[noreturn]] void fail(const Ts&... what) const {
    throw SyntaxFault{str_cat(what...), now().line};
  }
  std::string shown() const {
    switch (now().kind) {
      case What::End: return "the end of the template";
      case What::BlockEnd: return "'%}'";
      case What::PrintEnd: return "'}}'";
      default: return in_quotes(now().text);
    }
  }
  bool is(What kind, std::string_view text) const { return now().kind == kind && now().text == text; }
  bool sign(std::string_view s) const { return is(What::Sign, s); }
  bool name(std::string_view s) const { return is(What::Name, s); }
  bool take_sign(std::string_view s) { return sign(s) && ++at_; }
  bool take_name(std::string_view s) { return name(s) && ++at_; }
  void need_sign(std::string_view s) {
    if (!take_sign(s)) fail("'", s, "' is expected, and there is ", shown());
  }
  void need_name(std::string_view s) {
    if (!take_name(s)) fail("'", s, "' is expected, and there is ", shown());
  }
  std::string any_name() {
    if (now().kind != What::Name) fail("a name is expected, and there is ", shown());
    return tokens_[at_++].text;
  }
  void need_end(What kind) {
    if (now().kind != kind) fail("the tag should end here, and there is ", shown());
    ++at_;
  }

  Ref add(Node n, std::uint32_t line) {
    n.line = line;
    for (Ref p : n.parts) n.depth = std::max(n.depth, p ? p->depth + 1 : 1);
    for (const auto& [word, p] : n.named) n.depth = std::max(n.depth, p->depth + 1);
    if (n.depth > kDeepestNode) fail("too much within each other");
    tree_.nodes.push_back(std::move(n));
    return &tree_.nodes.back();
  }
  Ref add(NodeKind kind, std::uint32_t line, std::vector<Ref> parts, std::string text = "") {
    return add({.kind = kind, .text = std::move(text), .parts = std::move(parts)}, line);
  }
  Ref literal(std::uint32_t line, Value v) {
    return add({.kind = NodeKind::Literal, .text = "", .value = std::move(v)}, line);
  }
  Value text_value(std::string s) { return {std::make_shared<const std::string>(std::move(s))}; }

  // statements
  Ref block(Names ends);
  Ref body(Names ends) {
    need_end(What::BlockEnd);
    return block(ends);
  }
  Ref statement();
  Ref if_statement(std::uint32_t line);
  Ref for_statement(std::uint32_t line);
  Ref set_statement(std::uint32_t line);
  Ref macro_statement(std::uint32_t line);
  Ref filter_statement(std::uint32_t line);
  Ref with_statement(std::uint32_t line);
  Ref target(bool of_namespace);
  void end(std::string_view word) {
    need_name(word);
    need_end(What::BlockEnd);
  }

  // expressions, from the lowest precedence on
  Ref expression(bool condition = true);
  Ref tuple(bool condition, bool parentheses, std::string_view stop = "");
  template <class Next>
  Ref left_to_right(Names signs, const Next& next);
  Ref either();
  Ref both();
  Ref negation();
  Ref comparison();
  Ref sum() {
    return left_to_right({"+", "-"}, [&] { return joined(); });
  }
  Ref joined();
  Ref product() {
    return left_to_right({"*", "//", "/", "%"}, [&] { return power(); });
  }
  Ref power() {
    return left_to_right({"**"}, [&] { return unary(true); });
  }
  Ref unary(bool filters);
  Ref primary();
  Ref list();
  Ref dict();
  Ref postfix(Ref n);
  Ref subscript(Ref n);
  Ref filtered(Ref n);
  Ref filter(Ref n);
  Ref test(Ref n);
  void arguments(Node& n);
  std::string dotted_name();

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0, loops_ = 0;
  bool rest_ = false, named_rest_ = false;  // see Node
  Tree tree_;
};

// Counts nested parts of the text. Unlike Level, it throws SyntaxFault.
class Nested {
 public:
  Nested(int& depth, std::uint32_t line) : depth_(depth) {
    if (++depth_ > kDeepestNode) throw SyntaxFault{"too much within each other", line};
  }
  ~Nested() { --depth_; }

 private:
  int& depth_;
};

Ref Parser::block(Names ends) {
  const Nested level(depth_, now().line);
  const std::uint32_t line = now().line;
  std::vector<Ref> parts;
  for (;;) {
    const std::uint32_t here = now().line;
    if (now().kind == What::Data) {
      parts.push_back(
          add({.kind = NodeKind::Data, .text = "", .value = text_value(std::move(tokens_[at_].text))}, here));
      ++at_;
    } else if (now().kind == What::PrintBegin) {
      ++at_;
      parts.push_back(add(NodeKind::Print, here, {tuple(true, false)}));
      need_end(What::PrintEnd);
    } else if (now().kind == What::BlockBegin) {
      ++at_;
      if (now().kind == What::Name && std::find(ends.begin(), ends.end(), now().text) != ends.end()) break;
      parts.push_back(statement());
    } else {
      if (ends.size() > 0) fail("the template ends where '", *(ends.end() - 1), "' is expected");
      break;
    }
  }
  return add(NodeKind::Block, line, std::move(parts));
}

Ref Parser::statement() {
  const std::uint32_t line = now().line;
  const std::string word = any_name();
  if (word == "if") return if_statement(line);
  if (word == "for") return for_statement(line);
  if (word == "set") return set_statement(line);
  if (word == "macro") return macro_statement(line);
  if (word == "filter") return filter_statement(line);
  if (word == "with") return with_statement(line);
  if (word == "generation") {  // transformers marks the output of a model with this tag
    const Ref inner = body({"endgeneration"});
    end("endgeneration");
    return add(NodeKind::Scope, line, {inner});
  }
  if (word == "break" || word == "continue") {
    if (loops_ == 0) throw SyntaxFault{str_cat("'", word, "' outside a loop"), line};
    need_end(What::BlockEnd);
    return add(word == "break" ? NodeKind::Break : NodeKind::Continue, line, {});
  }
  throw SyntaxFault{str_cat("the tag ", in_quotes(word), " is unknown here, or not supported"), line};
}

Ref Parser::if_statement(std::uint32_t line) {
  std::vector<Ref> parts;
  for (;;) {
    parts.push_back(tuple(false, false));
    parts.push_back(body({"elif", "else", "endif"}));
    if (!take_name("elif")) break;
  }
  if (take_name("else")) parts.push_back(body({"endif"}));
  end("endif");
  return add(NodeKind::If, line, std::move(parts));
}

Ref Parser::for_statement(std::uint32_t line) {
  const Ref to = target(false);
  need_name("in");
  const Ref in = tuple(false, false, "recursive");
  const Ref condition = take_name("if") ? expression() : nullptr;
  if (name("recursive")) fail("recursive loops are not supported");
  ++loops_;
  const Ref inner = body({"else", "endfor"});
  --loops_;
  const Ref none = take_name("else") ? body({"endfor"}) : nullptr;
  end("endfor");
  return add(NodeKind::For, line, {to, in, condition, inner, none});
}

Ref Parser::set_statement(std::uint32_t line) {
  const Ref to = target(true);
  if (take_sign("=")) {
    const Ref value = tuple(true, false);
    need_end(What::BlockEnd);
    return add(NodeKind::Set, line, {to, value});
  }
  Ref through = nullptr;
  while (sign("|")) through = filter(through);
  const Ref inner = body({"endset"});
  end("endset");
  return add(NodeKind::SetBlock, line, {to, through, inner});
}

Ref Parser::macro_statement(std::uint32_t line) {
  Node n{.kind = NodeKind::Macro, .text = any_name(), .parts = {nullptr}};
  need_sign("(");
  while (!sign(")")) {
    if (!n.words.empty()) need_sign(",");
    if (sign(")")) break;
    n.words.push_back(any_name());
    n.parts.push_back(take_sign("=") ? expression() : nullptr);
  }
  need_sign(")");
  const int outside = std::exchange(loops_, 0);
  const bool rest = std::exchange(rest_, false), named_rest = std::exchange(named_rest_, false);
  n.parts[0] = body({"endmacro"});
  loops_ = outside;
  const auto is_parameter = [&](const char* word) {
    return std::find(n.words.begin(), n.words.end(), word) != n.words.end();
  };
  n.rest = rest_ && !is_parameter("varargs"), n.named_rest = named_rest_ && !is_parameter("kwargs");
  rest_ = rest_ || rest, named_rest_ = named_rest_ || named_rest;  // they are used in the enclosing macro, too
  end("endmacro");
  return add(std::move(n), line);
}

Ref Parser::filter_statement(std::uint32_t line) {
  Ref through = nullptr;
  --at_;  // the name of the tag takes the place of the sign
  tokens_[at_] = {What::Sign, line, "|"};
  while (sign("|")) through = filter(through);
  const Ref inner = body({"endfilter"});
  end("endfilter");
  return add(NodeKind::FilterOf, line, {through, inner});
}

Ref Parser::with_statement(std::uint32_t line) {
  std::vector<Ref> parts{nullptr};
  while (now().kind != What::BlockEnd) {
    if (parts.size() > 1) need_sign(",");
    parts.push_back(target(false));
    need_sign("=");
    parts.push_back(expression());
  }
  parts[0] = body({"endwith"});
  end("endwith");
  return add(NodeKind::With, line, std::move(parts));
}

// Parses the target of an assignment: a name, several names with commas, or a member of a namespace.
Ref Parser::target(bool of_namespace) {
  const std::uint32_t line = now().line;
  const bool brackets = take_sign("(");
  std::vector<Ref> names;
  for (;;) {
    const std::string word = any_name();
    if (word == "true" || word == "false" || word == "none" || word == "True" || word == "False" || word == "None")
      fail(in_quotes(word), " cannot be given a value");
    names.push_back(add(NodeKind::Name, line, {}, word));
    if (of_namespace && names.size() == 1 && take_sign(".")) return add(NodeKind::Member, line, {names[0]}, any_name());
    if (!take_sign(",")) break;
    if (now().kind != What::Name || name("in")) break;
  }
  if (brackets) need_sign(")");
  return names.size() == 1 && !(tokens_[at_ - 1].kind == What::Sign && tokens_[at_ - 1].text == ",")
             ? names[0]
             : add(NodeKind::TupleOf, line, std::move(names));
}

Ref Parser::expression(bool condition) {
  const Nested level(depth_, now().line);
  const std::uint32_t line = now().line;
  Ref n = either();
  while (condition && take_name("if")) {
    const Ref when = either();
    n = add(NodeKind::Condition, line, {when, n, take_name("else") ? expression() : nullptr});
  }
  return n;
}

Ref Parser::tuple(bool condition, bool parentheses, std::string_view stop) {
  const std::uint32_t line = now().line;
  std::vector<Ref> parts;
  bool commas = false;
  for (;;) {
    const bool ends =
        now().kind == What::PrintEnd || now().kind == What::BlockEnd || sign(")") || (!stop.empty() && name(stop));
    if (ends) break;
    parts.push_back(expression(condition));
    if (!take_sign(",")) break;
    commas = true;
  }
  if (!commas && !parts.empty()) return parts[0];
  if (parts.empty() && !parentheses) fail("an expression is expected, and there is ", shown());
  return add(NodeKind::TupleOf, line, std::move(parts));
}

template <class Next>
Ref Parser::left_to_right(Names signs, const Next& next) {
  const std::uint32_t line = now().line;
  Ref n = next();
  while (now().kind == What::Sign && std::find(signs.begin(), signs.end(), now().text) != signs.end()) {
    const std::string op = tokens_[at_++].text;
    const Ref right = next();
    n = add(NodeKind::Binary, line, {n, right}, op);
  }
  return n;
}

Ref Parser::either() {
  const std::uint32_t line = now().line;
  Ref n = both();
  while (take_name("or")) {
    const Ref right = both();
    n = add(NodeKind::Or, line, {n, right});
  }
  return n;
}

Ref Parser::both() {
  const std::uint32_t line = now().line;
  Ref n = negation();
  while (take_name("and")) {
    const Ref right = negation();
    n = add(NodeKind::And, line, {n, right});
  }
  return n;
}

Ref Parser::negation() {
  const std::uint32_t line = now().line;
  if (!take_name("not")) return comparison();
  const Nested level(depth_, line);
  return add(NodeKind::Unary, line, {negation()}, "not");
}

Ref Parser::comparison() {
  Node n{.kind = NodeKind::Compare, .text = "", .parts = {sum()}};
  const std::uint32_t line = now().line;
  for (;;) {
    static constexpr std::string_view kSigns[] = {"==", "!=", "<", "<=", ">", ">="};
    if (now().kind == What::Sign && std::find(std::begin(kSigns), std::end(kSigns), now().text) != std::end(kSigns)) {
      n.words.push_back(tokens_[at_++].text);
    } else if (take_name("in")) {
      n.words.push_back("in");
    } else if (name("not") && ahead().kind == What::Name && ahead().text == "in") {
      at_ += 2;
      n.words.push_back("not in");
    } else {
      break;
    }
    n.parts.push_back(sum());
  }
  if (n.words.empty()) return n.parts[0];
  return add(std::move(n), line);
}

Ref Parser::joined() {
  const std::uint32_t line = now().line;
  std::vector<Ref> parts{product()};
  while (take_sign("~")) parts.push_back(product());
  return parts.size() == 1 ? parts[0] : add(NodeKind::Join, line, std::move(parts));
}

Ref Parser::unary(bool filters) {
  const std::uint32_t line = now().line;
  Ref n;
  if (sign("-") || sign("+")) {
    const Nested level(depth_, line);
    const std::string op = tokens_[at_++].text;
    n = add(NodeKind::Unary, line, {unary(false)}, op);
  } else {
    n = primary();
  }
  n = postfix(n);
  return filters ? filtered(n) : n;
}

Ref Parser::primary() {
  const std::uint32_t line = now().line;
  if (now().kind == What::Name) {
    const std::string word = tokens_[at_++].text;
    rest_ = rest_ || word == "varargs", named_rest_ = named_rest_ || word == "kwargs";
    if (word == "true" || word == "True") return literal(line, {true});
    if (word == "false" || word == "False") return literal(line, {false});
    if (word == "none" || word == "None") return literal(line, {None{}});
    return add(NodeKind::Name, line, {}, word);
  }
  if (now().kind == What::String) {
    std::string s;
    while (now().kind == What::String) s += tokens_[at_++].text;
    return literal(line, text_value(std::move(s)));
  }
  if (now().kind == What::Whole) {
    const std::string& s = now().text;
    std::int64_t n = 0;
    if (std::from_chars(s.data(), s.data() + s.size(), n).ec != std::errc()) fail(s, " is beyond 64 bits");
    ++at_;
    return literal(line, {n});
  }
  if (now().kind == What::Real) return literal(line, {*real_of<double>(tokens_[at_++].text)});
  if (take_sign("(")) {
    const Ref n = tuple(true, true);
    need_sign(")");
    return n;
  }
  if (sign("[")) return list();
  if (sign("{")) return dict();
  fail("unexpected ", shown());
}

Ref Parser::list() {
  const std::uint32_t line = now().line;
  need_sign("[");
  std::vector<Ref> parts;
  while (!sign("]")) {
    if (!parts.empty()) need_sign(",");
    if (sign("]")) break;
    parts.push_back(expression());
  }
  need_sign("]");
  return add(NodeKind::ListOf, line, std::move(parts));
}

Ref Parser::dict() {
  const std::uint32_t line = now().line;
  need_sign("{");
  std::vector<Ref> parts;
  while (!sign("}")) {
    if (!parts.empty()) need_sign(",");
    if (sign("}")) break;
    parts.push_back(expression());
    need_sign(":");
    parts.push_back(expression());
  }
  need_sign("}");
  return add(NodeKind::DictOf, line, std::move(parts));
}

Ref Parser::postfix(Ref n) {
  for (;;) {
    const std::uint32_t line = now().line;
    if (sign(".") || sign("[")) {
      n = subscript(n);
    } else if (sign("(")) {
      Node call{.kind = NodeKind::Call, .text = "", .parts = {n}};
      arguments(call);
      n = add(std::move(call), line);
    } else {
      return n;
    }
  }
}

Ref Parser::subscript(Ref n) {
  const std::uint32_t line = now().line;
  if (take_sign(".")) {
    if (now().kind == What::Name) return add(NodeKind::Member, line, {n}, any_name());
    if (now().kind != What::Whole) fail("a name is expected, and there is ", shown());
    return add(NodeKind::Item, line, {n, primary()});
  }
  need_sign("[");
  Ref parts[3] = {nullptr, nullptr, nullptr};
  std::size_t colons = 0;
  for (;;) {
    if (!sign(":") && !sign("]")) parts[colons] = expression();
    if (colons == 2 || !take_sign(":")) break;
    ++colons;
  }
  need_sign("]");
  if (colons) return add(NodeKind::Slice, line, {n, parts[0], parts[1], parts[2]});
  if (!parts[0]) fail("there is nothing between the brackets");
  return add(NodeKind::Item, line, {n, parts[0]});
}

Ref Parser::filtered(Ref n) {
  for (;;) {
    if (sign("|")) n = filter(n);
    else if (name("is")) n = test(n);
    else if (sign("(")) n = postfix(n);
    else return n;
  }
}

std::string Parser::dotted_name() {
  std::string word = any_name();
  while (take_sign(".")) word += "." + any_name();
  return word;
}

Ref Parser::filter(Ref n) {
  const std::uint32_t line = now().line;
  need_sign("|");
  Node f{.kind = NodeKind::Filter, .text = dotted_name(), .parts = {n}};
  if (sign("(")) arguments(f);
  return add(std::move(f), line);
}

Ref Parser::test(Ref n) {
  const std::uint32_t line = now().line;
  need_name("is");
  const bool negated = take_name("not");
  Node t{.kind = NodeKind::Test, .text = dotted_name(), .parts = {n}};
  const bool operand = now().kind == What::String || now().kind == What::Whole || now().kind == What::Real ||
                       sign("[") || sign("{") ||
                       (now().kind == What::Name && !name("else") && !name("or") && !name("and"));
  if (sign("(")) {
    arguments(t);
  } else if (operand) {
    if (name("is")) fail("a test of a test needs brackets");
    t.parts.push_back(postfix(primary()));
  }
  const Ref found = add(std::move(t), line);
  return negated ? add(NodeKind::Unary, line, {found}, "not") : found;
}

void Parser::arguments(Node& n) {
  need_sign("(");
  for (bool first = true; !sign(")"); first = false) {
    if (!first) need_sign(",");
    if (sign(")")) break;
    if (sign("*") || sign("**")) fail("arguments behind '*' are not supported");
    if (now().kind == What::Name && ahead().kind == What::Sign && ahead().text == "=") {
      std::string word = any_name();
      need_sign("=");
      n.named.emplace_back(std::move(word), expression());
    } else {
      if (!n.named.empty()) fail("an argument without a name stands behind one with a name");
      n.parts.push_back(expression());
    }
  }
  need_sign(")");
}

}  // namespace

Tree parse(std::string_view source) { return Parser(source).run(); }

}  // namespace lc::jinja
