// Array: numbers in memory with a shape; what the readers of data sets return and a DataLoader hands out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "lightcone/core/array_view.h"
#include "lightcone/core/dtype.h"
#include "lightcone/core/error.h"

namespace lc {

struct Array {
  DType dtype = DType::F32;
  std::vector<std::int64_t> shape = {0};  // row-major, the last axis contiguous; empty: one number
  std::vector<std::byte> bytes;           // as many as the shape needs; Context::set() takes an Array

  // Error when an extent is negative or no memory holds them.
  static Array zeros(DType dtype, std::vector<std::int64_t> shape);
  // Error when there are more or fewer values than the shape has.
  template <class T>
  static Array of(std::vector<std::int64_t> shape, std::span<const T> values) {
    return from(dtype_of<T>::value, std::move(shape), std::as_bytes(values));
  }

  operator ArrayView() const { return {dtype, shape, bytes}; }

  std::int64_t elements() const;
  std::int64_t rows() const;      // the first extent; Error when it has no axes
  std::size_t row_bytes() const;  // of what lies at one place of the first axis

  // The elements. Error when T is not their type.
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
