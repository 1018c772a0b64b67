#include "run_log.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>

#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"
#include "lightcone/io/atomic_file.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/io/printable.h"

namespace lc::tool {
namespace {

using LogJson = nlohmann::ordered_json;

std::string number_of(double v) { return formatted("%.9g", v); }
std::string number_of(const std::optional<double>& v) { return v ? number_of(*v) : ""; }

void write_whole(const std::string& path, const std::string& text) {
  io::AtomicFile file("train", path);
  file.write(text);
  file.commit();
}

void append(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::app);
  if (!(file << text) || !file.flush()) throw Error("train", str_cat("cannot write ", in_quotes(path)));
}

LogLine parse_line(const std::string& text, const std::string& measure) {
  const LogJson j = LogJson::parse(text);
  const auto maybe = [&](const std::string& key) {
    return j.contains(key) ? std::optional<double>(j.at(key).get<double>()) : std::nullopt;
  };
  return {j.at("step").get<std::int64_t>(), maybe("loss"),  j.at("seconds").get<double>(), j.at("rate").get<double>(),
          maybe("held_out_loss"),           maybe(measure), j.value("best", false)};
}

}  // namespace

RunLog::RunLog(std::string folder, std::string title, std::string measure, std::int64_t step)
    : folder_(std::move(folder)), title_(std::move(title)), measure_(std::move(measure)) {
  const std::string path = folder_ + "/log.jsonl";
  // A run that was killed before its first line has an empty file.
  std::error_code missing;
  if (const auto bytes = std::filesystem::file_size(path, missing); step > 0 && !missing && bytes > 0) {
    std::istringstream lines(read_text_file(path, std::size_t{1} << 30));
    try {
      // an incomplete line, which a kill left, is later than the checkpoint
      for (std::string one; std::getline(lines, one) && !lines.eof();)
        if (const LogLine l = parse_line(one, measure_); l.step <= step) lines_.push_back(l);
    } catch (const LogJson::exception& e) {
      throw Error("train", str_cat(in_quotes(path), " is no log of a run: ", printable(e.what(), 200)));
    }
  }
  std::string all, table = header();
  for (const LogLine& l : lines_) all += json(l), table += csv(l);
  write_whole(path, all);
  write_whole(folder_ + "/log.csv", table);
}

void RunLog::add(const LogLine& line) {
  lines_.push_back(line);
  append(folder_ + "/log.jsonl", json(line));
  append(folder_ + "/log.csv", csv(line));
}

void RunLog::write_page(const std::string& facts) const {
  write_whole(folder_ + "/loss.html", loss_page(title_, facts, measure_, lines_));
}

std::string RunLog::json(const LogLine& l) const {
  std::string s = str_cat("{\"step\": ", l.step);
  const auto add = [&](const std::string& key, const std::optional<double>& v) {
    if (v) s += str_cat(", \"", key, "\": ", number_of(*v));
  };
  add("loss", l.loss), add("seconds", l.seconds), add("rate", l.rate), add("held_out_loss", l.held_out_loss);
  add(measure_, l.measure);
  return s + (l.best ? ", \"best\": true}\n" : "}\n");
}
std::string RunLog::header() const { return "step,loss,seconds,rate,held_out_loss,held_out_" + measure_ + "\n"; }
std::string RunLog::csv(const LogLine& l) const {
  return str_cat(l.step, ",", number_of(l.loss), ",", number_of(l.seconds), ",", number_of(l.rate), ",",
                 number_of(l.held_out_loss), ",", number_of(l.measure), "\n");
}

}  // namespace lc::tool
