// Measures the error of storing a model in fewer bits: networks get values distributed as trained ones are, and their
// results are compared with those of the original graph in f64.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "lightcone/runtime/program.h"
#include "lightcone/verify/verify.h"
#include "random_inputs.h"

namespace lc::test {

// Random values: matrices are scaled so that products keep the magnitude of their operands, scales are around 1, biases
// around 0.
inline Inputs trained_values(const Graph& g, unsigned seed) {
  Inputs all = random_values(g, seed);
  for (auto& [name, v] : all) {
    if (v.shape.size() > 1 && name != "x") {
      double fan_in = 1;
      for (std::size_t i = 1; i < v.shape.size(); ++i) fan_in *= static_cast<double>(v.shape[i]);
      for (double& w : v.f) w = static_cast<float>(w / std::sqrt(fan_in));
    } else if (v.shape.size() == 1) {
      const bool scale = name.ends_with(".weight"), variance = name.ends_with(".var");
      for (double& w : v.f) w = static_cast<float>(variance ? 1 + std::abs(w) / 4 : (scale ? 1 : 0) + w / 10);
    }
  }
  return all;
}

inline void give(Program& p, const Inputs& values) {
  for (const auto& [name, v] : values) {
    if (!p.is_parameter(name)) continue;
    const auto bytes = std::make_shared<std::vector<std::byte>>(v.size() * size_of(v.dtype));
    write_value(v, bytes->data());
    p.load(name, bytes->data(), bytes->size(), bytes);
  }
}
inline void set(Context& c, const Program& p, const Inputs& values) {
  for (const auto& [name, v] : values)
    if (!p.is_parameter(name)) c.set(name, std::vector<float>(v.f.begin(), v.f.end()));
}
inline std::vector<double> answer(const Program& p, const Inputs& values, const std::string& output = "y") {
  Context c(p);
  set(c, p, values);
  return c.run().get_f64(output);
}

// Returns the root mean square error divided by the root mean square of `want`.
inline double distance(const std::vector<double>& want, const std::vector<double>& got) {
  double off = 0, size = 0;
  for (std::size_t k = 0; k < want.size(); ++k) off += std::pow(got[k] - want[k], 2), size += std::pow(want[k], 2);
  return std::sqrt(off / size);
}

// Returns the error of the program that `c` compiles against the original graph in f64.
inline double error_in(const Graph& g, const Compiler& c, unsigned seed = 1) {
  const Inputs values = trained_values(g, seed);
  Program p = compile(g, c);
  give(p, values);
  return distance(interpret(g, values).outputs.at("y").f, answer(p, values));
}

}  // namespace lc::test
