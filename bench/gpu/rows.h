// The rows that bench/gpu_check measures on a GPU.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "lightcone/backends/gpu/gpu.h"
#include "lightcone/runtime/program.h"

namespace lc::gpu_bench {

using Json = nlohmann::ordered_json;

struct Setting {
  std::shared_ptr<backends::gpu::GpuDevice> device;
  bool tiny = false;     // sizes that a CPU which simulates the device can handle
  double seconds = 0.5;  // measuring time of a row
  std::string story;     // file of the story model
};

struct Row {
  std::string name;
  std::function<Json(const Setting&)> measure;
};

double now();
// Returns the seconds of one call: the median of several rounds, each of which waits for the device once.
double time_of(const Setting& s, const std::function<void()>& call);

std::vector<Row> ceilings();   // limits of the device: copies, launches, multiply-adds
std::vector<Row> functions();  // one or a few kernels each: bytes or operations a second
std::vector<Row> models();     // tokens a second, a training step
std::vector<Row> values();     // differences between the variants of a product
std::vector<Row> nccl_rows();  // measured only if named, because they need NCCL
std::vector<Row> faults();     // measured only if named, because they end the use of the device by this process

}  // namespace lc::gpu_bench
