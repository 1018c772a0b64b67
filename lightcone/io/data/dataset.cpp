#include "lightcone/io/data/dataset.h"

#include <cmath>

#include "lightcone/io/printable.h"

namespace lc {

Dataset::Dataset(Arrays arrays) : arrays_(std::move(arrays)) {
  if (arrays_.empty()) throw Error("data set", "it has no arrays");
  const auto& [first, array] = *arrays_.begin();
  for (const auto& [name, a] : arrays_) {
    if (a.shape.empty()) throw Error("data set", str_cat(in_quotes(name), " is one number: it has no axis of samples"));
    if (a.rows() != array.rows())
      throw Error("data set",
                  str_cat(in_quotes(name), " has ", a.rows(), " samples, ", in_quotes(first), " has ", array.rows()));
  }
  size_ = array.rows();
}

const Array& Dataset::at(std::string_view name) const {
  const auto it = arrays_.find(name);
  if (it == arrays_.end()) throw Error("data set", str_cat("it has no array ", in_quotes(name)));
  return it->second;
}

// Returns the sample that an element belongs to.
static std::int64_t sample_of(const Array& a, std::size_t element) {
  return static_cast<std::int64_t>(element * size_of(a.dtype) / a.row_bytes());
}

const Dataset& Dataset::expect_classes(std::string_view name, std::int64_t classes) const {
  const Array& a = at(name);
  if (is_float(a.dtype))
    throw Error("data set", str_cat(in_quotes(name), " is ", lc::name(a.dtype), ": classes are integers"));
  for (std::size_t k = 0; k < a.bytes.size() / size_of(a.dtype); ++k)
    if (const std::int64_t c = load_i64(a.bytes.data(), a.dtype, k); c < 0 || c >= classes)
      throw Error("data set", str_cat(in_quotes(name), " of sample ", sample_of(a, k), " is ", c, ", and there are ",
                                      classes, " classes"));
  return *this;
}

const Dataset& Dataset::expect_finite(std::string_view name) const {
  const Array& a = at(name);
  if (!is_float(a.dtype)) return *this;
  for (std::size_t k = 0; k < a.bytes.size() / size_of(a.dtype); ++k)
    if (const double v = load_f64(a.bytes.data(), a.dtype, k); !std::isfinite(v))
      throw Error("data set", str_cat(in_quotes(name), " of sample ", sample_of(a, k), " holds ", v));
  return *this;
}

Dataset Dataset::part(std::int64_t first, std::int64_t count) const {
  if (first < 0 || count < 0 || first > size_ || count > size_ - first)
    throw Error("data set", str_cat("samples ", first, " and ", count, " more of ", size_));
  Arrays parts;
  for (const auto& [name, a] : arrays_) {
    Array& p = parts[name];
    p.dtype = a.dtype;
    p.shape = a.shape;
    p.shape[0] = count;
    const auto begin = a.bytes.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(first) * a.row_bytes());
    p.bytes.assign(begin, begin + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(count) * a.row_bytes()));
  }
  return Dataset(std::move(parts));
}

}  // namespace lc
