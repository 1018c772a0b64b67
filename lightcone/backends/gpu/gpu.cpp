#include "lightcone/backends/gpu/gpu.h"

#include <mutex>

#include "lightcone/backends/gpu/attention_kernel.h"
#include "lightcone/backends/gpu/lower.h"
#include "lightcone/backends/gpu/prefix_sum_kernel.h"
#include "lightcone/backends/gpu/product_kernel.h"
#include "lightcone/backends/gpu/products/product.h"
#include "lightcone/backends/gpu/scan.h"
#include "lightcone/lowering/pipeline.h"

namespace lc::backends::gpu {
namespace {

// Opens its device at the first use. Several threads may use it.
class LazyDevice {
 public:
  explicit LazyDevice(std::function<std::shared_ptr<GpuDevice>()> open) : open_(std::move(open)) {}
  const std::shared_ptr<GpuDevice>& device() {
    const std::lock_guard lock(mutex_);  // if open_() throws, the next call tries again
    if (!device_) device_ = open_();
    return device_;
  }

 private:
  std::mutex mutex_;
  std::function<std::shared_ptr<GpuDevice>()> open_;
  std::shared_ptr<GpuDevice> device_;
};
using Device = std::shared_ptr<LazyDevice>;

// Returns the traits of a GPU for the pipeline.
lowering::DeviceTraits traits(const Device& lazy, const GpuOptions& options) {
  lowering::DeviceTraits d;
  d.has_kernel = [lazy](const Graph& g, const Node& n) { return has_kernel(g, n, *lazy->device()); };
  d.compile_loops = [=](const Graph& g, PassLog& log) {
    const auto device = lazy->device();
    return compile_loops(g, log, rule_name(*device), compiler(device, options), 1, scan_kernel);
  };
  d.fuse_attention = [=](const Graph& g, PassLog& log, lowering::AttentionFusion fuse) {
    return fuse_attention(g, lazy->device(), log, options.precision, fuse);
  };
  d.fuse_prefix_sums =
      Pass{.name = "fuse-prefix-sums",
           .run = [=](const Graph& g, PassLog& log) { return fuse_prefix_sums(g, lazy->device(), log); },
           .applies = [](const Graph& g) { return any_node(g, [](const Node& n) { return n.op == Op::Where; }); }};
  d.is_convolution = [](const Graph& g, const lowering::Factors& f) { return find_convolution(g, f).has_value(); };
  d.shapes_reductions = true;
  d.emit_kernels = {.name = "gpu", .run = [=](const Graph& g, PassLog& log) {
                      Lowered l = lower(g, lazy->device(), log, options);
                      compile(l.kernels, *lazy->device(), log);
                      choose_libraries(l.kernels, *lazy->device(), log);
                      return std::move(l.graph);
                    }};
  return d;
}

Compiler joined(const Device& lazy, const GpuOptions& options) { return lowering::pipeline(traits(lazy, options)); }

}  // namespace

Compiler compiler(std::shared_ptr<GpuDevice> device, GpuOptions options) {
  return joined(std::make_shared<LazyDevice>([device = std::move(device)] { return device; }), options);
}
Compiler compiler(std::function<std::shared_ptr<GpuDevice>()> open, GpuOptions options) {
  return joined(std::make_shared<LazyDevice>(std::move(open)), options);
}

std::vector<Graph> compile_batch(std::span<const Graph* const> graphs, const std::shared_ptr<GpuDevice>& device,
                                 GpuOptions options, PassLog* log) {
  const auto lazy = std::make_shared<LazyDevice>([device] { return device; });
  const lowering::DeviceTraits d = traits(lazy, options);
  const std::vector<Pass> before = lowering::canonical_passes(d), after = lowering::scheduling_passes(d);
  PassLog whole;
  whole.pass = "gpu";
  std::vector<Graph> done;
  std::vector<std::shared_ptr<TextKernel>> kernels;
  for (const Graph* given : graphs) {
    PassLog own;
    const Graph g = lowering::run_passes(*given, before, own);
    Lowered l = lower(g, device, own, options);
    kernels.insert(kernels.end(), l.kernels.begin(), l.kernels.end());
    done.push_back(lowering::run_passes(l.graph, after, own));
  }
  compile(kernels, *device, whole);
  choose_libraries(kernels, *device, whole);
  if (log) *log = std::move(whole);
  return done;
}

}  // namespace lc::backends::gpu
