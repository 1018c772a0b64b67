// LoRA: small products that are added to weights (E. J. Hu et al., "LoRA", 2021), from files of kohya's trainer and of
// peft and diffusers.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/models/files/loaded_model.h"

namespace lc::diffusion {

// The weights of one file: for each layer two matrices, whose product is up times down, and a factor.
class Lora {
 public:
  // A layer's matrices: down [rank, in, ...] and up [out, rank, ...]; alpha / rank is their factor.
  struct Layer {
    std::string written;  // a name as the file has it, for Errors
    const StoredTensor *down = nullptr, *up = nullptr;
    double alpha = 0;  // 0: as large as the rank
    bool used = false;
  };
  // Opens a file; `scale` says how much of it counts. Throws Error that names a weight which is no part of a LoRA.
  Lora(const std::string& path, double scale, const ReadOptions& o);
  // The layer of a part, a folder of the pipeline such as "unet", by its name with '_' in place of '.'; null: none.
  Layer* find(std::string_view part, std::string_view layer);
  double scale() const { return scale_; }
  const std::string& path() const { return weights_.path(); }
  // Throws Error that names a layer of the file which the model has not.
  void require_all_used() const;

 private:
  void add(const std::string& name, const StoredTensor& t);
  Weights weights_;
  double scale_;
  std::map<std::string, Layer, std::less<>> layers_;  // "unet down_blocks_0_..."
};

// Adds what `loras` have for a part to the weights of its program, which stay in their type. Throws Error for matrices
// that do not fit, and for weights in blocks.
void merge_loras(Program& program, const LoadedModel& m, std::string_view part, std::vector<Lora>& loras);

}  // namespace lc::diffusion
