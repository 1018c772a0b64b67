#include "lightcone/models/files/weight_table.h"

#include <algorithm>
#include <optional>

#include "lightcone/io/printable.h"
#include "lightcone/runtime/names.h"
#include "lightcone/train/load.h"

namespace lc {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Older files call the two parameters of a norm gamma and beta.
std::string modern(std::string name) {
  for (const auto& [old, now] :
       {std::pair<std::string_view, std::string_view>{".gamma", ".weight"}, {".beta", ".bias"}})
    if (name.ends_with(old)) name.replace(name.size() - old.size(), old.size(), now);
  return name;
}

Shape without_ones(Shape s) {
  std::erase_if(s, [](const Dim& d) { return d == Dim(1); });
  return s;
}

// Gives a tensor the axes of one that a model has.
void fit(StoredTensor& t, const Shape& shape) {
  t.shape.clear();
  for (const Dim& d : shape) t.shape.push_back(d.constant().value_or(0));
}

bool same(const StoredTensor& a, const StoredTensor& b) {
  return a.type == b.type && a.shape == b.shape && std::ranges::equal(a.bytes, b.bytes);
}

}  // namespace

std::optional<std::string> rewritten(std::string_view name, std::string_view from, std::string_view to) {
  std::vector<std::string_view> numbers;
  std::size_t at = 0;
  for (const char c : from) {
    if (c != '#') {
      if (at >= name.size() || name[at] != c) return std::nullopt;
      ++at;
      continue;
    }
    const std::size_t begin = at;
    while (at < name.size() && is_digit(name[at])) ++at;
    if (at == begin) return std::nullopt;
    numbers.push_back(name.substr(begin, at - begin));
  }
  if (at < name.size() && name[at] != '.') return std::nullopt;
  std::string out;
  std::size_t next = 0;
  for (const char c : to) {
    if (c == '#' && next < numbers.size()) out += numbers[next++];
    else out += c;
  }
  return out + std::string(name.substr(at));
}

WeightTable::WeightTable(const Weights& w, std::span<const std::string_view> prefixes,
                         std::span<const WeightName> names)
    : shared_(std::make_shared<Shared>()) {
  Shared& s = *shared_;
  s.weights = w;
  s.names.assign(names.begin(), names.end());
  for (const auto& [name, t] : w.tensors()) {
    std::string_view plain = name;
    for (const std::string_view prefix : prefixes)
      if (plain.starts_with(prefix)) {
        plain.remove_prefix(prefix.size()), s.prefix = prefix;
        break;
      }
    add(s, name, plain, t);
  }
}

void WeightTable::add(Shared& s, const std::string& name, std::string_view plain, const StoredTensor& t) {
  if (plain.ends_with(".num_batches_tracked")) return;  // batch norms count with it while they train
  const std::string now = modern(std::string(plain));
  for (const WeightName& row : s.names) {
    const auto ours = rewritten(now, row.theirs, row.ours);
    if (!ours) continue;
    if (row.ours.empty()) return;  // a constant that the model makes itself
    const auto [at, added] = s.tensors.try_emplace(*ours, Row{name, t, row.optional, row.yields});
    if (!added && at->second.yields) at->second = Row{name, t, row.optional, row.yields};
    else if (!added && !row.yields && !same(at->second.tensor, t))
      throw file_error("load_model", s.weights.path(), in_quotes(name), " and ", in_quotes(at->second.theirs),
                       " are one weight of the model, and they differ");
    return;
  }
  s.unknown.push_back(name);
}

// The file's name of a parameter, as far as the table has one.
std::string WeightTable::theirs(const Shared& s, std::string_view ours) {
  for (const WeightName& row : s.names)
    if (const auto name = row.ours.empty() ? std::nullopt : rewritten(ours, row.ours, row.theirs))
      return row.optional ? *name : s.prefix + *name;
  return std::string(ours);
}

void WeightTable::also(std::string_view ours, std::string_view as) {
  const auto at = shared_->tensors.find(ours);
  if (at != shared_->tensors.end()) shared_->tensors.try_emplace(std::string(as), at->second);
}

const StoredTensor* WeightTable::find(std::string_view ours) const {
  const auto at = shared_->tensors.find(ours);
  return at == shared_->tensors.end() ? nullptr : &at->second.tensor;
}

std::string WeightTable::name_in_file(std::string_view ours) const {
  const auto at = shared_->tensors.find(ours);
  return at == shared_->tensors.end() ? std::string() : at->second.theirs;
}

// The tensor of a parameter, which the file must have in this shape.
const WeightTable::Row& WeightTable::row_of(const Shared& s, std::string_view path, const Shape& shape) {
  const auto at = s.tensors.find(path);
  if (at == s.tensors.end()) {
    const std::string wanted = theirs(s, path);
    const std::vector<std::string_view> others(s.unknown.begin(), s.unknown.end());
    const std::string_view near = nearest_name(wanted, others);
    throw file_error(
        "load_model", s.weights.path(), "there is no weight ", in_quotes(wanted),
        near.empty() ? "" : str_cat("; of the weights that are not known, ", in_quotes(near), " is nearest"));
  }
  const Row& row = at->second;
  const Shape have(row.tensor.shape.begin(), row.tensor.shape.end());
  // GGUF's writers leave out axes of one
  if (have != shape && !(s.weights.gguf() && without_ones(have) == without_ones(shape)))
    throw file_error("load_model", s.weights.path(), in_quotes(row.theirs), " has the shape ", str(have), ", and ",
                     s.weights.gguf() ? "its metadata want " : "config.json wants ", str(shape));
  return row;
}

nn::Storage WeightTable::storage_of(Shared& s, std::string_view path, const Shape& shape) {
  const Row& row = row_of(s, path, shape);
  if (std::ssize(row.tensor.shape) != std::ssize(shape)) fit(s.tensors.find(path)->second.tensor, shape);
  if (row.tensor.dtype && !is_float(*row.tensor.dtype))
    throw file_error("load_model", s.weights.path(), in_quotes(row.theirs), " holds whole numbers (", row.tensor.type,
                     "), not weights; scales of quantised weights in tensors of their own are not supported");
  s.used.emplace(path);
  if (row.tensor.quant) return {DType::U8, row.tensor.quant};
  return {row.tensor.dtype.value_or(DType::F32), {}};
}

void WeightTable::take(std::string_view ours, const Shape& shape, DType type) const {
  Shared& s = *shared_;
  const Row& row = row_of(s, ours, shape);
  if (row.tensor.dtype != type)
    throw file_error("load_model", s.weights.path(), in_quotes(row.theirs), " holds ", row.tensor.type, ", and not ",
                     name(type));
  s.used.emplace(ours);
}

nn::StorageOf WeightTable::storage() const {
  return [shared = shared_, before = path_.size()](std::string_view path, const Shape& shape) {
    return storage_of(*shared, path.substr(std::min(before, path.size())), shape);
  };
}

WeightTable WeightTable::below(const std::string& path) const {
  WeightTable t = *this;
  t.path_ = path + ".";
  return t;
}

void WeightTable::require_all_used(std::string_view model) const {
  const Shared& s = *shared_;
  const auto refuse = [&](const std::string& name, std::string_view near) {
    throw file_error("load_model", s.weights.path(), "the weight ", in_quotes(name), " is no part of ", model,
                     " of these sizes", near.empty() ? "" : str_cat("; the nearest known is ", in_quotes(near)));
  };
  if (!s.unknown.empty()) {
    std::vector<std::string_view> known;
    for (const auto& [ours, row] : s.tensors) known.push_back(row.theirs);
    refuse(s.unknown.front(), nearest_name(s.unknown.front(), known));
  }
  for (const auto& [ours, row] : s.tensors)
    if (!row.optional && !s.used.contains(ours)) refuse(row.theirs, "");
}

void WeightTable::load(Program& program, const PartOf& part) const {
  std::map<std::string, StoredTensor, std::less<>> tensors;
  for (const std::string& ours : shared_->used) tensors.emplace(path_ + ours, shared_->tensors.at(ours).tensor);
  lc::load(program, shared_->weights, tensors, part);
}

}  // namespace lc
