// The parameters of a graph among its inputs, as export_onnx() takes them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lightcone/onnx/export.h"
#include "lightcone/reference/interpreter.h"

namespace lc::test {

struct OnnxInputs {
  OnnxInputs(const Graph& g, const std::map<std::string, Value>& inputs) {
    for (NodeId id = 0; id < g.size(); ++id) {
      if (!g[id].parameter) continue;
      const Value& v = inputs.at(g[id].name);
      std::vector<std::byte>& b = bytes[g[id].name];
      b.resize(v.size() * size_of(v.dtype));
      write_value(v, b.data());
      parameters[g[id].name] = {v.dtype, v.shape, b};
    }
  }
  std::map<std::string, std::vector<std::byte>> bytes = {};
  OnnxValues parameters = {};
};

}  // namespace lc::test
