#include "lightcone/io/text/steps/decoder.h"

#include <algorithm>

#include "lightcone/io/text/pieces/characters.h"
#include "lightcone/io/text/pieces/clean_up.h"
#include "lightcone/io/text/steps/fields.h"
#include "lightcone/io/text/steps/normalizer.h"

namespace lc {
namespace {

constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

// Converts bytes to text: each maximal prefix of a truncated character, and each other invalid byte, becomes one U+FFFD
// (Unicode's "substitution of maximal subparts").
std::string lossy(std::string_view bytes) {
  std::string out;
  for (std::size_t at = 0; at < bytes.size();) {
    if (const std::size_t n = utf8_length(bytes, at); n > 0) {
      out += bytes.substr(at, n), at += n;
      continue;
    }
    const auto b = [&](std::size_t i) {
      return at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0u;
    };
    const unsigned lead = b(0);
    const std::size_t length = lead >= 0xC2 && lead <= 0xDF   ? 2
                               : lead >= 0xE0 && lead <= 0xEF ? 3
                               : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                              : 1;
    const unsigned low = lead == 0xE0   ? 0xA0
                         : lead == 0xF0 ? 0x90
                                        : 0x80,
                   high = lead == 0xED   ? 0x9F
                          : lead == 0xF4 ? 0x8F
                                         : 0xBF;
    std::size_t bad = 1;
    if (length > 2 && b(1) >= low && b(1) <= high) bad = length == 4 && b(2) >= 0x80 && b(2) <= 0xBF ? 3 : 2;
    out += kReplacementCharacter, at += bad;
  }
  return out;
}

std::string joined(const std::vector<std::string>& all, std::string_view between) {
  std::string out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0) out += between;
    out += all[i];
  }
  return out;
}

// Returns the bytes of a byte-level token. A token with any other character stands for itself.
std::string spelled_bytes(const std::string& token) {
  std::string out;
  bool all = true;
  each_character(token, [&](std::uint32_t c, std::size_t, std::size_t) {
    const int b = byte_alphabet().byte_of(c);
    all = all && b >= 0;
    out += static_cast<char>(b);
  });
  return all ? out : token;
}

// Converts runs of byte tokens such as <0x0A> to text.
std::vector<std::string> without_byte_pieces(const std::vector<std::string>& tokens) {
  std::vector<std::string> made;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    bool good = true;
    for (std::size_t at = 0, n; good && at < bytes.size(); at += n) good = (n = utf8_length(bytes, at)) > 0;
    if (good) made.push_back(bytes);
    else made.insert(made.end(), bytes.size(), std::string(kReplacementCharacter));
    bytes.clear();
  };
  for (const std::string& t : tokens) {
    const int b = byte_piece(t);
    if (b >= 0) {
      bytes += static_cast<char>(b);
      continue;
    }
    flush();
    made.push_back(t);
  }
  flush();
  return made;
}

std::string stripped(const std::string& token, std::string_view content, std::size_t start, std::size_t stop) {
  std::string_view t = token;
  for (std::size_t i = 0; i < start && t.starts_with(content); ++i) t.remove_prefix(content.size());
  for (std::size_t i = 0; i < stop && t.ends_with(content); ++i) t.remove_suffix(content.size());
  return std::string(t);
}

}  // namespace

class DecoderReader {
 public:
  using Tokens = Decoder::Tokens;
  static Decoder::Step step(io::Json j, Budget& budget);

 private:
  static Decoder::Step word_piece(const Fields& f);
  static Decoder::Step ctc(const Fields& f);
  static Decoder::Step metaspace(const Fields& f);
};

Decoder::Step DecoderReader::word_piece(const Fields& f) {
  return [prefix = std::string(f.text_or("prefix", "##")), clean = f.flag("cleanup", true)](Tokens& t) {
    for (std::size_t i = 0; i < t.list.size(); ++i) {
      std::string& s = t.list[i];
      if (i > 0 || t.within) s = s.starts_with(prefix) ? s.substr(prefix.size()) : " " + s;
      if (clean) s = cleaned_up(std::move(s), CleanUp::Tokenizers);
    }
  };
}

Decoder::Step DecoderReader::ctc(const Fields& f) {
  return [pad = std::string(f.text_or("pad_token", "<pad>")),
          word = std::string(f.text_or("word_delimiter_token", "|")), clean = f.flag("cleanup", true)](Tokens& t) {
    t.list.erase(std::unique(t.list.begin(), t.list.end()), t.list.end());
    std::vector<std::string> made;
    for (const std::string& s : t.list) {
      std::string one = replaced(s, pad, "");
      if (clean) one = replaced(cleaned_up(std::move(one), CleanUp::Tokenizers), word, " ");
      if (!one.empty()) made.push_back(std::move(one));
    }
    t.list = std::move(made);
  };
}

Decoder::Step DecoderReader::metaspace(const Fields& f) {
  const int scheme = f.choice("prepend_scheme", {"always", "first", "never"}, 0);
  const bool prefix = f.flag("add_prefix_space", true) && scheme != 2;
  if (!prefix && f.has("prepend_scheme") && scheme != 2)
    f.fail("'add_prefix_space' is false and 'prepend_scheme' is ", in_quotes(f.text("prepend_scheme")));
  f.flag("split"), f.text("str_rep");  // used in encoding
  return [mark = std::string(f.character("replacement")), prefix](Tokens& t) {
    for (std::size_t i = 0; i < t.list.size(); ++i)
      t.list[i] = replaced(t.list[i], mark, i == 0 && !t.within && prefix ? "" : " ");
  };
}

Decoder::Step DecoderReader::step(io::Json j, Budget& budget) {
  const std::string_view type = type_of(j, "the decoder");
  const std::string what = str_cat("the decoder ", in_quotes(type));
  if (type == "WordPiece") return word_piece(Fields(j, what, {"type", "prefix", "cleanup"}));
  if (type == "CTC") return ctc(Fields(j, what, {"type", "pad_token", "word_delimiter_token", "cleanup"}));
  if (type == "Metaspace")
    return metaspace(
        Fields(j, what, {"type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"}));
  if (type == "ByteLevel") {
    const Fields f(j, what, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
    f.flag("add_prefix_space"), f.flag("trim_offsets"), f.flag("use_regex");  // used in encoding
    return [](Tokens& t) {
      std::string bytes;
      for (const std::string& s : t.list) bytes += spelled_bytes(s);
      t.list = {t.within ? bytes : lossy(bytes)};
      t.fused = true;
    };
  }
  if (type == "BPEDecoder")
    return [suffix = std::string(Fields(j, what, {"type", "suffix"}).text_or("suffix", "</w>"))](Tokens& t) {
      for (std::size_t i = 0; i < t.list.size(); ++i)
        t.list[i] = replaced(t.list[i], suffix, i + 1 == t.list.size() && !t.within ? "" : " ");
    };
  if (type == "ByteFallback") {
    const Fields f(j, what, {"type"});
    return [](Tokens& t) {
      if (!t.within) t.list = without_byte_pieces(t.list);
      else
        for (std::string& s : t.list)
          if (const int b = byte_piece(s); b >= 0) s = static_cast<char>(b);
    };
  }
  if (type == "Fuse") {
    const Fields f(j, what, {"type"});
    return [](Tokens& t) { t.list = {joined(t.list, "")}, t.fused = true; };
  }
  if (type == "Strip") {
    const Fields f(j, what, {"type", "content", "start", "stop"});
    const auto number = [&](const char* key) { return static_cast<std::size_t>(f.number(key, 0, 0, 1 << 30)); };
    return [c = std::string(f.character("content")), start = number("start"), stop = number("stop")](Tokens& t) {
      if (t.within && t.fused) return;
      for (std::string& s : t.list) s = stripped(s, c, start, stop);
    };
  }
  if (type == "Replace") {
    const Fields f(j, what, {"type", "pattern", "content"});
    const PatternField p = pattern_field(f);
    budget.take(2 * (p.text.size() + f.text("content").size()) + 4096);
    return [r = Replacement(p.text, p.regex, f.required_text("content"))](Tokens& t) {
      for (std::string& s : t.list) {
        NormalText n{std::move(s), 0};
        r.apply(n);
        s = std::move(n.text);
      }
    };
  }
  throw Error("tokenizer", str_cat("the decoder ", in_quotes(type), " is not known"));
}

Decoder::Decoder(io::Json decoder, Budget& budget) : none_(decoder.absent()) {
  for (const io::Json& j : components(decoder, "the decoder", "decoders")) {
    budget.take(256);
    steps_.push_back(DecoderReader::step(j, budget));
  }
}

std::string Decoder::text(std::vector<std::string> tokens) const {
  if (none_) return joined(tokens, " ");
  Tokens t{std::move(tokens)};
  for (const Step& s : steps_) s(t);
  return joined(t.list, "");
}

std::string Decoder::within(std::string token) const {
  if (none_) return " " + token;
  Tokens t{{std::move(token)}, true};
  for (const Step& s : steps_) s(t);
  return joined(t.list, "");
}

}  // namespace lc
