// The log of a run: kept in memory, and in the run's folder as log.jsonl, log.csv and loss.html.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lc::tool {

// A line of the log: the mean loss of the steps since the last line, or an evaluation, or both.
struct LogLine {
  std::int64_t step = 0;
  std::optional<double> loss;
  double seconds = 0, rate = 0;  // since the run began, over all sessions; samples or tokens a second
  std::optional<double> held_out_loss, measure;
  bool best = false;
};

class RunLog {
 public:
  // `measure`: the name of what evaluations report besides the loss: accuracy or perplexity. Existing lines up to
  // `step` are kept, and later ones are dropped: 0 begins anew. Throws Error if a file cannot be written or is no log.
  RunLog(std::string folder, std::string title, std::string measure, std::int64_t step);
  void add(const LogLine& line);  // appends to both files
  const std::vector<LogLine>& lines() const { return lines_; }
  double seconds() const { return lines_.empty() ? 0 : lines_.back().seconds; }
  // Writes the page; `facts` are lines "key value" for a table next to the curve.
  void write_page(const std::string& facts) const;

 private:
  std::string json(const LogLine& l) const;
  std::string csv(const LogLine& l) const;
  std::string header() const;
  std::string folder_, title_, measure_;
  std::vector<LogLine> lines_;
};

// Returns the page of a run: curves of the losses as SVG within HTML, which needs no network and is valid XML, too.
std::string loss_page(const std::string& title, const std::string& facts, const std::string& measure,
                      const std::vector<LogLine>& lines);

}  // namespace lc::tool
