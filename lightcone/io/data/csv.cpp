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

// A number that from_chars takes whole; a sign of plus is ours.
template <class T>
std::errc number(std::string_view s, T& v) {
  if (s.starts_with('+') && !s.starts_with("+-")) s.remove_prefix(1);
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
  return error != std::errc() || end == s.data() + s.size() ? error : std::errc::invalid_argument;
}

// Reads cells one after another.
class CsvReader {
 public:
  CsvReader(std::string_view text, const CsvOptions& o, const std::string& path) : rest_(text), o_(o), path_(path) {
    if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);
    skip_empty_lines();
  }
  bool done() const { return rest_.empty(); }
  // The next cell, good until the next call; sets last() when it ends its row.
  std::string_view cell();
  bool last() const { return last_; }
  // Behind the last cell of a row.
  void next_row() {
    column_ = 0;
    skip_empty_lines();
  }
  std::size_t column() const { return column_; }
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
  std::size_t line_ = 1, line_of_cell_ = 1, column_ = 0;  // from 1
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
  if (!rest_.empty() && rest_[0] != o_.delimiter && !at_line_end())
    throw wrong("something follows the closing quote");
  return unquoted_;
}

// At a delimiter, a line's end or the end of the text.
void CsvReader::end_of_cell() {
  last_ = !rest_.starts_with(o_.delimiter);
  if (!last_) rest_.remove_prefix(1);
  else if (!rest_.empty()) end_line();
}

// Stores what the cell says as element `i`.
void store(Array& a, std::size_t i, std::string_view text, const CsvReader& at, const CsvOptions& o) {
  const std::string_view s = without_spaces(text);
  std::byte* to = a.bytes.data();
  if (s.empty()) {
    if (!o.missing) throw at.wrong("an empty cell; CsvOptions::missing says what one means");
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
  } else if (o.dtype == DType::F32) {  // rounded once
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
}

}  // namespace

Csv parse_csv(std::string_view text, const CsvOptions& o, const std::string& name, const ReadOptions& read) {
  check(o);
  Budget budget(read, name);
  budget.parsed(text.size());
  if (text.find('"') != text.npos) budget.take(2, text.size());  // a quoted cell is copied without its quotes
  CsvReader in(text, o, name);
  Csv csv;
  if (o.header && !in.done()) {
    do {
      csv.columns.emplace_back(in.cell());
      budget.take(sizeof(std::string) * 2 + csv.columns.back().size() * 2);
    } while (!in.last());
    in.next_row();
  }
  // There are no more cells than delimiters and line ends, and one.
  std::size_t most = 1;
  for (std::size_t k = 0; k < text.size(); ++k)
    most += text[k] == o.delimiter || text[k] == '\n' || (text[k] == '\r' && text.substr(k + 1, 1) != "\n");
  budget.take(most, size_of(o.dtype));
  csv.values = Array::zeros(o.dtype, {static_cast<std::int64_t>(most)});
  std::size_t columns = csv.columns.size(), rows = 0, n = 0;
  for (; !in.done(); ++rows, in.next_row()) {
    do {
      const std::string_view cell = in.cell();
      if (columns && in.column() > columns) throw in.wrong("the first row has only ", columns, " cells");
      store(csv.values, n++, cell, in, o);
    } while (!in.last());
    if (columns && in.column() < columns) throw in.wrong("the last cell of its row, the first row has ", columns);
    columns = in.column();
  }
  csv.values.bytes.resize(n * size_of(o.dtype));
  csv.values.shape = {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)};
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
