#include "lightcone/io/utf8.h"

#include <cstdio>

#include <utf8proc.h>

#include "lightcone/base/error.h"

namespace lc {

std::size_t utf8_length(std::string_view text, std::size_t at) {
  utf8proc_int32_t c;
  const auto n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                                  static_cast<utf8proc_ssize_t>(text.size() - at), &c);
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}

void require_utf8(std::string_view text, std::string_view what) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t n = utf8_length(text, at);
    if (n == 0) {
      char byte[8];
      std::snprintf(byte, sizeof byte, "0x%02x", static_cast<unsigned>(static_cast<unsigned char>(text[at])));
      throw Error("tokenizer", str_cat(what, " is not UTF-8: byte ", byte, " at offset ", at));
    }
    at += n;
  }
}

std::uint32_t utf8_decode(std::string_view text, std::size_t at, std::size_t* length) {
  utf8proc_int32_t c = 0;
  const auto n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                                  static_cast<utf8proc_ssize_t>(text.size() - at), &c);
  *length = n > 0 ? static_cast<std::size_t>(n) : 1;
  return n > 0 ? static_cast<std::uint32_t>(c) : 0xFFFD;
}

void utf8_append(std::string& out, std::uint32_t codepoint) {
  utf8proc_uint8_t bytes[4];
  const auto n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(codepoint), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(n));
}

}  // namespace lc
