// The values of NCCL's enumerations and the layout of its structs, as NVIDIA documents them.
#pragma once
#include <climits>
#include <cstddef>
#include <cstdint>

namespace lc::simulators::nccl {

enum Result : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};

enum Type : int { kI8, kU8, kI32, kU32, kI64, kU64, kF16, kF32, kF64, kBf16, kTypes };
enum Reduction : int { kSum, kProduct, kMax, kMin, kReductions };

inline std::size_t size_of(int type) {
  constexpr std::size_t sizes[kTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return sizes[type];
}

struct UniqueId {  // ncclUniqueId
  char bytes[128];
};

struct Config {  // ncclConfig_t of 2.18; later versions have more fields
  std::size_t size;
  unsigned magic, version;
  int blocking, cga_cluster_size, min_ctas, max_ctas;
  const char* net_name;
  int split_share, padding;
};
inline constexpr unsigned kMagic = 0xcafebeef;
inline constexpr int kUndefined = INT_MIN;

// rows[0] + rows[1] + ..., or another reduction, of element `k`. Each step is rounded to the type, as NCCL does it.
void reduce(int type, int reduction, const void* const* rows, std::size_t count, void* to, std::size_t elements);

}  // namespace lc::simulators::nccl
