// From text to code for a device: NVRTC makes a cubin, and the driver loads it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lightcone/backends/cuda/stream.h"
#include "lightcone/backends/gpu/device/device.h"
#include "lightcone/cache/object_cache.h"

namespace lc::backends::cuda {

// Returns the architecture to compile for: "sm_90a" for a device of compute capability 9.0. If NVRTC is older than the
// device, it is the newest of the same generation that NVRTC supports. Throws Error if there is none, because code of
// another generation does not run.
std::string architecture_for(const Compiler& compiler, int major, int minor);

struct Cubin {
  std::string code, log;
};
// Compiles without a device. Throws Error, which names `kernels`, if the text does not compile. Products and sums are
// rounded separately; the text uses fmaf if they are to be fused. `more` are further options: with "--ptxas-options=-v"
// the log has the number of registers of each kernel.
Cubin compile_cubin(const Compiler& compiler, const std::string& text, const std::vector<std::string>& kernels,
                    const std::string& architecture, std::span<const std::string> more = {});

// Loaded code. It keeps its stream and context alive.
class Module final : public gpu::Code {
 public:
  // Takes the code from the cache, or compiles it and keeps it there. `shared`: bytes of shared memory that a thread
  // block may have. `overlap`: launches of kernels that begin with LC_BEGIN (codegen/simt/prelude.cpp) do not wait for
  // the previous launch, because the kernels do.
  static std::shared_ptr<const Module> make(std::shared_ptr<Stream> stream, const Compiler& compiler,
                                            const cache::ObjectCache& cache, const std::string& architecture,
                                            std::size_t shared, const std::string& text,
                                            const std::vector<std::string>& kernels, bool overlap = false);
  ~Module() override;
  bool overlaps(std::size_t k) const { return overlaps_.at(k); }
  api::Function* function(std::size_t k) const { return functions_.at(k); }

 private:
  explicit Module(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}
  // Returns false if the driver does not take this image.
  bool load(const std::string& image);
  void find(const std::vector<std::string>& kernels, std::size_t shared);

  std::shared_ptr<Stream> stream_;
  api::Module* module_ = nullptr;
  std::vector<api::Function*> functions_;
  std::vector<bool> overlaps_;
};

}  // namespace lc::backends::cuda
