// Test cases as ONNX's repository has them: a folder with model.onnx and folders test_data_set_N of input_K.pb and
// output_K.pb.
#pragma once

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/onnx/model/model.h"
#include "lightcone/onnx/onnx.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"

namespace lc::test {

struct CaseResult {
  enum class Kind { Pass, Refused, Wrong };
  Kind kind = Kind::Pass;
  std::string why = {};
};

inline std::string difference_of_types(const ArrayView& got, const ArrayView& wanted) {
  if (got.dtype != wanted.dtype) return str_cat("its type is ", name(got.dtype), ", not ", name(wanted.dtype));
  if (got.shape != wanted.shape)
    return str_cat("its shape is ", str(Shape(got.shape.begin(), got.shape.end())), ", not ",
                   str(Shape(wanted.shape.begin(), wanted.shape.end())));
  return {};
}

// Compares two arrays as ONNX's runner does: |a - b| <= atol + rtol |b|, equal infinities and NaNs, equal integers.
inline std::string difference(const ArrayView& got, const ArrayView& wanted, double rtol = 1e-3, double atol = 1e-7) {
  if (const std::string why = difference_of_types(got, wanted); !why.empty()) return why;
  const std::size_t n = wanted.bytes.size() / size_of(wanted.dtype);
  for (std::size_t k = 0; k < n; ++k) {
    if (!is_float(wanted.dtype)) {
      const auto a = load_i64(got.bytes.data(), got.dtype, k), b = load_i64(wanted.bytes.data(), wanted.dtype, k);
      if (a != b) return str_cat("element ", k, " of ", n, " is ", a, ", not ", b);
      continue;
    }
    const double a = load_f64(got.bytes.data(), got.dtype, k), b = load_f64(wanted.bytes.data(), wanted.dtype, k);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double unit = std::ldexp(1.0, 1 - info(wanted.dtype).digits);  // a narrow result may be rounded the other way
    if (!(std::fabs(a - b) <= atol + std::max(rtol, unit) * std::fabs(b)))
      return str_cat("element ", k, " of ", n, " is ", a, ", not ", b);
  }
  return {};
}

// An array of a .pb file, with the bytes that it refers to.
struct StoredArray {
  std::shared_ptr<const MappedFile> file;
  onnx::TensorData data;
  ArrayView view() const {
    const auto dtype = onnx::dtype_of(data.type);
    if (!dtype) throw Error("case", str_cat("elements of type ", onnx::name(data.type)));
    return {*dtype, data.shape, data.bytes};
  }
};
inline StoredArray stored(const std::filesystem::path& file) {
  StoredArray a{.file = MappedFile::open(file.string()), .data = {}};
  a.data = onnx::parse_tensor(a.file);
  return a;
}

// Keeps the first `n` elements of an axis.
inline std::pair<ArrayView, std::vector<std::byte>> first_of(const ArrayView& a, int axis, std::int64_t n) {
  std::vector<std::byte> bytes;
  ArrayView r = a;
  const auto at = static_cast<std::size_t>(axis);
  std::size_t outer = 1, inner = size_of(a.dtype);
  for (std::size_t k = 0; k < a.shape.size(); ++k)
    (k < at ? outer : inner) *= k == at ? 1 : static_cast<std::size_t>(a.shape[k]);
  const std::size_t row = inner * static_cast<std::size_t>(a.shape[at]), kept = inner * static_cast<std::size_t>(n);
  for (std::size_t o = 0; o < outer; ++o) {
    const auto part = a.bytes.subspan(o * row, kept);
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  r.shape[at] = n;
  return {r, std::move(bytes)};
}

// Reads the model of a folder for the inputs of its first set of data. Those on which sizes may depend become part of
// the graph if it cannot be read otherwise.
OnnxProgram read_case(const std::filesystem::path& folder);
// Runs the cases of a folder and compares their outputs.
CaseResult run_case(const std::filesystem::path& folder, const Compiler& compiler);

}  // namespace lc::test
