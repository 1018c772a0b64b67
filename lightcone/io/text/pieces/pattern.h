// Regular expressions of tokenizers' files. They come from a file: what they may cost has bounds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "lightcone/core/error.h"
#include "lightcone/io/printable.h"
#include "lightcone/io/utf8.h"

struct pcre2_real_code_8;

namespace lc {

// A compiled pattern; safe to use from many threads.
class Pattern {
 public:
  enum class Syntax : unsigned char { Pcre2, Oniguruma, Literal };
  explicit Pattern(std::string text, Syntax syntax = Syntax::Pcre2);

  // What one thread needs to match: made once for many texts.
  class Matcher {
   public:
    explicit Matcher(const Pattern& p);
    ~Matcher();
    Matcher(const Matcher&) = delete;
    Matcher& operator=(const Matcher&) = delete;
    // The first match in text[from..]; false where there is none.
    bool find(std::string_view text, std::size_t from, std::size_t* begin, std::size_t* end);
    // match(begin, end) for all matches from the left that do not overlap; an empty one does not follow another match.
    template <class Match>
    void each(std::string_view text, const Match& match) {
      std::size_t last = std::string_view::npos, begin = 0, end = 0;
      for (std::size_t at = 0; at <= text.size() && find(text, at, &begin, &end);) {
        if (begin >= end) {  // an empty match; \K in a look-ahead puts the end before the beginning
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

// A pattern of Oniguruma, which Hugging Face's tokenizers use, in the syntax of PCRE2. An Error names what has no
// counterpart.
std::string pcre2_of_oniguruma(std::string_view pattern);

}  // namespace lc
