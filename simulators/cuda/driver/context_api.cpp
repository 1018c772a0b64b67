// Initialization, the device and its primary context.
#include <cstdio>
#include <cstring>

#include "driver/driver.h"

using namespace lc::simulators::cuda;

namespace lc::simulators::cuda {
namespace {

// It has no destructor, because static objects may call the driver after the thread's objects are destroyed.
class ContextStack {
 public:
  bool empty() const { return count_ == 0; }
  bool full() const { return count_ == kMost; }
  void*& back() { return all_[count_ - 1]; }
  void push_back(void* context) { all_[count_++] = context; }
  void pop_back() { --count_; }

 private:
  static constexpr int kMost = 64;
  void* all_[kMost] = {};
  int count_ = 0;
};
thread_local ContextStack contexts;  // contexts of this thread; the last is current

// Limits that differ between generations of devices (CUDA's programming guide).
struct Limits {
  int shared_per_block, shared_per_multiprocessor, threads_per_multiprocessor, blocks_per_multiprocessor;
};

Limits limits() {
  const long cc = settings().compute_capability;
  const auto kib = [](int optin, int all, int threads, int blocks) {
    return Limits{optin << 10, all << 10, threads, blocks};
  };
  if (cc >= 120) return kib(99, 100, 1536, 24);
  if (cc >= 90) return kib(227, 228, 2048, 32);
  if (cc == 86 || cc == 89) return kib(99, 100, 1536, cc == 86 ? 16 : 24);
  if (cc >= 80) return kib(163, 164, 2048, 32);
  if (cc >= 75) return kib(64, 64, 1024, 16);
  return kib(96, 96, 2048, 32);
}

int attribute_value(int attribute) {
  const Limits l = limits();
  const int cc = static_cast<int>(settings().compute_capability);
  switch (attribute) {
    case 1:                      // threads per block
    case 2:                      // ... along x
    case 3: return 1024;         // ... along y
    case 4: return 64;           // ... along z
    case 5: return 0x7fffffff;   // blocks per grid along x
    case 6:                      // ... along y
    case 7: return 65535;        // ... along z
    case 8: return 48 << 10;     // shared memory per block without opt-in
    case 9: return 64 << 10;     // constant memory
    case 10: return 32;          // warp size
    case 11: return 0x7fffffff;  // pitch
    case 12: return 65536;       // registers per block
    case 13: return 1980000;     // clock in kHz
    case 14: return 512;         // texture alignment
    case 16: return static_cast<int>(settings().multiprocessors);
    case 15:   // copies concurrent with kernels
    case 19:   // maps host memory
    case 31:   // concurrent kernels
    case 32:   // ECC
    case 41:   // unified addressing
    case 78:   // stream priorities
    case 102:  // virtual memory management
      return 1;
    case 36: return 2619000;   // memory clock in kHz
    case 37: return 5120;      // memory bus width in bits
    case 38: return 50 << 20;  // L2
    case 39: return l.threads_per_multiprocessor;
    case 40: return 3;  // copy engines
    case 75: return cc / 10;
    case 76: return cc % 10;
    case 81: return l.shared_per_multiprocessor;
    case 82: return 65536;  // registers per multiprocessor
    case 97: return l.shared_per_block;
    case 106: return l.blocks_per_multiprocessor;
    case 108: return 32 << 20;                // L2 that can be set aside
    case 111: return cc >= 80 ? 1 << 10 : 0;  // shared memory per block reserved by the system
    case 120: return cc >= 90;                // clusters
    default: return 0;
  }
}

}  // namespace

int device_attribute(int attribute) { return attribute_value(attribute); }

void* primary_context() { return &driver(); }
bool has_current_context() { return !contexts.empty() && contexts.back() != nullptr; }

namespace {

template <class Work>
int device_call(int device, Work work) {
  return driver_call(
      kInitialized, [&](Driver& d) -> int { return device == 0 && settings().devices > 0 ? work(d) : kInvalidDevice; });
}

bool valid(void* context) { return context == nullptr || context == primary_context(); }

}  // namespace
}  // namespace lc::simulators::cuda

FAKE_CUDA_API int cuInit(unsigned flags) {
  return driver_call(kAlways, [&](Driver& d) {
    if (flags != 0) return kInvalidValue;
    if (settings().devices <= 0) return kNoDevice;
    d.initialized = true;
    return kSuccess;
  });
}

FAKE_CUDA_API int cuDriverGetVersion(int* version) {
  return driver_call(kAlways, [&](Driver&) {
    if (version == nullptr) return kInvalidValue;
    *version = static_cast<int>(settings().driver_version);
    return kSuccess;
  });
}

FAKE_CUDA_API int cuDeviceGetCount(int* count) {
  return driver_call(kInitialized, [&](Driver&) {
    if (count == nullptr) return kInvalidValue;
    *count = static_cast<int>(settings().devices);
    return kSuccess;
  });
}

FAKE_CUDA_API int cuDeviceGet(int* device, int ordinal) {
  return device_call(ordinal, [&](Driver&) {
    if (device == nullptr) return kInvalidValue;
    *device = ordinal;
    return kSuccess;
  });
}

FAKE_CUDA_API int cuDeviceGetName(char* name, int bytes, int device) {
  return device_call(device, [&](Driver&) {
    if (name == nullptr || bytes <= 0) return kInvalidValue;
    std::snprintf(name, static_cast<std::size_t>(bytes), "Fake CUDA device on the CPU");
    return kSuccess;
  });
}

FAKE_CUDA_API int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  return device_call(device, [&](Driver&) {
    if (uuid == nullptr) return kInvalidValue;
    std::memcpy(uuid, "fake-cuda-device", 16);
    return kSuccess;
  });
}

FAKE_CUDA_API int cuDeviceGetAttribute(int* value, int attribute, int device) {
  return device_call(device, [&](Driver&) {
    if (value == nullptr || attribute < 1) return kInvalidValue;
    *value = attribute_value(attribute);
    return kSuccess;
  });
}

FAKE_CUDA_API int cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
  return device_call(device, [&](Driver&) {
    if (bytes == nullptr) return kInvalidValue;
    *bytes = static_cast<std::size_t>(settings().memory);
    return kSuccess;
  });
}

FAKE_CUDA_API int cuDevicePrimaryCtxRetain(void** context, int device) {
  return device_call(device, [&](Driver& d) {
    if (context == nullptr) return kInvalidValue;
    if (d.fault != kSuccess) return d.fault;  // a sticky fault
    ++d.retained;
    d.alive = true;
    *context = primary_context();
    return kSuccess;
  });
}

FAKE_CUDA_API int cuDevicePrimaryCtxRelease_v2(int device) {
  return driver_call(kInitialized | kReleases, [&](Driver& d) {
    if (device != 0) return kInvalidDevice;
    if (d.retained == 0) return kInvalidContext;
    if (--d.retained > 0) return kSuccess;
    d.drain_all();
    d.alive = false;
    d.clear();
    return kSuccess;
  });
}

// A later Retain creates the context anew.
FAKE_CUDA_API int cuDevicePrimaryCtxReset_v2(int device) {
  return driver_call(kInitialized | kReleases, [&](Driver& d) {
    if (device != 0) return Code{kInvalidDevice};
    d.alive = false;
    d.clear();
    return d.fault;
  });
}

FAKE_CUDA_API int cuCtxSetCurrent(void* context) {
  return driver_call(kInitialized, [&](Driver& d) {
    if (!valid(context) || (context != nullptr && !d.alive)) return kInvalidContext;
    if (contexts.empty()) contexts.push_back(nullptr);
    contexts.back() = context;
    return kSuccess;
  });
}

FAKE_CUDA_API int cuCtxGetCurrent(void** context) {
  return driver_call(kInitialized, [&](Driver&) {
    if (context == nullptr) return kInvalidValue;
    *context = has_current_context() ? contexts.back() : nullptr;
    return kSuccess;
  });
}

FAKE_CUDA_API int cuCtxPushCurrent_v2(void* context) {
  return driver_call(kInitialized, [&](Driver& d) {
    if (context == nullptr || !valid(context) || !d.alive) return kInvalidContext;
    if (contexts.full()) return kOutOfMemory;
    contexts.push_back(context);
    return kSuccess;
  });
}

FAKE_CUDA_API int cuCtxPopCurrent_v2(void** context) {
  return driver_call(kInitialized | kReleases, [&](Driver&) {
    if (!has_current_context()) return kInvalidContext;
    if (context != nullptr) *context = contexts.back();
    contexts.pop_back();
    return kSuccess;
  });
}

FAKE_CUDA_API int cuCtxSynchronize() {
  return driver_call(kCurrentContext | kForbiddenInCapture, [](Driver& d) {
    d.drain_all();
    return d.fault;
  });
}
