// The protocol between bench/compare and a runner written in C++, and the data on which all runners compute. It
// includes nothing of Lightcone, because the runners of C++ peers are built with it, too.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace lc::bench {

using Json = nlohmann::ordered_json;

class Workload {
 public:
  virtual ~Workload() = default;
  virtual void call() = 0;
  // Returns the seconds of one call, if the time from outside is another one (a compile that prepares first).
  virtual double timed_call();
  // Runs so many calls: all of several ranks run the same number. Returns what a `go` answers.
  virtual Json measure(int calls);
  virtual Json answer() { return nullptr; }
  // Returns further facts for the table: {"kernels": 3, ...}.
  virtual Json facts() { return Json::object(); }
  // Returns the workload that bounds this one, on the same memory; its facts give the `work` of a call. Null: not
  // known.
  virtual Workload* limit() { return nullptr; }
};

double now();          // seconds
double cpu_seconds();  // processor time of all threads, in the program and in the kernel
double peak_rss_bytes();

// ---- data -------------------------------------------------------------------------------------------------
// Returns number i of the array `name`, uniform in [-1, 1) and exact in f32: a hash that is the same three lines in
// C++, numpy and Rust, so that every peer computes on the same numbers without a file of gigabytes.
inline float uniform(std::uint32_t seed, std::uint32_t i) {
  std::uint32_t h = i * 0x9E3779B1u + seed;
  h = (h ^ (h >> 16)) * 0x7FEB352Du;
  h = (h ^ (h >> 15)) * 0x846CA68Bu;
  h ^= h >> 16;
  return static_cast<float>(h >> 8) * 0x1p-23f - 1.0f;
}
std::uint32_t seed_of(std::string_view name);  // FNV-1a

// Returns the values of a parameter, which its name and shape decide (bench/peers/data.py).
std::vector<float> parameter_values(const std::string& name, const std::vector<std::int64_t>& shape);
std::vector<float> input_values(const std::string& name, std::size_t count, float scale = 1);
// Returns integers from 0 to classes - 1: labels, tokens.
std::vector<std::int64_t> class_values(const std::string& name, std::size_t count, std::int64_t classes);

// Returns first and spread-out values and the root mean square, which the driver compares.
Json summary(std::span<const float> values);

struct Runner {
  std::function<std::unique_ptr<Workload>(const Json&)> make;  // throws the reason why it cannot
  std::string version;
  std::function<void(const Json&)> write = {};  // the command `write`, if supported
};
int serve(const Runner& runner);

}  // namespace lc::bench
