// Array: numbers in memory with a shape, as readers of data sets return them and a DataLoader passes them on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "lightcone/base/error.h"
#include "lightcone/core/array_view.h"
#include "lightcone/core/dtype.h"

namespace lc {

// An array that owns its elements. Context::set() takes one.
struct Array {
  DType dtype = DType::F32;
  std::vector<std::int64_t> shape = {0};  // row-major, the last axis contiguous; empty: a scalar
  std::vector<std::byte> bytes;           // as many as the shape needs

  // Returns an array of zeros. Throws Error if an extent is negative or the array is larger than any memory.
  static Array zeros(DType dtype, std::vector<std::int64_t> shape);
  // Returns an array with a copy of the values. Throws Error if their number does not match the shape.
  template <class T>
  static Array of(std::vector<std::int64_t> shape, std::span<const T> values) {
    return from(dtype_of<T>::value, std::move(shape), std::as_bytes(values));
  }

  operator ArrayView() const { return {dtype, shape, bytes}; }  // a view, valid as long as the array is unchanged

  std::int64_t elements() const;  // number of elements
  std::int64_t rows() const;      // extent of the first axis; Error for a scalar
  std::size_t row_bytes() const;  // bytes per index of the first axis

  // The elements. Throws Error if T is not their type.
  template <class T>
  std::span<const T> values() const {
    expect(dtype_of<T>::value);
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  template <class T>
  std::span<T> values() {
    expect(dtype_of<T>::value);
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

 private:
  static Array from(DType dtype, std::vector<std::int64_t> shape, std::span<const std::byte> values);
  void expect(DType wanted) const;
};

}  // namespace lc
