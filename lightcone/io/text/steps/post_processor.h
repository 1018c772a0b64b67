// The post-processors of tokenizer.json, which add tokens around those of a text; and its truncation and padding.
#pragma once

#include <utility>
#include <vector>

#include "lightcone/io/json_internal.h"
#include "lightcone/io/read_options.h"

namespace lc {

// The ids of a text, and a number of each that says to which text it belongs.
struct TypedIds {
  std::vector<int> ids, types;
};
// The ids of one text or of two, as the post-processor is given them.
std::vector<TypedIds> typed(std::vector<std::vector<int>> texts);

// A sequence of post-processing steps.
class PostProcessor {
 public:
  PostProcessor() = default;
  PostProcessor(io::Json processor, Budget& budget);
  // Returns the ids of one text or of two with the tokens around them; those are added only if `specials`.
  TypedIds apply(std::vector<TypedIds> texts, bool specials) const;
  // The number of tokens added to one text or to two, for truncation.
  std::size_t added(bool pair) const { return pair ? added_to_pair_ : added_; }
  // Returns the tokens before and after a text.
  std::pair<std::vector<int>, std::vector<int>> around() const;
  int largest() const;  // the largest id that it adds; -1: none

 private:
  // A part of a template: a sequence, or tokens.
  struct Part {
    int sequence = -1, type = 0;
    std::vector<int> ids;
  };
  using Template = std::vector<Part>;
  struct Step {
    std::vector<int> cls, sep;
    Template single, pair;
    bool is_template = false, roberta = false;
  };
  using Sequences = std::vector<TypedIds>;
  static Step template_of(io::Json j);
  static Step around_of(io::Json j, bool roberta);
  static Sequences applied(const Step& s, Sequences all, bool specials);
  std::vector<Step> steps_;
  std::size_t added_ = 0, added_to_pair_ = 0;
};

// The truncation of a file.
class Truncation {
 public:
  Truncation() = default;
  explicit Truncation(io::Json truncation);
  // It cuts the longer text first, at its end.
  explicit Truncation(std::size_t most) : strict_(true), any_(true), most_(most) {}
  // Truncates the ids of one text or of two. `added` is the number of tokens that will be added around them.
  void apply(std::vector<std::vector<int>>& texts, std::size_t added) const;

 private:
  void cut(std::vector<int>& ids, std::size_t most) const;
  bool strict_ = false;  // refuses a length without room for the tokens around a text
  bool any_ = false, left_ = false;
  int strategy_ = 0;  // 0: longest first, 1: only the first, 2: only the second
  std::size_t most_ = 0, stride_ = 0;
};

// The padding of a file.
class Padding {
 public:
  Padding() = default;
  explicit Padding(io::Json padding);
  // Pads ids to the file's length. Returns how many were added; they are at the beginning if left().
  std::size_t apply(TypedIds& t) const;
  bool left() const { return left_; }

 private:
  bool any_ = false, left_ = false;
  std::size_t length_ = 0, multiple_ = 0;
  int id_ = 0, type_ = 0;
};

}  // namespace lc
