#include "table.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"
#include "lightcone/io/data/csv.h"
#include "lightcone/io/printable.h"

namespace lc::tool {
namespace {

// The words that pandas.read_csv takes for a missing cell, besides an empty one.
constexpr const char* kMissing[] = {"#N/A", "#N/A N/A", "#NA",     "-1.#IND", "-1.#QNAN", "-NaN",
                                    "-nan", "1.#IND",   "1.#QNAN", "<NA>",    "N/A",      "NA",
                                    "NULL", "NaN",      "None",    "n/a",     "nan",      "null"};

// Returns the label's column. Without a header columns are named by their index, and the label is the last one.
std::string label_of(const DataConfig& d) { return d.header ? d.label : std::to_string(d.shape[0]); }

Csv read(const std::string& path, const DataConfig& d, Labels labels) {
  CsvOptions o{.header = d.header, .missing = NAN, .na_values = {std::begin(kMissing), std::end(kMissing)}};
  o.na_values.insert(o.na_values.end(), d.na_values.begin(), d.na_values.end());
  o.columns = d.features;
  if (labels == Labels::Read) o.texts = {label_of(d)};
  else if (!d.header)
    for (i64 k = 0; k < d.shape[0]; ++k) o.columns.push_back(std::to_string(k));
  return read_csv(path, o, kOwnFiles);
}

std::string name_of(const Csv& csv, std::size_t column) {
  return csv.columns.empty() ? str_cat("number ", column + 1) : in_quotes(csv.columns[column]);
}

// Returns true if the row is to be learned from. Throws Error if it is invalid.
bool keeps(const Csv& csv, std::size_t row, const std::string* label, const DataConfig& d, const std::string& path) {
  const auto wrong = [&](const auto&... what) {
    return file_error("train", path, "line ", csv.lines[row], ", column ", what...);
  };
  const auto columns = static_cast<std::size_t>(csv.values.shape[1]);
  const auto cells = csv.values.values<float>().subspan(row * columns, columns);
  bool whole = true;
  for (std::size_t c = 0; c < columns; ++c) {
    if (std::isinf(cells[c]))
      throw wrong(name_of(csv, c), ": ", cells[c], " is no finite number: a network cannot learn from it");
    if (!std::isnan(cells[c])) continue;
    whole = false;
    if (d.missing == "error")
      throw wrong(name_of(csv, c), ": the cell is missing; data.missing says what becomes of it: \"skip\" leaves its ",
                  "row out, \"mean\" or a number stands in its place");
  }
  if (label && label->empty()) {
    if (d.missing != "skip")
      throw wrong(in_quotes(label_of(d)), ": the label is missing; \"missing\": \"skip\" leaves such rows out");
    whole = false;
  }
  return whole || d.missing != "skip";
}

std::optional<double> number_of(const std::string& word) {
  return word.empty() ? std::nullopt : real_of<double>(word.substr(word.starts_with("+") ? 1 : 0));
}

// Lists a few words for a sentence.
std::string listed_words(const std::vector<std::string>& words) {
  std::string all;
  for (std::size_t k = 0; k < words.size() && k < 8; ++k) all += str_cat(k ? ", " : "", in_quotes(words[k]));
  return words.size() > 8 ? all + ", ..." : all;
}

}  // namespace

Table read_table(const std::string& path, const DataConfig& d, Labels labels) {
  Csv csv = read(path, d, labels);
  const i64 columns = csv.values.shape[1];
  if (!csv.lines.empty() && columns != d.shape[0])
    throw file_error("train", path, "it has ", columns, " columns beside the label, data.shape says ", d.shape[0]);
  std::vector<std::string>* words = labels == Labels::Read ? &csv.texts[label_of(d)] : nullptr;
  Table t{.columns = std::move(csv.columns), .x = {}, .labels = {}, .rows = {}, .lines = {}};
  csv.columns = t.columns;
  std::byte* bytes = csv.values.bytes.data();
  const std::size_t each = static_cast<std::size_t>(columns) * sizeof(float);
  for (std::size_t row = 0; row < csv.lines.size(); ++row) {
    if (!keeps(csv, row, words ? &(*words)[row] : nullptr, d, path)) {
      ++t.left_out;
      continue;
    }
    std::memmove(bytes + t.lines.size() * each, bytes + row * each, each);
    if (words) t.labels.push_back(std::move((*words)[row]));
    t.rows.push_back(static_cast<i64>(row)), t.lines.push_back(csv.lines[row]);
  }
  csv.values.bytes.resize(t.lines.size() * each);
  csv.values.shape[0] = static_cast<i64>(t.lines.size());
  t.x = std::move(csv.values);
  return t;
}

Array label_numbers(const Table& t, const DataConfig& d, const std::string& path, std::vector<std::string>& classes) {
  Array y = Array::zeros(DType::F64, {static_cast<i64>(t.labels.size())});
  const auto to = y.values<double>();
  const auto word = std::ranges::find_if(t.labels, [](const std::string& l) { return !number_of(l); });
  const auto wrong = [&](auto label, const auto&... what) {
    return file_error("train", path, "line ", t.lines[static_cast<std::size_t>(label - t.labels.begin())], ", column ",
                      in_quotes(label_of(d)), ": ", in_quotes(*label), what...);
  };
  if (classes.empty() && (word == t.labels.end() || d.regression)) {
    if (word != t.labels.end()) throw wrong(word, " is not a number, which a regression learns");
    for (std::size_t k = 0; k < to.size(); ++k) to[k] = *number_of(t.labels[k]);
    return y;
  }
  if (classes.empty()) {
    classes = t.labels;
    std::ranges::sort(classes);
    const auto same = std::ranges::unique(classes);
    classes.erase(same.begin(), same.end());
    if (std::ssize(classes) != d.classes)
      throw file_error("train", path, "the column ", in_quotes(label_of(d)), " has ", classes.size(),
                       " different labels (", listed_words(classes), "), data.classes says ", d.classes);
  }
  for (auto label = t.labels.begin(); label != t.labels.end(); ++label) {
    const auto place = std::ranges::lower_bound(classes, *label);
    if (place == classes.end() || *place != *label)
      throw wrong(label, " is none of the classes to learn from: ", listed_words(classes));
    to[static_cast<std::size_t>(label - t.labels.begin())] = static_cast<double>(place - classes.begin());
  }
  return y;
}

}  // namespace lc::tool
