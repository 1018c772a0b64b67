// The part of cuBLASLt that Lightcone calls, as declarations of our own after https://docs.nvidia.com/cuda/cublas:
// neither its headers nor the library are needed to build.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lightcone/backends/cuda/api.h"

namespace lc::backends::cuda::api {

// Opaque types of the library.
struct LtHandle;
struct LtProduct;
struct LtLayout;
struct LtPreference;

enum class LtStatus : int { Success = 0, AllocationFailed = 3, NotSupported = 15 };
enum class LtType : int { F32 = 0, F16 = 2, BF16 = 14 };
enum class LtCompute : int { F32 = 68, F32AsBF16 = 75, F32AsTF32 = 77 };
enum class LtProductAttribute : int { TransposeA = 3, TransposeB = 4 };
enum class LtLayoutAttribute : int { BatchCount = 5, BatchStride = 6 };
enum class LtPreferenceAttribute : int {
  MostWorkspace = 1,
  Reductions = 3,
  AlignmentA = 5,
  AlignmentB = 6,
  AlignmentC = 7,
  AlignmentD = 8
};
enum class LtTranspose : int { No = 0, Yes = 1 };
// How the parts of a split sum are added. A sum in one part is always allowed.
enum class LtReduction : std::uint32_t { InF32 = 2 };

struct LtAlgorithm {
  std::uint64_t data[8] = {};
};
struct LtChoice {  // cublasLtMatmulHeuristicResult_t
  LtAlgorithm algorithm;
  std::size_t workspace = 0;
  LtStatus state = LtStatus::Success;
  float waves = 0;
  int reserved[4] = {};
};

// clang-format off
// Each function: our name, the library's, and its arguments. All of them return an LtStatus.
#define LIGHTCONE_CUBLASLT_FUNCTIONS(F)                                                                                \
  F(create, "cublasLtCreate", LtHandle** to)                                                                           \
  F(destroy, "cublasLtDestroy", LtHandle* handle)                                                                      \
  F(create_product, "cublasLtMatmulDescCreate", LtProduct** to, LtCompute compute, LtType scale)                       \
  F(destroy_product, "cublasLtMatmulDescDestroy", LtProduct* product)                                                  \
  F(set_product, "cublasLtMatmulDescSetAttribute", LtProduct* product, LtProductAttribute attribute,                   \
    const void* value, std::size_t bytes)                                                                              \
  F(create_layout, "cublasLtMatrixLayoutCreate", LtLayout** to, LtType type, std::uint64_t rows, std::uint64_t columns,\
    std::int64_t pitch)                                                                                                \
  F(destroy_layout, "cublasLtMatrixLayoutDestroy", LtLayout* layout)                                                   \
  F(set_layout, "cublasLtMatrixLayoutSetAttribute", LtLayout* layout, LtLayoutAttribute attribute, const void* value,  \
    std::size_t bytes)                                                                                                 \
  F(create_preference, "cublasLtMatmulPreferenceCreate", LtPreference** to)                                            \
  F(destroy_preference, "cublasLtMatmulPreferenceDestroy", LtPreference* preference)                                   \
  F(set_preference, "cublasLtMatmulPreferenceSetAttribute", LtPreference* preference, LtPreferenceAttribute attribute, \
    const void* value, std::size_t bytes)                                                                              \
  F(choose, "cublasLtMatmulAlgoGetHeuristic", LtHandle* handle, LtProduct* product, LtLayout* a, LtLayout* b,          \
    LtLayout* c, LtLayout* d, LtPreference* preference, int most, LtChoice* choices, int* count)                       \
  F(multiply, "cublasLtMatmul", LtHandle* handle, LtProduct* product, const void* alpha, Address a, LtLayout* a_layout,\
    Address b, LtLayout* b_layout, const void* beta, Address c, LtLayout* c_layout, Address d, LtLayout* d_layout,     \
    const LtAlgorithm* algorithm, Address workspace, std::size_t workspace_bytes, Stream* stream)
// clang-format on

struct Lt {
#define LIGHTCONE_LT_MEMBER(name, symbol, ...) LtStatus (*name)(__VA_ARGS__) = nullptr;
  LIGHTCONE_CUBLASLT_FUNCTIONS(LIGHTCONE_LT_MEMBER)
#undef LIGHTCONE_LT_MEMBER
  std::size_t (*version)() = nullptr;  // cublasLtGetVersion
};

}  // namespace lc::backends::cuda::api
