// Reads CSV files (RFC 4180): columns of numbers and columns of words.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/io/data/array.h"
#include "lightcone/io/read_options.h"

namespace lc {

// Options of read_csv() and parse_csv().
struct CsvOptions {
  char delimiter = ',';
  bool header = true;                  // the first row holds the names of the columns
  DType dtype = DType::F32;            // dtype of the numbers
  std::optional<double> missing = {};  // the value of a missing cell; nullopt: a missing cell is an Error
  // Words that mark a missing cell, such as "NA" (pandas' na_values). An empty cell is always missing.
  std::vector<std::string> na_values = {};
  // Columns of numbers to read, in this order (pandas' usecols); empty: all columns that are not in `texts`. Without a
  // header, columns are called "0", "1", ... here and in `texts`.
  std::vector<std::string> columns = {};
  std::vector<std::string> texts = {};  // columns of words
  bool numbers = true;                  // false: no column of numbers is read, and `columns` is empty
};

// The contents of a CSV file.
struct Csv {
  std::vector<std::string> columns;  // names of the columns of numbers; empty without a header
  Array values;                      // [rows, columns]
  // The columns of words by name: one word per row, without surrounding spaces; "" if the cell is missing.
  std::map<std::string, std::vector<std::string>, std::less<>> texts;
  std::vector<std::int64_t> lines;  // the line in which each row begins, from 1
  // Returns one column of numbers, [rows]. Throws Error if no column or several columns have the name.
  Array column(std::string_view name) const;
};

// Reads a CSV file. Cells are separated by the delimiter, rows by LF, CRLF or CR. A cell in double quotes may contain
// these, and a double quote written twice. Spaces around a number, empty lines and a byte order mark are skipped.
// Numbers are parsed as in C++, whatever the locale (1, +1, -1.5, 1e-3, inf, nan), and rounded to the nearest value of
// the dtype. Throws Error, with line and column, for a cell that is not a number or is outside the range of its dtype,
// and for a row with more or fewer cells than the first; and Error if no column or several columns have a requested
// name.
Csv read_csv(const std::string& path, const CsvOptions& csv = {}, const ReadOptions& o = {});
// The same for a text in memory. `name` stands for the path in Errors.
Csv parse_csv(std::string_view text, const CsvOptions& csv = {}, const std::string& name = "csv",
              const ReadOptions& o = {});

}  // namespace lc
