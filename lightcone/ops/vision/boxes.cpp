#include "lightcone/ops/vision/boxes.h"

#include "lightcone/composites/composites.h"
#include "lightcone/ops/internal.h"
#include "lightcone/ops/loop.h"
#include "lightcone/ops/shape.h"

namespace lc {
using namespace detail;

namespace {

void check_boxes(const Tensor& boxes, const char* op) {
  if (boxes.rank() < 1 || !(boxes.extent(-1) == Dim(4)))
    throw Error(op, str_cat("boxes are [.., 4], not ", str(boxes.shape())));
  if (!is_float(boxes.dtype())) throw Error(op, str_cat("boxes are of a floating type, not ", name(boxes.dtype())));
}

struct Corners {
  Tensor x1, y1, x2, y2;
  template <class F>
  Corners each(const F& f) const {
    return {f(x1), f(y1), f(x2), f(y2)};
  }
};
Corners corners_of(const Tensor& boxes) {
  const auto at = [&](int k) { return boxes.select(-1, k); };
  return {at(0), at(1), at(2), at(3)};
}
Tensor sub(const Tensor& a, const Tensor& b) { return prim::add(a, neg(b)); }
Tensor area_of(const Corners& c) { return prim::mul(sub(c.x2, c.x1), sub(c.y2, c.y1)); }
struct Overlap {
  Tensor common, all;  // areas of the intersection and the union
};
Overlap overlap(const Corners& a, const Tensor& area_a, const Corners& b, const Tensor& area_b) {
  const auto side = [](const Tensor& from, const Tensor& to) { return relu(sub(to, from)); };
  const Tensor common = prim::mul(side(prim::maximum(a.x1, b.x1), prim::minimum(a.x2, b.x2)),
                                  side(prim::maximum(a.y1, b.y1), prim::minimum(a.y2, b.y2)));
  return {common, sub(prim::add(area_a, area_b), common)};
}

// Boxes [b, n] or [b, c, n] of rows [b, c, n] of scores, of which those of one row compete. With `labels` [b, n], only
// boxes of one label do.
struct Competition {
  Corners boxes;
  Tensor scores, labels = {};
  double iou_threshold;
  std::int64_t steps;
};

Tensor lowest_like(const Tensor& t) { return full_like(t, -kInf); }

// Whether box `at` [b, c] suppresses each box -> bool [b, c, n].
Tensor suppressed(const Competition& k, const Tensor& area, const Tensor& at) {
  const Shape s = k.scores.shape();
  const auto wide = [&](const Tensor& t) { return t.rank() == 2 ? t.unsqueeze(1).expand(s) : t; };
  const auto chosen = [&](const Tensor& t) {
    const Tensor one = t.rank() == 2 ? prim::gather(t, at, 1).unsqueeze(2) : prim::gather(t, at.unsqueeze(2), 2);
    return one.expand(s);
  };
  const Overlap o = overlap(k.boxes.each(chosen), chosen(area), k.boxes.each(wide), wide(area));
  // A box without an area overlaps nothing.
  const Tensor zero = full_like(o.common, 0);
  Tensor meets = prim::less_than(zero, o.common);
  if (k.labels.defined()) meets = logical_and(meets, prim::equal(chosen(k.labels), wide(k.labels)));
  const Tensor iou = prim::div(o.common, o.all);
  return logical_and(meets, prim::less_than(full_like(iou, k.iou_threshold), iou));
}

// The boxes that win, i64 [b, c, steps]; -1 after the last. Each step takes the best box of every row, removes it and
// those that it suppresses, and looks for the next best, so that a device can do the last two in one pass over a row.
Tensor winners(const Competition& k) {
  const Shape s = k.scores.shape(), all{s[0], s[1], k.steps};
  Graph& g = k.scores.graph();
  const Tensor area = area_of(k.boxes), best = amax(k.scores, {2}), at = argmax(k.scores, 2);
  const auto left = [](const Tensor& score) { return prim::less_than(lowest_like(score), score); };
  const auto next = [&](const std::vector<Tensor>& now) -> std::vector<Tensor> {
    const Tensor &scores = now[0], &best = now[1], &at = now[2], &found = now[3], &number = now[4];
    const Tensor place = g.index(s, Dim::index(2, s[2]));
    const Tensor gone = logical_or(suppressed(k, area, at), prim::equal(place, at.unsqueeze(2).expand(s)));
    const Tensor rest = prim::where(gone, lowest_like(scores), scores);
    const Tensor column = g.index(all, Dim::index(2, k.steps));
    const Tensor here =
        logical_and(prim::equal(column, number.reshape({1, 1, 1}).expand(all)), left(best).unsqueeze(2).expand(all));
    return {rest, amax(rest, {2}), argmax(rest, 2), prim::where(here, at.unsqueeze(2).expand(all), found),
            lc::detail::add(number, 1)};
  };
  return while_loop([&](const std::vector<Tensor>& now) { return any(left(now[1])); }, next,
                    {k.scores, best, at, full(g, all, -1, DType::I64), full(g, {}, 0, DType::I64)}, k.steps)[3];
}

// The scores with -infinity for those that are no candidates.
Tensor candidates(const Tensor& scores, std::optional<double> threshold) {
  const Tensor low = threshold ? full_like(scores, *threshold) : lowest_like(scores);
  return prim::where(prim::less_than(low, scores), scores, lowest_like(scores));
}

constexpr std::int64_t kMostCandidates = 1024;

// winners() for scores of which most are no candidates, as a detector's: where every row has at most kMostCandidates,
// these are moved together first, and a step looks at them alone. Otherwise it looks at all. The graph has both loops;
// one of them has no candidates and ends before its first step.
Tensor winners_of_few(const Competition& k) {
  const Shape s = k.scores.shape(), few{s[0], s[1], kMostCandidates};
  Graph& g = k.scores.graph();
  const Tensor is = prim::less_than(lowest_like(k.scores), k.scores);
  const Tensor number = add(cumsum(prim::cast(is, DType::I64), 2), -1), outside = full_like(number, -1);
  const Tensor fits = prim::less_than(amax(number, {}), full(g, {}, kMostCandidates, DType::I64));
  const auto everywhere = [&](const Shape& to) { return fits.reshape({1, 1, 1}).expand(to); };
  const Tensor to = prim::where(prim::less_than(number, full_like(number, kMostCandidates)), number, outside);
  const Tensor from =
      prim::scatter(full(g, few, -1, DType::I64), prim::where(is, to, outside), g.index(s, Dim::index(2, s[2])), 2);
  const Tensor there = logical_and(prim::less_than(full_like(from, -1), from), everywhere(few));
  Competition c = k;
  c.boxes = k.boxes.each([&](const Tensor& t) { return prim::gather(t.unsqueeze(1).expand(s), from, 2); });
  c.scores = prim::gather(k.scores, from, 2);
  c.scores = prim::where(there, c.scores, lowest_like(c.scores));
  const Tensor at = winners(c), none = full_like(at, -1);
  Competition all = k;
  all.scores = prim::where(everywhere(s), lowest_like(k.scores), k.scores);
  const Tensor mapped = prim::where(prim::less_than(none, at), prim::gather(from, at, 2), none);
  return prim::where(everywhere(at.shape()), mapped, winners(all));
}

// The positions of true elements of a mask [n], in order; -1 after the last.
Tensor positions_of(const Tensor& mask) {
  const Tensor number = add(cumsum(prim::cast(mask, DType::I64), 0), -1), outside = full_like(number, -1);
  const Tensor place = mask.graph().index(mask.shape(), Dim::index(0, mask.extent(0)));
  return prim::scatter(outside, prim::where(mask, number, outside), place, 0);
}
Tensor count_of(const Tensor& mask) { return prim::sum_reduce(prim::cast(mask, DType::I64), 0); }

KeptBoxes kept(const Tensor& boxes, const Tensor& scores, const Tensor& labels, double iou_threshold,
               std::optional<std::int64_t> room, const char* op) {
  check_boxes(boxes, op);
  if (boxes.rank() != 2 || scores.rank() != 1 || !(scores.extent(0) == boxes.extent(0)) ||
      (labels.defined() && (labels.rank() != 1 || !(labels.extent(0) == boxes.extent(0)))))
    throw Error(op, str_cat("boxes ", str(boxes.shape()), " and scores ", str(scores.shape()),
                            labels.defined() ? str_cat(" and idxs ", str(labels.shape())) : "",
                            " are not [n, 4] and [n]", labels.defined() ? " and [n]" : ""));
  if (!is_float(scores.dtype())) throw Error(op, str_cat("scores are of a floating type, not ", name(scores.dtype())));
  const std::int64_t n = known(boxes.extent(0), op), most = std::min(room.value_or(n), n);
  if (room && *room < 0) throw Error(op, str_cat("room for ", *room, " boxes"));
  const Tensor none = full(boxes.graph(), {room.value_or(n)}, -1, DType::I64);
  if (most == 0) return {none, full(boxes.graph(), {}, 0, DType::I64)};
  const auto row = [](const Tensor& t) { return t.unsqueeze(0); };
  const Tensor wide = is_narrow(boxes.dtype()) ? prim::cast(boxes, DType::F32) : boxes;
  const Tensor found = winners({corners_of(wide).each(row), candidates(scores, {}).reshape({1, 1, n}),
                                labels.defined() ? row(labels) : Tensor(), iou_threshold, most})
                           .reshape({most});
  const Tensor all = most < none.extent(0).constant() ? cat({found, none.slice(0, most, none.extent(0))}, 0) : found;
  return {all, count_of(prim::less_than(full_like(found, -1), found))};
}

}  // namespace

Tensor box_area(Operand boxes) {
  const OpScope scope("box_area", boxes.at);
  check_boxes(boxes, "box_area");
  return area_of(corners_of(boxes));
}

Tensor box_iou(Operand a, Operand b) {
  const OpScope scope("box_iou", a.at);
  check_boxes(a, "box_iou"), check_boxes(b, "box_iou");
  if (a->rank() != 2 || b->rank() != 2 || a->dtype() != b->dtype())
    throw Error("box_iou", str_cat(name(a->dtype()), " ", str(a->shape()), " and ", name(b->dtype()), " ",
                                   str(b->shape()), " are not [n, 4] and [m, 4] of one type"));
  const Shape s{a->extent(0), b->extent(0)};
  const auto down = [&](const Tensor& t) { return t.unsqueeze(1).expand(s); };
  const auto across = [&](const Tensor& t) { return t.unsqueeze(0).expand(s); };
  const Corners p = corners_of(a), q = corners_of(b);
  const Overlap o = overlap(p.each(down), down(area_of(p)), q.each(across), across(area_of(q)));
  return prim::div(o.common, o.all);
}

Tensor box_convert(Operand boxes, std::string_view from, std::string_view to) {
  const OpScope scope("box_convert", boxes.at);
  check_boxes(boxes, "box_convert");
  for (const std::string_view word : {from, to})
    if (word != "xyxy" && word != "xywh" && word != "cxcywh")
      throw Error("box_convert",
                  str_cat("there is no format \"", word, "\"; there are \"xyxy\", \"xywh\", \"cxcywh\""));
  if (from == to) return boxes;
  Corners c = corners_of(boxes);
  if (from == "cxcywh") c.x1 = sub(c.x1, mul(c.x2, 0.5)), c.y1 = sub(c.y1, mul(c.y2, 0.5));
  if (from != "xyxy") c.x2 = prim::add(c.x1, c.x2), c.y2 = prim::add(c.y1, c.y2);
  if (to == "xyxy") return stack({c.x1, c.y1, c.x2, c.y2}, -1);
  const Tensor w = sub(c.x2, c.x1), h = sub(c.y2, c.y1);
  if (to == "xywh") return stack({c.x1, c.y1, w, h}, -1);
  return stack({mul(prim::add(c.x1, c.x2), 0.5), mul(prim::add(c.y1, c.y2), 0.5), w, h}, -1);
}

Tensor clip_boxes(Operand boxes, double height, double width) {
  const OpScope scope("clip_boxes", boxes.at);
  check_boxes(boxes, "clip_boxes");
  const Corners c = corners_of(boxes);
  return stack({clamp(c.x1, 0, width), clamp(c.y1, 0, height), clamp(c.x2, 0, width), clamp(c.y2, 0, height)}, -1);
}

SelectedBoxes non_max_suppression(Operand boxes, Operand scores, const NonMaxSuppressionOptions& o) {
  const char* op = "non_max_suppression";
  const OpScope scope(op, boxes.at);
  check_boxes(boxes, op);
  if (boxes->rank() != 3 || scores->rank() != 3 || !(scores->extent(0) == boxes->extent(0)) ||
      !(scores->extent(2) == boxes->extent(1)) || !is_float(scores->dtype()))
    throw Error(op, str_cat("boxes ", str(boxes->shape()), " and scores ", name(scores->dtype()), " ",
                            str(scores->shape()), " are not [b, n, 4] and floating [b, c, n]"));
  const std::int64_t b = known(boxes->extent(0), op), n = known(boxes->extent(1), op), c = known(scores->extent(1), op);
  if (o.max_output_boxes_per_class < 0)
    throw Error(op, str_cat("max_output_boxes_per_class is ", o.max_output_boxes_per_class));
  const std::int64_t most = std::min(o.max_output_boxes_per_class, n), room = b * c * most;
  Graph& g = boxes->graph();
  if (room == 0) return {full(g, {0, 3}, 0, DType::I64), full(g, {}, 0, DType::I64)};
  const Tensor given = is_narrow(boxes->dtype()) ? prim::cast(boxes, DType::F32) : boxes.tensor;
  Corners k = corners_of(o.center_point_box ? box_convert(given, "cxcywh", "xyxy") : given);
  if (!o.center_point_box)
    k = {prim::minimum(k.x1, k.x2), prim::minimum(k.y1, k.y2), prim::maximum(k.x1, k.x2), prim::maximum(k.y1, k.y2)};
  const Competition all{k, candidates(scores, o.score_threshold), {}, o.iou_threshold, most};
  const bool few = o.score_threshold && n > 2 * kMostCandidates;
  const Tensor found = (few ? winners_of_few(all) : winners(all)).reshape({room});
  const Tensor mask = prim::less_than(full_like(found, -1), found), at = positions_of(mask);
  const Dim row = Dim::index(0, room);
  const auto column = [&](const Tensor& values) {  // an element out of range reads 0
    return prim::where(prim::less_than(full_like(at, -1), at), prim::gather(values, at, 0), full_like(at, -1));
  };
  const auto numbers = [&](const Dim& d) { return column(g.index({room}, d)); };
  return {stack({numbers(row / Dim(c * most)), numbers(row / Dim(most) % Dim(c)), column(found)}, 1), count_of(mask)};
}

KeptBoxes nms(Operand boxes, Operand scores, double iou_threshold, std::optional<std::int64_t> room) {
  const OpScope scope("nms", boxes.at);
  return kept(boxes, scores, {}, iou_threshold, room, "nms");
}
KeptBoxes batched_nms(Operand boxes, Operand scores, Operand idxs, double iou_threshold,
                      std::optional<std::int64_t> room) {
  const OpScope scope("batched_nms", boxes.at);
  if (!is_integer(idxs->dtype())) throw Error("batched_nms", str_cat("idxs are integers, not ", name(idxs->dtype())));
  return kept(boxes, scores, idxs, iou_threshold, room, "batched_nms");
}

}  // namespace lc
