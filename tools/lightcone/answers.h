// What `lightcone predict` writes: answers as text, CSV or JSON.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "command.h"
#include "commands.h"
#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"
#include "lightcone/io/printable.h"

namespace lc::tool {

// The origin of a sample: a picture's file, or a row of a table or an array.
struct Source {
  std::string input;
  std::optional<std::int64_t> row;  // from 0
};

// What the numbers of a model mean.
struct Outputs {
  std::vector<std::string> classes;  // names by number
  bool regression = false;           // one number, and no classes
  double mean = 0, std = 1;          // a regression's number is its output times std, plus mean
};

// Writes answers as text, CSV or JSON.
class Answers {
 public:
  Answers(Outputs d, const PredictOptions& o)
      : d_(std::move(d)), o_(o), top_(std::min<std::size_t>(o.top, d_.classes.size())) {
    if (o.format == "json") text_ = "[";
    if (o.format == "csv") text_ = d_.regression ? "input,row,value\n" : "input,row,rank,class,probability\n";
  }
  void add(const Source& from, std::span<const float> out) {
    if (!std::ranges::all_of(out, [](float v) { return std::isfinite(v); }))
      throw file_error("predict", from.input, from.row ? str_cat("row ", *from.row, ": ") : "",
                       "what the model says is no number: what it was given, or its parameters, are too large for it");
    if (d_.regression) return number(from, static_cast<double>(out[0]) * d_.std + d_.mean);
    std::vector<std::size_t> best(out.size());
    std::iota(best.begin(), best.end(), std::size_t{0});
    std::ranges::stable_sort(best, [&](std::size_t a, std::size_t b) { return out[a] > out[b]; });
    best.resize(top_);
    classes(from, out, best);
  }
  void write() {
    if (o_.output.empty()) write_stdout(finished());
    else write_file(o_.output, finished());
  }

 private:
  std::string finished() const { return o_.format == "json" ? text_ + "\n]\n" : text_; }
  static std::string json(const std::string& s) {
    return nlohmann::json(s).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  static std::string cell(const std::string& s) {
    if (s.find_first_of(",\"\r\n") == s.npos && !s.starts_with(' ') && !s.ends_with(' ')) return s;
    std::string quoted = "\"";
    for (const char c : s) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    return quoted + '"';
  }
  static std::string digits(double v) { return formatted("%.9g", v); }  // enough digits to distinguish all floats
  std::string begin(const Source& from) const {
    if (o_.format == "csv") return str_cat(cell(from.input), ",", from.row ? std::to_string(*from.row) : "", ",");
    if (o_.format == "json")
      return str_cat(text_.size() > 1 ? ",\n" : "\n", "{\"input\": ", json(from.input),
                     from.row ? str_cat(", \"row\": ", *from.row) : "");
    return str_cat(printable(from.input, 500), from.row ? str_cat("[", *from.row, "]") : "", "  ");
  }
  void number(const Source& from, double value) {
    const std::string first = begin(from);
    if (o_.format == "json") text_ += str_cat(first, ", \"value\": ", digits(value), "}");
    else text_ += str_cat(first, digits(value), "\n");
  }
  void classes(const Source& from, std::span<const float> out, const std::vector<std::size_t>& best) {
    const std::string first = begin(from);
    std::string rest;
    for (std::size_t k = 0; k < best.size(); ++k) {
      const std::string& name = d_.classes[best[k]];
      const auto p = static_cast<double>(out[best[k]]);
      if (o_.format == "csv") text_ += str_cat(first, k + 1, ",", cell(name), ",", digits(p), "\n");
      else if (o_.format == "json")
        rest += str_cat(k ? ", " : "", "{\"class\": ", json(name), ", \"probability\": ", digits(p), "}");
      else rest += str_cat(k ? ", " : "", printable(name, 200), formatted(" %.2f %%", 100 * p));
    }
    if (o_.format == "text") text_ += first + rest + "\n";
    if (o_.format == "json")
      text_ += str_cat(first, ", \"class\": ", json(d_.classes[best[0]]),
                       ", \"probability\": ", digits(static_cast<double>(out[best[0]])), ", \"top\": [", rest, "]}");
  }

  Outputs d_;
  const PredictOptions& o_;
  std::size_t top_;
  std::string text_;
};

}  // namespace lc::tool
