// What tokenizer.json puts around a text's tokens, cuts off and fills up.
#pragma once

#include <utility>
#include <vector>

#include "lightcone/io/json_internal.h"
#include "lightcone/io/read_options.h"

namespace lc {

class PostProcessor {
 public:
  PostProcessor() = default;
  PostProcessor(io::Json processor, Budget& budget);
  std::vector<int> apply(std::vector<int> ids, bool specials) const;
  std::size_t added() const { return added_; }  // how many tokens it adds to a text, as truncation counts them
  // The tokens before and behind a text.
  std::pair<std::vector<int>, std::vector<int>> around() const;
  int largest() const;  // of all ids that it adds; -1: none

 private:
  // A part of what a text becomes: one of the sequences, or tokens.
  struct Part {
    int sequence = -1;
    std::vector<int> ids;
  };
  using Template = std::vector<Part>;
  struct Step {
    std::vector<int> cls, sep;
    Template single, pair;
    bool is_template = false, roberta = false;
  };
  using Sequences = std::vector<std::vector<int>>;
  static Step template_of(io::Json j);
  static Step around_of(io::Json j, bool roberta);
  static Sequences applied(const Step& s, Sequences all, bool specials);
  std::vector<Step> steps_;
  std::size_t added_ = 0;
};

class Truncation {
 public:
  Truncation() = default;
  explicit Truncation(io::Json truncation);
  // `added`: how many tokens will stand around these.
  void apply(std::vector<int>& ids, std::size_t added) const;

 private:
  bool any_ = false, left_ = false;
  int strategy_ = 0;  // longest first, only the first, only the second
  std::size_t most_ = 0, stride_ = 0;
};

class Padding {
 public:
  Padding() = default;
  explicit Padding(io::Json padding);
  void apply(std::vector<int>& ids) const;

 private:
  bool any_ = false, left_ = false;
  std::size_t length_ = 0, multiple_ = 0;
  int id_ = 0;
};

}  // namespace lc
