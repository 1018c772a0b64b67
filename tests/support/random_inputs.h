// Random numbers for tests: vectors, and a value for every input of a graph.
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "lightcone/core/dtype.h"
#include "lightcone/verify/verify.h"

namespace lc::test {

using Inputs = std::map<std::string, Value>;

// Random values for all inputs of `g`, rounded to what f32, or the input's bf16, can represent.
inline Inputs random_values(const Graph& g, unsigned seed, const Bindings& env = {}) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Inputs all;
  for (NodeId id = 0; id < g.size(); ++id) {
    if (g[id].op != Op::Input) continue;
    Value v = make_value(g[id].dtype, numbers(g[id].shape, env));
    for (double& x : v.f) x = static_cast<float>(normal(random));
    if (v.dtype == DType::BF16)
      for (double& x : v.f) x = static_cast<double>(bf16_to_f32(f32_to_bf16(static_cast<float>(x))));
    all[g[id].name] = v;
  }
  return all;
}

inline std::vector<float> normals(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> d;
  std::vector<float> v(n);
  std::generate(v.begin(), v.end(), [&] { return d(random); });
  return v;
}

}  // namespace lc::test
