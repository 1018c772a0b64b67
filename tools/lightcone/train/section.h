// A section of a JSON object: each key is taken once, with the type and the range that it must have. Otherwise it
// throws Error, which names file, section and key.
#pragma once

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "../spelling.h"
#include "config.h"
#include "lightcone/base/error.h"
#include "lightcone/io/printable.h"

namespace lc::tool {

using Json = nlohmann::json;

inline std::string quoted(const Json& j) {
  return printable(j.dump(-1, ' ', true, Json::error_handler_t::replace), 200);
}

class Section {
 public:
  Section(const std::string& path, const Json& all, std::string name, bool needed, std::vector<std::string>* decisive)
      : path_(path), name_(std::move(name)), decisive_(decisive) {
    if (all.contains(name_)) j_ = all.at(name_);
    else if (needed) fail("the section \"", name_, "\" is missing");
    if (!j_.is_object()) fail("\"", name_, "\" must be a section, { ... }");
  }
  template <class... Ts>
  [[noreturn]] void fail(const Ts&... what) const {
    throw Error("config", str_cat(printable(path_, 300), ": ", what...));
  }
  template <class... Ts>
  [[noreturn]] void wrong(const std::string& key, const Ts&... what) const {
    fail(name_, ".", key, " is ", quoted(j_.at(key)), what...);
  }
  bool has(const std::string& key) const { return j_.contains(key); }

  void whole(const std::string& key, i64& value, i64 least, bool needed = false) {
    if (!take(key, needed)) return;
    const Json& v = j_.at(key);
    if (!v.is_number_integer() || v.get<double>() < static_cast<double>(least) || v.get<double>() > 1e12)
      wrong(key, ", it must be a whole number of at least ", least);
    value = v.get<i64>();
  }
  void number(const std::string& key, double& value, double least, double most) {
    if (!take(key, false)) return;
    const Json& v = j_.at(key);
    if (!v.is_number() || !(v.get<double>() >= least && v.get<double>() <= most))
      wrong(key, ", it must be a number from ", least, " to ", most);
    value = v.get<double>();
  }
  // Takes one of some words, or a number: `word` is then "number".
  void word_or_number(const std::string& key, std::string& word, double& value, const std::vector<std::string>& known) {
    if (has(key) && j_.at(key).is_number()) {
      number(key, value, -1e30, 1e30);
      word = "number";
      return;
    }
    one_of(key, word, known, false, ", or a number");
  }
  void flag(const std::string& key, bool& value) {
    if (!take(key, false)) return;
    if (!j_.at(key).is_boolean()) wrong(key, ", it must be true or false");
    value = j_.at(key).get<bool>();
  }
  void text(const std::string& key, std::string& value, bool needed = false) {
    if (!take(key, needed)) return;
    if (!j_.at(key).is_string()) wrong(key, ", it must be a text in quotes");
    value = j_.at(key).get<std::string>();
  }
  void one_of(const std::string& key, std::string& value, const std::vector<std::string>& known, bool needed = false,
              const char* more = "") {
    text(key, value, needed);
    std::string all;
    for (const std::string& k : known) {
      if (k == value) return;
      all += (all.empty() ? "" : ", ") + k;
    }
    wrong(key, ", it must be one of ", all, more);
  }
  void wholes(const std::string& key, std::vector<i64>& values, std::size_t most, bool needed = false) {
    if (!take(key, needed)) return;
    const Json& v = j_.at(key);
    bool good = v.is_array() && v.size() <= most;
    for (std::size_t k = 0; good && k < v.size(); ++k)
      good = v[k].is_number_integer() && v[k].get<double>() >= 1 && v[k].get<double>() <= 1e9;
    if (!good) wrong(key, ", it must be a list of at most ", most, " whole numbers above 0");
    values = v.get<std::vector<i64>>();
  }
  void numbers(const std::string& key, std::vector<double>& values, std::size_t count, double least, double most) {
    if (!take(key, false)) return;
    const Json& v = j_.at(key);
    bool good = v.is_array() && v.size() == count;
    for (std::size_t k = 0; good && k < count; ++k)
      good = v[k].is_number() && v[k].get<double>() >= least && v[k].get<double>() <= most;
    if (!good) wrong(key, ", it must be a list of ", count, " numbers from ", least, " to ", most);
    values = v.get<std::vector<double>>();
  }
  void texts(const std::string& key, std::vector<std::string>& values, bool empty_too = false) {
    if (!take(key, false)) return;
    const Json& v = j_.at(key);
    const auto fits = [&](const Json& t) { return t.is_string() && (empty_too || t != ""); };
    if (!v.is_array() || !std::ranges::all_of(v, fits)) wrong(key, ", it must be a list of texts in quotes");
    values = v.get<std::vector<std::string>>();
  }
  // Takes a path, relative to the folder of the file.
  void file(const std::string& key, std::string& path) {
    text(key, path);
    if (!path.empty()) path = beside(path);
  }
  // Takes a path or a list of them, relative to the folder of the file.
  void files(const std::string& key, std::vector<std::string>& paths, bool needed) {
    if (!take(key, needed)) return;
    const Json& v = j_.at(key);
    const Json list = v.is_string() ? Json::array({v}) : v;
    bool good = list.is_array() && !list.empty();
    for (const Json& p : list) good = good && p.is_string();
    if (!good) wrong(key, ", it must be a path in quotes, or a list of them");
    for (const Json& p : list) paths.push_back(beside(p.get<std::string>()));
  }
  // Refuses a key that was not taken, so that none is ignored silently.
  void finish() const {
    for (const auto& [key, value] : j_.items()) {
      if (known_.contains(key)) continue;
      std::string all;
      for (const std::string& k : known_) all += (all.empty() ? "" : ", ") + k;
      fail("there is no ", name_, ".", printable(key, 100), did_you_mean(key, {known_.begin(), known_.end()}),
           "; here \"", name_, "\" has ", all);
    }
  }

 private:
  std::string beside(const std::string& path) const {
    return (std::filesystem::path(path_).parent_path() / path).string();
  }
  bool take(const std::string& key, bool needed) {
    known_.insert(key);
    if (j_.contains(key)) {
      if (decisive_ && !(name_ == "train" && key == "steps"))
        decisive_->push_back(str_cat(name_, ".", key, " = ", quoted(j_.at(key))));
      return true;
    }
    if (needed) fail(name_, ".", key, " is missing");
    return false;
  }
  const std::string& path_;
  std::string name_;
  Json j_ = Json::object();
  std::set<std::string> known_;
  std::vector<std::string>* decisive_;
};

// Reads the section "model", all of whose keys must be known.
void read_model(Section s, ModelConfig& m);

}  // namespace lc::tool
