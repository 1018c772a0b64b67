#include "lightcone/io/jinja/texts.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>

#include <utf8proc.h>

#include "lightcone/base/numbers.h"
#include "lightcone/io/utf8.h"

namespace lc::jinja {
namespace {

// Returns the character at s[at] and its length; one byte if it is not UTF-8.
std::uint32_t at_of(std::string_view s, std::size_t at, std::size_t* bytes) {
  if (static_cast<unsigned char>(s[at]) < 0x80 || utf8_length(s, at) == 0) {
    *bytes = 1;
    return static_cast<unsigned char>(s[at]);
  }
  return utf8_decode(s, at, bytes);
}

bool is_letter(std::uint32_t c) {
  const utf8proc_category_t k = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LT;  // letters that have two cases
}

bool one_of(std::string_view c, std::string_view set) {
  for (std::size_t at = 0; at < set.size();) {
    const std::size_t n = std::max<std::size_t>(1, utf8_length(set, at));
    if (set.substr(at, n) == c) return true;
    at += n;
  }
  return false;
}

}  // namespace

bool is_space(std::uint32_t c) {
  return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

std::vector<std::string_view> characters(Meter& m, std::string_view s) {
  std::vector<std::string_view> all;
  m.make(s.size(), sizeof(std::string_view));
  for (std::size_t at = 0; at < s.size();) {
    const std::size_t n = std::max<std::size_t>(1, utf8_length(s, at));
    all.push_back(s.substr(at, n));
    at += n;
  }
  return all;
}

std::size_t length(Meter& m, std::string_view s) {
  m.step(s.size() / 8 + 1);
  std::size_t n = 0;
  for (std::size_t at = 0; at < s.size(); ++n) at += std::max<std::size_t>(1, utf8_length(s, at));
  return n;
}

std::string_view strip(Meter& m, std::string_view s, std::optional<std::string_view> of, bool left, bool right) {
  const auto goes = [&](std::string_view c) {
    m.step(1 + (of ? of->size() / 8 : 0));
    std::size_t bytes;
    return of ? one_of(c, *of) : is_space(at_of(c, 0, &bytes));
  };
  while (left && !s.empty()) {
    const std::size_t n = std::max<std::size_t>(1, utf8_length(s, 0));
    if (!goes(s.substr(0, n))) break;
    s.remove_prefix(n);
  }
  while (right && !s.empty()) {
    std::size_t n = 1;
    while (n < std::min<std::size_t>(4, s.size()) && utf8_length(s, s.size() - n) != n) ++n;
    if (utf8_length(s, s.size() - n) != n) n = 1;
    if (!goes(s.substr(s.size() - n))) break;
    s.remove_suffix(n);
  }
  return s;
}

std::vector<std::string_view> split(Meter& m, std::string_view s, std::int64_t most, bool from_right) {
  std::vector<std::string_view> parts;
  m.make(s.size() / 2 + 1, sizeof(std::string_view));
  m.step(s.size() / 8);
  s = strip(m, s, {}, !from_right, from_right);
  while (!s.empty()) {
    std::size_t begin = 0, end = s.size(), bytes;
    const bool last = most >= 0 && static_cast<std::int64_t>(parts.size()) >= most;
    if (!last && !from_right)
      for (end = 0; end < s.size() && !is_space(at_of(s, end, &bytes)); end += bytes) {
      }
    if (!last && from_right)
      for (std::size_t at = s.size(); at > 0; --at) {
        if ((s[at - 1] & 0xC0) == 0x80) continue;
        if (is_space(at_of(s, at - 1, &bytes))) {
          begin = at - 1 + bytes;
          break;
        }
      }
    parts.push_back(s.substr(begin, end - begin));
    s = from_right ? s.substr(0, begin) : s.substr(end);
    s = strip(m, s, {}, !from_right, from_right);
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split(Meter& m, std::string_view s, std::string_view by, std::int64_t most,
                                    bool from_right) {
  if (by.empty()) fail("empty separator");
  std::vector<std::string_view> parts;
  while (most < 0 || static_cast<std::int64_t>(parts.size()) < most) {
    const std::size_t at = from_right ? find_last(m, s, by) : find(m, s, by);
    if (at == s.npos) break;
    m.make(2 * sizeof(std::string_view));
    parts.push_back(from_right ? s.substr(at + by.size()) : s.substr(0, at));
    s = from_right ? s.substr(0, at) : s.substr(at + by.size());
  }
  parts.push_back(s);
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> lines(Meter& m, std::string_view s, bool keep_ends) {
  std::vector<std::string_view> all;
  m.step(s.size() / 8 + 1);
  for (std::size_t at = 0, begin = 0; at < s.size();) {
    std::size_t bytes;
    const std::uint32_t c = at_of(s, at, &bytes);
    const std::size_t end = at;
    at += bytes;
    const bool ends = (c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029;
    if (c == '\r' && at < s.size() && s[at] == '\n') ++at;
    if (ends || at >= s.size()) {
      m.make(2 * sizeof(std::string_view));
      all.push_back(s.substr(begin, (ends && !keep_ends ? end : at) - begin));
      begin = at;
    }
  }
  return all;
}

// memmem() takes time in proportion to the text, whatever the pattern.
std::size_t find(Meter& m, std::string_view s, std::string_view what, std::size_t from) {
  if (from > s.size()) return s.npos;
  m.step((what.size()) / 16 + 1);
  if (what.empty()) return from;
  const void* at = memmem(s.data() + from, s.size() - from, what.data(), what.size());
  const std::size_t found = at ? static_cast<std::size_t>(static_cast<const char*>(at) - s.data()) : s.npos;
  m.step((std::min(found, s.size()) - from) / 16);
  return found;
}

// Searches from the end by reversing text and pattern, in pieces of growing size, so that a near occurrence is cheap.
std::size_t find_last(Meter& m, std::string_view s, std::string_view what) {
  if (what.empty()) return s.size();
  for (std::size_t piece = 64 + 2 * what.size();; piece *= 2) {
    const std::string_view end = s.substr(s.size() - std::min(s.size(), piece));
    m.make(end.size() + what.size());
    const std::string turned(end.rbegin(), end.rend()), wanted(what.rbegin(), what.rend());
    const std::size_t at = find(m, turned, wanted);
    if (at != turned.npos) return s.size() - at - what.size();
    if (piece >= s.size()) return s.npos;
  }
}

std::string replace(Meter& m, std::string_view s, std::string_view from, std::string_view to, std::int64_t most) {
  std::string out;
  const auto add = [&](std::string_view part) { m.make(part.size()), out += part; };
  std::size_t at = 0;
  for (std::int64_t n = 0; most < 0 || n < most; ++n) {
    if (from.empty()) {  // inserts between all characters and at both ends
      add(to);
      if (at >= s.size()) return out;
      const std::size_t bytes = std::max<std::size_t>(1, utf8_length(s, at));
      add(s.substr(at, bytes));
      at += bytes;
      continue;
    }
    const std::size_t found = find(m, s, from, at);
    if (found == s.npos) break;
    add(s.substr(at, found - at));
    add(to);
    at = found + from.size();
  }
  add(s.substr(at));
  return out;
}

std::string in_case(Meter& m, std::string_view s, Case c) {
  std::string out;
  m.make(2 * s.size() + 4);
  m.step(s.size() / 4);
  bool begins = true;
  for (std::size_t at = 0; at < s.size();) {
    std::size_t bytes;
    const std::uint32_t ch = at_of(s, at, &bytes);
    const bool valid = ch < 0x80 || bytes > 1;
    const bool upper = c == Case::Upper || (begins && c != Case::Lower);
    const auto turned = static_cast<std::uint32_t>(upper ? utf8proc_toupper(static_cast<utf8proc_int32_t>(ch))
                                                         : utf8proc_tolower(static_cast<utf8proc_int32_t>(ch)));
    if (!valid) out += s[at];
    else if (upper && ch == 0xDF) out += c == Case::Upper ? "SS" : "Ss";  // the one common letter that becomes two
    else utf8_append(out, turned);
    at += bytes;
    begins = c == Case::Title         ? !is_letter(ch)
             : c == Case::FilterTitle ? is_space(ch) || ch == '-' || ch == '(' || ch == '{' || ch == '[' || ch == '<'
                                      : false;
  }
  return out;
}

void append_quoted(Meter& m, std::string& out, std::string_view s) {
  m.make(2 * s.size() + 2);
  const char quote = s.find('\'') != s.npos && s.find('"') == s.npos ? '"' : '\'';
  out += quote;
  for (std::size_t at = 0; at < s.size();) {
    std::size_t bytes;
    const std::uint32_t c = at_of(s, at, &bytes);
    char text[16] = "";
    if (c == '\n') out += "\\n";
    else if (c == '\t') out += "\\t";
    else if (c == '\r') out += "\\r";
    else if (c == '\\' || c == static_cast<unsigned char>(quote)) out += '\\', out += static_cast<char>(c);
    else if (c < 32 || (c >= 127 && c < 161) || c == 0xAD) std::snprintf(text, sizeof text, "\\x%02x", c);
    else out += s.substr(at, bytes);
    out += text;
    at += bytes;
  }
  out += quote;
}

void append_json(Meter& m, std::string& out, std::string_view s, bool ascii) {
  m.make((ascii ? 6 : 2) * s.size() + 2);
  out += '"';
  for (std::size_t at = 0, bytes = 1; at < s.size(); at += bytes) {
    static constexpr std::string_view escaped = "\"\\\n\r\t\b\f", as = "\"\\nrtbf";
    const std::uint32_t c = at_of(s, at, &bytes);
    if (const std::size_t k = c < 128 ? escaped.find(static_cast<char>(c)) : escaped.npos; k != escaped.npos) {
      out += '\\', out += as[k];
    } else if (c < 32 || (ascii && c > 126 && c < 0x10000)) {
      m.make(4);
      out += formatted("\\u%04x", c);
    } else if (ascii && c > 126) {  // as a surrogate pair of UTF-16
      out += formatted("\\u%04x\\u%04x", 0xD800 + ((c - 0x10000) >> 10), 0xDC00 + (c & 0x3FF));
    } else {
      out += s.substr(at, bytes);
    }
  }
  out += '"';
}

std::string number(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  char text[40];
  const auto [end, error] = std::to_chars(text, text + sizeof text, x, std::chars_format::scientific);
  const std::string s(text, end);
  const std::size_t e = s.find('e');
  int exponent = 0;
  const std::size_t digits = e + 1 + (s[e + 1] == '+');
  std::from_chars(s.data() + digits, s.data() + s.size(), exponent);
  if (exponent < -4 || exponent >= 16) return s;
  char plain[64];
  const auto [stop, wrong] = std::to_chars(plain, plain + sizeof plain, x, std::chars_format::fixed);
  std::string out(plain, stop);
  if (out.find('.') == out.npos) out += ".0";
  return out;
}

}  // namespace lc::jinja
