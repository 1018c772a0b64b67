#include "lightcone/models/yolo/source.h"

#include <cmath>

#include "lightcone/base/numbers.h"
#include "lightcone/io/printable.h"

namespace lc {

void YoloSource::refuse(const std::string& what) const { throw file_error("load_model", w_->path(), what); }

const std::vector<std::int64_t>& YoloSource::shape(const std::string& weight, std::size_t rank) const {
  const StoredTensor* t = w_->find(full(weight));
  if (!t) refuse(str_cat("there is no weight ", in_quotes(full(weight))));
  bool fits = t->shape.size() == rank;
  for (const std::int64_t n : t->shape) fits = fits && n > 0;
  if (!fits) refuse(str_cat(in_quotes(full(weight)), " has not the ", rank, " axes that are wanted"));
  return t->shape;
}

std::int64_t YoloSource::parts(const std::string& path) const {
  std::int64_t n = 0;
  for (;; ++n) {
    const std::string part = str_cat(full(path), ".", n, ".");
    const auto at = w_->tensors().lower_bound(part);
    if (at == w_->tensors().end() || !at->first.starts_with(part)) return n;
  }
}

std::string YoloSource::type(const std::string& path) const {
  const auto at = w_->modules().find(full(path));
  if (at == w_->modules().end()) return "";
  const std::string& name = at->second.class_name;
  return name.substr(name.rfind('.') + 1);  // npos + 1 is 0
}

std::optional<std::string> YoloSource::attribute(const std::string& path, std::string_view key) const {
  const auto module = w_->modules().find(full(path));
  if (module == w_->modules().end()) return std::nullopt;
  const auto at = module->second.attributes.find(std::string(key));
  if (at == module->second.attributes.end() || at->second == "null") return std::nullopt;
  return at->second;
}

bool YoloSource::flag(const std::string& path, std::string_view key, bool otherwise) const {
  const auto text = attribute(path, key);
  if (text && *text != "true" && *text != "false")
    refuse(str_cat(in_quotes(full(path)), ": ", key, " is ", printable(*text, 100), ", and not true or false"));
  return text ? *text == "true" : otherwise;
}

double YoloSource::number(const std::string& path, std::string_view key, double otherwise) const {
  const auto text = attribute(path, key);
  const auto n = text ? real_of<double>(*text) : otherwise;
  if (!n || !std::isfinite(*n))
    refuse(str_cat(in_quotes(full(path)), ": ", key, " is ", printable(*text, 100), ", and not a number"));
  return *n;
}

std::string YoloSource::text(const std::string& path, std::string_view key, std::string_view otherwise) const {
  const auto text = attribute(path, key);
  if (!text) return std::string(otherwise);
  if (text->size() < 2 || text->front() != '"')
    refuse(str_cat(in_quotes(full(path)), ": ", key, " is ", printable(*text, 100), ", and not a text"));
  return text->substr(1, text->size() - 2);
}

std::vector<int> YoloSource::wholes(const std::string& path, std::string_view key, std::vector<int> otherwise) const {
  const auto text = attribute(path, key);
  if (!text) return otherwise;
  std::vector<int> all;
  std::string_view rest = *text;
  if (rest.starts_with('[') && rest.ends_with(']')) rest = rest.substr(1, rest.size() - 2);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(", "), rest.size());
    const auto n = real_of<double>(rest.substr(0, end));
    constexpr double kMost = 2147483647;
    if (!n || !(std::fabs(*n) <= kMost) || *n != std::floor(*n))
      refuse(str_cat(in_quotes(full(path)), ": ", key, " is ", printable(*text, 100), ", and not whole numbers"));
    all.push_back(static_cast<int>(*n));
    rest.remove_prefix(std::min(end + 2, rest.size()));
  }
  return all;
}

}  // namespace lc
