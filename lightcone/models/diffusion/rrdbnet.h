// RRDBNet, which makes pictures two or four times as large: ESRGAN and Real-ESRGAN, as a loaded model. config.json says
// `model_type: rrdbnet` and the authors' arguments (num_in_ch, num_out_ch, num_feat, num_block, num_grow_ch, scale).
//
// Input: "image" f32 [batch, num_in_ch, height, width] with values from 0 to 1; the output "image_upscaled" [batch,
// num_out_ch, scale height, scale width]. Symbols: "batch", and "rows" and "columns", which are height and width,
// divided by 2 for a scale of 2 and by 4 for a scale of 1.
//
// X. Wang et al., "ESRGAN", 2018; "Real-ESRGAN", 2021.
#pragma once

#include <vector>

#include "lightcone/models/files/config_file.h"
#include "lightcone/models/files/loaded_model.h"
#include "lightcone/nn/conv.h"

namespace lc::diffusion {

// RRDBNet as a module. Parameters have the authors' names: conv_first, body, conv_body, conv_up1, conv_up2, conv_hr,
// conv_last.
class RRDBNet {
 public:
  struct Sizes {
    std::int64_t in = 3, out = 3, features = 64, blocks = 23, growth = 32, scale = 4;
    std::int64_t unshuffled() const { return 4 / scale; }  // the picture is first made smaller by this factor
  };
  explicit RRDBNet(const Sizes& s);
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& image) const;

 private:
  // Five convolutions, each of which reads the input and all values before it.
  struct Dense {
    std::vector<nn::Conv2d<>> convolutions;
    explicit Dense(const Sizes& s);
    void visit(nn::Visitor& v);
    Tensor operator()(const Tensor& x) const;
  };
  struct Block {
    Dense rdb1, rdb2, rdb3;
    explicit Block(const Sizes& s) : rdb1(s), rdb2(s), rdb3(s) {}
    void visit(nn::Visitor& v) { v("rdb1", rdb1)("rdb2", rdb2)("rdb3", rdb3); }
    Tensor operator()(const Tensor& x) const { return x + rdb3(rdb2(rdb1(x))) * 0.2; }
  };
  Sizes s_;
  nn::Conv2d<> first_, body_end_, up1_, up2_, fine_, last_;
  std::vector<Block> body_;
};

// Makes the loaded model of an opened checkpoint. Throws Error for the reasons of load_model().
LoadedModel load_rrdbnet(const Weights& w, const ConfigFile& config, const LoadModelOptions& o);

}  // namespace lc::diffusion
