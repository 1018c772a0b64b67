// Dataset: named arrays that are about the same samples.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "lightcone/io/data/array.h"

namespace lc {

using Arrays = std::map<std::string, Array, std::less<>>;  // by name

class Dataset {
 public:
  // The first extent of every array counts the samples. Error when there is no array, one has no axes, or their first
  // extents differ.
  explicit Dataset(Arrays arrays);

  std::int64_t size() const { return size_; }    // samples
  const Array& at(std::string_view name) const;  // Error when it is not there
  const Arrays& arrays() const { return arrays_; }
  // Samples first to first + count, copied: the part to train with and the part to validate with. Error when there are
  // not so many.
  Dataset part(std::int64_t first, std::int64_t count) const;

  // To be asked before the first step; both name the first sample that is wrong. (A class that does not exist makes a
  // loss NaN, as a NaN does, and then the parameters.)
  // Error unless the array is of integers from 0 to classes - 1.
  const Dataset& expect_classes(std::string_view name, std::int64_t classes) const;
  // Error where a number is NaN or infinite.
  const Dataset& expect_finite(std::string_view name) const;

 private:
  Arrays arrays_;
  std::int64_t size_ = 0;
};

}  // namespace lc
