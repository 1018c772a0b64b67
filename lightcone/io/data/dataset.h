// Dataset: named arrays with one row per sample.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "lightcone/io/data/array.h"

namespace lc {

using Arrays = std::map<std::string, Array, std::less<>>;  // by name

// A data set in memory.
class Dataset {
 public:
  // The first extent of every array is the number of samples. Throws Error if there are no arrays, if one has no axes,
  // or if their first extents differ.
  explicit Dataset(Arrays arrays);

  std::int64_t size() const { return size_; }  // number of samples
  // Returns the array of this name. Throws Error if there is none.
  const Array& at(std::string_view name) const;
  const Arrays& arrays() const { return arrays_; }  // all arrays by name
  // Returns a copy of `count` samples from `first` on, for example to separate training and validation. Throws Error if
  // there are fewer samples.
  Dataset part(std::int64_t first, std::int64_t count) const;

  // Throws Error, naming the first wrong sample, unless the array holds integers from 0 to classes - 1. To be called
  // before training: a class out of range makes the loss NaN, and then the parameters.
  const Dataset& expect_classes(std::string_view name, std::int64_t classes) const;
  // Throws Error, naming the first wrong sample, if the array holds a NaN or an infinity. To be called before training.
  const Dataset& expect_finite(std::string_view name) const;

 private:
  Arrays arrays_;
  std::int64_t size_ = 0;
};

}  // namespace lc
