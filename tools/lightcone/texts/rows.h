// Rows of texts, with their labels where they have any: CSV, lines of JSON, or one text a line.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lightcone/io/text/tokenizer.h"

namespace lc::tool {

// Where the texts of a row stand.
struct TextColumns {
  std::string format = "csv";  // csv, jsonl or lines
  std::string text = "text";   // the column or key of the text
  std::string pair, label;     // the second text and the label; "": there is none
};

struct TextRows {
  std::vector<std::string> texts, pairs, labels;
  std::vector<std::int64_t> lines;  // the line of each row, from 1
};

// Reads a file, or with the path "-" the standard input as lines. In lines of JSON a label is a text, a whole number or
// a truth value. Throws Error that names the line for a row without one of the columns or without a label. `op` is the
// command.
TextRows read_text_rows(const std::string& op, const std::string& path, const TextColumns& columns);

// Returns the encodings of the rows, each cut to `most` tokens. Throws Error that names the line of a text that is not
// UTF-8, and for a row that has no token at all.
std::vector<Encoding> encoded(const std::string& op, const std::string& path, const TextRows& rows,
                              const Tokenizer& tokenizer, std::int64_t most);

}  // namespace lc::tool
