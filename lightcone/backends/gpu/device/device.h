// An accelerator that runs kernels given as text: what CUDA, OpenCL and Metal have in common. A new one derives from
// GpuDevice and says how its API does six things: memory, copies, compiling, starting a kernel, waiting, limits.
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
inline constexpr std::size_t kMaxBuffers = 64;  // of a start
inline constexpr std::size_t kMaxSizes = 64;

// What code for a device may use.
struct Limits {
  std::string name;          // "NVIDIA H200"
  std::string architecture;  // what code is compiled for, "sm_90a"
  std::string driver;        // and by whom: with the architecture, what compiled code is valid for
  Language language = Language::Cuda;
  int max_block_size = 256;                 // threads
  int warp = 1;                             // threads that exchange registers; 1: none can
  std::size_t shared = 32 << 10;            // bytes of memory that the threads of a group may share
  int multiprocessors = 1;                  // groups that run at once, at least
  std::size_t memory = 0;                   // bytes in all
  std::int64_t max_grid_size = 2147483647;  // blocks of a launch
  std::size_t max_buffers = kMaxBuffers;    // arguments of a kernel that are memory
  bool f64 = true;                          // numbers of 64 bits
  bool warpgroups = false;  // products by four warps together, from tiles that the device copies (TensorMap)
};

// CUDA's compute capability, 90 for 9.0; 0 for other languages.
int capability(const Limits& l);

// Compiled text. It lives as long as those who run it.
class Code {
 public:
  virtual ~Code() = default;
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

 protected:
  Code() = default;
};

// An array of which a kernel lets the device copy boxes into shared memory, where rows are of 128 bytes and their
// chunks of 16 permuted, and zeros stand for what lies outside of the array: CUDA's tensor map. Axes are innermost
// first.
inline constexpr std::size_t kMostAxes = 5;
struct TensorMap {
  BufferSlice at;
  int bytes = 2;  // of an element
  std::size_t axes = 0;
  std::array<std::int64_t, kMostAxes> extents{};
  std::array<std::int64_t, kMostAxes> strides{};  // in bytes; of the first axis, whose elements are neighbours, nothing
  std::array<int, kMostAxes> box{};
};

// What one start of a kernel takes: its arguments are the maps, the places, in order, and behind them the sizes, 64
// bits each.
struct KernelLaunch {
  const Code* code = nullptr;
  std::size_t function = 0;    // in the order in which they were named to compile()
  std::int64_t grid_size = 1;  // thread blocks; 0: nothing runs
  int block_size = 1;          // threads of a block
  std::size_t shared = 0;      // bytes of shared memory beyond what the text declares
  std::span<const BufferSlice> buffers = {};
  std::span<const std::int64_t> sizes = {};
  std::span<const TensorMap> tensor_maps = {};  // only where Limits::warpgroups
};

class GpuDevice : public Device {
 public:
  virtual const Limits& limits() const = 0;
  // A program in the device's language, and which of its kernels are wanted. An Error has the compiler's words.
  virtual std::shared_ptr<const Code> compile(const std::string& text, const std::vector<std::string>& kernels) = 0;
  // Behind what was started before.
  virtual void launch_kernel(const KernelLaunch& s) = 0;

  // How the device's library computes this product; null where there is none, or it does not take it.
  virtual std::shared_ptr<const LibraryProduct> library_product(const MatrixProduct& /*p*/) { return nullptr; }
  // Is the library to be taken instead of our kernel of this text? measure() gives how much of our kernel's time the
  // library takes, nothing where that cannot be found out. What was decided once stays so.
  virtual bool prefers(const LibraryProduct& /*p*/, const std::string& /*text*/,
                       const std::function<std::optional<double>()>& /*measure*/) {
    return false;
  }
  // Behind what was started before. Of a device that gave such a product.
  virtual void multiply(const LibraryProduct& p, BufferSlice a, BufferSlice b, BufferSlice to, BufferSlice scratch);
  // Why there is no library although one was asked for, as a sentence; "" otherwise.
  virtual std::string library_problem() const { return {}; }

  void launch(const Launch& l) final;
};

// A kernel of such a device: one start, or several.
class GpuKernel : public Kernel {
 public:
  virtual void enqueue(const Launch& l, GpuDevice& device) const = 0;
  // Does it start the same kernels each time, and never look at what they made? Then it may be recorded and replayed.
  virtual bool records() const { return true; }
};

}  // namespace lc::backends::gpu
