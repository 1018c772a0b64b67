// The tiny checkpoints of ../shared/data/models/tiny with what other programs computed of them, and small checkpoints
// of the tests' own, as folders that load_model() reads.
#pragma once

#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "data.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/io/checkpoints/save.h"
#include "lightcone/models/load/load_model.h"
#include "lightcone/passes/passes.h"
#include "lightcone/reference/interpreter.h"

namespace lc::test {

inline const std::string kTiny = "models/tiny/tiny_";

// A folder with model.safetensors and config.json of one tiny checkpoint.
struct TinyFolder {
  TempDir folder;
  explicit TinyFolder(const std::string& name) {
    std::filesystem::copy_file(data(kTiny + name + ".safetensors"), folder / "model.safetensors");
    std::filesystem::copy_file(data(kTiny + name + "_config.json"), folder / "config.json");
  }
  std::string path() const { return folder.path.string(); }
};
inline nlohmann::json tiny_answers(const std::string& name) {
  return nlohmann::json::parse(slurp(data(kTiny + name + ".json")));
}

// All numbers of nested lists.
inline void append_numbers(const nlohmann::json& j, std::vector<double>& to) {
  if (j.is_number()) to.push_back(j.get<double>());
  else
    for (const auto& e : j) append_numbers(e, to);
}
inline std::vector<double> numbers_of(const nlohmann::json& j) {
  std::vector<double> all;
  append_numbers(j, all);
  return all;
}

// Which weights of a FormulaFolder are those of a norm: by their names, or all that have one axis.
enum class NormWeights { ByName, OneAxis };

// A folder of a model with the weights that tools/make_*_goldens.py give: element k of tensor i is
// 0.4 sin(1.3 i + 0.7 k + 0.1), and 1 more in the weight of a norm and in a variance. `tensors` is a list of names and
// shapes.
struct FormulaFolder {
  TempDir folder;
  NormWeights norms;
  FormulaFolder(const nlohmann::json& config, const nlohmann::json& tensors, NormWeights norms = NormWeights::ByName)
      : norms(norms) {
    spit(folder / "config.json", config.dump());
    write(tensors);
  }
  void write(const nlohmann::json& tensors) const {
    std::vector<std::vector<float>> values;
    std::vector<TensorToSave> all;
    for (const auto& t : tensors) {
      const std::string name = t[0];
      std::vector<std::int64_t> shape = t[1];
      const bool by_name = name.find("LayerNorm") != name.npos || name.find("layer_norm") != name.npos;
      const bool of_norm = norms == NormWeights::ByName ? by_name : shape.size() == 1;
      const bool norm = name.ends_with("running_var") || (name.ends_with("weight") && of_norm);
      std::int64_t n = 1;
      for (const std::int64_t d : shape) n *= d;
      std::vector<float>& v = values.emplace_back();
      for (std::int64_t k = 0; k < n; ++k)
        v.push_back(static_cast<float>(
            0.4 * std::sin(1.3 * static_cast<double>(all.size()) + 0.7 * static_cast<double>(k) + 0.1) +
            (norm ? 1 : 0)));
      all.push_back({name, DType::F32, shape, {}});
    }
    for (std::size_t k = 0; k < all.size(); ++k) all[k].bytes = std::as_bytes(std::span(values[k]));
    save_safetensors(folder / "model.safetensors", all);
  }
  std::string path() const { return folder.path.string(); }
};

// An input of a model.
struct Given {
  std::vector<std::int64_t> shape;
  std::vector<double> values;
};
using AllGiven = std::map<std::string, Given>;

// The outputs of a model by the reference interpreter in f64, from the weights as they are stored.
inline std::map<std::string, std::vector<double>> by_reference(const LoadedModel& m, const AllGiven& given,
                                                               const Bindings& sizes) {
  std::map<std::string, Value> inputs;
  const Graph& g = m.graph();
  for (NodeId id = 0; id < g.size(); ++id) {
    if (g[id].op != Op::Input) continue;
    if (const auto at = given.find(g[id].name); at != given.end()) {
      Value v = make_value(g[id].dtype, at->second.shape);
      for (std::size_t k = 0; k < v.size(); ++k)
        if (is_float(v.dtype)) v.f[k] = at->second.values[k];
        else v.i[k] = static_cast<std::int64_t>(at->second.values[k]);
      inputs.emplace(g[id].name, std::move(v));
    } else if (const StoredTensor* t = m.weight(g[id].name)) {
      const ArrayView a = *t;
      inputs.emplace(g[id].name, read_value(a.bytes.data(), a.dtype, a.shape));
    }
  }
  std::map<std::string, std::vector<double>> out;
  for (const auto& [name, v] : interpret(g, inputs, sizes).outputs) out[name] = v.f;
  return out;
}

// The same by cpu().
inline std::map<std::string, std::vector<double>> by_cpu(const LoadedModel& m, const AllGiven& given,
                                                         const std::map<std::string, std::int64_t>& sizes) {
  const Program p = m.program(generic() | cpu({.threads = 2}));
  Context run(p);
  for (const auto& [name, n] : sizes) run.bind(name, n);
  for (const auto& [name, x] : given)
    if (m.inputs.at(name).dtype() == DType::I64)
      run.set(name, std::vector<std::int64_t>(x.values.begin(), x.values.end()));
    else run.set(name, std::vector<float>(x.values.begin(), x.values.end()));
  run.run();
  std::map<std::string, std::vector<double>> out;
  for (const std::string& name : p.outputs()) out[name] = run.get_f64(name);
  return out;
}

inline double farthest(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double most = 0;
  for (std::size_t k = 0; k < a.size(); ++k)
    most = std::fmax(most, std::isnan(a[k]) ? INFINITY : std::fabs(a[k] - b[k]));
  return most;
}

// Compares outputs with what is expected, within 1e-5 by the reference and 1e-4 by cpu(), relative to the largest
// number where that is above 1.
inline void expect_outputs(const LoadedModel& m, const AllGiven& given,
                           const std::map<std::string, std::int64_t>& sizes,
                           const std::map<std::string, std::vector<double>>& wanted) {
  const auto exact = by_reference(m, given, {sizes.begin(), sizes.end()}), fast = by_cpu(m, given, sizes);
  for (const auto& [output, want] : wanted) {
    double largest = 1;
    for (const double x : want) largest = std::max(largest, std::fabs(x));
    EXPECT_LT(farthest(exact.at(output), want), 1e-5 * largest)
        << m.architecture << " " << output << " by the reference";
    EXPECT_LT(farthest(fast.at(output), want), 1e-4 * largest) << m.architecture << " " << output;
  }
}

}  // namespace lc::test
