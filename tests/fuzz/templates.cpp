// A generator of chat templates, whose words, numbers and counts a Mutator may falsify.
#include <initializer_list>
#include <iterator>

#include "mutator.h"

namespace fuzz {
namespace {

class TemplateMaker {
 public:
  explicit TemplateMaker(Mutator& l) : l_(l) {}
  std::string run() {
    std::string s =
        "{%- set ns = namespace(n=0, s='') -%}\n{% macro f(x, y='b') %}{{ " + word("x ~ y") + " }}{% endmacro %}\n";
    for (std::size_t i = l_.count(1 + l_.draw(6)); i > 0; --i) s += statement(0);
    return s;
  }

 private:
  std::string word(const std::string& truth) {
    static const std::string kWords[] = {"{%",
                                         "%}",
                                         "{{",
                                         "}}",
                                         "{#",
                                         "-%}",
                                         "(",
                                         ")",
                                         "[",
                                         "]",
                                         "{",
                                         "'",
                                         "\\",
                                         "\n",
                                         ".",
                                         "|",
                                         "~",
                                         "**",
                                         "//",
                                         "%",
                                         "-",
                                         "not ",
                                         "for x in messages",
                                         "if",
                                         "endif",
                                         "endfor",
                                         "else",
                                         "elif x",
                                         "set f",
                                         "set f = f",
                                         "macro f()",
                                         "endmacro",
                                         "raw",
                                         "endraw",
                                         "continue",
                                         "break",
                                         "include 'x'",
                                         "loop.index",
                                         "loop",
                                         "f",
                                         "f()",
                                         "f(f)",
                                         "ns",
                                         "namespace(a=ns)",
                                         "range(100000)",
                                         "raise_exception('\x1b[2J')",
                                         "9223372036854775807",
                                         "1e308",
                                         "none",
                                         "messages",
                                         "{'a': {}}",
                                         "[[], [1]]",
                                         " is ",
                                         " if ",
                                         " in ",
                                         "x.y.z",
                                         "'\\ud800'",
                                         "'\\x1b'",
                                         "strftime_now('%c')",
                                         ".append(1)",
                                         ".items()",
                                         "'a' * 99999999",
                                         "| sort",
                                         "| map('f')",
                                         "| int",
                                         "| default(ns)",
                                         "| sum",
                                         "| dictsort",
                                         "| tojson",
                                         "| join",
                                         "[::-1]",
                                         "[1:",
                                         "\xff",
                                         "\xE2\x80\xA8"};
    if (!l_.lies()) return truth;
    const std::uint64_t which = l_.draw(std::size(kWords) + 6);
    const std::size_t at = truth.empty() ? 0 : l_.draw(truth.size());
    if (which < std::size(kWords))
      return l_.draw(2) ? kWords[which] : truth.substr(0, at) + kWords[which] + truth.substr(at);
    return which % 2 ? l_.other_word(truth) : truth.substr(0, at);
  }
  // A tag with its brackets, each of which may be missing.
  std::string tag(const std::string& inner) {
    return (l_.draw(3) ? "{% " : "{%- ") + word(inner) + (l_.lies() ? "" : l_.draw(3) ? " %}" : " -%}");
  }
  std::string printed() { return "{{ " + word(text(0)) + (l_.lies() ? "" : " }}"); }
  std::string number(int depth) {
    switch (l_.draw(depth > 2 ? 1 : 6)) {
      case 0: return std::to_string(l_.number(l_.draw(9)));
      case 1: return "(" + number(depth + 1) + pick({" + ", " - ", " * "}) + number(depth + 1) + ")";
      case 2: return "(" + text(depth + 1) + " | length)";
      case 3: return "messages | length";
      case 4: return "(" + number(depth + 1) + word(" if ") + test(depth + 1) + " else " + number(depth + 1) + ")";
      default: return "ns.n";
    }
  }
  std::string text(int depth) {
    const int d = depth + 1;
    switch (l_.draw(depth > 2 ? 2 : 12)) {
      case 0: return "'" + word(pick({"a", " <|x|> ", "\\n", "b c\\td", "\xC3\xA4"})) + "'";
      case 1: return pick({"ns.s", "bos", "messages[0].content", "messages[-1]['role']"});
      case 2: return "(" + text(d) + " ~ " + text(d) + ")";
      case 3:
        return text(d) + word(pick({".strip()", ".upper()", ".split('a')[-1]", ".lstrip('a')", ".replace('a', 'bb')"}));
      case 4:
        return "(" + text(d) + " | " + word(pick({"trim", "upper", "e", "tojson", "reverse", "title", "indent"})) + ")";
      case 5: return "(" + list(d) + " | join(" + text(d) + "))";
      case 6: return "('ab' * " + std::to_string(l_.number(l_.draw(4))) + ")";
      case 7: return "('abcdef'[" + number(d) + ":" + number(d) + "])";
      case 8: return "f(" + text(d) + (l_.draw(2) ? ", y=" + text(d) : "") + ")";
      case 9: return "(" + text(d) + " if " + test(d) + " else " + text(d) + ")";
      case 10: return "(" + list(d) + " | tojson(indent=" + std::to_string(l_.number(2)) + "))";
      default: return "(" + number(d) + " | string)";
    }
  }
  std::string list(int depth) {
    const int d = depth + 1;
    switch (l_.draw(depth > 2 ? 2 : 7)) {
      case 0: return "range(" + std::to_string(l_.number(l_.draw(5))) + ")";
      case 1: return "messages";
      case 2: return "(messages | " + word("map(attribute='role')") + ")";
      case 3: return "[" + text(d) + ", " + number(d) + "]";
      case 4: return "messages[" + number(d) + "::" + std::to_string(1 + l_.number(l_.draw(3))) + "]";
      case 5: return "({'a': " + text(d) + ", 'b': 2}." + word("items") + "())";
      default: return "(" + list(d) + " | list)";
    }
  }
  std::string test(int depth) {
    const int d = depth + 1;
    switch (l_.draw(depth > 2 ? 1 : 6)) {
      case 0: return pick({"true", "x is defined", "add_generation_prompt", "ns.n is odd"});
      case 1: return "(" + text(d) + word(" == ") + text(d) + ")";
      case 2: return "(" + text(d) + word(" in ") + text(d) + ")";
      case 3: return "(" + number(d) + " < " + number(d) + ")";
      case 4: return "(not " + test(d) + word(" and ") + test(d) + ")";
      default: return "(" + list(d) + " | length > 1)";
    }
  }
  std::string body(int depth) {
    std::string s = l_.draw(2) ? "\n  " : "";
    for (std::size_t i = l_.count(1 + l_.draw(2)); i > 0; --i) s += statement(depth + 1);
    return s;
  }
  std::string statement(int depth) {
    switch (l_.draw(depth > 3 ? 2 : 8)) {
      case 0: return printed() + (l_.draw(2) ? "\n" : "");
      case 1: return word(" words, \xE4\xBD\xA0 and { braces }\n");
      case 2: return tag("if " + test(0)) + body(depth) + tag("else") + body(depth) + tag("endif");
      case 3: return tag("for m in " + list(0)) + body(depth) + (l_.draw(3) ? "" : tag("break")) + tag("endfor");
      case 4: return tag("set ns.n = ns.n + 1");
      case 5: return tag("set ns.s = (" + text(0) + ")[:40]");
      case 6: return tag("set y | trim") + body(depth) + tag("endset");
      default: return "{# " + word("a comment") + (l_.lies() ? "" : " #}");
    }
  }
  std::string pick(std::initializer_list<const char*> all) { return *(all.begin() + l_.draw(all.size())); }

  Mutator& l_;
};

}  // namespace

Files make_chat_template(Mutator& l) { return {{{"chat_template.jinja", TemplateMaker(l).run()}}}; }

}  // namespace fuzz
