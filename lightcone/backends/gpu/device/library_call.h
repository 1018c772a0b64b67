// Work of a vendor's library that a device enqueues among its kernels: a product of matrices, a collective of several
// devices.
#pragma once

namespace lc::backends::gpu {

// A call with all that does not change from run to run. A device knows its own by their type.
class LibraryCall {
 public:
  virtual ~LibraryCall() = default;
  LibraryCall(const LibraryCall&) = delete;
  LibraryCall& operator=(const LibraryCall&) = delete;

 protected:
  LibraryCall() = default;
};

}  // namespace lc::backends::gpu
