#include "lightcone/backends/gpu/device/text_kernel.h"

#include <algorithm>
#include <exception>
#include <map>
#include <thread>

#include "lightcone/base/error.h"
#include "lightcone/codegen/kernel_names.h"
#include "lightcone/codegen/simt/dialect.h"

namespace lc::backends::gpu {

TextKernel::LaunchBuffers::LaunchBuffers(const Launch& l, std::size_t first) {
  check(l.in.size() + 1 - first <= kMaxBuffers, "a kernel of a GPU with too many operands");
  for (std::size_t k = first; k < l.in.size(); ++k) buffers_[count_++] = l.in[k];
  buffers_[count_++] = l.out;
}

namespace {

constexpr std::size_t kUnit = 24;  // kernels that are compiled together: their prelude is parsed once

struct Unit {
  std::string text;
  std::vector<std::string> names;
  std::shared_ptr<const Code> code;
};

std::string function_name(const std::string& kernel, std::size_t k) {
  return k == 0 ? kernel : str_cat(kernel, "_", k);
}

// Compiles several units at once, because the vendors' compilers take a tenth of a second for a kernel.
void compile_all(std::vector<Unit>& units, GpuDevice& device) {
  std::vector<std::exception_ptr> errors(units.size());
  const auto one = [&](std::size_t u) {
    try {
      units[u].code = device.compile(units[u].text, units[u].names);
    } catch (...) {
      errors[u] = std::current_exception();
    }
  };
  const std::size_t workers = std::min<std::size_t>(units.size(), std::max(1u, std::thread::hardware_concurrency()));
  {
    std::vector<std::jthread> others;
    for (std::size_t w = 1; w < workers; ++w)
      others.emplace_back([&, w] {
        for (std::size_t u = w; u < units.size(); u += workers) one(u);
      });
    for (std::size_t u = 0; u < units.size(); u += workers) one(u);
  }
  for (const std::exception_ptr& e : errors)
    if (e) std::rethrow_exception(e);
}

}  // namespace

void compile(std::span<const std::shared_ptr<TextKernel>> kernels, GpuDevice& device, PassLog& log) {
  codegen::KernelNames names;
  std::map<std::string, std::pair<std::size_t, std::size_t>> found;  // (unit, function) by name
  std::vector<Unit> units;
  for (const auto& k : kernels) {
    k->rename(names.of(k->text("@")));
    if (found.contains(k->name())) continue;
    if (units.empty() || units.back().names.size() >= kUnit)
      units.push_back({codegen::simt::prelude(device.limits().language), {}, {}});
    found[k->name()] = {units.size() - 1, units.back().names.size()};
    units.back().text += k->text(k->name());
    for (std::size_t f = 0; f < k->functions(); ++f) units.back().names.push_back(function_name(k->name(), f));
  }
  compile_all(units, device);
  for (const auto& k : kernels) {
    const auto [unit, function] = found.at(k->name());
    k->install(units[unit].code, function);
  }
  if (!found.empty()) log.fired["kernels compiled"] = static_cast<int>(found.size());
}

}  // namespace lc::backends::gpu
