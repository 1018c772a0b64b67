#include "lightcone/runtime/names.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "lightcone/base/error.h"

namespace lc {
namespace {

constexpr std::size_t kMostNamed = 10, kLongest = 80;

// Edit distance (insertions, deletions, replacements), ignoring case.
std::size_t distance(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  a = a.substr(0, kLongest), b = b.substr(0, kLongest);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (lower(a[i]) != lower(b[j]));
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

// Returns a prefix with which every one of `names` occurs in `given`, or "".
std::string common_prefix(const std::vector<std::string>& names, const std::vector<std::string>& given) {
  const std::set<std::string_view> all(given.begin(), given.end());
  for (const std::string& name : given) {
    if (!name.ends_with("." + names[0])) continue;
    const std::string prefix = name.substr(0, name.size() - names[0].size());
    if (std::ranges::all_of(names, [&](const std::string& n) { return all.contains(prefix + n); })) return prefix;
  }
  return "";
}

}  // namespace

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kListed = 5;
  std::string s;
  for (std::size_t k = 0; k < std::min(names.size(), kListed); ++k) {
    std::string name = names[k].substr(0, kLongest);
    for (char& c : name)
      if (c < ' ' || c > '~') c = '?';
    s += (s.empty() ? "" : ", ") + name + (names[k].size() > kLongest ? "..." : "");
  }
  return names.size() > kListed ? str_cat(s, " and ", names.size() - kListed, " more") : s;
}

std::string missing_among(const std::vector<std::string>& missing, const std::vector<std::string>& given) {
  const std::string problem = str_cat("there is no tensor for the parameters ", listed(missing));
  if (const std::string prefix = common_prefix(missing, given); !prefix.empty())
    return str_cat(problem, ": all of them are there with '", listed({prefix}), "' before their names");
  return problem + (given.empty() ? "; none is given" : "; given are " + listed(given));
}

std::string names_near(std::string_view wanted, std::vector<std::string_view> have) {
  std::vector<std::pair<std::size_t, std::string_view>> near;
  for (std::string_view name : have) near.emplace_back(distance(wanted, name), name);
  const std::size_t shown = std::min(kMostNamed, near.size());
  std::partial_sort(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(shown), near.end());
  std::string s;
  for (std::size_t k = 0; k < shown; ++k) {
    s += k == 0 ? "it has " : ", ";
    s += near[k].second.substr(0, kLongest);
    if (near[k].second.size() > kLongest) s += "...";
  }
  return near.size() > shown ? str_cat(s, " and ", near.size() - shown, " more") : s;
}

std::string_view nearest_name(std::string_view wanted, const std::vector<std::string_view>& have) {
  const auto near = std::ranges::min_element(have, {}, [&](std::string_view name) { return distance(wanted, name); });
  return near == have.end() ? std::string_view() : *near;
}

}  // namespace lc
