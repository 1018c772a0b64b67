#include "lightcone/backends/opencl/error.h"

#include <iterator>

namespace lc::backends::opencl {
namespace {

// Names by the code's distance from 0.
constexpr std::string_view kRuntime[] = {
    "SUCCESS",
    "DEVICE_NOT_FOUND",
    "DEVICE_NOT_AVAILABLE",
    "COMPILER_NOT_AVAILABLE",
    "MEM_OBJECT_ALLOCATION_FAILURE",
    "OUT_OF_RESOURCES",
    "OUT_OF_HOST_MEMORY",
    "PROFILING_INFO_NOT_AVAILABLE",
    "MEM_COPY_OVERLAP",
    "IMAGE_FORMAT_MISMATCH",
    "IMAGE_FORMAT_NOT_SUPPORTED",
    "BUILD_PROGRAM_FAILURE",
    "MAP_FAILURE",
    "MISALIGNED_SUB_BUFFER_OFFSET",
    "EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST",
    "COMPILE_PROGRAM_FAILURE",
    "LINKER_NOT_AVAILABLE",
    "LINK_PROGRAM_FAILURE",
    "DEVICE_PARTITION_FAILED",
    "KERNEL_ARG_INFO_NOT_AVAILABLE",
};
constexpr std::string_view kInvalid[] = {
    // from -30 on
    "VALUE",
    "DEVICE_TYPE",
    "PLATFORM",
    "DEVICE",
    "CONTEXT",
    "QUEUE_PROPERTIES",
    "COMMAND_QUEUE",
    "HOST_PTR",
    "MEM_OBJECT",
    "IMAGE_FORMAT_DESCRIPTOR",
    "IMAGE_SIZE",
    "SAMPLER",
    "BINARY",
    "BUILD_OPTIONS",
    "PROGRAM",
    "PROGRAM_EXECUTABLE",
    "KERNEL_NAME",
    "KERNEL_DEFINITION",
    "KERNEL",
    "ARG_INDEX",
    "ARG_VALUE",
    "ARG_SIZE",
    "KERNEL_ARGS",
    "WORK_DIMENSION",
    "WORK_GROUP_SIZE",
    "WORK_ITEM_SIZE",
    "GLOBAL_OFFSET",
    "EVENT_WAIT_LIST",
    "EVENT",
    "OPERATION",
    "GL_OBJECT",
    "BUFFER_SIZE",
    "MIP_LEVEL",
    "GLOBAL_WORK_SIZE",
    "PROPERTY",
    "IMAGE_DESCRIPTOR",
    "COMPILER_OPTIONS",
    "LINKER_OPTIONS",
    "DEVICE_PARTITION_COUNT",
};

std::string_view advice(api::Int code) {
  switch (code) {
    case api::kDeviceNotAvailable:
    case api::kInvalidContext:
    case api::kInvalidQueue:
      return ": the device was lost; what lay in its memory is gone, and a device opened anew may work. The system's "
             "log "
             "may say why";
    case api::kOutOfResources:
      return ": a kernel asks for more than the device has, or one started before went wrong, which some drivers "
             "report "
             "only now; other programs on the device may hold its memory";
    case api::kWaitListFailure: return ": something that was started before went wrong";
    case api::kAllocationFailure:
      return ": the device has not enough memory left; free some, or take a smaller model or batch";
    case api::kOutOfHostMemory: return ": the host has not enough memory left for the driver";
    case api::kPlatformNotFound: return ": no driver is installed; the loader looks for them in /etc/OpenCL/vendors";
    default: return "";
  }
}

}  // namespace

std::string code_name(api::Int code) {
  const auto from = [code](api::Int first) {
    return static_cast<std::size_t>(first - static_cast<std::int64_t>(code));
  };
  if (code <= 0 && from(0) < std::size(kRuntime)) return str_cat("CL_", kRuntime[from(0)], " (", code, ")");
  if (code <= -30 && from(-30) < std::size(kInvalid))
    return str_cat("CL_INVALID_", kInvalid[from(-30)], " (", code, ")");
  if (code == api::kPlatformNotFound) return str_cat("CL_PLATFORM_NOT_FOUND_KHR (", code, ")");
  return str_cat("a code of the driver's own (", code, ")");
}

void fail(api::Int code, std::string_view who, std::string_view doing) {
  throw Error("opencl", str_cat(who, " cannot ", doing, ": ", code_name(code), advice(code)));
}

}  // namespace lc::backends::opencl
