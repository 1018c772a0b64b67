// The description of a model in its parameters' file, which is all that `lightcone predict` needs: JSON under the key
// "lightcone.model" in the metadata of best.safetensors, with the sections model (as in the configuration), inputs and
// outputs.
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
  // The configuration's data, completed by the data set: features, scale, mean and std are the inputs' own.
  DataConfig data;
  bool bytes = false;                      // the inputs were bytes, as pictures are
  std::vector<double> fill;                // csv: replacement for a missing cell of each column
  std::vector<std::string> classes;        // names by label; without names "0", "1", ...
  double target_mean = 0, target_std = 1;  // standardisation of a regression's numbers

  // Returns the preparation of a sample, u8 or f32 of data.shape, for the network.
  std::vector<Transform> transforms() const;
  std::map<std::string, std::string> metadata() const;
  // Throws Error if the file has no valid description.
  static ModelDescription of(const Weights& file);
};

}  // namespace lc::tool
