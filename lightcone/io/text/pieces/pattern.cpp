#include "lightcone/io/text/pieces/pattern.h"

#include <algorithm>
#include <new>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace lc {
namespace {

constexpr std::size_t kLongestPattern = 1u << 14;

std::string pcre2_words(int error) {
  PCRE2_UCHAR message[160];
  return pcre2_get_error_message(error, message, sizeof message) > 0 ? reinterpret_cast<const char*>(message)
                                                                     : "it cannot be used";
}

}  // namespace

void Pattern::Free::operator()(pcre2_real_code_8* c) const { pcre2_code_free(c); }

Pattern::Pattern(std::string text, Syntax syntax) : text_(std::move(text)) {
  if (text_.size() > kLongestPattern)
    throw Error("tokenizer", str_cat("the split pattern ", in_quotes(text_), " is ", text_.size(), " bytes long"));
  const std::string code = syntax == Syntax::Oniguruma ? pcre2_of_oniguruma(text_) : text_;
  std::uint32_t options = PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C;
  if (syntax == Syntax::Literal) options = PCRE2_UTF | PCRE2_LITERAL;
  else options |= PCRE2_UCP;
  if (syntax == Syntax::Oniguruma) options |= PCRE2_MULTILINE;
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  if (!context) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE at = 0;
  code_.reset(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(code.data()), code.size(), options, &error, &at, context.get()));
  if (!code_)
    throw Error("tokenizer",
                str_cat("the split pattern ", in_quotes(text_), " is wrong at ", at, ": ", pcre2_words(error)));
  pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);  // if it fails, matching is interpreted
}

struct Pattern::Matcher::State {
  explicit State(const pcre2_code* code)
      : data(pcre2_match_data_create_from_pattern(code, nullptr), pcre2_match_data_free),
        limits(pcre2_match_context_create(nullptr), pcre2_match_context_free) {
    if (!data || !limits) throw std::bad_alloc();
    pcre2_set_heap_limit(limits.get(), 64 << 10);  // KB
  }
  std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data;
  std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> limits;
  std::size_t allowed = 0;  // length of the text for which the limits are set, plus 1
};

Pattern::Matcher::Matcher(const Pattern& p) : pattern_(p), state_(std::make_unique<State>(p.code_.get())) {}
Pattern::Matcher::~Matcher() = default;

bool Pattern::Matcher::find(std::string_view text, std::size_t from, std::size_t* begin, std::size_t* end) {
  State& s = *state_;
  if (s.allowed != text.size() + 1) {
    // A reasonable pattern backtracks a few times over the current run of characters, not many times over the text.
    constexpr std::size_t kSteps = 100'000, kStepsEach = 16, kMost = 1u << 30;
    pcre2_set_match_limit(s.limits.get(),
                          static_cast<std::uint32_t>(std::min(kSteps + kStepsEach * text.size(), kMost)));
    s.allowed = text.size() + 1;
  }
  const auto match = [&](std::uint32_t options) {
    return pcre2_match(pattern_.code_.get(), reinterpret_cast<PCRE2_SPTR>(text.empty() ? "" : text.data()), text.size(),
                       from, options, s.data.get(), s.limits.get());
  };
  int rc = match(PCRE2_NO_UTF_CHECK);
  if (rc == PCRE2_ERROR_JIT_STACKLIMIT)  // the interpreter has its backtracking stack on the heap
    rc = match(PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT);
  if (rc == PCRE2_ERROR_NOMATCH) return false;
  if (rc < 0)
    throw Error("tokenizer", str_cat("the tokenizer's split pattern ", in_quotes(pattern_.text_),
                                     " gives up on the text at byte ", from, ": ", pcre2_words(rc)));
  const PCRE2_SIZE* v = pcre2_get_ovector_pointer(s.data.get());
  *begin = v[0], *end = v[1];
  return true;
}

void Pattern::Matcher::backwards() const {
  throw Error("tokenizer", str_cat("the split pattern ", in_quotes(pattern_.text_), " goes backwards"));
}

}  // namespace lc
