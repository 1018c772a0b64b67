#include "lightcone/io/text/pieces/charsmap.h"

#include <algorithm>

#include "lightcone/base/error.h"
#include "lightcone/io/text/pieces/characters.h"

namespace lc {
namespace {

std::uint32_t little_endian(std::string_view b) {
  std::uint32_t v = 0;
  for (std::size_t i = 4; i-- > 0;) v = v << 8 | static_cast<unsigned char>(b[i]);
  return v;
}

// A unit of the trie holds the byte that leads to it, a flag for the end of a word, and the offset of its children. The
// child of byte 0 holds the value.
constexpr std::uint32_t kLabel = 1u << 31 | 0xFF, kEnd = 1u << 8;
std::size_t offset_of(std::uint32_t unit) { return static_cast<std::size_t>((unit >> 10) << ((unit & 1u << 9) >> 6)); }

constexpr std::size_t kLongestRule = 256;  // bytes; those of published tables have a few characters

[[noreturn]] void refuse(const char* why) {
  throw Error("tokenizer", str_cat("the table of characters is damaged: ", why));
}

// Throws Error if the trie has a circle, or a path of more than kLongestRule bytes: each character of a text would cost
// as much. Nodes may have several parents.
void check_depth(const std::vector<std::uint32_t>& units) {
  struct Open {
    std::size_t children;  // the child of byte b is at `children` xor b
    std::size_t node;
    std::uint32_t byte, height;
  };
  constexpr std::uint16_t kOpen = 0xFFFF;
  std::vector<std::uint16_t> heights(units.size());  // 1 + the longest path below a node; 0: not seen
  std::vector<Open> path{{offset_of(units[0]), 0, 1, 0}};
  for (heights[0] = kOpen; !path.empty();) {
    Open& at = path.back();
    if (at.byte > 0xFF) {
      heights[at.node] = static_cast<std::uint16_t>(at.height + 1);
      const std::uint32_t height = at.height + 1;
      path.pop_back();
      if (!path.empty()) path.back().height = std::max(path.back().height, height);
      if (path.size() + height > kLongestRule + 1) refuse("a rule is too long");
      continue;
    }
    const std::uint32_t byte = at.byte++;
    const std::size_t child = at.children ^ byte;
    if (child >= units.size() || (units[child] & kLabel) != byte) continue;
    if (heights[child] == kOpen) refuse("it has a circle");
    if (heights[child] > 0) {
      at.height = std::max<std::uint32_t>(at.height, heights[child]);
      if (path.size() + at.height > kLongestRule + 1) refuse("a rule is too long");
      continue;
    }
    if (path.size() > kLongestRule) refuse("a rule is too long");
    heights[child] = kOpen;
    path.push_back({child ^ offset_of(units[child]), child, 1, 0});
  }
}

}  // namespace

CharsMap::CharsMap(std::string_view bytes) {
  if (bytes.size() <= 4) refuse("it is too short");
  const std::size_t size = little_endian(bytes);
  if (size % 4 != 0 || size == 0 || size >= bytes.size() - 4 + 1) refuse("its size is wrong");
  for (std::size_t at = 4; at < 4 + size; at += 4) units_.push_back(little_endian(bytes.substr(at)));
  words_ = bytes.substr(4 + size);
  if (words_.empty() || words_.back() != '\0') words_ += '\0';
  require_utf8(words_, "what the table of characters makes");
  check_depth(units_);
  for (std::size_t c = 0; c < plain_.size(); ++c) {
    const std::size_t node = offset_of(units_[0]) ^ c;
    const bool begins = c > 0 && node < units_.size() && (units_[node] & kLabel) == c;
    plain_[c] = !begins || (units_[node] & kEnd) == 0;
    for (std::size_t d = 1; begins && d < plain_.size(); ++d) {
      const std::size_t second = node ^ offset_of(units_[node]) ^ d;
      if (second < units_.size() && (units_[second] & kLabel) == d) plain_[c] = false;
    }
  }
}

std::optional<CharsMap::Rule> CharsMap::find(std::string_view text, bool longest) const {
  if (units_.empty()) return std::nullopt;
  std::optional<Rule> found;
  std::size_t node = offset_of(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    node ^= byte;
    if (byte == 0 || node >= units_.size()) break;
    const std::uint32_t unit = units_[node];
    if ((unit & kLabel) != byte) break;
    node ^= offset_of(unit);
    if ((unit & kEnd) == 0) continue;
    if (node >= units_.size()) break;
    const std::size_t place = units_[node] & ((1u << 31) - 1);
    if (place >= words_.size()) break;
    found = Rule{i + 1, std::string_view(words_.data() + place)};
    if (!longest) break;
  }
  // A damaged table could split characters.
  if (found && ((found->size < text.size() && (static_cast<unsigned char>(text[found->size]) & 0xC0) == 0x80) ||
                (!found->by.empty() && (static_cast<unsigned char>(found->by[0]) & 0xC0) == 0x80)))
    return std::nullopt;
  return found;
}

}  // namespace lc
