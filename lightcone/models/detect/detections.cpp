#include "lightcone/models/detect/detections.h"

#include "lightcone/base/error.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"
#include "lightcone/ops/vision/boxes.h"

namespace lc {

DetectionTensors detections(const Tensor& boxes, const Tensor& scores, const DetectionOptions& o) {
  const OpScope scope("detections", Tensor::At::current());
  if (boxes.rank() != 2 || scores.rank() != 2 || !(boxes.extent(0) == scores.extent(0)) || boxes.extent(1) != Dim(4))
    throw Error("detections", str_cat("boxes ", str(boxes.shape()), " and scores ", str(scores.shape()),
                                      " are not [n, 4] and [n, classes]"));
  if (o.most < 1) throw Error("detections", str_cat(o.most, " detections are wanted"));
  const Extreme best = max(scores, 1);
  const Tensor candidates = where(ge(best.values, o.confidence), best.values, full_like(best.values, -kInf));
  const KeptBoxes kept = o.across_classes ? nms(boxes, candidates, o.overlap, o.most)
                                          : batched_nms(boxes, candidates, best.indices, o.overlap, o.most);
  const Tensor found = ge(kept.indices, 0), at = maximum(kept.indices, full_like(kept.indices, 0));
  const auto chosen = [&](const Tensor& all) {
    const Tensor rows = index_select(all, 0, at);
    const Tensor valid = all.rank() == 1 ? found : found.unsqueeze(1);
    return where(valid, rows, full_like(rows, 0));
  };
  return {chosen(boxes), chosen(best.values), chosen(best.indices), kept.count};
}

}  // namespace lc
