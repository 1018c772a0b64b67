#include "lightcone/io/checkpoints/torch/machine.h"

#include <bit>
#include <charconv>
#include <limits>

#include "lightcone/base/numbers.h"
#include "lightcone/io/printable.h"
#include "lightcone/io/utf8.h"

namespace lc::io::torch {
namespace {

constexpr Id kForgotten = std::numeric_limits<Id>::max();  // a place of the memo that nothing was put into

std::optional<std::uint64_t> hexadecimal(std::string_view digits) {
  std::uint64_t v = 0;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), v, 16);
  if (end.ec != std::errc() || end.ptr != digits.data() + digits.size()) return std::nullopt;
  return v;
}

// The code point of an escape such as \x41 or \u20ac at text[at], which is the letter; nullopt if it is none.
std::optional<std::uint32_t> escaped_number(std::string_view text, std::size_t at, std::size_t* length) {
  const std::size_t digits = text[at] == 'x' ? 2 : text[at] == 'u' ? 4 : text[at] == 'U' ? 8 : 0;
  if (digits == 0 || text.size() - at - 1 < digits) return std::nullopt;
  const auto v = hexadecimal(text.substr(at + 1, digits));
  if (!v || *v > 0x10ffff) return std::nullopt;
  *length = 1 + digits;
  return static_cast<std::uint32_t>(*v);
}

// Replaces the escapes of a line: those of a string literal of Python 2, or only those of code points.
std::string unescaped(std::string_view s, bool literal) {
  constexpr std::string_view kLetters = "\\'\"nrtabfv", kMeanings = "\\'\"\n\r\t\a\b\f\v";
  std::string to;
  to.reserve(s.size());
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (s[i] != '\\' || i + 1 == s.size()) {
      to += s[i];
      continue;
    }
    std::size_t length = 0;
    const auto code = escaped_number(s, i + 1, &length);
    const std::size_t letter = kLetters.find(s[i + 1]);
    if (code && literal == (s[i + 1] == 'x')) {
      if (literal) to += static_cast<char>(*code);
      else utf8_append(to, *code);
      i += length;
    } else if (literal && letter != kLetters.npos) {
      to += kMeanings[letter];
      ++i;
    } else {
      to += s[i];
    }
  }
  return to;
}

}  // namespace

Machine::Machine(std::span<const std::byte> bytes, Values& values)
    : bytes_(reinterpret_cast<const char*>(bytes.data()), bytes.size()), v_(values), calls_(values) {}

void Machine::wrong(std::string_view what) const {
  v_.wrong(str_cat("damaged at byte ", at_, " of its pickle: ", what));
}

std::string_view Machine::take(std::uint64_t n) {
  if (n > bytes_.size() - at_) wrong("it ends too early");
  const std::string_view part = bytes_.substr(at_, n);
  at_ += n;
  v_.budget().parsed(n);
  return part;
}

std::uint64_t Machine::number(int bytes) {
  const std::string_view b = take(static_cast<std::uint64_t>(bytes));
  std::uint64_t v = 0;
  for (std::size_t i = b.size(); i-- > 0;) v = v << 8 | static_cast<unsigned char>(b[i]);
  return v;
}

std::string_view Machine::line() {
  const std::size_t end = bytes_.find('\n', at_);
  if (end == bytes_.npos) wrong("a line has no end");
  const std::string_view s = take(end - at_);
  take(1);
  return s;
}

Id Machine::pop() {
  const Id id = top();
  stack_.pop_back();
  return id;
}

Id Machine::top() const {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) wrong("a value is missing");
  return stack_.back();
}

std::span<const Id> Machine::above_mark() const {
  if (marks_.empty()) wrong("a mark is missing");
  return std::span(stack_).subspan(marks_.back());
}

void Machine::drop_mark() {
  stack_.resize(marks_.back());
  marks_.pop_back();
}

Id Machine::run() {
  for (;;) {
    const auto op = static_cast<std::uint8_t>(number(1));
    if (op == '.') break;
    if (!constant(op) && !text(op) && !text_line(op) && !container(op) && !memo(op) && !object(op))
      wrong(str_cat("the instruction ", static_cast<int>(op), " is not known"));
  }
  const Id result = pop();
  if (!stack_.empty() || !marks_.empty()) wrong("values are left over");
  return result;
}

// ---- numbers and texts ------------------------------------------------------------------------------------------

void Machine::push_long(std::string_view s) {
  if (s.size() > 8) return push(v_.text(Kind::BigInt, s));
  std::uint64_t v = !s.empty() && (s.back() & 0x80) ? ~std::uint64_t{0} : 0;
  for (std::size_t i = s.size(); i-- > 0;) v = v << 8 | static_cast<unsigned char>(s[i]);
  push(v_.integer(static_cast<std::int64_t>(v)));
}

void Machine::push_integer_line(std::string_view s) {
  if (s == "00" || s == "01") return push(s == "01" ? Values::kTrue : Values::kFalse);
  if (s.ends_with('L')) s.remove_suffix(1);
  std::int64_t v = 0;
  const auto end = std::from_chars(s.data(), s.data() + s.size(), v);
  if (end.ptr != s.data() + s.size() || s.empty()) wrong("a whole number is none");
  push(end.ec == std::errc() ? v_.integer(v) : v_.text(Kind::BigInt, s));
}

bool Machine::constant(std::uint8_t op) {
  switch (op) {
    case 0x80:  // PROTO
      if (number(1) > 5) wrong("its protocol is newer than 5");
      return true;
    case 0x95: number(8); return true;  // FRAME
    case 'N': push(Values::kNone); return true;
    case 0x88: push(Values::kTrue); return true;
    case 0x89: push(Values::kFalse); return true;
    case 'K': push(v_.integer(static_cast<std::int64_t>(number(1)))); return true;
    case 'M': push(v_.integer(static_cast<std::int64_t>(number(2)))); return true;
    case 'J': push(v_.integer(static_cast<std::int32_t>(number(4)))); return true;
    case 0x8a: push_long(take(number(1))); return true;
    case 0x8b: push_long(take(number(4))); return true;
    case 'I':
    case 'L': push_integer_line(line()); return true;
    case 'G': {
      std::uint64_t bits = 0;
      for (char c : take(8)) bits = bits << 8 | static_cast<unsigned char>(c);
      push(v_.real(std::bit_cast<double>(bits)));
      return true;
    }
    case 'F': {
      const auto v = real_of<double>(line());
      if (!v) wrong("a number is none");
      push(v_.real(*v));
      return true;
    }
    default: return false;
  }
}

bool Machine::text(std::uint8_t op) {
  switch (op) {
    case 'X': push(v_.text(Kind::Text, take(number(4)))); return true;
    case 0x8c: push(v_.text(Kind::Text, take(number(1)))); return true;
    case 0x8d: push(v_.text(Kind::Text, take(number(8)))); return true;
    case 'T': push(v_.text(Kind::Text, take(number(4)))); return true;  // texts of Python 2
    case 'U': push(v_.text(Kind::Text, take(number(1)))); return true;
    case 'B': push(v_.text(Kind::Bytes, take(number(4)))); return true;
    case 'C': push(v_.text(Kind::Bytes, take(number(1)))); return true;
    case 0x8e: push(v_.text(Kind::Bytes, take(number(8)))); return true;
    case 0x96: push(v_.text(Kind::Bytes, take(number(8)))); return true;
    default: return false;
  }
}

bool Machine::text_line(std::uint8_t op) {
  if (op != 'S' && op != 'V') return false;
  std::string_view s = line();
  if (op == 'S') {
    if (s.size() < 2 || (s[0] != '\'' && s[0] != '"') || s.back() != s[0]) wrong("a text has no quotes");
    s = s.substr(1, s.size() - 2);
  }
  v_.budget().take(s.size());
  push(v_.text(Kind::Text, s.find('\\') == s.npos ? s : v_.keep(unescaped(s, op == 'S'))));
  return true;
}

// ---- containers -------------------------------------------------------------------------------------------------

void Machine::collect(Kind kind) {
  const auto items = above_mark();
  if (kind == Kind::Dict && items.size() % 2 != 0) wrong("a key has no value");
  const Id made = v_.container(kind, items);
  drop_mark();
  push(made);
}

void Machine::collect_last(std::size_t n) {
  Id items[3] = {};
  for (std::size_t i = n; i-- > 0;) items[i] = pop();
  push(v_.container(Kind::Tuple, std::span<const Id>(items, n)));
}

void Machine::add_items(Id to, std::span<const Id> items) {
  const Kind k = v_[to].kind;
  if (k != Kind::List && k != Kind::Set && k != Kind::Object) wrong("something is appended to what is no list");
  for (Id item : items) {
    if (k == Kind::Object) v_.push(to, Values::kNoKey);
    v_.push(to, item);
  }
}

void Machine::set_items(Id to, std::span<const Id> pairs) {
  const Kind k = v_[to].kind;
  if (k != Kind::Dict && k != Kind::Object) wrong("a key is set in what is no dict");
  if (pairs.size() % 2 != 0) wrong("a key has no value");
  for (Id item : pairs) v_.push(to, item);
}

bool Machine::container(std::uint8_t op) {
  switch (op) {
    case '(': append(marks_, stack_.size(), v_.budget()); return true;
    case '0':
      if (!marks_.empty() && marks_.back() == stack_.size()) marks_.pop_back();
      else pop();
      return true;
    case '1': above_mark(), drop_mark(); return true;
    case '2': push(top()); return true;
    case '}': push(v_.container(Kind::Dict)); return true;
    case ']': push(v_.container(Kind::List)); return true;
    case ')': push(Values::kEmptyTuple); return true;
    case 0x8f: push(v_.container(Kind::Set)); return true;
    case 'd': collect(Kind::Dict); return true;
    case 'l': collect(Kind::List); return true;
    case 't': collect(Kind::Tuple); return true;
    case 0x91: collect(Kind::Set); return true;  // FROZENSET
    case 0x85: collect_last(1); return true;
    case 0x86: collect_last(2); return true;
    case 0x87: collect_last(3); return true;
    case 'a': {
      const Id item = pop();
      add_items(top(), {&item, 1});
      return true;
    }
    case 's': {
      Id pair[2];
      pair[1] = pop(), pair[0] = pop();
      set_items(top(), pair);
      return true;
    }
    case 'e':
    case 0x90:  // ADDITEMS
    case 'u': {
      const auto items = above_mark();
      const std::size_t mark = marks_.back();
      if (mark == 0 || (marks_.size() > 1 && marks_[marks_.size() - 2] == mark)) wrong("a value is missing");
      if (op == 'u') set_items(stack_[mark - 1], items);
      else add_items(stack_[mark - 1], items);
      drop_mark();
      return true;
    }
    default: return false;
  }
}

// ---- the memo ---------------------------------------------------------------------------------------------------

std::uint64_t Machine::key_of(std::string_view digits) const {
  std::uint64_t v = 0;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), v);
  if (end.ec != std::errc() || end.ptr != digits.data() + digits.size()) wrong("a key of the memo is no number");
  return v;
}

// Picklers count: a key is never far beyond the number of values that were remembered before.
void Machine::remember(std::uint64_t key) {
  if (key > at_) wrong("a key of the memo is larger than the pickle so far");
  const Id id = top();
  while (memo_.size() <= key) append(memo_, kForgotten, v_.budget());
  memo_[key] = id;
}

void Machine::recall(std::uint64_t key) {
  if (key >= memo_.size() || memo_[key] == kForgotten) wrong("it refers to a value that was not remembered");
  push(memo_[key]);
}

bool Machine::memo(std::uint8_t op) {
  switch (op) {
    case 'q': remember(number(1)); return true;
    case 'r': remember(number(4)); return true;
    case 'p': remember(key_of(line())); return true;
    case 0x94: remember(memo_.size()); return true;
    case 'h': recall(number(1)); return true;
    case 'j': recall(number(4)); return true;
    case 'g': recall(key_of(line())); return true;
    default: return false;
  }
}

// ---- names, objects and calls -----------------------------------------------------------------------------------

void Machine::push_global(std::string_view module, std::string_view name) {
  if (module.empty() || name.empty()) wrong("a name is empty");
  v_.budget().take(module.size() + name.size());
  push(v_.text(Kind::Global, v_.keep(str_cat(module, ".", name))));
}

// INST and OBJ call where there are arguments, and make an object where there are none.
void Machine::instantiate(Id of, Id arguments) {
  push(arguments == Values::kEmptyTuple ? calls_.make(of, arguments) : calls_.call(of, arguments));
}

bool Machine::object(std::uint8_t op) {
  switch (op) {
    case 'c': {
      const std::string_view module = line();
      push_global(module, line());
      return true;
    }
    case 0x93: {  // STACK_GLOBAL
      const Id name = pop(), module = pop();
      push_global(v_.text(module), v_.text(name));
      return true;
    }
    case 'R': {
      const Id arguments = pop(), function = pop();
      push(calls_.call(function, arguments));
      return true;
    }
    case 0x81: {  // NEWOBJ
      const Id arguments = pop(), of = pop();
      push(calls_.make(of, arguments));
      return true;
    }
    case 0x92: {  // NEWOBJ_EX
      const Id named = pop(), arguments = pop(), of = pop();
      if (!v_.is(named, Kind::Dict)) wrong("named arguments are no dict");
      const Id both[] = {arguments, named};
      push(calls_.make(of, v_.items(named).empty() ? arguments : v_.container(Kind::Tuple, both)));
      return true;
    }
    case 'b': {
      const Id state = pop();
      calls_.build(top(), state);
      return true;
    }
    case 'i': {
      const std::string_view module = line(), name = line();
      const Id arguments = v_.container(Kind::Tuple, above_mark());
      drop_mark();
      push_global(module, name);
      instantiate(pop(), arguments);
      return true;
    }
    case 'o': {
      const auto all = above_mark();
      if (all.empty()) wrong("a class is missing");
      const Id of = all[0], arguments = v_.container(Kind::Tuple, all.subspan(1));
      drop_mark();
      instantiate(of, arguments);
      return true;
    }
    case 'Q': push(calls_.persistent(pop())); return true;
    case 'P': wrong("a storage is named by a line of text, as no version of PyTorch does");
    case 0x82:
    case 0x83:
    case 0x84: wrong("it refers to Python's registry of extensions, which is not in the file");
    case 0x97:
    case 0x98: wrong("it refers to buffers that are not in the file");
    default: return false;
  }
}

}  // namespace lc::io::torch
