#include "lightcone/io/checkpoints/parts.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include <nlohmann/json.hpp>

#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"
#include "lightcone/io/atomic_file.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/io/printable.h"

namespace lc::io {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".safetensors";

std::string digits(int n) {
  const std::string s = std::to_string(n);
  return std::string(s.size() < 5 ? 5 - s.size() : 0, '0') + s;
}

std::string stem_of(const std::string& path) {
  return path.ends_with(kSuffix) ? path.substr(0, path.size() - kSuffix.size()) : path;
}

// Whether a file of this name is a part of the checkpoint at `path`: NAME-a-00001-of-00004.safetensors.
bool is_part(const std::string& path, std::string name) {
  const std::string stem = fs::path(stem_of(path)).filename().string() + "-";
  if (!name.starts_with(stem) || !name.ends_with(kSuffix)) return false;
  name = name.substr(stem.size(), name.size() - stem.size() - kSuffix.size());
  for (char& c : name)
    if (c >= '0' && c <= '9') c = '0';
  return name == "a-00000-of-00000" || name == "b-00000-of-00000";
}

// The names of the files that the index names. Throws Error if it is damaged.
std::set<std::string> named_by_index(const std::string& path) {
  std::set<std::string> names;
  if (!has_parts(path)) return names;
  const auto j = nlohmann::json::parse(read_text_file(index_path(path), std::size_t{1} << 30), nullptr, false);
  if (!j.is_object() || !j.contains("weight_map") || !j.at("weight_map").is_object())
    throw file_error("load", index_path(path), "it has no weight_map");
  for (const auto& [tensor, file] : j.at("weight_map").items())
    if (file.is_string()) names.insert(file.get<std::string>());
  return names;
}

void remove_all_parts_but(const std::string& path, const std::set<std::string>& kept) {
  const fs::path parent = fs::path(path).parent_path(), folder = parent.empty() ? fs::path(".") : parent;
  std::vector<fs::path> old;
  std::error_code wrong;
  for (fs::directory_iterator at(folder, wrong), end; !wrong && at != end; at.increment(wrong))
    if (const std::string name = at->path().filename().string(); is_part(path, name) && !kept.contains(name))
      old.push_back(at->path());
  for (const fs::path& p : old) fs::remove(p, wrong);  // what cannot be removed takes room, and does no harm
}

double steps_of(const std::string& file) {
  const auto& metadata = Weights::open(file).metadata();
  const auto steps = metadata.find("lightcone.steps");
  return steps == metadata.end() ? -1 : real_of<double>(steps->second).value_or(-1);
}

}  // namespace

std::string index_path(const std::string& path) { return path + ".index.json"; }

std::string part_file(const std::string& path, char set, int rank, int ranks) {
  return str_cat(stem_of(path), "-", set, "-", digits(rank + 1), "-of-", digits(ranks), kSuffix);
}

char free_set(const std::string& path) {
  const std::string a = fs::path(part_file(path, 'a', 0, 1)).filename().string();
  const std::string begin = a.substr(0, a.size() - std::string_view("00001-of-00001.safetensors").size());
  return std::ranges::any_of(named_by_index(path), [&](const std::string& name) { return name.starts_with(begin); })
             ? 'b'
             : 'a';
}

void write_index(const std::string& path, const std::map<std::string, std::string>& files, std::size_t bytes) {
  nlohmann::ordered_json j;
  j["metadata"]["total_size"] = bytes;
  j["weight_map"] = nlohmann::ordered_json::object();
  for (const auto& [tensor, file] : files) j["weight_map"][tensor] = fs::path(file).filename().string();
  io::AtomicFile file("save", index_path(path));
  file.write(j.dump(2) + "\n");
  file.commit();
}

bool has_parts(const std::string& path) {
  std::error_code wrong;
  return fs::exists(index_path(path), wrong);
}

std::string latest_checkpoint(const std::string& path) {
  const bool whole = fs::exists(path), parts = has_parts(path);
  if (!whole || !parts) return parts ? index_path(path) : path;
  return steps_of(path) > steps_of(index_path(path)) ? path : index_path(path);
}

void remove_older_than_index(const std::string& path) {
  std::error_code wrong;
  if (has_parts(path)) fs::remove(path, wrong);
  remove_all_parts_but(path, named_by_index(path));
}

void remove_parts(const std::string& path) {
  std::error_code wrong;
  fs::remove(index_path(path), wrong);
  remove_all_parts_but(path, {});
}

}  // namespace lc::io
