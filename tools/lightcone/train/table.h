// CSV as train and predict read it: the columns that are learned from, and the words of the label.
#pragma once

#include <string>
#include <vector>

#include "config.h"
#include "lightcone/io/data/array.h"
#include "lightcone/io/read_options.h"

namespace lc::tool {

inline constexpr ReadOptions kOwnFiles{.memory = std::size_t{8} << 30};  // the user's own, which may be compressed

struct Table {
  std::vector<std::string> columns;  // that are learned from; empty without a header
  Array x;                           // f32 [rows, columns], NaN where a cell is missing and data.missing fills it
  std::vector<std::string> labels;   // a word for each row
  std::vector<i64> rows, lines;      // of each: its number in the file, from 0, and its line there, from 1
  std::size_t left_out = 0;          // rows with missing cells, where data.missing says "skip"
};
enum class Labels { Read, Ignored };

// Error, which names line and column, for a cell that is no finite number, and for one that is missing where
// data.missing is "error"; of labels always but for "skip".
Table read_table(const std::string& path, const DataConfig& d, Labels labels);

// The labels as numbers: as they are where all are numbers, else as places among `classes`, which are made of the words
// where they are empty, in the order of Python's sorted(). Error for a word that is none of them, and where there are
// more or fewer than data.classes says.
Array label_numbers(const Table& t, const DataConfig& d, const std::string& path, std::vector<std::string>& classes);

}  // namespace lc::tool
