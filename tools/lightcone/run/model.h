// A model file that `lightcone run` runs: ONNX or StableHLO.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "../commands.h"
#include "lightcone/inspection/inspect.h"
#include "lightcone/io/data/array.h"
#include "lightcone/onnx/onnx.h"
#include "lightcone/stablehlo/read.h"

namespace lc::tool {

using Port = FileDescription::Port;

// True for few numbers: they may be sizes or scales, which a graph has to know.
bool may_be_sizes(const Array& array);

class ModelFile {
 public:
  explicit ModelFile(const RunOptions& o);

  const std::string& path() const { return description_.path; }
  const std::vector<Port>& inputs() const { return description_.inputs; }
  const std::map<std::string, std::string>& metadata() const { return description_.metadata; }

  // Reads the graph. If it needs extents or values that are known, they are those of the arrays.
  void read(const std::map<std::string, Array>& arrays);
  const Graph& graph() const { return onnx_ ? onnx_->graph : module_->graph; }
  void load_weights(Program& p) const;
  // The inputs that the graph has, and its outputs, in the order of the file.
  std::vector<std::string> input_names() const;
  struct Output {
    std::string name;
    DType dtype;
    std::string count = {};  // OnnxProgram::Port
    int count_axis = 0;
    std::vector<std::string> labels = {};
  };
  std::vector<Output> outputs() const;

 private:
  void read_onnx_with(const std::map<std::string, Array>& arrays);
  void read_module_with(const std::map<std::string, Array>& arrays);
  const RunOptions& o_;
  FileDescription description_;
  std::optional<OnnxProgram> onnx_;
  std::optional<StableHloProgram> module_;
};

}  // namespace lc::tool
