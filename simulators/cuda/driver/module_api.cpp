// Modules, functions and launches.
#include <algorithm>
#include <cstring>

#include "driver/launch.h"

using namespace lc::simulators::cuda;

namespace lc::simulators::cuda {
namespace {

constexpr unsigned kSharedWithoutAsking = 48 << 10, kMostThreads = 1024;

template <class Work>
int function_call(const void* handle, Work work) {
  return driver_call(kCurrentContext, [&](Driver& d) -> int {
    Function* const f = d.functions.find(handle);
    return f == nullptr ? kInvalidHandle : work(d, *f);
  });
}

unsigned most_threads(const Function& f) {
  return f.kernel->max_threads != 0 ? std::min(f.kernel->max_threads, kMostThreads) : kMostThreads;
}

bool fits(const LcDim3& grid, const LcDim3& block, const Function& f) {
  const bool some = grid.x != 0 && grid.y != 0 && grid.z != 0 && block.x != 0 && block.y != 0 && block.z != 0;
  return some && grid.x <= 0x7fffffffu && grid.y <= 65535 && grid.z <= 65535 && block.x <= 1024 && block.y <= 1024 &&
         block.z <= 64 && block.x * block.y * block.z <= most_threads(f);
}

// Reads a list of CU_LAUNCH_PARAM_BUFFER_POINTER (1) and _SIZE (2), each followed by its value; 0 ends the list.
const char* packed_arguments(void* const* extra) {
  const char* buffer = nullptr;
  for (; extra != nullptr && *extra != nullptr; extra += 2)
    if (*extra == reinterpret_cast<void*>(1)) buffer = static_cast<const char*>(extra[1]);
  return buffer;
}

int shared_limit() { return device_attribute(97); }

Code load(Driver& d, void** out, const void* image) {
  if (out == nullptr || image == nullptr) return kInvalidValue;
  if (std::strncmp(static_cast<const char*>(image), "//", 2) == 0) return kInvalidPtx;
  Code code = kSuccess;
  std::shared_ptr<Library> library = Library::load(image, static_cast<int>(settings().compute_capability), code);
  if (library != nullptr) *out = d.modules.add(std::make_shared<Module>(Module{std::move(library), {}}));
  return code;
}

std::shared_ptr<Function> find_kernel(const Module& m, const std::string& name) {
  const LcModule& table = m.library->module();
  for (unsigned i = 0; i < table.kernel_count; ++i) {
    if (table.kernels[i].name != name) continue;
    const unsigned bytes = m.library->shared_bytes(name);
    return std::make_shared<Function>(Function{m.library, &table.kernels[i], bytes, kSharedWithoutAsking - bytes});
  }
  return nullptr;
}

// Returns how many blocks the threads, the shared memory and the block slots of a multiprocessor allow. Registers never
// limit them, at 32 per thread.
int blocks_that_fit(const Function& f, unsigned threads, std::size_t dynamic_shared) {
  const std::size_t shared = f.static_shared + dynamic_shared + static_cast<std::size_t>(device_attribute(111));
  const unsigned warps = (threads + 31) / 32;
  std::size_t blocks = static_cast<std::size_t>(device_attribute(39)) / 32 / warps;
  blocks = std::min<std::size_t>(blocks, static_cast<std::size_t>(device_attribute(106)));
  if (shared != 0) blocks = std::min(blocks, static_cast<std::size_t>(device_attribute(81)) / shared);
  return static_cast<int>(blocks);
}

Code launch(Driver& d, const void* function, const LaunchShape& shape, void* stream, void* const* parameters,
            void* const* extra) {
  const std::shared_ptr<Stream> s = d.stream(stream);
  if (s == nullptr) return kInvalidHandle;
  Launch l;
  const Code code = make_launch(d, function, shape, parameters, extra, l);
  return code == kSuccess ? d.submit(*s, Node(std::move(l))) : code;
}

struct LaunchAttribute {  // CUlaunchAttribute
  int id, padding;
  union {
    char bytes[64];
    unsigned cluster[3];
    int allowed;
  } value;
};

struct LaunchConfig {  // CUlaunchConfig
  LcDim3 grid, block;
  unsigned dynamic_shared;
  void* stream;
  const LaunchAttribute* attributes;
  unsigned attribute_count;
};

// Clusters of more than one block share memory, which the shim does not support.
bool supported(const LaunchConfig& c) {
  constexpr int kClusterDimension = 4;
  for (unsigned i = 0; i < c.attribute_count; ++i) {
    const auto& cluster = c.attributes[i].value.cluster;
    if (c.attributes[i].id == kClusterDimension && cluster[0] * cluster[1] * cluster[2] != 1) return false;
  }
  return true;
}

// Returns true for programmatic dependent launch.
bool overlaps(const LaunchConfig& c) {
  constexpr int kProgrammaticStreamSerialization = 6;
  for (unsigned i = 0; i < c.attribute_count; ++i)
    if (c.attributes[i].id == kProgrammaticStreamSerialization && c.attributes[i].value.allowed) return true;
  return false;
}

}  // namespace

Code make_launch(Driver& d, const void* function, const LaunchShape& shape, void* const* parameters, void* const* extra,
                 Launch& out) {
  std::shared_ptr<Function> f = d.functions.shared(function);
  if (f == nullptr) return kInvalidHandle;
  if (!fits(shape.grid, shape.block, *f) || shape.dynamic_shared > f->max_dynamic_shared) return kInvalidValue;
  const char* packed = packed_arguments(extra);
  if (f->kernel->arguments != 0 && parameters == nullptr && packed == nullptr) return kInvalidValue;
  auto arguments = parameters != nullptr ? std::make_shared<Arguments>(*f->kernel, parameters)
                                         : std::make_shared<Arguments>(*f->kernel, packed);
  out = {std::move(f), shape.grid, shape.block, shape.dynamic_shared, std::move(arguments), shape.overlaps};
  return kSuccess;
}

}  // namespace lc::simulators::cuda

FAKE_CUDA_API int cuModuleLoadData(void** module, const void* image) {
  return driver_call(kCurrentContext | kForbiddenInCapture, [&](Driver& d) { return load(d, module, image); });
}

FAKE_CUDA_API int cuModuleLoadDataEx(void** module, const void* image, unsigned, int*, void**) {
  return driver_call(kCurrentContext | kForbiddenInCapture, [&](Driver& d) { return load(d, module, image); });
}

FAKE_CUDA_API int cuModuleUnload(void* module) {
  return driver_call(kCurrentContext | kReleases, [&](Driver& d) {
    const Module* const m = d.modules.find(module);
    if (m == nullptr) return kInvalidHandle;
    for (const auto& [name, f] : m->functions) d.functions.remove(f.get());
    return d.modules.remove(module);
  });
}

FAKE_CUDA_API int cuModuleGetFunction(void** function, void* module, const char* name) {
  return driver_call(kCurrentContext, [&](Driver& d) -> int {
    if (function == nullptr || name == nullptr) return kInvalidValue;
    Module* const m = d.modules.find(module);
    if (m == nullptr) return kInvalidHandle;
    std::shared_ptr<Function>& f = m->functions[name];
    if (f == nullptr) f = find_kernel(*m, name);
    if (f == nullptr) return m->functions.erase(name), kNotFound;
    *function = d.functions.add(f);
    return kSuccess;
  });
}

FAKE_CUDA_API int cuFuncGetAttribute(int* value, int attribute, void* function) {
  return function_call(function, [&](Driver&, const Function& f) {
    if (value == nullptr) return kInvalidValue;
    switch (attribute) {
      case 0: return *value = static_cast<int>(most_threads(f)), kSuccess;
      case 1: return *value = static_cast<int>(f.static_shared), kSuccess;
      case 2:  // constant memory
      case 3:  // local memory
      case 7: return *value = 0, kSuccess;
      case 4: return *value = 32, kSuccess;  // registers
      case 5:                                // version of PTX and of the cubin
      case 6: return *value = f.library->compute_capability(), kSuccess;
      case 8: return *value = static_cast<int>(f.max_dynamic_shared), kSuccess;
      case 9: return *value = f.carveout, kSuccess;
      default: return kInvalidValue;
    }
  });
}

FAKE_CUDA_API int cuFuncSetAttribute(void* function, int attribute, int value) {
  return function_call(function, [&](Driver&, Function& f) {
    if (attribute == 9 && value >= -1 && value <= 100) return f.carveout = value, kSuccess;
    if (attribute != 8 || value < 0 || value + static_cast<int>(f.static_shared) > shared_limit()) return kInvalidValue;
    f.max_dynamic_shared = static_cast<unsigned>(value);
    return kSuccess;
  });
}

FAKE_CUDA_API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function, int threads,
                                                              std::size_t dynamic_shared) {
  return function_call(function, [&](Driver&, const Function& f) {
    if (blocks == nullptr || threads <= 0) return kInvalidValue;
    const auto n = static_cast<unsigned>(threads);
    *blocks = n > most_threads(f) || dynamic_shared > f.max_dynamic_shared ? 0 : blocks_that_fit(f, n, dynamic_shared);
    return kSuccess;
  });
}

FAKE_CUDA_API int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                 unsigned block_y, unsigned block_z, unsigned dynamic_shared, void* stream,
                                 void** parameters, void** extra) {
  return driver_call(kCurrentContext, [&](Driver& d) {
    const LaunchShape shape{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, dynamic_shared};
    return launch(d, function, shape, stream, parameters, extra);
  });
}

FAKE_CUDA_API int cuLaunchKernelEx(const LaunchConfig* config, void* function, void** parameters, void** extra) {
  return driver_call(kCurrentContext, [&](Driver& d) -> Code {
    if (config == nullptr || !supported(*config)) return kInvalidValue;
    const LaunchShape shape{config->grid, config->block, config->dynamic_shared, overlaps(*config)};
    return launch(d, function, shape, config->stream, parameters, extra);
  });
}
