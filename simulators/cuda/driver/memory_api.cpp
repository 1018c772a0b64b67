// Device and host memory, copies and fills.
#include <cstring>

#include "driver/driver.h"

using namespace lc::simulators::cuda;

namespace lc::simulators::cuda {
namespace {

constexpr unsigned kPlain = kCurrentContext, kWaits = kCurrentContext | kForbiddenInCapture,
                   kFrees = kCurrentContext | kForbiddenInCapture | kReleases;

std::shared_ptr<const std::string> take(const void* host, std::size_t bytes) {
  return std::make_shared<const std::string>(static_cast<const char*>(host), bytes);
}

// Pageable host memory is read at the call, or written before the call returns. Pinned memory is accessed when the
// stream executes the copy.
Code copy(Driver& d, void* stream, Copy c) {
  const std::shared_ptr<Stream> s = d.stream(stream);
  if (s == nullptr) return kInvalidHandle;
  if (c.bytes == 0) return kSuccess;
  if (c.to == nullptr || c.from == nullptr) return kInvalidValue;
  if (c.to_device && !d.on_device(address(c.to), c.bytes)) return kInvalidValue;
  if (c.from_device && !d.on_device(address(c.from), c.bytes)) return kInvalidValue;
  const bool captured = s->capture != nullptr;
  if (!c.from_device && !captured && !d.pinned.holds(c.from, c.bytes)) c.taken = take(c.from, c.bytes);
  const bool waits = !c.to_device && !captured && !d.pinned.holds(c.to, c.bytes);
  const Code code = d.submit(*s, Node(std::move(c)));
  if (code == kSuccess && waits) d.drain(*s);
  return code;
}

// Copies on the default stream and returns when the copy has finished.
Code copy_and_wait(Driver& d, const Copy& c) {
  const Code code = copy(d, nullptr, c);
  if (code != kSuccess) return code;
  d.drain(*d.default_stream);
  return d.fault;
}

Copy to_device(Address to, const void* from, std::size_t bytes) {
  return {pointer(to), static_cast<const char*>(from), bytes, true, false, nullptr};
}
Copy to_host(void* to, Address from, std::size_t bytes) {
  return {static_cast<char*>(to), pointer(from), bytes, false, true, nullptr};
}
Copy within_device(Address to, Address from, std::size_t bytes) {
  return {pointer(to), pointer(from), bytes, true, true, nullptr};
}

struct Location {
  int type, id;
};
struct AllocationProperties {  // CUmemAllocationProp
  int type, handle_types;
  Location location;
  void* win32;
  unsigned char flags[8];
};
struct AccessDescription {  // CUmemAccessDesc
  Location location;
  unsigned flags;
};

bool is_on_device(const Location& l) { return l.type == 1 && l.id == 0; }
bool valid(const AllocationProperties* p) { return p != nullptr && p->type == 1 && is_on_device(p->location); }

}  // namespace
}  // namespace lc::simulators::cuda

FAKE_CUDA_API int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  return driver_call(kPlain, [&](Driver& d) {
    if (free == nullptr || total == nullptr) return kInvalidValue;
    *total = static_cast<std::size_t>(settings().memory);
    const std::size_t used = d.allocations.used() + d.addresses.used();
    *free = used < *total ? *total - used : 0;
    return kSuccess;
  });
}

FAKE_CUDA_API int cuMemAlloc_v2(Address* out, std::size_t bytes) {
  return driver_call(kWaits, [&](Driver& d) {
    if (out == nullptr || bytes == 0) return kInvalidValue;
    return d.room_for(bytes) ? d.allocations.allocate(bytes, out) : kOutOfMemory;
  });
}

FAKE_CUDA_API int cuMemFree_v2(Address a) {
  return driver_call(kFrees, [&](Driver& d) {
    const Code code = d.allocations.free(a);
    if (code == kIllegalAddress) d.set_fault(code, "bytes beside an allocation that was freed have been written");
    return code;
  });
}

FAKE_CUDA_API int cuMemHostAlloc(void** out, std::size_t bytes, unsigned) {
  return driver_call(kWaits, [&](Driver& d) { return out == nullptr ? kInvalidValue : d.pinned.allocate(bytes, out); });
}

FAKE_CUDA_API int cuMemFreeHost(void* p) {
  return driver_call(kFrees, [&](Driver& d) {
    d.drain_all();  // copies to or from it may be pending
    return d.pinned.free(p);
  });
}

FAKE_CUDA_API int cuMemHostRegister_v2(void* p, std::size_t bytes, unsigned) {
  return driver_call(kWaits, [&](Driver& d) { return d.pinned.enroll(p, bytes); });
}

FAKE_CUDA_API int cuMemHostUnregister(void* p) {
  return driver_call(kFrees, [&](Driver& d) {
    d.drain_all();
    return d.pinned.discharge(p);
  });
}

FAKE_CUDA_API int cuMemcpyHtoDAsync_v2(Address to, const void* from, std::size_t bytes, void* stream) {
  return driver_call(kPlain, [&](Driver& d) { return copy(d, stream, to_device(to, from, bytes)); });
}

FAKE_CUDA_API int cuMemcpyDtoHAsync_v2(void* to, Address from, std::size_t bytes, void* stream) {
  return driver_call(kPlain, [&](Driver& d) { return copy(d, stream, to_host(to, from, bytes)); });
}

FAKE_CUDA_API int cuMemcpyDtoDAsync_v2(Address to, Address from, std::size_t bytes, void* stream) {
  return driver_call(kPlain, [&](Driver& d) { return copy(d, stream, within_device(to, from, bytes)); });
}

FAKE_CUDA_API int cuMemcpyHtoD_v2(Address to, const void* from, std::size_t bytes) {
  return driver_call(kWaits, [&](Driver& d) { return copy_and_wait(d, to_device(to, from, bytes)); });
}

FAKE_CUDA_API int cuMemcpyDtoH_v2(void* to, Address from, std::size_t bytes) {
  return driver_call(kWaits, [&](Driver& d) { return copy_and_wait(d, to_host(to, from, bytes)); });
}

FAKE_CUDA_API int cuMemcpyDtoD_v2(Address to, Address from, std::size_t bytes) {
  return driver_call(kWaits, [&](Driver& d) { return copy_and_wait(d, within_device(to, from, bytes)); });
}

FAKE_CUDA_API int cuMemsetD8Async(Address to, unsigned char value, std::size_t bytes, void* stream) {
  return driver_call(kPlain, [&](Driver& d) -> Code {
    const std::shared_ptr<Stream> s = d.stream(stream);
    if (s == nullptr) return kInvalidHandle;
    if (bytes == 0) return kSuccess;
    if (!d.on_device(to, bytes)) return kInvalidValue;
    return d.submit(*s, Node(Fill{to, value, bytes}));
  });
}

FAKE_CUDA_API int cuMemGetAllocationGranularity(std::size_t* out, const AllocationProperties* properties, int) {
  return driver_call(kInitialized, [&](Driver&) {
    if (out == nullptr || !valid(properties)) return kInvalidValue;
    *out = AddressSpace::kGranularity;
    return kSuccess;
  });
}

FAKE_CUDA_API int cuMemAddressReserve(Address* out, std::size_t bytes, std::size_t alignment, Address,
                                      unsigned long long flags) {
  return driver_call(kPlain, [&](Driver& d) {
    if (out == nullptr || flags != 0) return kInvalidValue;
    return d.addresses.reserve(bytes, alignment, out);
  });
}

FAKE_CUDA_API int cuMemAddressFree(Address a, std::size_t bytes) {
  return driver_call(kPlain | kReleases, [&](Driver& d) { return d.addresses.unreserve(a, bytes); });
}

FAKE_CUDA_API int cuMemCreate(Address* handle, std::size_t bytes, const AllocationProperties* properties,
                              unsigned long long flags) {
  return driver_call(kWaits, [&](Driver& d) {
    if (handle == nullptr || !valid(properties) || flags != 0) return kInvalidValue;
    return d.room_for(bytes) ? d.addresses.create(bytes, handle) : kOutOfMemory;
  });
}

FAKE_CUDA_API int cuMemRelease(Address handle) {
  return driver_call(kPlain | kReleases, [&](Driver& d) { return d.addresses.release(handle); });
}

FAKE_CUDA_API int cuMemMap(Address a, std::size_t bytes, std::size_t offset, Address handle, unsigned long long flags) {
  return driver_call(
      kPlain, [&](Driver& d) { return offset != 0 || flags != 0 ? kInvalidValue : d.addresses.map(a, bytes, handle); });
}

FAKE_CUDA_API int cuMemUnmap(Address a, std::size_t bytes) {
  return driver_call(kPlain | kReleases, [&](Driver& d) { return d.addresses.unmap(a, bytes); });
}

FAKE_CUDA_API int cuMemSetAccess(Address a, std::size_t bytes, const AccessDescription* descriptions,
                                 std::size_t count) {
  return driver_call(kPlain, [&](Driver& d) {
    if (descriptions == nullptr || count != 1 || !is_on_device(descriptions->location)) return kInvalidValue;
    return d.addresses.set_access(a, bytes, descriptions->flags);
  });
}
