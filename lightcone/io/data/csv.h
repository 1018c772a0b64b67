// CSV: numbers, and words beside them, in rows and columns (RFC 4180).
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

struct CsvOptions {
  char delimiter = ',';
  bool header = true;                  // the first row holds names, not numbers
  DType dtype = DType::F32;            // of the values
  std::optional<double> missing = {};  // what a missing cell means; without it, it is an Error
  // Words that stand where a cell is missing, as "NA" (pandas' na_values); an empty cell always is.
  std::vector<std::string> na_values = {};
  // Columns of numbers to read, in this order, where not all are wanted (pandas' usecols). Without a header columns are
  // called "0", "1", ... here and below.
  std::vector<std::string> columns = {};
  std::vector<std::string> texts = {};  // columns of words
};

struct Csv {
  std::vector<std::string> columns;  // names of the columns of numbers; empty without a header
  Array values;                      // [rows, columns]
  // The columns of words, by name: a word for each row, without the spaces around it; "" where it is missing.
  std::map<std::string, std::vector<std::string>, std::less<>> texts;
  std::vector<std::int64_t> lines;  // that the rows begin in, from 1
  // The values of one column, [rows]. Error when no column has the name, or several have.
  Array column(std::string_view name) const;
};

// Cells are separated by the delimiter and rows by LF, CRLF or CR; a cell within double quotes may hold them, and a
// quote written twice. Spaces around a number and empty lines are skipped, as is a byte order mark. A number is read as
// C++ reads it, whatever the locale: 1, +1, -1.5, 1e-3, inf, nan, the nearest of its dtype. Error, which names line and
// column, for a cell that is no such number or outside its dtype's range, and for a row with more or fewer cells than
// the first; and where no column has a name that is asked for, or several have.
Csv read_csv(const std::string& path, const CsvOptions& csv = {}, const ReadOptions& o = {});
// The same from a text in memory; `name` is what Errors call it.
Csv parse_csv(std::string_view text, const CsvOptions& csv = {}, const std::string& name = "csv",
              const ReadOptions& o = {});

}  // namespace lc
