// CSV as train and predict read it: the columns to learn from, and the words of the label.
#pragma once

#include <string>
#include <vector>

#include "config.h"
#include "lightcone/io/data/array.h"
#include "lightcone/io/read_options.h"

namespace lc::tool {

inline constexpr ReadOptions kOwnFiles{.memory = std::size_t{8} << 30};  // files of the user, maybe compressed

struct Table {
  std::vector<std::string> columns;  // columns to learn from; empty without a header
  Array x;                           // f32 [rows, columns], NaN if a cell is missing and data.missing fills it
  std::vector<std::string> labels;   // a word for each row
  std::vector<i64> rows, lines;      // each row's index in the file, from 0, and its line, from 1
  std::size_t left_out = 0;          // rows with missing cells, if data.missing is "skip"
};
enum class Labels { Read, Ignored };

// Throws Error, which names line and column, for a cell that is no finite number, for a missing cell if data.missing is
// "error", and for a missing label unless it is "skip".
Table read_table(const std::string& path, const DataConfig& d, Labels labels);

// Returns the labels as numbers: as they are if all are numbers, else as indices in `classes`. If `classes` is empty,
// it is filled with the words, in the order of Python's sorted(). Throws Error for a word that is not in it, and if
// there are not exactly data.classes.
Array label_numbers(const Table& t, const DataConfig& d, const std::string& path, std::vector<std::string>& classes);

}  // namespace lc::tool
