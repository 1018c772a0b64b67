#include "lightcone/models/files/fine_tuning.h"

#include <algorithm>

#include "lightcone/base/error.h"

namespace lc {
namespace {

// True if the labels are transformers' names for classes without names.
bool unnamed(const std::vector<std::string>& labels) {
  for (std::size_t k = 0; k < labels.size(); ++k)
    if (labels[k] != str_cat("LABEL_", k)) return false;
  return true;
}

}  // namespace

std::vector<std::string> classes_in_order_of(const std::vector<std::string>& labels,
                                             std::span<const std::string> classes) {
  if (labels.size() != classes.size()) return {};
  std::vector<std::string> order = labels;
  const auto known = [&](const std::string& c) { return std::ranges::count(order, c) == 1; };
  if (std::ranges::all_of(classes, known)) return order;
  if (!unnamed(labels)) return {};
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = std::to_string(k);
  return std::ranges::all_of(classes, known) ? order : std::vector<std::string>();
}

bool names_module(std::string_view target, std::string_view module) {
  if (!module.ends_with(target)) return false;
  return module.size() == target.size() || module[module.size() - target.size() - 1] == '.';
}

}  // namespace lc
