#include "lightcone/models/gguf/metadata.h"

#include <algorithm>
#include <cmath>

#include "lightcone/io/printable.h"
#include "lightcone/runtime/names.h"

namespace lc {
namespace {

double number_of(const GgufValue& v, bool& ok) {
  ok = true;
  if (const auto* i = std::get_if<std::int64_t>(&v)) return static_cast<double>(*i);
  if (const auto* u = std::get_if<std::uint64_t>(&v)) return static_cast<double>(*u);
  if (const auto* d = std::get_if<double>(&v)) return *d;
  ok = false;
  return 0;
}

// True for a value that turns nothing on.
bool turns_nothing_on(const GgufValue& v) {
  if (const auto* b = std::get_if<bool>(&v)) return !*b;
  if (const auto* t = std::get_if<std::string_view>(&v)) return t->empty();
  bool ok = false;
  return number_of(v, ok) == 0 && ok;
}

}  // namespace

GgufMetadata::GgufMetadata(const Weights& w, std::vector<std::string> ignore)
    : weights_(w), file_(*w.gguf()), ignore_(std::move(ignore)) {
  architecture_ = file_.text("general.architecture").value_or("");
  const std::string type = file_.text("general.type").value_or("model");
  if (type != "model")
    fail("general.type is ", in_quotes(type), ": it is no whole model, and must be given beside one");
  if (architecture_.empty()) fail("there is no general.architecture, which says what model it is");
}

void GgufMetadata::refuse(const std::string& what) const { throw file_error("load_model", weights_.path(), what); }

std::string GgufMetadata::full(std::string_view key) const { return str_cat(architecture_, ".", key); }

const GgufValue* GgufMetadata::value(std::string_view key) const {
  known_.emplace(key);
  const auto at = file_.metadata.find(full(key));
  return at == file_.metadata.end() ? nullptr : &at->second;
}

bool GgufMetadata::has(std::string_view key) const { return file_.metadata.contains(full(key)); }

std::optional<double> GgufMetadata::number(std::string_view key) const {
  const GgufValue* v = value(key);
  if (!v) return {};
  bool ok = false;
  const double n = number_of(*v, ok);
  if (ok) return n;
  const auto* each = std::get_if<GgufNumbers>(v);
  if (!each || each->size() == 0) fail(full(key), " is ", str(*v), ", and not a number");
  for (std::size_t i = 1; i < each->size(); ++i)
    if ((*each)[i] != (*each)[0])
      fail(full(key), " differs from layer to layer (", (*each)[0], " and ", (*each)[i], "), which is not supported");
  return (*each)[0];
}

std::int64_t GgufMetadata::whole(std::string_view key, double n) const {
  constexpr double kMost = 1e9;
  if (!(n >= 1 && n <= kMost) || n != std::floor(n))
    fail(full(key), " is ", n, ", and not a whole number from 1 to ", kMost);
  return static_cast<std::int64_t>(n);
}

std::int64_t GgufMetadata::size(std::string_view key) const {
  const std::optional<double> n = number(key);
  if (!n) fail("there is no ", full(key));
  return whole(key, *n);
}

std::int64_t GgufMetadata::size(std::string_view key, std::int64_t otherwise) const {
  const double n = number(key, 0);
  return n == 0 ? otherwise : whole(key, n);
}

std::string GgufMetadata::text(std::string_view key, std::string_view otherwise) const {
  const GgufValue* v = value(key);
  if (!v) return std::string(otherwise);
  const auto* t = std::get_if<std::string_view>(v);
  if (!t) fail(full(key), " is ", str(*v), ", and not a text");
  return std::string(*t);
}

bool GgufMetadata::flag(std::string_view key, bool otherwise) const {
  const GgufValue* v = value(key);
  if (!v) return otherwise;
  const auto* b = std::get_if<bool>(v);
  if (!b) fail(full(key), " is ", str(*v), ", and not true or false");
  return *b;
}

std::vector<double> GgufMetadata::numbers(std::string_view key, std::size_t most) const {
  const GgufValue* v = value(key);
  std::vector<double> all;
  if (!v) return all;
  bool ok = false;
  if (const double n = number_of(*v, ok); ok) return {n};
  const auto* each = std::get_if<GgufNumbers>(v);
  if (!each) fail(full(key), " is ", str(*v), ", and not a list of numbers");
  if (each->size() > most) fail(full(key), " has ", each->size(), " numbers, and at most ", most, " make sense");
  for (std::size_t i = 0; i < each->size(); ++i) all.push_back((*each)[i]);
  return all;
}

void GgufMetadata::neutral(std::initializer_list<std::string_view> keys) const {
  for (const std::string_view key : keys) known_.emplace(key);
}

void GgufMetadata::lacks(std::initializer_list<std::string_view> keys) const {
  for (const std::string_view key : keys)
    if (const GgufValue* v = value(key); v && !turns_nothing_on(*v))
      fail(full(key), " is ", str(*v), ", and a model of architecture ", in_quotes(architecture_),
           " is supported without it alone");
}

void GgufMetadata::require_all_known() const {
  const std::string prefix = architecture_ + ".";
  for (const auto& [name, v] : file_.metadata) {
    if (!name.starts_with(prefix)) continue;
    const std::string_view key = std::string_view(name).substr(prefix.size());
    const auto ignored = [&](const std::string& i) { return i == name || i == key; };
    if (known_.contains(key) || std::ranges::any_of(ignore_, ignored)) continue;
    const std::vector<std::string_view> known(known_.begin(), known_.end());
    fail(name, " is ", str(v), ", and no key of this name is known of ", architecture_, " (the nearest is ", prefix,
         nearest_name(key, known), "); if it changes nothing of what the model computes, name it among the keys to ",
         "ignore");
  }
}

std::int64_t GgufMetadata::extent(std::string_view tensor, std::size_t axis) const {
  const StoredTensor* t = weights_.find(tensor);
  if (!t) fail("there is no tensor ", in_quotes(std::string(tensor)));
  if (axis >= t->shape.size()) fail("the tensor ", in_quotes(std::string(tensor)), " has ", t->shape.size(), " axes");
  return t->shape[axis];
}

}  // namespace lc
