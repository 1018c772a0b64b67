#include "translate.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string_view>
#include <vector>

namespace lc::simulators::metal {
namespace {

struct Token {
  enum Kind { Space, Word, Number, Text, Mark } kind;
  std::string text;
  int line;
};
struct Refused {
  int line;
  std::string why;
};

std::vector<Token> read_tokens(const std::string& s) {
  std::vector<Token> all;
  int line = 1;
  std::size_t i = 0;
  const auto starts = [&](std::string_view with) { return s.compare(i, with.size(), with) == 0; };
  const auto take = [&](Token::Kind kind, std::size_t end) {
    end = std::min(end, s.size());
    all.push_back({kind, s.substr(i, end - i), line});
    for (; i < end; ++i) line += s[i] == '\n';
  };
  const auto find = [&](std::string_view what) {
    const std::size_t at = s.find(what, i + 2);
    return at == s.npos ? s.size() : at + what.size();
  };
  const auto in_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  while (i < s.size()) {
    const char c = s[i];
    std::size_t end = i + 1;
    if (starts("//")) {
      take(Token::Space, s.find('\n', i) == s.npos ? s.size() : s.find('\n', i));
    } else if (starts("/*")) {
      take(Token::Space, find("*/"));
    } else if (std::isspace(static_cast<unsigned char>(c))) {
      take(Token::Space, end);
    } else if (c == '"' || c == '\'') {
      while (end < s.size() && s[end] != c && s[end] != '\n') end += s[end] == '\\' ? 2 : 1;
      take(Token::Text, end + 1);
    } else if (std::isdigit(static_cast<unsigned char>(c)) ||
               (c == '.' && end < s.size() && std::isdigit(static_cast<unsigned char>(s[end])))) {
      const bool hex = starts("0x") || starts("0X");
      while (end < s.size() &&
             (in_word(s[end]) || s[end] == '.' ||
              ((s[end] == '+' || s[end] == '-') && std::string_view(hex ? "pP" : "eE").find(s[end - 1]) < 2)))
        ++end;
      take(Token::Number, end);
    } else if (in_word(c)) {
      while (end < s.size() && in_word(s[end])) ++end;
      take(Token::Word, end);
    } else {
      take(Token::Mark, starts("[[") ? i + 2 : end);  // "[[" always begins an attribute
    }
  }
  return all;
}

// The source of a kernel parameter other than a buffer: its value, and whether it is a position or size. All positions
// and sizes of a kernel have the same number of components.
struct Builtin {
  const char* value;
  bool position;
};
const std::map<std::string, Builtin>& builtins() {
  static const std::map<std::string, Builtin> all{
      {"threadgroup_position_in_grid", {"lc_scheduler->block_index", true}},
      {"thread_position_in_threadgroup", {"lc_scheduler->thread->index", true}},
      {"thread_position_in_grid", {"lc_thread_in_grid()", true}},
      {"threads_per_threadgroup", {"lc_scheduler->block_size", true}},
      {"threadgroups_per_grid", {"lc_scheduler->grid_size", true}},
      {"thread_index_in_threadgroup", {"lc_thread_index()", false}},
      {"thread_index_in_simdgroup", {"lc_scheduler->thread->lane", false}},
      {"simdgroup_index_in_threadgroup", {"lc_scheduler->thread->warp", false}},
      {"simdgroups_per_threadgroup", {"(lc_threads() + 31) / 32", false}},
      {"threads_per_simdgroup", {"32u", false}},
  };
  return all;
}

class Translator {
 public:
  Translator(const std::string& msl, Target target) : tokens_(read_tokens(msl)), target_(target) {}
  std::string run();

 private:
  struct Kernel {
    std::string name, arguments, slots, alignments, max_threads = "0";
    int memories = 0;
    char components = 0;  // '3' if positions and sizes are uint3, '1' if they are scalars; 0: not known yet
  };
  const Token* at(std::size_t i) const { return i < tokens_.size() ? &tokens_[i] : nullptr; }
  bool is(std::size_t i, std::string_view text) const { return i < tokens_.size() && tokens_[i].text == text; }
  std::size_t next(std::size_t i) const {  // the next token that is not a space
    for (++i; i < tokens_.size() && tokens_[i].kind == Token::Space; ++i)
      ;
    return i;
  }
  std::size_t closing(std::size_t open) const;
  std::size_t attribute(std::size_t open, std::string& name, std::string& argument) const;
  void preprocess(std::size_t& i);
  void kernel(std::size_t& i);
  void parameter(Kernel& k, std::size_t first, std::size_t last);
  void threadgroup(std::size_t i);
  void word(std::size_t& i);
  void number(const Token& t);
  std::string tail() const;

  const std::vector<Token> tokens_;
  const Target target_;
  std::string out_, max_threads_ = "0";
  std::vector<Kernel> kernels_;
  int depth_ = 0, kernel_depth_ = -1;  // brace depths: current, and of the kernel
  std::string previous_;               // the last token that is not a space
};

std::size_t Translator::closing(std::size_t open) const {
  int depth = 0;
  for (std::size_t i = open; i < tokens_.size(); ++i) {
    depth += is(i, "(") - is(i, ")");
    if (depth == 0) return i;
  }
  throw Refused{tokens_[open].line, "expected ')'"};
}

// Parses [[name]] or [[name(argument)]]; returns the index after it.
std::size_t Translator::attribute(std::size_t open, std::string& name, std::string& argument) const {
  std::size_t i = next(open);
  if (const Token* t = at(i)) name = t->text;
  i = next(i);
  if (is(i, "(")) {
    const std::size_t end = closing(i);
    for (argument.clear(), ++i; i < end; ++i) argument += tokens_[i].text;
    i = next(end);
  }
  const std::size_t last = next(i);
  if (!is(i, "]") || !is(last, "]")) throw Refused{tokens_[open].line, "expected ']]'"};
  return last + 1;
}

// The standard library is available without its header; no other file can be included.
void Translator::preprocess(std::size_t& i) {
  const std::size_t name = next(i);
  if (!is(name, "include")) {
    out_ += "#";
    return;
  }
  std::string file;
  for (i = name + 1; i < tokens_.size() && tokens_[i].text != "\n"; ++i)
    if (tokens_[i].kind != Token::Space) file += tokens_[i].text;
  static const std::set<std::string> known{"<metal_stdlib>", "<metal_simdgroup>", "<metal_simdgroup_matrix>",
                                           "<metal_math>", "<metal_compute>"};
  if (!known.contains(file)) throw Refused{tokens_[name].line, file + " file not found"};
  --i;
}

void Translator::kernel(std::size_t& i) {
  const std::size_t result = next(i), name = next(result), open = next(name);
  if (!is(result, "void") || !is(open, "(")) throw Refused{tokens_[i].line, "kernel must have void return type"};
  Kernel k;
  k.name = tokens_[name].text;
  k.max_threads = max_threads_;
  max_threads_ = "0";
  out_ += "static void " + k.name + "(";
  const std::size_t end = closing(open);
  for (std::size_t first = open + 1; first < end;) {
    std::size_t last = first;
    for (int depth = 0; last < end && (depth || !is(last, ",")); ++last)
      depth += (is(last, "(") || is(last, "<")) - (is(last, ")") || is(last, ">"));
    parameter(k, first, last);
    if (last < end) out_ += ",";
    first = last + 1;
  }
  out_ += ")";
  kernels_.push_back(std::move(k));
  kernel_depth_ = depth_;
  i = end;
}

// Parses a parameter: TYPE NAME [[ATTRIBUTE]].
void Translator::parameter(Kernel& k, std::size_t first, std::size_t last) {
  std::string type, from, argument;
  std::vector<std::string> parts;
  const int line = tokens_[std::min(first, tokens_.size() - 1)].line;
  for (std::size_t i = first; i < last; ++i) {
    if (is(i, "[[")) {
      if (!from.empty()) throw Refused{line, "a parameter has two attributes"};
      i = attribute(i, from, argument) - 1;
      continue;
    }
    const std::size_t before = out_.size();
    if (tokens_[i].kind == Token::Word) word(i);
    else out_ += tokens_[i].text;
    if (out_.size() > before && tokens_[i].kind != Token::Space) parts.push_back(out_.substr(before));
  }
  if (!parts.empty()) parts.pop_back();  // removes the name
  for (const std::string& part : parts) type += part + " ";
  if (const auto b = builtins().find(from); b != builtins().end()) {
    if (b->second.position) {
      const char components = type.size() > 1 && std::isdigit(static_cast<unsigned char>(type[type.size() - 2]))
                                  ? type[type.size() - 2]
                                  : '1';
      if (k.components && k.components != components)
        throw Refused{line, "positions and sizes of a kernel have the same number of components"};
      k.components = components;
    }
    k.arguments += (k.arguments.empty() ? "" : ", ") + ("lc_position<" + type + ">(" + b->second.value + ")");
    return;
  }
  if (from != "buffer" && from != "threadgroup")
    throw Refused{line, from.empty()
                            ? "invalid type for input declaration in a kernel function: an attribute is missing"
                            : "unknown attribute '" + from + "'"};
  const unsigned index = static_cast<unsigned>(std::strtoul(argument.c_str(), nullptr, 10));
  if (from == "buffer" ? index >= kBuffers : index > 0)
    throw Refused{line, "'" + from + "' attribute parameter is out of bounds"};
  const std::string slot = std::to_string(from == "buffer" ? index : kBuffers);
  if ((", " + k.slots).find(", " + slot + ", ") != std::string::npos)
    throw Refused{line, "'" + from + "' attribute is used twice with " + argument};
  const std::string place = from == "buffer" ? "p[" + slot + "]" : "lc_scheduler->dynamic_shared";
  k.arguments += (k.arguments.empty() ? "" : ", ") + ("lc_memory<" + type + ">(" + place + ")");
  k.slots += slot + ", ";
  k.alignments += "LcMemory<" + type + ">::alignment, ";
  ++k.memories;
}

// A threadgroup variable is shared by all threads of a group; a pointer to threadgroup memory is an ordinary pointer.
void Translator::threadgroup(std::size_t i) {
  static const std::set<std::string_view> ends{";", "=", ",", ")", "[", "{", "("};
  std::size_t end = next(i);
  for (; at(end) && !ends.contains(tokens_[end].text); end = next(end))
    if (is(end, "*") || is(end, "&")) {
      if (target_ == Target::Check) out_ += "threadgroup";
      return;
    }
  if (kernel_depth_ < 0)
    throw Refused{tokens_[i].line, "variables in the threadgroup address space are declared within kernels"};
  if (is(end, "=")) throw Refused{tokens_[i].line, "variables in the threadgroup address space have no initializer"};
  if (target_ == Target::Check) out_ += "static threadgroup";
  else out_ += "static __attribute__((section(\"lc_shared_" + kernels_.back().name + "\"), used))";
}

void Translator::word(std::size_t& i) {
  const std::string& w = tokens_[i].text;
  if (w == "threadgroup") return threadgroup(i);
  if ((w == "device" || w == "thread") && target_ == Target::Cpu) return;
  if (w == "constant" && target_ == Target::Cpu) {
    if (previous_ != "const" && !is(next(i), "const")) out_ += "const";
    return;
  }
  out_ += w;
}

void Translator::number(const Token& t) {
  const std::string& n = t.text;
  const bool hex = n.size() > 1 && (n[1] == 'x' || n[1] == 'X');
  const bool real = hex ? n.find_first_of("pP") != n.npos : n.find_first_of(".eE") != n.npos;
  const char last = n.back();
  if (!real) out_ += n;
  else if (last == 'h' || last == 'H') out_ += "half(" + n.substr(0, n.size() - 1) + "f)";
  else if (last == 'l' || last == 'L') throw Refused{t.line, "'long double' is not supported in Metal"};
  else out_ += last == 'f' || last == 'F' ? n : n + "f";
}

std::string Translator::run() {
  out_ = "#line 1 \"program_source\"\n";
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const Token& t = tokens_[i];
    if (t.kind == Token::Space) {
      out_ += t.text;
      continue;
    }
    if (t.text == "#") {
      preprocess(i);
    } else if (t.text == "[[") {
      std::string name, argument;
      i = attribute(i, name, argument) - 1;
      if (name != "max_total_threads_per_threadgroup") throw Refused{t.line, "unknown attribute '" + name + "'"};
      max_threads_ = argument;
    } else if (t.text == "kernel") {
      kernel(i);
    } else if (t.kind == Token::Word) {
      word(i);
    } else if (t.kind == Token::Number) {
      number(t);
    } else {
      if (t.text == "[" && (is(next(i), "=") || is(next(i), "&")))
        throw Refused{t.line, "lambda expressions are not supported in Metal"};
      depth_ += is(i, "{") - is(i, "}");
      if (is(i, "}") && depth_ == kernel_depth_) kernel_depth_ = -1;
      out_ += t.text;
    }
    previous_ = t.text;
  }
  return out_ + (target_ == Target::Cpu ? tail() : "");
}

// Returns the module table: each kernel's name, entry function, slots and alignments.
std::string Translator::tail() const {
  std::string functions, table;
  for (const Kernel& k : kernels_) {
    const std::string shared = "lc_shared_" + k.name;
    functions += "static void lc_call_" + k.name + "(void* const* p) { " + k.name + "(" + k.arguments + "); }\n";
    functions += "static const unsigned lc_slots_" + k.name + "[] = {" + k.slots + "0};\n";
    functions += "static const unsigned lc_alignments_" + k.name + "[] = {" + k.alignments + "0};\n";
    functions += "LC_SHARED_OF(" + shared + ")\n";
    table += "{{\"" + k.name + "\", lc_call_" + k.name + ", lc_slots_" + k.name + ", lc_alignments_" + k.name + ", " +
             std::to_string(k.memories) + ", " + k.max_threads + "}, __start_" + shared + ", __stop_" + shared + "},\n";
  }
  return "\n" + functions + "LC_KERNELS(" + table + ")\n";
}

}  // namespace

Translation translate(const std::string& msl, Target target) {
  Translator t(msl, target);
  try {
    return {t.run(), {}};
  } catch (const Refused& r) {
    return {{}, "program_source:" + std::to_string(r.line) + ": error: " + r.why};
  }
}

}  // namespace lc::simulators::metal
