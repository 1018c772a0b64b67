// tokenizer.json's normalizers: what happens to a text before it is cut.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/io/json_internal.h"
#include "lightcone/io/read_options.h"

namespace lc {

// A text on its way, and how many of its first bytes come from the first character of all that is encoded, which is
// what Metaspace's "first" asks.
struct NormalText {
  std::string text;
  std::size_t from_start = 0;
};

class Normalizer {
 public:
  Normalizer() = default;
  Normalizer(io::Json normalizer, Budget& budget);
  bool empty() const { return steps_.empty(); }
  // An Error where the text grows beyond all measure: replacements may double it again and again.
  void apply(NormalText& t) const;
  std::string operator()(std::string_view text) const;

 private:
  using Step = std::function<void(NormalText&)>;
  std::vector<Step> steps_;
};

// The most bytes that a tokenizer's steps may make of a text.
std::size_t most_bytes_of(std::size_t text);
// Text with every match of the pattern replaced.
class Replacement {
 public:
  Replacement(std::string_view pattern, bool regex, std::string_view by);
  void apply(NormalText& t) const;

 private:
  std::function<void(NormalText&)> apply_;
};

}  // namespace lc
