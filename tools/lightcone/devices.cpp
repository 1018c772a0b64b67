// lightcone devices: the devices of this machine that can run models, and why the others cannot.
#include <cmath>
#include <functional>
#include <vector>

#include <nlohmann/json.hpp>

#include "command.h"
#include "commands.h"
#include "lightcone/backends/cpu/machine.h"
#include "lightcone/backends/cpu/target/target.h"
#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/backends/cuda/cuda.h"
#include "lightcone/backends/cuda/library.h"
#include "lightcone/backends/metal/metal.h"
#include "lightcone/backends/opencl/opencl.h"
#include "lightcone/base/error.h"
#include "lightcone/io/printable.h"

namespace lc::tool {
namespace {

using Json = nlohmann::ordered_json;

struct Found {
  backends::gpu::Limits limits;
  std::string unusable;  // the reason; "" if it can be used
};

// Lists devices by the driver alone. They are unusable without NVRTC, which compiles kernels.
std::vector<Found> cuda_devices() {
  std::string unusable;
  std::vector<Found> all;
  for (backends::gpu::Limits& l : backends::cuda::devices()) all.push_back({std::move(l), ""});
  try {
    backends::cuda::Compiler::open("", backends::cuda::Driver::open()->version());
  } catch (const Error& e) {
    for (Found& f : all) f.unusable = e.problem();
  }
  return all;
}

std::vector<Found> opencl_devices() {
  std::vector<Found> all;
  for (backends::opencl::DeviceInfo& d : backends::opencl::devices())
    all.push_back({std::move(d.limits), std::move(d.unusable)});
  if (all.empty()) backends::opencl::open_device();  // throws Error with the missing part
  return all;
}

std::vector<Found> metal_devices() {
  std::vector<Found> all;
  for (backends::gpu::Limits& l : backends::metal::devices()) all.push_back({std::move(l), ""});
  return all;
}

Json cpu_row() {
  Json j{{"device", "cpu"},
         {"name", cpu_name()},
         {"instructions", backends::cpu::str(backends::cpu::this_target())},
         {"cores", backends::cpu::available_cores()},
         {"memory_bytes", physical_memory()}};
  const Machine& m = backends::cpu::this_machine();
  if (m.read_bandwidth > 0) j["read_bytes_per_s"] = m.read_bandwidth;
  if (m.copy_bandwidth > 0) j["copy_bytes_per_s"] = m.copy_bandwidth;
  if (m.fma_rate > 0) j["flops_per_s"] = m.fma_rate;
  return j;
}

// Names are the driver's text and go to a terminal, so they are made printable.
Json gpu_row(const std::string& device, const Found& f) {
  const backends::gpu::Limits& l = f.limits;
  Json j{{"device", device},
         {"name", printable(l.name, 200)},
         {"architecture", printable(l.architecture, 200)},
         {"memory_bytes", l.memory},
         {"processors", l.multiprocessors},
         {"threads_of_a_group", l.max_block_size},
         {"shared_bytes_of_a_group", l.shared},
         {"f64", l.f64},
         {"driver", printable(l.driver, 200)}};
  if (!f.unusable.empty()) j["unusable"] = printable(f.unusable, 1000);
  return j;
}

std::string bytes(const Json& n) { return human_bytes(n.get<double>()); }

std::string shortened(const std::string& s) { return s.size() <= 48 ? s : s.substr(0, 45) + "..."; }

// Returns the line for people; JSON has all details.
std::string line(const Json& j) {
  std::string s = str_cat(j["name"].get<std::string>(), ", ");
  if (j.contains("cores")) {
    s += str_cat(j["cores"].get<int>(), " cores, ", j["instructions"].get<std::string>(), ", ",
                 bytes(j["memory_bytes"]));
    if (j.contains("read_bytes_per_s")) s += str_cat(", reads ", bytes(j["read_bytes_per_s"]), "/s");
    if (j.contains("copy_bytes_per_s")) s += str_cat(", copies ", bytes(j["copy_bytes_per_s"]), "/s");
    if (j.contains("flops_per_s"))
      s += str_cat(", ", std::lround(j["flops_per_s"].get<double>() / 1e9), " GFLOP/s in f32");
    return s + (j.contains("read_bytes_per_s") ? "" : " ('lightcone tune' measures its limits)");
  }
  const std::string architecture = j["architecture"];
  if (architecture.find(j["name"].get<std::string>()) == architecture.npos) s += architecture + ", ";
  s += str_cat(bytes(j["memory_bytes"]), ", ", j["processors"].get<int>(), " processors, groups of ",
               j["threads_of_a_group"].get<int>(), " threads with ", bytes(j["shared_bytes_of_a_group"]), ", ",
               j["f64"].get<bool>() ? "f64" : "no f64", ", driver: ", shortened(j["driver"]));
  return s + (j.contains("unusable") ? str_cat(": cannot be used: ", j["unusable"].get<std::string>()) : "");
}

}  // namespace

void devices(const DevicesOptions& o) {
  Json all{{"devices", Json::array({cpu_row()})}, {"missing", Json::array()}};
  const std::pair<std::string, std::function<std::vector<Found>()>> apis[] = {
      {"cuda", cuda_devices}, {"opencl", opencl_devices}, {"metal", metal_devices}};
  for (const auto& [api, list] : apis) try {
      int k = 0;
      for (const Found& f : list()) all["devices"].push_back(gpu_row(str_cat(api, ":", k++), f));
    } catch (const Error& e) {
      all["missing"].push_back({{"api", api}, {"why", printable(e.problem(), 1000)}});
    }
  if (o.json) return write_stdout(all.dump(2) + "\n");
  const auto row = [](std::string name, const std::string& said) {
    name.resize(std::max<std::size_t>(10, name.size() + 2), ' ');
    return name + said + "\n";
  };
  std::string s;
  for (const Json& j : all["devices"]) s += row(j["device"], line(j));
  for (const Json& j : all["missing"]) s += row(j["api"], "none: " + j["why"].get<std::string>());
  write_stdout(s);
}

}  // namespace lc::tool
