// lightcone embed: a vector of each line of text.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <span>

#include "command.h"
#include "commands.h"
#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"
#include "lightcone/io/checkpoints/save.h"
#include "lightcone/io/printable.h"
#include "lightcone/models/sentence/sentence_encoder.h"

namespace lc::tool {
namespace {

constexpr std::size_t kLinesAtOnce = 4096;     // lines of one call: those of similar lengths are computed together
constexpr std::size_t kMostCosines = 1 << 13;  // lines whose cosines are printed

// The lines of the standard input, or of a file.
class LineReader {
 public:
  explicit LineReader(const std::string& path) : path_(path.empty() ? "the standard input" : path) {
    if (path.empty()) return;
    file_.open(path, std::ios::binary);
    if (!file_) throw file_error("embed", path, "it cannot be read");
  }
  // Returns at most `most` further lines, without their ends.
  std::vector<std::string> next(std::size_t most) {
    std::vector<std::string> lines;
    std::istream& in = file_.is_open() ? static_cast<std::istream&>(file_) : std::cin;
    for (std::string line; lines.size() < most && std::getline(in, line);) {
      if (line.ends_with('\r')) line.pop_back();
      lines.push_back(std::move(line));
    }
    if (in.bad()) throw file_error("embed", path_, "it cannot be read to its end");
    return lines;
  }

 private:
  std::string path_;
  std::ifstream file_;
};

// One line of JSON: with as many digits as tell all floats apart.
std::string json_line(std::span<const float> v) {
  std::string s = "[";
  for (std::size_t k = 0; k < v.size(); ++k) s += str_cat(k ? ", " : "", formatted("%.9g", static_cast<double>(v[k])));
  return s + "]\n";
}

std::string matrix_of(const std::vector<double>& c, std::size_t n) {
  std::string s;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) s += str_cat(j ? " " : "", formatted("%7.4f", c[i * n + j]));
    s += '\n';
  }
  return s;
}

SentenceEncoder open_encoder(const EmbedOptions& o) {
  SentenceOptions s{.normalize = o.normalize,
                    .length = o.length,
                    .batch = o.batch,
                    .ignore = o.ignore,
                    .compiler = compiler_for(open_device(o.device), {.threads = o.threads, .precision = o.precision}),
                    .tokenizer = o.tokenizer};
  if (!o.pooling.empty()) s.pooling = pooling_named(o.pooling);
  return SentenceEncoder::load(o.model, s);
}

}  // namespace

void embed(const EmbedOptions& o) {
  if (!o.output.empty() && !o.output.ends_with(".npy"))
    throw Error("embed", str_cat(in_quotes(o.output), " does not end in .npy, which says what it is to be"));
  const SentenceEncoder model = open_encoder(o);
  print_notes(model.program());
  const std::string& named = o.prompt_name.empty() ? model.config().prompt : o.prompt_name;
  const std::string before = named.empty() ? o.prompt : model.prompt(named) + o.prompt;
  const bool whole = o.similarity || !o.output.empty();
  LineReader lines(o.input);
  Progress progress;
  std::vector<float> all;
  std::size_t count = 0;
  for (std::vector<std::string> texts = lines.next(kLinesAtOnce); !texts.empty(); texts = lines.next(kLinesAtOnce)) {
    for (std::string& text : texts) text.insert(0, before);
    const std::vector<float> v =
        model.embed(texts, [&](double part) { progress.show("embedding", part, str_cat("from line ", count + 1)); });
    progress.clear();
    count += texts.size();
    if (o.similarity && count > kMostCosines)
      throw Error("embed", str_cat("more than ", kMostCosines,
                                   " lines: their cosines are too many; --output writes the vectors"));
    if (whole) all.insert(all.end(), v.begin(), v.end());
    else
      for (std::size_t k = 0; k < texts.size(); ++k)
        write_stdout(json_line(std::span(v).subspan(k * static_cast<std::size_t>(model.width()),
                                                    static_cast<std::size_t>(model.width()))));
  }
  if (!o.output.empty())
    save_npy(o.output, {.name = "embeddings",
                        .dtype = DType::F32,
                        .shape = {static_cast<std::int64_t>(count), model.width()},
                        .bytes = std::as_bytes(std::span(all))});
  if (o.similarity && count > 0) write_stdout(matrix_of(cosines(all, count), count));
}

}  // namespace lc::tool
