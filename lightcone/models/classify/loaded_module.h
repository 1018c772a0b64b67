// LoadedModule: the graph of a loaded model as a module for training, whatever family the model is of. It has the
// parameters of the graph, and a call writes the graph's operations again, with their derivatives, in the graph of the
// model that is trained.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/models/files/loaded_model.h"
#include "lightcone/nn/module.h"

namespace lc {

class LoadedModule {
 public:
  // From the input of this name to an output of the model. All parameters have to be stored as f32.
  LoadedModule(std::shared_ptr<const LoadedModel> model, const std::string& input, const std::string& output);
  // Visits the parameters for which `wanted` holds, in the order of the graph. Statistics of batch norms (running_mean,
  // running_var) are not trained. Values are those of a file, and 0 before it is loaded.
  void visit(nn::Visitor& v, const std::function<bool(std::string_view name)>& wanted);
  // x has the shape of the input; all parameters were visited. Throws Error otherwise.
  Tensor operator()(const Tensor& x) const;

  // A parameter of the graph.
  struct Entry {
    std::string name;
    std::vector<std::int64_t> shape;
    NodeId node;
  };
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<bool> needed() const;
  std::shared_ptr<const LoadedModel> model_;
  Tensor in_, out_;
  std::vector<Entry> entries_;
  std::vector<Tensor> values_;  // each belongs to an entry, and lies in the graph that is trained
};

}  // namespace lc
