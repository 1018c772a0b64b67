// The normalizers of tokenizer.json, which change a text before it is split.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/io/json_internal.h"
#include "lightcone/io/read_options.h"

namespace lc {

// A text in processing. `from_start` is the number of its first bytes that come from the first character of the whole
// input, which Metaspace's "first" depends on.
struct NormalText {
  std::string text;
  std::size_t from_start = 0;
};

// A sequence of normalizing steps.
class Normalizer {
 public:
  Normalizer() = default;
  Normalizer(io::Json normalizer, Budget& budget);
  bool empty() const { return steps_.empty(); }
  // Normalises a text. Throws Error if it grows beyond the limit: replacements may double it repeatedly.
  void apply(NormalText& t) const;
  std::string operator()(std::string_view text) const;

 private:
  using Step = std::function<void(NormalText&)>;
  std::vector<Step> steps_;
};

// The maximum number of bytes that the steps of a tokenizer may make from a text.
std::size_t most_bytes_of(std::size_t text);
// Replaces all matches of a pattern.
class Replacement {
 public:
  Replacement(std::string_view pattern, bool regex, std::string_view by);
  void apply(NormalText& t) const;

 private:
  std::function<void(NormalText&)> apply_;
};

}  // namespace lc
