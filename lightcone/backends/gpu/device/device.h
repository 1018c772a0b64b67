// An accelerator that runs kernels given as text: the common base of CUDA, OpenCL and Metal. A new device derives from
// GpuDevice and implements six things with its API: memory, copies, compiling, launching a kernel, waiting, limits.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lightcone/backends/gpu/device/library_product.h"
#include "lightcone/codegen/simt/dialect.h"
#include "lightcone/device/device.h"

namespace lc::backends::gpu {

using codegen::simt::Language;
inline constexpr std::size_t kMaxBuffers = 64;  // per launch
inline constexpr std::size_t kMaxSizes = 64;

// The device's properties that decide what its code may use.
struct Limits {
  std::string name;          // "NVIDIA H200"
  std::string architecture;  // target of the compiler, "sm_90a"
  std::string driver;        // driver version: compiled code is valid for one driver and architecture
  Language language = Language::Cuda;
  int max_block_size = 256;                 // threads
  int warp = 1;                             // threads that exchange registers; 1: none can
  std::size_t shared = 32 << 10;            // bytes of memory that the threads of a block share
  int multiprocessors = 1;                  // thread blocks that run at once, at least
  std::size_t memory = 0;                   // bytes of device memory
  std::int64_t max_grid_size = 2147483647;  // blocks of a launch
  std::size_t max_buffers = kMaxBuffers;    // buffers that a kernel takes as arguments
  bool f64 = true;                          // 64-bit floating point
  bool warpgroups = false;  // products by four warps together, from tiles that the device copies (TensorMap)
};

// Returns CUDA's compute capability, 90 for 9.0; 0 for other languages.
int capability(const Limits& l);

// Compiled text. Every kernel that runs it shares its ownership.
class Code {
 public:
  virtual ~Code() = default;
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

 protected:
  Code() = default;
};

// An array from which a kernel lets the device copy boxes into shared memory (CUDA's tensor map). In shared memory,
// rows have 128 bytes, their chunks of 16 bytes are permuted (swizzled), and elements outside of the array are zeros.
// Axes are innermost first.
inline constexpr std::size_t kMostAxes = 5;
struct TensorMap {
  BufferSlice at;
  int bytes = 2;  // bytes of an element
  std::size_t axes = 0;
  std::array<std::int64_t, kMostAxes> extents{};
  std::array<std::int64_t, kMostAxes> strides{};  // in bytes; the first is not read: that axis is contiguous
  std::array<int, kMostAxes> box{};
};

// A launch of a kernel. Its arguments are the tensor maps, the buffers in order, and then the sizes, 64 bits each.
struct KernelLaunch {
  const Code* code = nullptr;
  std::size_t function = 0;    // index in the order of the names given to compile()
  std::int64_t grid_size = 1;  // thread blocks; 0: nothing runs
  int block_size = 1;          // threads of a block
  std::size_t shared = 0;      // bytes of shared memory beyond what the text declares
  std::span<const BufferSlice> buffers = {};
  std::span<const std::int64_t> sizes = {};
  std::span<const TensorMap> tensor_maps = {};  // only if Limits::warpgroups
};

class GpuDevice : public Device {
  // The base of devices that run kernels given as text.
 public:
  virtual const Limits& limits() const = 0;
  // Returns the device's properties, which do not change.
  // Compiles a program in the device's language that defines the named kernels. Throws Error with the compiler's
  // message.
  virtual std::shared_ptr<const Code> compile(const std::string& text, const std::vector<std::string>& kernels) = 0;
  // Enqueues a launch after everything that was enqueued previously.
  virtual void launch_kernel(const KernelLaunch& s) = 0;

  // Returns how the device's library computes this product; null if there is no library or it does not take the
  // product.
  virtual std::shared_ptr<const LibraryProduct> library_product(const MatrixProduct& /*p*/) { return nullptr; }
  // Returns true if the library is to compute the product instead of our kernel with this text. measure() returns the
  // library's time as a fraction of our kernel's, or nullopt if it cannot be measured. A decision is kept once it is
  // made.
  virtual bool prefers(const LibraryProduct& /*p*/, const std::string& /*text*/,
                       const std::function<std::optional<double>()>& /*measure*/) {
    return false;
  }
  // Enqueues a library's call that was made for this device: a product that library_product() returned, for instance.
  // The call says which buffers and sizes it takes, at most 8. Throws Error if the device does not know it.
  virtual void call(const LibraryCall& c, std::span<const BufferSlice> buffers,
                    std::span<const std::int64_t> sizes = {});
  // Returns, as a sentence, why a library that was asked for is not there; "" otherwise.
  virtual std::string library_problem() const { return {}; }

  void launch(const Launch& l) final;
};

// A kernel of such a device: one launch or several.
class GpuKernel : public Kernel {
 public:
  // Enqueues the kernel's launches on `device`.
  virtual void enqueue(const Launch& l, GpuDevice& device) const = 0;
  // Returns true if every run launches the same kernels and never reads their results on the host: then the launches
  // may be recorded and replayed.
  virtual bool records() const { return true; }
};

}  // namespace lc::backends::gpu
