// Regular expressions from tokenizer files. They are not trusted, so their cost has limits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "lightcone/base/error.h"
#include "lightcone/io/printable.h"
#include "lightcone/io/utf8.h"

struct pcre2_real_code_8;

namespace lc {

// A compiled pattern. Thread-safe.
class Pattern {
 public:
  enum class Syntax : unsigned char { Pcre2, Oniguruma, Literal };
  // Throws Error if the pattern is invalid, too long or not supported.
  explicit Pattern(std::string text, Syntax syntax = Syntax::Pcre2);

  // The state of matching for one thread, which can be used for many texts.
  class Matcher {
   public:
    explicit Matcher(const Pattern& p);
    ~Matcher();
    Matcher(const Matcher&) = delete;
    Matcher& operator=(const Matcher&) = delete;
    // Finds the first match in text[from..]. Returns false if there is none. Throws Error beyond the limits.
    bool find(std::string_view text, std::size_t from, std::size_t* begin, std::size_t* end);
    // Calls match(begin, end) for all matches from the left that do not overlap. An empty match directly after another
    // one is skipped.
    template <class Match>
    void each(std::string_view text, const Match& match) {
      std::size_t last = std::string_view::npos, begin = 0, end = 0;
      for (std::size_t at = 0; at <= text.size() && find(text, at, &begin, &end);) {
        if (begin >= end) {  // an empty match; \K in a look-ahead can put the end before the beginning
          at = std::max(at, end);
          at += at < text.size() ? std::max<std::size_t>(1, utf8_length(text, at)) : 1;
          if (begin > end || begin == last) continue;
        } else {
          at = end;
        }
        if (last != std::string_view::npos && begin < last) backwards();
        match(begin, end);
        last = end;
      }
    }

   private:
    [[noreturn]] void backwards() const;
    struct State;
    const Pattern& pattern_;
    std::unique_ptr<State> state_;
  };

 private:
  struct Free {
    void operator()(pcre2_real_code_8* c) const;
  };
  std::string text_;
  std::unique_ptr<pcre2_real_code_8, Free> code_;
};

// Translates a pattern of Oniguruma, the syntax of Hugging Face's tokenizers, to PCRE2. Throws Error that names a
// construct without an equivalent.
std::string pcre2_of_oniguruma(std::string_view pattern);

}  // namespace lc
