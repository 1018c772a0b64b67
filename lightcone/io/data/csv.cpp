#include "lightcone/io/data/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "lightcone/io/data/opened.h"
#include "lightcone/io/printable.h"

namespace lc {
namespace {

std::string_view without_spaces(std::string_view s) {
  constexpr std::string_view kSpaces = " \t";
  const std::size_t begin = s.find_first_not_of(kSpaces);
  if (begin == s.npos) return {};
  return s.substr(begin, s.find_last_not_of(kSpaces) - begin + 1);
}

// Parses a whole text as a number. from_chars() does not accept a leading plus, which is removed here.
template <class T>
std::errc number(std::string_view s, T& v) {
  if (s.starts_with('+') && !s.starts_with("+-")) s.remove_prefix(1);
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
  return error != std::errc() || end == s.data() + s.size() ? error : std::errc::invalid_argument;
}

// Reads cells in order.
class CsvReader {
 public:
  CsvReader(std::string_view text, const CsvOptions& o, const std::string& path) : rest_(text), o_(o), path_(path) {
    if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);
    skip_empty_lines();
  }
  bool done() const { return rest_.empty(); }
  // Returns the next cell, valid until the next call, and sets last() if it ends its row.
  std::string_view cell();
  bool last() const { return last_; }
  // Called after the last cell of a row.
  void next_row() {
    column_ = 0;
    skip_empty_lines();
  }
  std::size_t column() const { return column_; }
  std::size_t line() const { return line_; }
  template <class... Ts>
  Error wrong(const Ts&... what) const {
    return file_error("load", path_, "line ", line_of_cell_, ", column ", column_, ": ", what...);
  }

 private:
  std::string_view quoted();
  void skip_empty_lines() {
    while (at_line_end()) end_line();
  }
  // A line ends with LF, with CR LF or, as old spreadsheets write it, with CR alone.
  bool at_line_end() const { return rest_.starts_with('\n') || rest_.starts_with('\r'); }
  void end_line() {
    rest_.remove_prefix(rest_.starts_with("\r\n") ? 2 : 1);
    ++line_;
  }
  void end_of_cell();
  std::string_view rest_;
  const CsvOptions& o_;
  const std::string& path_;
  std::size_t line_ = 1, line_of_cell_ = 1, column_ = 0;  // counted from 1
  bool last_ = false;
  std::string unquoted_;
};

std::string_view CsvReader::cell() {
  line_of_cell_ = line_;
  ++column_;
  std::string_view s;
  if (rest_.starts_with('"')) {
    s = quoted();
  } else {
    const char ends[] = {o_.delimiter, '\n', '\r'};
    s = rest_.substr(0, std::min(rest_.find_first_of(std::string_view(ends, 3)), rest_.size()));
    rest_.remove_prefix(s.size());
  }
  end_of_cell();
  return s;
}

std::string_view CsvReader::quoted() {
  unquoted_.clear();
  rest_.remove_prefix(1);
  for (;;) {
    const std::size_t end = rest_.find('"');
    if (end == rest_.npos) throw wrong("a quote that is never closed");
    const std::string_view piece = rest_.substr(0, end);
    unquoted_ += piece;
    for (std::size_t k = 0; k < piece.size(); ++k)
      line_ += piece[k] == '\n' || (piece[k] == '\r' && piece.substr(k + 1, 1) != "\n");
    rest_.remove_prefix(end + 1);
    if (!rest_.starts_with('"')) break;
    unquoted_ += '"';
    rest_.remove_prefix(1);
  }
  if (!rest_.empty() && rest_[0] != o_.delimiter && !at_line_end()) throw wrong("something follows the closing quote");
  return unquoted_;
}

// Called at a delimiter, at the end of a line, or at the end of the text.
void CsvReader::end_of_cell() {
  last_ = !rest_.starts_with(o_.delimiter);
  if (!last_) rest_.remove_prefix(1);
  else if (!rest_.empty()) end_line();
}

bool is_missing(std::string_view s, const CsvOptions& o) {
  return s.empty() || (!(s[0] >= '0' && s[0] <= '9') && std::ranges::find(o.na_values, s) != o.na_values.end());
}

// Parses the cell and stores its number as element `i`.
void store(Array& a, std::size_t i, std::string_view text, const CsvReader& at, const CsvOptions& o) {
  const std::string_view s = without_spaces(text);
  std::byte* to = a.bytes.data();
  if (is_missing(s, o)) {
    if (!o.missing)
      throw at.wrong(s.empty() ? "an empty cell" : "a missing cell", "; CsvOptions::missing says what one means");
    return store_f64(to, o.dtype, i, *o.missing);
  }
  std::errc error;
  bool inside = true;
  if (o.dtype == DType::U64) {
    std::uint64_t v = 0;
    error = number(s, v);
    if (error == std::errc()) store_i64(to, o.dtype, i, static_cast<std::int64_t>(v));
  } else if (!is_float(o.dtype)) {
    std::int64_t v = 0;
    error = number(s, v);
    inside = v >= info(o.dtype).lowest && v <= info(o.dtype).highest;
    if (error == std::errc() && inside) store_i64(to, o.dtype, i, v);
  } else if (o.dtype == DType::F32) {  // parsed as float, to round only once
    float v = 0;
    error = number(s, v);
    if (error == std::errc()) store_f64(to, DType::F32, i, static_cast<double>(v));
  } else {
    double v = 0;
    error = number(s, v);
    if (error == std::errc()) store_f64(to, o.dtype, i, v);
    inside = error != std::errc() || std::isinf(v) || !std::isinf(load_f64(to, o.dtype, i));
  }
  if (error == std::errc::result_out_of_range || !inside)
    throw at.wrong(in_quotes(text), " is outside the range of ", name(o.dtype));
  if (error != std::errc())
    throw at.wrong(in_quotes(text), is_float(o.dtype) ? " is not a number" : " is not a whole number");
}

void check(const CsvOptions& o) {
  const std::string_view never = "\"\r\n+-.0123456789";
  if (never.find(o.delimiter) != never.npos) throw Error("csv", "a delimiter that numbers, quotes or lines need");
  std::vector<std::string_view> asked(o.columns.begin(), o.columns.end());
  asked.insert(asked.end(), o.texts.begin(), o.texts.end());
  std::ranges::sort(asked);
  const auto twice = std::ranges::adjacent_find(asked);
  if (twice != asked.end()) throw Error("csv", str_cat("the column ", in_quotes(*twice), " is asked for twice"));
}

// Decides for each column whether it is a column of numbers, a column of words, or skipped.
class Columns {
 public:
  Columns(const CsvOptions& o, const std::vector<std::string>& names, const std::string& path)
      : o_(o), names_(names), path_(path) {}
  struct Column {
    enum class Kind { Number, Text, Skipped } kind;
    std::size_t at;  // index among the numbers of a row, or among the texts
  };
  // Must be called for the columns of the first row in order.
  Column operator[](std::size_t k) {
    if (k == all_.size()) all_.push_back(chosen(k));
    return all_[k];
  }
  // Numbers per row; valid after the first row.
  std::size_t numbers() const { return o_.columns.empty() ? numbers_ : o_.columns.size(); }
  // Called after the first row.
  void check() {
    for (const auto* wanted : {&o_.columns, &o_.texts})
      for (const std::string& name : *wanted) {
        const auto times = std::ranges::count(seen_, name);
        if (times > 1) throw file_error("load", path_, "several columns are called ", in_quotes(name));
        if (times == 0) throw file_error("load", path_, "there is no column ", in_quotes(name), has());
      }
  }

 private:
  Column chosen(std::size_t k) {
    const std::string name = names_.empty() ? std::to_string(k) : names_[k];
    const auto place = [&](const std::vector<std::string>& list) {
      return static_cast<std::size_t>(std::ranges::find(list, name) - list.begin());
    };
    const std::size_t text = place(o_.texts), number = place(o_.columns);
    if (text < o_.texts.size() || number < o_.columns.size()) seen_.push_back(name);
    if (text < o_.texts.size()) return {Column::Kind::Text, text};
    if (o_.columns.empty() && o_.numbers) return {Column::Kind::Number, numbers_++};
    if (number < o_.columns.size()) return {Column::Kind::Number, number};
    return {Column::Kind::Skipped, 0};
  }
  std::string has() const {
    if (names_.empty()) return str_cat(": the first row has ", all_.size(), " cells");
    std::string all;
    for (std::size_t k = 0; k < names_.size() && all.size() < 300; ++k)
      all += str_cat(all.empty() ? "; it has " : ", ", in_quotes(names_[k]));
    return all;
  }
  const CsvOptions& o_;
  const std::vector<std::string>& names_;
  const std::string& path_;
  std::vector<Column> all_;
  std::vector<std::string> seen_;  // names of requested columns that were found
  std::size_t numbers_ = 0;
};

std::vector<std::string> header(CsvReader& in, Budget& budget) {
  std::vector<std::string> names;
  if (in.done()) return names;
  do {
    names.emplace_back(in.cell());
    budget.take(sizeof(std::string) * 2 + names.back().size() * 2);
  } while (!in.last());
  in.next_row();
  return names;
}

// Returns the names of the columns of numbers in the order of the values.
std::vector<std::string> numbers_of(const std::vector<std::string>& names, const CsvOptions& o) {
  if (!o.numbers) return {};
  if (!o.columns.empty()) return names.empty() ? names : o.columns;
  std::vector<std::string> kept;
  for (const std::string& name : names)
    if (std::ranges::find(o.texts, name) == o.texts.end()) kept.push_back(name);
  return kept;
}

// Returns an upper bound of the number of cells: one more than delimiters and line ends.
std::size_t most_cells(std::string_view text, char delimiter) {
  std::size_t most = 1;
  for (std::size_t k = 0; k < text.size(); ++k)
    most += text[k] == delimiter || text[k] == '\n' || (text[k] == '\r' && text.substr(k + 1, 1) != "\n");
  return most;
}

// Reads the cells of a row into the values and the words, and returns their number. `count` is the required number; 0:
// not known yet.
std::size_t read_row(CsvReader& in, Csv& csv, Columns& columns, std::size_t count, const CsvOptions& o,
                     Budget& budget) {
  budget.take(sizeof(std::int64_t) * 2);
  const std::size_t row = csv.lines.size();
  csv.lines.push_back(static_cast<std::int64_t>(in.line()));
  do {
    const std::string_view cell = in.cell();
    if (count && in.column() > count) throw in.wrong("the first row has only ", count, " cells");
    const Columns::Column c = columns[in.column() - 1];
    if (c.kind == Columns::Column::Kind::Number) store(csv.values, row * columns.numbers() + c.at, cell, in, o);
    if (c.kind != Columns::Column::Kind::Text) continue;
    const std::string_view word = without_spaces(cell);
    budget.take(2 * (sizeof(std::string) + word.size()));
    csv.texts[o.texts[c.at]].emplace_back(is_missing(word, o) ? std::string_view() : word);
  } while (!in.last());
  if (count && in.column() < count) throw in.wrong("the last cell of its row, the first row has ", count);
  return in.column();
}

}  // namespace

Csv parse_csv(std::string_view text, const CsvOptions& o, const std::string& name, const ReadOptions& read) {
  check(o);
  Budget budget(read, name);
  budget.parsed(text.size());
  if (text.find('"') != text.npos) budget.take(2, text.size());  // a quoted cell is copied without its quotes
  CsvReader in(text, o, name);
  const std::vector<std::string> names = o.header ? header(in, budget) : std::vector<std::string>();
  Csv csv;
  csv.columns = numbers_of(names, o);
  for (const std::string& column : o.texts) csv.texts[column];
  // A truncated row is detected only at its end. Until then a number may be stored at an index after the missing cells,
  // so there is room for one more row.
  const std::size_t most = most_cells(text, o.delimiter) + o.columns.size();
  budget.take(most, size_of(o.dtype));
  csv.values = Array::zeros(o.dtype, {static_cast<std::int64_t>(most)});
  Columns columns(o, names, name);
  for (std::size_t k = 0; k < names.size(); ++k) columns[k];
  if (!names.empty()) columns.check();
  std::size_t count = names.size(), rows = 0;
  for (; !in.done(); ++rows, in.next_row()) {
    count = read_row(in, csv, columns, count, o, budget);
    if (rows == 0) columns.check();
  }
  const std::size_t width = count == 0 ? 0 : columns.numbers();
  csv.values.bytes.resize(rows * width * size_of(o.dtype));
  csv.values.shape = {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(width)};
  return csv;
}

Csv read_csv(const std::string& path, const CsvOptions& csv, const ReadOptions& o) {
  const auto file = io::opened(path, o);
  const auto bytes = file->bytes();
  return parse_csv({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, csv, path, o);
}

Array Csv::column(std::string_view name) const {
  const auto found = std::find(columns.begin(), columns.end(), name);
  if (found == columns.end()) throw Error("csv", str_cat("there is no column ", in_quotes(name)));
  if (std::find(found + 1, columns.end(), name) != columns.end())
    throw Error("csv", str_cat("several columns are called ", in_quotes(name)));
  const auto at = static_cast<std::size_t>(found - columns.begin()), rows = static_cast<std::size_t>(values.rows()),
             each = size_of(values.dtype);
  Array c = Array::zeros(values.dtype, {values.rows()});
  for (std::size_t r = 0; r < rows; ++r)
    std::memcpy(c.bytes.data() + r * each, values.bytes.data() + (r * columns.size() + at) * each, each);
  return c;
}

}  // namespace lc
