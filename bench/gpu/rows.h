// What bench/gpu_check measures on a GPU.
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
  bool tiny = false;     // sizes that a CPU which plays the device gets through
  double seconds = 0.5;  // of measuring, a row
  std::string story;     // the story model's file
};

struct Row {
  std::string name;
  std::function<Json(const Setting&)> measure;
};

double now();
// Seconds of one call, the median of several rounds; each round waits for the device once.
double time_of(const Setting& s, const std::function<void()>& call);

std::vector<Row> ceilings();   // what the device can do: copies, starts, multiply-adds
std::vector<Row> functions();  // one kernel or a few: bytes or operations a second
std::vector<Row> models();     // tokens a second, a training step
std::vector<Row> values();     // every way to a product beside the others
std::vector<Row> faults();     // these end the use of the device by this process: measured only where they are named

}  // namespace lc::gpu_bench
