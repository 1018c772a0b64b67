// The layers of a YOLO network: parts in a list, each of which reads the results of layers before it.
#pragma once

#include <string>
#include <vector>

#include "lightcone/models/yolo/head.h"
#include "lightcone/models/yolo/parts.h"

namespace lc {

// A layer as a file or a table describes it.
struct YoloLayerSpec {
  std::string type;       // "C2f"
  std::vector<int> from;  // numbers of layers; -1: the one before, and so on
  int stride = 1;         // the stride of a Conv, in a table
  bool shortcut = true;   // bottlenecks have one, in a table
};
// The layers that the modules of a file are.
std::vector<YoloLayerSpec> yolo_layers(const YoloSource& s);
// YOLOv8's, which has 23 (G. Jocher et al., 2023).
std::vector<YoloLayerSpec> yolo_v8_layers();

// The network as a module: pictures [batch, channels, height, width] -> the outputs of its head.
class YoloNet {
 public:
  // Throws Error if the layers do not fit to each other or to the weights.
  YoloNet(const YoloSource& s, std::vector<YoloLayerSpec> layers);
  void visit(nn::Visitor& v);
  YoloOutput operator()(const Tensor& pictures) const;
  std::int64_t channels() const { return channels_; }
  std::int64_t classes() const { return head_->classes(); }
  const YoloHead& head() const { return *head_; }

 private:
  struct Layer {
    YoloLayerSpec spec;
    YoloPartPtr part;  // null: a layer without weights
    int scale = 1;     // an upsampling has it
  };
  Tensor run(const Layer& l, const std::vector<Tensor>& in) const;

  std::vector<Layer> layers_;  // all but the head
  std::vector<int> heads_from_;
  std::shared_ptr<YoloHead> head_;
  std::int64_t channels_ = 3;
};

}  // namespace lc
