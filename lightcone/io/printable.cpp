#include "lightcone/io/printable.h"

#include <cstdio>

#include <utf8proc.h>

#include "lightcone/io/utf8.h"

namespace lc {
namespace {

bool moves_or_hides(std::uint32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_CC:  // controls
    case UTF8PROC_CATEGORY_CF:  // bidi controls, joiners, tags
    case UTF8PROC_CATEGORY_CN:  // unassigned
    case UTF8PROC_CATEGORY_CO:  // private use: its meaning depends on the terminal's font
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return true;
    default: return false;
  }
}
bool controls(std::uint32_t c) { return c != '\n' && c != '\t' && (c < 32 || (c >= 127 && c < 160)); }

// Appends up to `limit` bytes of the text, with invalid UTF-8 and characters for which `bad` is true spelled out.
// Returns false if the text is longer.
template <class Bad>
bool spell(std::string& out, std::string_view text, std::size_t limit, const Bad& bad) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t valid = utf8_length(text, at), n = valid ? valid : 1;
    std::size_t unused;
    const std::uint32_t c =
        valid ? utf8_decode(text, at, &unused) : static_cast<std::uint32_t>(static_cast<unsigned char>(text[at]));
    char spelled[16];
    std::string_view shown = text.substr(at, n);
    if (!valid || bad(c))
      shown = {spelled, static_cast<std::size_t>(
                            std::snprintf(spelled, sizeof spelled, !valid || c < 128 ? "\\x%02x" : "\\u{%x}", c))};
    if (out.size() + shown.size() > limit) return false;
    out += shown;
    at += n;
  }
  return true;
}

}  // namespace

std::string printable(std::string_view text, std::size_t limit) {
  std::string s;
  if (!spell(s, text, limit, moves_or_hides)) s += "...";
  return s;
}

std::string in_quotes(std::string_view text) { return "'" + printable(text, 80) + "'"; }

std::string for_terminal(std::string_view text) {
  std::string s;
  spell(s, text, std::string::npos, controls);
  return s;
}

}  // namespace lc
