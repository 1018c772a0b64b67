// Text to code for a device: NVRTC makes a cubin, the driver loads it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lightcone/backends/cuda/stream.h"
#include "lightcone/backends/gpu/device/device.h"
#include "lightcone/cache/object_cache.h"

namespace lc::backends::cuda {

// What to compile for: "sm_90a" for a device of compute capability 9.0. Where NVRTC is older than the device, the
// newest of the same generation that it knows. An Error when there is none: code of another generation does not run.
std::string architecture_for(const Compiler& compiler, int major, int minor);

struct Cubin {
  std::string code, log;
};
// Needs no device. `kernels` are named in the Error of a text that does not compile. Products and sums are rounded each
// by itself; where they are to be fused the text says fmaf. `more` are further options: with "--ptxas-options=-v" the
// log says how many registers each kernel takes.
Cubin compile_cubin(const Compiler& compiler, const std::string& text, const std::vector<std::string>& kernels,
                    const std::string& architecture, std::span<const std::string> more = {});

// Loaded code.
class Module final : public gpu::Code {
 public:
  // From the cache, or compiled and kept there. `shared`: bytes of shared memory that a group of threads may have.
  // `overlap`: launches of kernels that begin with LC_BEGIN (codegen/simt/prelude.cpp) do not wait for what is before
  // them, because those do.
  static std::shared_ptr<const Module> make(std::shared_ptr<Stream> stream, const Compiler& compiler,
                                            const cache::ObjectCache& cache, const std::string& architecture,
                                            std::size_t shared, const std::string& text,
                                            const std::vector<std::string>& kernels, bool overlap = false);
  ~Module() override;
  bool overlaps(std::size_t k) const { return overlaps_.at(k); }
  api::Function* function(std::size_t k) const { return functions_.at(k); }

 private:
  explicit Module(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}
  // False when the driver does not take this image.
  bool load(const std::string& image);
  void find(const std::vector<std::string>& kernels, std::size_t shared);

  std::shared_ptr<Stream> stream_;
  api::Module* module_ = nullptr;
  std::vector<api::Function*> functions_;
  std::vector<bool> overlaps_;
};

}  // namespace lc::backends::cuda
