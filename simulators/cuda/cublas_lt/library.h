// A cuBLASLt for the simulated driver: the contents of descriptors, and the product they describe.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>

#include "driver/library_work.h"

namespace lc::simulators::cublas_lt {

using cuda::LibraryWork;

// The values of cublasStatus_t, cudaDataType_t and cublasComputeType_t are NVIDIA's.
enum Status : int {
  kSuccess = 0,
  kNotInitialized = 1,
  kAllocFailed = 3,
  kInvalidValue = 7,
  kExecutionFailed = 13,
  kNotSupported = 15
};
enum Type : int { kF32 = 0, kF16 = 2, kBf16 = 14 };
enum Compute : int { kCompute32F = 68, kComputeFast16BF = 75, kComputeFastTf32 = 77 };

struct Product {
  int compute = 0, scale = 0, transpose_a = 0, transpose_b = 0;
  friend bool operator==(const Product&, const Product&) = default;
};
struct Layout {
  int type = 0;
  std::uint64_t rows = 0, columns = 0;
  std::int64_t pitch = 0, stride = 0;
  std::int32_t batches = 1;
  friend bool operator==(const Layout&, const Layout&) = default;
  std::size_t element() const { return type == kF32 ? 4 : 2; }
};
struct Preference {
  std::uint64_t workspace = 0;
  std::uint32_t reductions = 7, alignments[4] = {256, 256, 256, 256};
};
struct Handle {};

// D = op(A) * op(B) as the descriptors state it.
struct Problem {
  Product product;
  Layout a, b, c, d;
  // Returns the status that cuBLASLt returns for the problem, kSuccess if it is valid.
  Status check() const;
  std::uint64_t hash() const;
  // Computes the product on the host, with these addresses. Returns an error message if memory is not the device's.
  std::string compute(std::uint64_t at_a, std::uint64_t at_b, std::uint64_t at_d,
                      LibraryWork::OnDevice on_device) const;
};

struct Settings {
  std::atomic<long> version = 130000;
  std::atomic<long> refuses = 0;       // 1: no algorithm for any problem
  std::atomic<long> delay_ms = 0;      // least duration of a product
  std::atomic<long> workspace = 1000;  // bytes that an algorithm requires
  std::atomic<long> products = 0;      // number computed so far
  std::atomic<long> of_zeros = 0;      // products in which the first 64 bytes of an operand were zeros
  std::atomic<long> live = 0;          // handles and descriptors not destroyed
};
Settings& settings();

}  // namespace lc::simulators::cublas_lt
