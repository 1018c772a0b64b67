#include "model.h"

#include <algorithm>

#include "../onnx_options.h"
#include "lightcone/base/error.h"
#include "lightcone/io/mapped_file.h"
#include "lightcone/io/printable.h"

namespace lc::tool {
bool may_be_sizes(const Array& array) {
  constexpr std::int64_t kMostValues = 64;
  return array.elements() <= kMostValues;
}

ModelFile::ModelFile(const RunOptions& o) : o_(o) {
  lc::InspectOptions options{.plan = false};
  options.extents = onnx_options(o.sizes).extents;
  const FileFormat format = file_format(o.model);
  if (format != FileFormat::Onnx && format != FileFormat::StableHlo)
    throw file_error("run", o.model, "it is ", name(format),
                     ", and what is run here is ONNX or StableHLO; 'lightcone generate' and 'lightcone chat' run "
                     "checkpoints of language models, 'lightcone predict' those of 'lightcone train'");
  description_ = lc::inspect(o.model, options);
}

void ModelFile::read(const std::map<std::string, Array>& arrays) {
  if (description_.format == FileFormat::Onnx) read_onnx_with(arrays);
  else read_module_with(arrays);
}

void ModelFile::read_onnx_with(const std::map<std::string, Array>& arrays) {
  OnnxOptions options = onnx_options(o_.sizes);
  for (const auto& [name, array] : arrays) options.shapes[name] = array.shape;
  try {
    onnx_ = read_onnx(path(), options);
  } catch (const Error&) {
    for (const auto& [name, array] : arrays)
      if (may_be_sizes(array)) options.values[name] = array;
    onnx_ = read_onnx(path(), options);
  }
}

void ModelFile::read_module_with(const std::map<std::string, Array>& arrays) {
  StableHloOptions options;
  for (std::size_t k = 0; k < inputs().size(); ++k) {
    const Port& p = inputs()[k];
    const auto a = arrays.find(p.name);
    if (a == arrays.end() || !p.shape) continue;
    for (const std::int64_t e : *p.shape)
      if (e < 0) options.shapes[static_cast<int>(k)] = a->second.shape;
  }
  const auto file = MappedFile::open(path());
  const auto bytes = file->bytes();
  module_ = read_stablehlo({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, options);
}

void ModelFile::load_weights(Program& p) const {
  if (onnx_) onnx_->load_weights(p);
  else module_->load_constants(p);
}

std::vector<std::string> ModelFile::input_names() const {
  std::vector<std::string> names;
  if (onnx_)
    for (const auto& port : onnx_->inputs) names.push_back(port.name);
  else
    for (const std::string& name : module_->inputs)
      if (!name.empty()) names.push_back(name);
  return names;
}

std::vector<ModelFile::Output> ModelFile::outputs() const {
  std::vector<Output> all;
  if (onnx_)
    for (const auto& port : onnx_->outputs)
      all.push_back({port.name, port.dtype, port.count, port.count_axis, port.labels});
  else
    for (const Root& r : graph().roots())
      if (std::ranges::find(module_->outputs, r.name) != module_->outputs.end())
        all.push_back({r.name, graph()[r.edge.node].dtype});
  return all;
}

}  // namespace lc::tool
