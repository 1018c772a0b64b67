#!/usr/bin/env python3
"""Our declarations of CUDA's driver, NVRTC and cuBLASLt agree with NVIDIA's own headers: functions, structures and enumerators.

The test skips where no headers are found; cuBLASLt's is optional.

  header_check.py COMPILER SOURCE_FOLDER
Looks in $LIGHTCONE_CUDA_HEADERS, a folder or several joined by ':', in $CUDA_HOME/include and in /usr/local/cuda/include."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

compiler, source = sys.argv[1], pathlib.Path(sys.argv[2])

# Ours -> theirs.
ENUMERATORS = {
    "Result": {"Success": "CUDA_SUCCESS", "InvalidValue": "CUDA_ERROR_INVALID_VALUE", "OutOfMemory": "CUDA_ERROR_OUT_OF_MEMORY",
               "Deinitialized": "CUDA_ERROR_DEINITIALIZED", "StubLibrary": "CUDA_ERROR_STUB_LIBRARY",
               "DevicesUnavailable": "CUDA_ERROR_DEVICE_UNAVAILABLE", "InvalidImage": "CUDA_ERROR_INVALID_IMAGE",
               "NoBinaryForGpu": "CUDA_ERROR_NO_BINARY_FOR_GPU", "EccUncorrectable": "CUDA_ERROR_ECC_UNCORRECTABLE",
               "UnsupportedPtxVersion": "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "InvalidSource": "CUDA_ERROR_INVALID_SOURCE",
               "NotFound": "CUDA_ERROR_NOT_FOUND", "IllegalAddress": "CUDA_ERROR_ILLEGAL_ADDRESS",
               "LaunchTimeout": "CUDA_ERROR_LAUNCH_TIMEOUT", "HardwareStackError": "CUDA_ERROR_HARDWARE_STACK_ERROR",
               "IllegalInstruction": "CUDA_ERROR_ILLEGAL_INSTRUCTION", "MisalignedAddress": "CUDA_ERROR_MISALIGNED_ADDRESS",
               "InvalidAddressSpace": "CUDA_ERROR_INVALID_ADDRESS_SPACE", "InvalidPc": "CUDA_ERROR_INVALID_PC",
               "LaunchFailed": "CUDA_ERROR_LAUNCH_FAILED", "SystemDriverMismatch": "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
               "CompatNotSupported": "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "Unknown": "CUDA_ERROR_UNKNOWN"},
    "DeviceAttribute": {"MaxThreadsPerBlock": "CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK",
                        "MaxGridDimX": "CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X", "WarpSize": "CU_DEVICE_ATTRIBUTE_WARP_SIZE",
                        "MultiprocessorCount": "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT",
                        "ComputeCapabilityMajor": "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR",
                        "ComputeCapabilityMinor": "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR",
                        "MaxSharedMemoryPerBlockOptin": "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
                        "VirtualMemoryManagementSupported":
                            "CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED"},
    "FunctionAttribute": {"SharedSizeBytes": "CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES",
                          "MaxDynamicSharedSizeBytes": "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"},
    "StreamFlags": {"NonBlocking": "CU_STREAM_NON_BLOCKING"},
    "EventFlags": {"DisableTiming": "CU_EVENT_DISABLE_TIMING"},
    "CaptureMode": {"Global": "CU_STREAM_CAPTURE_MODE_GLOBAL", "ThreadLocal": "CU_STREAM_CAPTURE_MODE_THREAD_LOCAL",
                    "Relaxed": "CU_STREAM_CAPTURE_MODE_RELAXED"},
    "CaptureStatus": {"None": "CU_STREAM_CAPTURE_STATUS_NONE", "Active": "CU_STREAM_CAPTURE_STATUS_ACTIVE",
                      "Invalidated": "CU_STREAM_CAPTURE_STATUS_INVALIDATED"},
    "GranularityFlags": {"Minimum": "CU_MEM_ALLOC_GRANULARITY_MINIMUM",
                         "Recommended": "CU_MEM_ALLOC_GRANULARITY_RECOMMENDED"},
    "Id": {"Overlap": "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION"},
    "TensorMapType": {"U8": "CU_TENSOR_MAP_DATA_TYPE_UINT8", "U16": "CU_TENSOR_MAP_DATA_TYPE_UINT16"},
    "TensorMapInterleave": {"None": "CU_TENSOR_MAP_INTERLEAVE_NONE"},
    "TensorMapSwizzle": {"Bytes128": "CU_TENSOR_MAP_SWIZZLE_128B"},
    "TensorMapPromotion": {"Bytes256": "CU_TENSOR_MAP_L2_PROMOTION_L2_256B"},
    "TensorMapFill": {"Zeros": "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE"},
    "CompilerResult": {"Success": "NVRTC_SUCCESS", "OutOfMemory": "NVRTC_ERROR_OUT_OF_MEMORY",
                       "InvalidOption": "NVRTC_ERROR_INVALID_OPTION", "Compilation": "NVRTC_ERROR_COMPILATION",
                       "BuiltinFailure": "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE"},
    "LtStatus": {"Success": "CUBLAS_STATUS_SUCCESS", "AllocationFailed": "CUBLAS_STATUS_ALLOC_FAILED",
                 "NotSupported": "CUBLAS_STATUS_NOT_SUPPORTED"},
    "LtType": {"F32": "CUDA_R_32F", "F16": "CUDA_R_16F", "BF16": "CUDA_R_16BF"},
    "LtCompute": {"F32": "CUBLAS_COMPUTE_32F", "F32AsBF16": "CUBLAS_COMPUTE_32F_FAST_16BF",
                  "F32AsTF32": "CUBLAS_COMPUTE_32F_FAST_TF32"},
    "LtProductAttribute": {"TransposeA": "CUBLASLT_MATMUL_DESC_TRANSA", "TransposeB": "CUBLASLT_MATMUL_DESC_TRANSB"},
    "LtLayoutAttribute": {"BatchCount": "CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT",
                          "BatchStride": "CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET"},
    "LtPreferenceAttribute": {"MostWorkspace": "CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES",
                              "Reductions": "CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK",
                              "AlignmentA": "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES",
                              "AlignmentB": "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES",
                              "AlignmentC": "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES",
                              "AlignmentD": "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES"},
    "LtTranspose": {"No": "CUBLAS_OP_N", "Yes": "CUBLAS_OP_T"},
    "LtReduction": {"InF32": "CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE"},
}
INNER = {"Id": "LaunchAttribute::Id"}
STRUCTURES = {
    "Location": ("CUmemLocation", {"type": "type", "id": "id"}),
    "AllocationProperties": ("CUmemAllocationProp", {"type": "type", "handle_types": "requestedHandleTypes",
                                                     "location": "location", "win32_metadata": "win32HandleMetaData",
                                                     "flags": "allocFlags"}),
    "AccessDescription": ("CUmemAccessDesc", {"location": "location", "flags": "flags"}),
    "KernelNodeParams": ("CUDA_KERNEL_NODE_PARAMS_v2",
                         {"function": "func", "grid": "gridDimX", "block": "blockDimX", "shared_bytes": "sharedMemBytes",
                          "arguments": "kernelParams", "extra": "extra", "kernel": "kern", "context": "ctx"}),
    "LaunchAttribute": ("CUlaunchAttribute", {"id": "id", "value": "value"}),
    "LaunchConfig": ("CUlaunchConfig", {"grid": "gridDimX", "block": "blockDimX", "shared_bytes": "sharedMemBytes",
                                        "stream": "hStream", "attributes": "attrs", "count": "numAttrs"}),
}
LT_STRUCTURES = {
    "LtAlgorithm": ("cublasLtMatmulAlgo_t", {"data": "data"}),
    "LtChoice": ("cublasLtMatmulHeuristicResult_t", {"algorithm": "algo", "workspace": "workspaceSize", "state": "state",
                                                     "waves": "wavesCount", "reserved": "reserved"}),
}
# Defaults that are numbers of theirs.
VALUES = {"Location{}.type": "CU_MEM_LOCATION_TYPE_DEVICE", "AllocationProperties{}.type": "CU_MEM_ALLOCATION_TYPE_PINNED",
          "AccessDescription{}.flags": "CU_MEM_ACCESS_FLAGS_PROT_READWRITE"}

HEAD = r"""
#define __CUDA_API_VERSION_INTERNAL  // declares functions that have newer versions
#include <cuda.h>
#undef __CUDA_API_VERSION_INTERNAL
#include <nvrtc.h>
#include <cstddef>
#include <type_traits>
#include "lightcone/backends/cuda/cublas_lt_api.h"
namespace api = lc::backends::cuda::api;
template <class T, class = void> struct Complete : std::false_type {};
template <class T> struct Complete<T, std::void_t<decltype(sizeof(T))>> : std::true_type {};
// The same for the processor: pointers to things of one size, or numbers of one size.
template <class A, class B> constexpr bool alike() {
  // cuBLASLt takes addresses of the device as pointers
  if constexpr (std::is_same_v<A, api::Address> && std::is_pointer_v<B>) return sizeof(A) == sizeof(B);
  else if constexpr (std::is_pointer_v<A> != std::is_pointer_v<B>) return false;
  else if constexpr (std::is_pointer_v<A>) {
    using P = std::remove_cv_t<std::remove_pointer_t<A>>; using Q = std::remove_cv_t<std::remove_pointer_t<B>>;
    if constexpr (std::is_void_v<P> || std::is_void_v<Q> || !Complete<P>::value || !Complete<Q>::value) return true;
    else if constexpr (std::is_class_v<P> || std::is_class_v<Q>) return sizeof(P) == sizeof(Q);
    else return alike<P, Q>();
  } else return sizeof(A) == sizeof(B) && std::is_floating_point_v<A> == std::is_floating_point_v<B>;
}
template <class A, class B> struct Same : std::false_type {};
template <class R, class... A, class S, class... B> struct Same<R (*)(A...), S (*)(B...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(A) != sizeof...(B)) return false;
    else return sizeof(R) == sizeof(S) && (alike<A, B>() && ...);
  }();
};
"""


def folders():
    wish = [f for f in os.environ.get("LIGHTCONE_CUDA_HEADERS", "").split(":") if f]
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(name):
            wish.append(os.environ[name] + "/include")
    return wish + ["/usr/local/cuda/include"]


def program(text, structures, values):
    lines = []
    functions = re.findall(r'F\((\w+), "(\w+)"', text)
    for ours, theirs in functions:
        table = "Compiler" if theirs.startswith("nvrtc") else "Lt" if theirs.startswith("cublasLt") else "Driver"
        lines.append('static_assert(Same<decltype(api::%s::%s), decltype(&::%s)>::value, "%s");' % (table, ours, theirs, theirs))
    for enum, names in re.findall(r"enum class (\w+) : [\w:]+ \{([^}]*)\}", text):
        for ours in re.findall(r"(\w+) = ", names):
            theirs = ENUMERATORS[enum][ours]
            lines.append('static_assert(static_cast<long>(api::%s::%s) == static_cast<long>(%s), "%s");' % (INNER.get(enum, enum), ours, theirs, theirs))
    for ours, (theirs, fields) in structures.items():
        lines.append('static_assert(sizeof(api::%s) == sizeof(%s), "%s");' % (ours, theirs, theirs))
        for a, b in fields.items():
            lines.append('static_assert(offsetof(api::%s, %s) == offsetof(%s, %s), "%s.%s");' % (ours, a, theirs, b, theirs, b))
    for ours, theirs in values.items():
        lines.append('static_assert(api::%s == static_cast<int>(%s), "%s");' % (ours, theirs, theirs))
    return "\n".join(lines) + "\n", len(functions)


found = folders()
has = lambda h: any((pathlib.Path(f) / h).exists() for f in found)
missing = [h for h in ("cuda.h", "nvrtc.h") if not has(h)]
if missing:
    print("skipped: no %s in %s; name folders in LIGHTCONE_CUDA_HEADERS" % (" and no ".join(missing), ", ".join(found)))
    sys.exit(77)
folder = source / "lightcone/backends/cuda"
code, count = program((folder / "api.h").read_text(), STRUCTURES, VALUES)
if count < 40:
    sys.exit("only %d functions were found in api.h" % count)
code = HEAD + code
if has("cublasLt.h") and has("crt/host_defines.h"):  # of the toolkit, which it includes
    more, lt_count = program((folder / "cublas_lt_api.h").read_text(), LT_STRUCTURES, {})
    if lt_count < 13:
        sys.exit("only %d functions were found in cublas_lt_api.h" % lt_count)
    code, count = "#include <cublasLt.h>\n" + code + more, count + lt_count
    STRUCTURES.update(LT_STRUCTURES)
with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder) / "check.cpp"
    file.write_text(code)
    command = [compiler, "-std=c++20", "-fsyntax-only", "-I%s" % source, *["-I" + f for f in found], str(file)]
    result = subprocess.run(command, capture_output=True, text=True)
if result.returncode:
    print(result.stderr)
    sys.exit("our declarations are not NVIDIA's")
print("%d functions, %d structures and their numbers are NVIDIA's" % (count, len(STRUCTURES)))
