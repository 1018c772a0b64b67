// What a file of parameters says about itself, so that `lightcone predict` needs nothing else: one text of JSON under
// the key "lightcone.model" of best.safetensors' metadata, with the sections model (as in the configuration), inputs
// and outputs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/io/data/transforms.h"

namespace lc::tool {

struct ModelDescription {
  ModelConfig model;
  // It is the configuration's, completed by the data: features, scale, mean and std are those that the inputs had.
  DataConfig data;
  bool bytes = false;                      // the inputs were bytes, as pictures are
  std::vector<double> fill;                // csv: what stands for a missing cell of each column
  std::vector<std::string> classes;        // names, by label; without names "0", "1", ...
  double target_mean = 0, target_std = 1;  // of a regression: its numbers were made smaller by these

  // What becomes of a sample, u8 or f32 of data.shape, before the network sees it.
  std::vector<Transform> transforms() const;
  std::map<std::string, std::string> metadata() const;
  // Error where the file has no such metadata, or wrong ones.
  static ModelDescription of(const Weights& file);
};

}  // namespace lc::tool
