// The text of a kernel while it is written, and the size arguments that it takes.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lightcone/core/dim.h"

namespace lc::backends::gpu {

class Writer {
 public:
  // `given`: how many size arguments every launch gives first. Their meaning is the kernel's business.
  Writer(bool wide, std::size_t given) : index_(wide ? "long" : "int"), given_(given) {}

  // Returns a number in the text: a literal if it is known, else a parameter.
  std::string number(const Dim& d) {
    if (const auto n = d.constant();
        n && (index_ == "long" || (*n > -(std::int64_t{1} << 31) && *n < std::int64_t{1} << 31)))
      return *n < 0 ? "(" + std::to_string(*n) + suffix() + ")" : std::to_string(*n) + suffix();
    auto at = std::find(sizes_.begin(), sizes_.end(), d);
    if (at == sizes_.end()) at = sizes_.insert(sizes_.end(), d);
    return "n" + std::to_string(given_ + static_cast<std::size_t>(at - sizes_.begin()));
  }
  // Returns "at * by", simplified if `by` is 0 or 1.
  std::string times(const std::string& at, const Dim& by) {
    return by == Dim(0) ? "0" : by == Dim(1) ? at : at + " * " + number(by);
  }
  const std::string& index() const { return index_; }
  const std::vector<Dim>& sizes() const { return sizes_; }

  void line(const std::string& s) { text_ += std::string(static_cast<std::size_t>(indent_) * 2, ' ') + s + "\n"; }
  void open(const std::string& s) { line(s), ++indent_; }
  void close(const std::string& s = "}") { --indent_, line(s); }
  void let(const std::string& name, const std::string& value) {
    line("const " + index_ + " " + name + " = " + value + ";");
  }
  void raw(const std::string& s) { text_ += s; }
  const std::string& text() const { return text_; }

  // Defines the indices of these axes, the innermost varying fastest, that the flat index stands for; returns their
  // names.
  std::vector<std::string> indices(const std::vector<Dim>& extents, const std::string& flat, const std::string& prefix);
  // Returns base + the sum of index * stride.
  std::string offset(const std::string& base, const std::vector<std::string>& at, const std::vector<Dim>& strides);

 private:
  std::string suffix() const { return index_ == "long" ? "L" : ""; }
  std::string index_, text_;
  std::size_t given_;
  std::vector<Dim> sizes_;
  int indent_ = 1;
};

}  // namespace lc::backends::gpu
