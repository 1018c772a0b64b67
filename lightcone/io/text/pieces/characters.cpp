#include "lightcone/io/text/pieces/characters.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>

#include <utf8proc.h>

#include "lightcone/base/error.h"

namespace lc {
namespace {

struct Range {
  std::uint32_t first, last;
};

// Characters that Unicode has added since the versions of the reference tables.
constexpr Range kLaterPunctuation[] = {{0x61D, 0x61D},     {0x9FD, 0x9FD},     {0xA76, 0xA76},     {0xC77, 0xC77},
                                       {0xC84, 0xC84},     {0x1B7D, 0x1B7E},   {0x2E43, 0x2E4F},   {0x2E52, 0x2E5D},
                                       {0x10EAD, 0x10EAD}, {0x10F55, 0x10F59}, {0x10F86, 0x10F89}, {0x1144B, 0x1144F},
                                       {0x1145A, 0x1145B}, {0x1145D, 0x1145D}, {0x11660, 0x1166C}, {0x116B9, 0x116B9},
                                       {0x1183B, 0x1183B}, {0x11944, 0x11946}, {0x119E2, 0x119E2}, {0x11A3F, 0x11A46},
                                       {0x11A9A, 0x11A9C}, {0x11A9E, 0x11AA2}, {0x11B00, 0x11B09}, {0x11C41, 0x11C45},
                                       {0x11C70, 0x11C71}, {0x11EF7, 0x11EF8}, {0x11F43, 0x11F4F}, {0x11FFF, 0x11FFF},
                                       {0x12FF1, 0x12FF2}, {0x16E97, 0x16E9A}, {0x16FE2, 0x16FE2}, {0x1E95E, 0x1E95F}};
constexpr Range kLaterMarks[] = {
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},     {0xAFA, 0xAFF},
    {0xB55, 0xB55},     {0xC04, 0xC04},     {0xC3C, 0xC3C},     {0xCF3, 0xCF3},     {0xD00, 0xD00},
    {0xD3B, 0xD3C},     {0xD81, 0xD81},     {0xEBA, 0xEBA},     {0xECE, 0xECE},     {0x1715, 0x1715},
    {0x180F, 0x180F},   {0x1ABF, 0x1ACE},   {0x1CF7, 0x1CF7},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},
    {0xA8FF, 0xA8FF},   {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50},
    {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x11073, 0x11074}, {0x110C2, 0x110C2}, {0x11145, 0x11146},
    {0x111C9, 0x111C9}, {0x111CE, 0x111CF}, {0x11241, 0x11241}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E},
    {0x1182C, 0x1183A}, {0x11930, 0x11935}, {0x11937, 0x11938}, {0x1193B, 0x1193E}, {0x11940, 0x11940},
    {0x11942, 0x11943}, {0x119D1, 0x119D7}, {0x119DA, 0x119E0}, {0x119E4, 0x119E4}, {0x11A01, 0x11A0A},
    {0x11A33, 0x11A39}, {0x11A3B, 0x11A3E}, {0x11A47, 0x11A47}, {0x11A51, 0x11A5B}, {0x11A8A, 0x11A99},
    {0x11D31, 0x11D36}, {0x11D3A, 0x11D3A}, {0x11D3C, 0x11D3D}, {0x11D3F, 0x11D45}, {0x11D47, 0x11D47},
    {0x11D8A, 0x11D8E}, {0x11D90, 0x11D91}, {0x11D93, 0x11D97}, {0x11EF3, 0x11EF6}, {0x11F00, 0x11F01},
    {0x11F03, 0x11F03}, {0x11F34, 0x11F3A}, {0x11F3E, 0x11F42}, {0x13440, 0x13440}, {0x13447, 0x13455},
    {0x16F4F, 0x16F4F}, {0x16F7F, 0x16F87}, {0x16FE4, 0x16FE4}, {0x16FF0, 0x16FF1}, {0x1CF00, 0x1CF2D},
    {0x1CF30, 0x1CF46}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF},
    {0x1E4EC, 0x1E4EF}};
constexpr Range kLaterNonspacing[] = {
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8E1},     {0x9FE, 0x9FE},     {0xAFA, 0xAFF},
    {0xB55, 0xB55},     {0xC04, 0xC04},     {0xC3C, 0xC3C},     {0xD00, 0xD00},     {0xD3B, 0xD3C},
    {0xD81, 0xD81},     {0xEBA, 0xEBA},     {0xECE, 0xECE},     {0x180F, 0x180F},   {0x1885, 0x1886},
    {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFB},   {0xA82C, 0xA82C},   {0xA8C5, 0xA8C5},   {0xA8FF, 0xA8FF},
    {0xA9BD, 0xA9BD},   {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50},
    {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x11073, 0x11074}, {0x110C2, 0x110C2}, {0x111C9, 0x111C9},
    {0x111CF, 0x111CF}, {0x1123E, 0x1123E}, {0x11241, 0x11241}, {0x1133B, 0x1133B}, {0x11438, 0x1143F},
    {0x11442, 0x11444}, {0x11446, 0x11446}, {0x1145E, 0x1145E}, {0x1182F, 0x11837}, {0x11839, 0x1183A},
    {0x1193B, 0x1193C}, {0x1193E, 0x1193E}, {0x11943, 0x11943}, {0x119D4, 0x119D7}, {0x119DA, 0x119DB},
    {0x119E0, 0x119E0}, {0x11A01, 0x11A0A}, {0x11A33, 0x11A38}, {0x11A3B, 0x11A3E}, {0x11A47, 0x11A47},
    {0x11A51, 0x11A56}, {0x11A59, 0x11A5B}, {0x11A8A, 0x11A96}, {0x11A98, 0x11A99}, {0x11C30, 0x11C36},
    {0x11C38, 0x11C3D}, {0x11C3F, 0x11C3F}, {0x11C92, 0x11CA7}, {0x11CAA, 0x11CB0}, {0x11CB2, 0x11CB3},
    {0x11CB5, 0x11CB6}, {0x11D31, 0x11D36}, {0x11D3A, 0x11D3A}, {0x11D3C, 0x11D3D}, {0x11D3F, 0x11D45},
    {0x11D47, 0x11D47}, {0x11D90, 0x11D91}, {0x11D95, 0x11D95}, {0x11D97, 0x11D97}, {0x11EF3, 0x11EF4},
    {0x11F00, 0x11F01}, {0x11F36, 0x11F3A}, {0x11F40, 0x11F40}, {0x11F42, 0x11F42}, {0x13440, 0x13440},
    {0x13447, 0x13455}, {0x16F4F, 0x16F4F}, {0x16FE4, 0x16FE4}, {0x1CF00, 0x1CF2D}, {0x1CF30, 0x1CF46},
    {0x1E000, 0x1E006}, {0x1E008, 0x1E018}, {0x1E01B, 0x1E021}, {0x1E023, 0x1E024}, {0x1E026, 0x1E02A},
    {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF},
    {0x1E944, 0x1E94A}};
constexpr Range kLaterForms[] = {{0x32FF, 0x32FF},   {0xA7F2, 0xA7F4},   {0xAB69, 0xAB69},   {0x10781, 0x10785},
                                 {0x10787, 0x107B0}, {0x107B2, 0x107BA}, {0x11938, 0x11938}, {0x1E030, 0x1E06D},
                                 {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9}};

// Characters of Unicode 15 to 17, which the installed tables may lack and the reference tables have.
constexpr Range kRecentWords[] = {
    {0x897, 0x897},     {0xCF3, 0xCF3},     {0xECE, 0xECE},     {0x1C89, 0x1C8A},   {0xA7CB, 0xA7CD},
    {0xA7DA, 0xA7DC},   {0x105C0, 0x105F3}, {0x10D40, 0x10D65}, {0x10D69, 0x10D6D}, {0x10D6F, 0x10D85},
    {0x10EC2, 0x10EC4}, {0x10EFC, 0x10EFF}, {0x1123F, 0x11241}, {0x11380, 0x11389}, {0x1138B, 0x1138B},
    {0x1138E, 0x1138E}, {0x11390, 0x113B5}, {0x113B7, 0x113C0}, {0x113C2, 0x113C2}, {0x113C5, 0x113C5},
    {0x113C7, 0x113CA}, {0x113CC, 0x113D3}, {0x113E1, 0x113E2}, {0x116D0, 0x116E3}, {0x11BC0, 0x11BE0},
    {0x11BF0, 0x11BF9}, {0x11F00, 0x11F10}, {0x11F12, 0x11F3A}, {0x11F3E, 0x11F42}, {0x11F50, 0x11F5A},
    {0x1342F, 0x1342F}, {0x13440, 0x13455}, {0x13460, 0x143FA}, {0x16100, 0x16139}, {0x16D40, 0x16D6C},
    {0x16D70, 0x16D79}, {0x18CFF, 0x18CFF}, {0x1B132, 0x1B132}, {0x1B155, 0x1B155}, {0x1CCF0, 0x1CCF9},
    {0x1DF25, 0x1DF2A}, {0x1E030, 0x1E06D}, {0x1E08F, 0x1E08F}, {0x1E4D0, 0x1E4F9}, {0x1E5D0, 0x1E5FA},
    {0x2B739, 0x2B739}, {0x2EBF0, 0x2EE5D}, {0x31350, 0x323AF}};
constexpr Range kRecentNumbers[] = {{0x10D40, 0x10D49}, {0x116D0, 0x116E3}, {0x11BF0, 0x11BF9}, {0x11DE0, 0x11DE9},
                                    {0x11F50, 0x11F59}, {0x16130, 0x16139}, {0x16D70, 0x16D79}, {0x16FF4, 0x16FF6},
                                    {0x1CCF0, 0x1CCF9}, {0x1D2C0, 0x1D2D3}, {0x1E4F0, 0x1E4F9}, {0x1E5F1, 0x1E5FA}};
struct LowerRange {
  std::uint32_t first, last;
  std::int32_t distance;
};
constexpr LowerRange kRecentLower[] = {{0x1C89, 0x1C89, 1},      {0xA7CB, 0xA7CB, 0x264 - 0xA7CB},
                                       {0xA7CC, 0xA7CC, 1},      {0xA7CE, 0xA7CE, 1},
                                       {0xA7D2, 0xA7D2, 1},      {0xA7D4, 0xA7D4, 1},
                                       {0xA7DA, 0xA7DA, 1},      {0xA7DC, 0xA7DC, 0x19B - 0xA7DC},
                                       {0x10D50, 0x10D65, 0x20}, {0x16EA0, 0x16EB8, 0x1B}};

template <std::size_t N>
bool within(const Range (&ranges)[N], std::uint32_t c) {
  const auto* at = std::upper_bound(std::begin(ranges), std::end(ranges), c,
                                    [](std::uint32_t x, const Range& r) { return x < r.first; });
  return at != std::begin(ranges) && c <= std::prev(at)->last;
}

utf8proc_category_t category(std::uint32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }
bool between(utf8proc_category_t c, utf8proc_category_t first, utf8proc_category_t last) {
  return c >= first && c <= last;
}

std::string mapped(std::string_view text, int options) {
  utf8proc_uint8_t* made = nullptr;
  const auto n =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &made, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(made, std::free);
  if (n < 0) throw Error("tokenizer", str_cat("cannot normalise the text: ", utf8proc_errmsg(n)));
  return {reinterpret_cast<const char*>(made), static_cast<std::size_t>(n)};
}

}  // namespace

bool is_white_space(std::uint32_t c) {
  return (c >= 9 && c <= 13) || c == 32 || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_word_character(std::uint32_t c) {
  if (c < 0x80) return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  const utf8proc_category_t k = category(c);
  return between(k, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_NL) || k == UTF8PROC_CATEGORY_PC || c == 0x200C ||
         c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
         (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189) || within(kRecentWords, c);
}

bool is_numeric(std::uint32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  return between(category(c), UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO) || within(kRecentNumbers, c);
}

bool is_sign_or_punctuation(std::uint32_t c) {
  if (c < 0x80)
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
  if (c == 0x166D || c == 0x111C9) return true;  // were punctuation in Unicode 8
  return between(category(c), UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO) && !within(kLaterPunctuation, c);
}

bool is_mark(std::uint32_t c) {
  if (c == 0x1CF2 || c == 0x1CF3) return true;  // were marks in Unicode 9
  return c >= 0x300 && between(category(c), UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME) && !within(kLaterMarks, c);
}

bool is_nonspacing_mark(std::uint32_t c) {
  if (c == 0x1734) return true;  // was a nonspacing mark in Unicode 8
  return c >= 0x300 && category(c) == UTF8PROC_CATEGORY_MN && !within(kLaterNonspacing, c);
}

bool is_control(std::uint32_t c) {
  if (c == '\t' || c == '\n' || c == '\r' || (c >= ' ' && c < 0x7F)) return false;
  const utf8proc_category_t k = category(c);
  return (k == UTF8PROC_CATEGORY_CC || k == UTF8PROC_CATEGORY_CF || k == UTF8PROC_CATEGORY_CO) && c != 0x890 &&
         c != 0x891 && c != 0x8E2 && c != 0x110CD && !(c >= 0x13430 && c <= 0x1343F);
}

bool is_chinese(std::uint32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

void append_lower(std::string& to, std::uint32_t c) {
  if (c < 0x80) {
    to += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  } else if (c == 0x130) {  // the only character with a lower case of two characters
    to += "i\xCC\x87";
  } else {
    const auto* recent = std::find_if(std::begin(kRecentLower), std::end(kRecentLower),
                                      [&](const LowerRange& r) { return c >= r.first && c <= r.last; });
    const auto code = static_cast<utf8proc_int32_t>(c);
    utf8_append(to,
                static_cast<std::uint32_t>(c >= 0x1C89 && recent != std::end(kRecentLower) ? code + recent->distance
                                                                                           : utf8proc_tolower(code)));
  }
}

namespace {
// True for a character that the reference neither changes nor moves, as its tables lack it.
bool unknown_to_forms(std::uint32_t c) {
  if (c < kLaterMarks[0].first) return false;
  return within(kLaterForms, c) ||
         (within(kLaterMarks, c) && utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class != 0);
}
}  // namespace

std::string normal_form(std::string_view text, NormalForm form) {
  bool later = false, ascii = true;
  for (const char c : text) ascii = ascii && static_cast<unsigned char>(c) < 0x80;
  if (ascii) return std::string(text);
  const bool compatible = form == NormalForm::KC || form == NormalForm::KD;
  const int options = (form == NormalForm::C || form == NormalForm::KC ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
                      (compatible ? UTF8PROC_COMPAT : 0);
  each_character(text, [&](std::uint32_t c, std::size_t, std::size_t) { later = later || unknown_to_forms(c); });
  if (!later) return mapped(text, options);
  std::string out;
  std::size_t done = 0;
  each_character(text, [&](std::uint32_t c, std::size_t begin, std::size_t end) {
    if (!unknown_to_forms(c)) return;
    out += mapped(text.substr(done, begin - done), options);
    out += text.substr(begin, end - begin);
    done = end;
  });
  return out += mapped(text.substr(done), options);
}

ByteAlphabet::ByteAlphabet() {
  byte.fill(-1);
  std::uint32_t next = 256;
  for (int b = 0; b < 256; ++b) {
    const bool plain = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    const std::uint32_t c = plain ? static_cast<std::uint32_t>(b) : next++;
    utf8_append(character[static_cast<std::size_t>(b)], c);
    byte[c] = static_cast<std::int16_t>(b);
  }
}

const ByteAlphabet& byte_alphabet() {
  static const ByteAlphabet a;
  return a;
}

int byte_piece(std::string_view p) {
  if (p.size() != 6 || !p.starts_with("<0x") || p.back() != '>') return -1;
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
  };
  const int a = digit(p[3]), b = digit(p[4]);
  return a < 0 || b < 0 ? -1 : a * 16 + b;
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace lc
