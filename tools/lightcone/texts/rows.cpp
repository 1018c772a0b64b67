#include "rows.h"

#include <fstream>
#include <iostream>
#include <optional>

#include <nlohmann/json.hpp>

#include "../train/table.h"
#include "lightcone/base/error.h"
#include "lightcone/io/data/csv.h"
#include "lightcone/io/data/text.h"
#include "lightcone/io/printable.h"

namespace lc::tool {
namespace {

using Json = nlohmann::json;

TextRows from_csv(const std::string& op, const std::string& path, const TextColumns& c) {
  CsvOptions o{.texts = {c.text}, .numbers = false};
  for (const std::string& more : {c.pair, c.label})
    if (!more.empty()) o.texts.push_back(more);
  Csv csv = read_csv(path, o, kOwnFiles);
  TextRows rows;
  rows.texts = std::move(csv.texts[c.text]);
  if (!c.pair.empty()) rows.pairs = std::move(csv.texts[c.pair]);
  if (!c.label.empty()) rows.labels = std::move(csv.texts[c.label]);
  rows.lines = std::move(csv.lines);
  for (std::size_t k = 0; k < rows.labels.size(); ++k)
    if (rows.labels[k].empty())
      throw file_error(op, path, "line ", rows.lines[k], ", column ", in_quotes(c.label), ": the label is missing");
  return rows;
}

// The text of a key; of a label also a whole number and a truth value, as words.
std::string word(const Json& line, const std::string& key, bool label) {
  if (!line.contains(key)) throw Error("", str_cat("it has no ", in_quotes(key)));
  const Json& v = line.at(key);
  if (label && (v.is_number_integer() || v.is_boolean())) return v.dump();
  if (!v.is_string())
    throw Error(
        "", str_cat("its ", in_quotes(key), label ? " is no text, no whole number and no truth value" : " is no text"));
  auto text = v.get<std::string>();
  if (label && text.empty()) throw Error("", str_cat("its ", in_quotes(key), " is empty"));
  return text;
}

void add_json(TextRows& rows, const std::string& line, const TextColumns& c) {
  const Json j = Json::parse(line);
  if (!j.is_object()) throw Error("", "it is no object, { ... }");
  rows.texts.push_back(word(j, c.text, false));
  if (!c.pair.empty()) rows.pairs.push_back(word(j, c.pair, false));
  if (!c.label.empty()) rows.labels.push_back(word(j, c.label, true));
}

TextRows from_lines(const std::string& op, const std::string& path, const TextColumns& c) {
  std::ifstream file;
  if (path != "-") file.open(path, std::ios::binary);
  if (path != "-" && !file) throw file_error(op, path, "it cannot be read");
  std::istream& in = path == "-" ? std::cin : file;
  TextRows rows;
  std::int64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    if (c.format == "jsonl" && line.find_first_not_of(" \t") == line.npos) continue;
    try {
      if (c.format == "jsonl") add_json(rows, line, c);
      else rows.texts.push_back(std::move(line));
    } catch (const Json::exception&) {
      throw file_error(op, path, "line ", number, ": it is no JSON");
    } catch (const Error& e) {
      throw file_error(op, path, "line ", number, ": ", printable(e.problem(), 500));
    }
    rows.lines.push_back(number);
  }
  if (in.bad()) throw file_error(op, path, "it cannot be read to its end");
  return rows;
}

}  // namespace

TextRows read_text_rows(const std::string& op, const std::string& path, const TextColumns& columns) {
  return columns.format == "csv" ? from_csv(op, path, columns) : from_lines(op, path, columns);
}

std::vector<Encoding> encoded(const std::string& op, const std::string& path, const TextRows& rows,
                              const Tokenizer& tokenizer, std::int64_t most) {
  std::vector<Encoding> all;
  all.reserve(rows.texts.size());
  for (std::size_t k = 0; k < rows.texts.size(); ++k) try {
      std::vector<std::string_view> texts{rows.texts[k]};
      if (!rows.pairs.empty()) texts.emplace_back(rows.pairs[k]);
      all.push_back(tokenizer.encode_within(texts, static_cast<std::size_t>(most)));
      if (all.back().ids.empty()) throw Error("", "the text has no token");
    } catch (const Error& e) {
      throw file_error(op, path, "line ", rows.lines[k], ": ", printable(e.problem(), 500));
    }
  return all;
}

}  // namespace lc::tool
