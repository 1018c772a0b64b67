#include "device.h"

#include <algorithm>
#include <charconv>

#include "lightcone/backends/cuda/cuda.h"
#include "lightcone/backends/metal/metal.h"
#include "lightcone/backends/opencl/opencl.h"
#include "lightcone/base/error.h"
#include "lightcone/io/printable.h"
#include "lightcone/passes/passes.h"
#include "spelling.h"

namespace lc::tool {

std::string read_device(const std::string& words, DeviceChoice& choice) {
  static const std::vector<std::string> apis{"cpu", "cuda", "opencl", "metal"};
  const std::size_t colon = words.find(':');
  const std::string api = words.substr(0, colon);
  if (std::find(apis.begin(), apis.end(), api) == apis.end())
    return str_cat(in_quotes(api), " is none of cpu, cuda, opencl, metal", did_you_mean(api, apis));
  choice = {api, 0};
  if (colon == words.npos) return "";
  const std::string number = words.substr(colon + 1);
  const char* const last = number.data() + number.size();
  const auto [end, error] = std::from_chars(number.data(), last, choice.index);
  if (error != std::errc() || end != last || choice.index < 0)
    return str_cat(in_quotes(words), " has no number behind the colon, as in ", api, ":1");
  if (choice.is_cpu() && choice.index > 0) return "there is one CPU; --threads says how much of it";
  return "";
}

std::shared_ptr<backends::gpu::GpuDevice> open_device(const DeviceChoice& choice, const std::string& cache) {
  if (choice.api == "cuda") return backends::cuda::open_device({.device = choice.index, .cache = cache});
  if (choice.api == "opencl") return backends::opencl::open_device({.device = choice.index, .cache = cache});
  if (choice.api == "metal") return backends::metal::open_device({.device = choice.index});
  return nullptr;
}

Compiler compiler_for(const std::shared_ptr<backends::gpu::GpuDevice>& device, const CpuOptions& options) {
  if (!device) return generic() | cpu(options);
  return generic() | backends::gpu::compiler(device, {.precision = options.precision, .fallback = cpu(options)});
}

}  // namespace lc::tool
