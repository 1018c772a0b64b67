#include "lightcone/models/sam/sam.h"

#include "lightcone/io/printable.h"
#include "lightcone/models/files/pictures.h"
#include "lightcone/models/sam/sam_decoder.h"
#include "lightcone/models/sam/sam_prompts.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc {
namespace {

constexpr std::int64_t kPrompts = 1024, kPoints = 1024;  // bounds of the symbols

constexpr WeightName kNames[] = {
    {"shared_image_embedding.positional_embedding", "frequencies"},
    {"prompt_encoder.shared_embedding.positional_embedding", "frequencies"},
    {"vision_encoder", "vision_encoder"},
    {"prompt_encoder", "prompt_encoder"},
    {"mask_decoder", "mask_decoder"},
};
constexpr std::string_view kPrefixes[] = {"sam."};

class Sam {
 public:
  explicit Sam(const SamConfig& c) : c_(c), vision(c.vision), prompts(c.prompts), decoder(c.decoder) {}
  void visit(nn::Visitor& v) {
    v.parameter("frequencies", frequencies, {2, c_.vision.features}, nn::constant_init(0));
    v("vision_encoder", vision)("prompt_encoder", prompts)("mask_decoder", decoder);
  }

 private:
  SamConfig c_;

 public:
  SamVision vision;
  SamPrompts prompts;
  SamDecoder decoder;
  Tensor frequencies;
};

struct SamVisionAlone {
  SamVision vision;
  void visit(nn::Visitor& v) { v("vision_encoder", vision); }
};

// Which inputs a graph has.
struct Inputs {
  bool embeddings = false, points = true, boxes = false, masks = false;
};
Inputs wanted(const ConfigFile& file, const LoadModelOptions& o) {
  if (!o.inputs) return {};
  Inputs in{.points = false};
  const std::pair<std::string_view, bool*> known[] = {{"image_embeddings", &in.embeddings},
                                                      {"input_points", &in.points},
                                                      {"input_boxes", &in.boxes},
                                                      {"input_masks", &in.masks}};
  for (const std::string& name : *o.inputs) {
    if (name == "pixel_values" || name == "input_labels") continue;
    bool found = false;
    for (const auto& [key, flag] : known)
      if (key == name) *flag = found = true;
    if (!found)
      file.fail("a SamModel has no input ", in_quotes(name),
                "; it has image_embeddings, input_points, input_boxes and input_masks");
  }
  if (!in.points && !in.boxes && !in.masks) file.fail("no prompt is among the inputs that are asked for");
  return in;
}

// The tensors of a graph with its inputs.
class SamGraph {
 public:
  SamGraph(LoadedModel& m, const Sam& sam, const SamConfig& c, const Inputs& in, const LoadModelOptions& o)
      : m_(m), sam_(sam), c_(c), in_(in), batch_(Dim::symbol("batch", 1, o.batch)) {
    const std::int64_t n = c.vision.grid(), width = c.decoder.width;
    map_ = in.embeddings ? input("image_embeddings", {batch_, width, n, n})
                         : sam.vision(picture_input(m, o, c.vision.channels, {c.vision.picture, c.vision.picture}));
    m.limits["batch"] = o.batch;
  }
  void give() {
    const Tensor sparse = prompts();
    const std::int64_t n = c_.vision.grid(), width = c_.decoder.width, count = 1 + c_.decoder.masks;
    const Dim each = sparse.defined() ? sparse.extent(1) : Dim(1);
    Tensor map = map_ + (in_.masks ? sam_.prompts.masks(input("input_masks", {batch_, 1, 4 * n, 4 * n}))
                                   : sam_.prompts.no_mask());
    map = map.unsqueeze(1).expand({batch_, each, width, n, n}).reshape({batch_ * each, width, n, n});
    const Tensor positions = sam_grid_positions(m_.graph(), n, sam_.frequencies);
    const Tensor tokens = sparse.defined() ? sparse.reshape({batch_ * each, sparse.extent(2), width}) : sparse;
    const auto r = sam_.decoder(map, positions, tokens);
    const Tensor masks = r.masks.reshape({batch_, each, count, 4 * n, 4 * n});
    const Tensor scores = r.scores.reshape({batch_, each, count});
    m_.give("pred_masks", narrow(masks, 2, 1, count - 1)), m_.give("iou_scores", narrow(scores, 2, 1, count - 1));
    m_.give("single_mask", narrow(masks, 2, 0, 1)), m_.give("single_score", narrow(scores, 2, 0, 1));
    if (!in_.embeddings) m_.give("image_embeddings", map_);
  }

 private:
  Tensor input(const std::string& name, const Shape& shape, DType type = DType::F32) {
    return m_.inputs[name] = m_.graph().input(name, shape, type);
  }
  // The vectors of all points and boxes [batch, prompts, tokens, width]; undefined without them.
  Tensor prompts() {
    if (!in_.points && !in_.boxes) return Tensor();
    const Dim each = Dim::symbol("prompts", 1, kPrompts), points = Dim::symbol("points", 1, kPoints);
    m_.limits["prompts"] = kPrompts;
    std::vector<Tensor> all;
    if (in_.points) {
      m_.limits["points"] = kPoints;
      const Tensor at = input("input_points", {batch_, each, points, 2});
      all.push_back(sam_.prompts.points(at, input("input_labels", {batch_, each, points}, DType::I64), !in_.boxes,
                                        sam_.frequencies));
    }
    if (in_.boxes) all.push_back(sam_.prompts.boxes(input("input_boxes", {batch_, each, 4}), sam_.frequencies));
    return cat(all, 2);
  }

  LoadedModel& m_;
  const Sam& sam_;
  const SamConfig& c_;
  Inputs in_;
  Dim batch_;
  Tensor map_;
};

void require_size(const ConfigFile& file, const LoadModelOptions& o, std::int64_t side) {
  if ((o.height != 0 && o.height != side) || (o.width != 0 && o.width != side))
    file.fail("the model takes pictures of ", side, " x ", side, ", and ", o.height, " x ", o.width,
              " are asked for: pictures are resized and filled up");
}

}  // namespace

LoadedModel load_sam(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  const SamConfig c = read_sam(config, w);
  require_size(config, o, c.vision.picture);
  const Inputs in = wanted(config, o);
  LoadedModel m("sam", WeightTable(w, kPrefixes, kNames));
  m.architecture = "SamModel";
  const Sam& sam = m.add(Sam(c));
  m.weights.require_all_used("a SamModel");
  SamGraph(m, sam, c, in, o).give();
  m.retrieve(o);
  return m;
}

LoadedModel load_sam_vision(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  const SamVisionConfig c = read_sam_vision(config, w);
  require_size(config, o, c.picture);
  constexpr WeightName names[] = {{"vision_encoder", "vision_encoder"}};
  LoadedModel m("sam_vision_model", WeightTable(w, kPrefixes, names));
  m.architecture = "SamVisionModel";
  const SamVisionAlone& alone = m.add(SamVisionAlone{SamVision(c)});
  m.weights.require_all_used("a SamVisionModel");
  m.give("hidden", alone.vision(picture_input(m, o, c.channels, {c.picture, c.picture})));
  m.retrieve(o);
  return m;
}

}  // namespace lc
