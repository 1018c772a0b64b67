#include "spelling.h"

#include <algorithm>

#include "lightcone/base/error.h"

namespace lc::tool {
namespace {

// Returns how many letters to insert, remove, replace or exchange with the next (optimal string alignment distance).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0u : 1u)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

}  // namespace

std::string meant(std::string_view word, const std::vector<std::string>& known) {
  constexpr std::size_t kLongest = 64;  // a longer word is no typing mistake
  if (word.size() < 2 || word.size() > kLongest) return "";
  std::string best;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& k : known) {
    std::size_t far = distance(word, k);
    if (word.size() > 2 && k.starts_with(word)) far = std::min<std::size_t>(far, 1);
    if (far < least) least = far, best = k;
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const std::string best = meant(word, known);
  return best.empty() ? "" : str_cat("; did you mean ", best, "?");
}

}  // namespace lc::tool
