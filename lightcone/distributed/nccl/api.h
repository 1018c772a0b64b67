// The part of NCCL's interface that Lightcone uses. None of NVIDIA's headers are included; the calls are documented at
// docs.nvidia.com/deeplearning/nccl.
//
// The interface only grows: functions of version 2.18 have the same arguments in later ones, and the structure of
// options says how large its caller believes it to be and of which version.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>

#include "lightcone/backends/cuda/api.h"

namespace lc::distributed::nccl {

using backends::cuda::api::Address;
using backends::cuda::api::Stream;

struct Handle;  // ncclComm: a communicator

enum class Result : int {
  Success = 0,
  UnhandledCudaError = 1,
  SystemError = 2,
  InternalError = 3,
  InvalidArgument = 4,
  InvalidUsage = 5,
  RemoteError = 6,
  InProgress = 7,
};
enum class Type : int {
  I8 = 0,
  U8 = 1,
  I32 = 2,
  U32 = 3,
  I64 = 4,
  U64 = 5,
  F16 = 6,
  F32 = 7,
  F64 = 8,
  BF16 = 9,
};
enum class Reduction : int { Sum = 0, Max = 2 };

struct UniqueId {
  char bytes[128] = {};
};

inline constexpr int kOldest = 21800;
inline constexpr int kUndefined = INT_MIN;

struct Config {  // ncclConfig_t as version 2.18 has it
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = kOldest;
  int blocking = 0;
  int cluster = kUndefined;
  int least_blocks = kUndefined, most_blocks = kUndefined;
  const char* network = nullptr;
  int share_when_split = kUndefined;
  int padding = kUndefined;
};
static_assert(sizeof(UniqueId) == 128 && sizeof(Config) == 48);

// clang-format off
// Each function: our name, the library's, and its arguments. All of them return a Result.
#define LIGHTCONE_NCCL_FUNCTIONS(F)                                                                                    \
  F(version, "ncclGetVersion", int* version)                                                                           \
  F(unique_id, "ncclGetUniqueId", UniqueId* to)                                                                        \
  F(create, "ncclCommInitRankConfig", Handle** to, int ranks, UniqueId id, int rank, Config* config)                   \
  F(finalize, "ncclCommFinalize", Handle* handle)                                                                      \
  F(destroy, "ncclCommDestroy", Handle* handle)                                                                        \
  F(abort, "ncclCommAbort", Handle* handle)                                                                            \
  F(state, "ncclCommGetAsyncError", Handle* handle, Result* to)                                                        \
  F(all_reduce, "ncclAllReduce", Address in, Address out, std::size_t n, Type type, Reduction reduction,               \
    Handle* handle, Stream* stream)                                                                                    \
  F(broadcast, "ncclBroadcast", Address in, Address out, std::size_t n, Type type, int root, Handle* handle,           \
    Stream* stream)                                                                                                    \
  F(all_gather, "ncclAllGather", Address in, Address out, std::size_t n, Type type, Handle* handle, Stream* stream)    \
  F(reduce_scatter, "ncclReduceScatter", Address in, Address out, std::size_t n, Type type, Reduction reduction,       \
    Handle* handle, Stream* stream)                                                                                    \
  F(send, "ncclSend", Address from, std::size_t n, Type type, int to, Handle* handle, Stream* stream)                  \
  F(receive, "ncclRecv", Address to, std::size_t n, Type type, int from, Handle* handle, Stream* stream)               \
  F(begin_group, "ncclGroupStart")                                                                                     \
  F(end_group, "ncclGroupEnd")
// clang-format on

struct Api {
#define LIGHTCONE_NCCL_MEMBER(name, symbol, ...) Result (*name)(__VA_ARGS__) = nullptr;
  LIGHTCONE_NCCL_FUNCTIONS(LIGHTCONE_NCCL_MEMBER)
#undef LIGHTCONE_NCCL_MEMBER
  const char* (*words)(Result) = nullptr;        // ncclGetErrorString
  const char* (*last_error)(Handle*) = nullptr;  // ncclGetLastError
};

}  // namespace lc::distributed::nccl
