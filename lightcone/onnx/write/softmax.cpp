// Recognises softmax, which graphs spell out: exp(x - max) times the reciprocal of the sum of that.
#include "lightcone/onnx/write/translate.h"

namespace lc::onnx {
namespace {

// The reduction of which r is the repeated result, if r repeats it along the reduced axis. The numbers of elements
// agree then, so that the other axes do, too.
std::optional<Translator::Reduced> reduction_of(const Translator& t, const Emitter& e, Ref r,
                                                const std::map<Ref, Translator::Reduced>& all, bool reciprocal) {
  Ref small = e.small_of(r);
  if (small < 0) return std::nullopt;
  const auto axes = e.repeated_axes(r);
  if (axes.size() != 1) return std::nullopt;
  small = t.origin(small);
  if (reciprocal) {
    const auto it = t.recip_of.find(small);
    if (it == t.recip_of.end()) return std::nullopt;
    small = t.origin(it->second);
  }
  const auto it = all.find(small);
  if (it == all.end() || it->second.axis != axes[0] || e.shape(it->second.x) != e.shape(r)) return std::nullopt;
  return it->second;
}

// x, if d is x minus its maximum along the axis; otherwise d.
Ref before_maximum(const Translator& t, const Emitter& e, Ref d, std::size_t axis) {
  const auto sum = t.added.find(d);
  if (sum == t.added.end()) return d;
  const auto [x, other] = sum->second;
  const auto negated = t.scaled.find(other);
  if (negated == t.scaled.end() || negated->second.by != -1) return d;
  const auto max = reduction_of(t, e, negated->second.x, t.max_of, false);
  return max && max->axis == axis && max->x == x ? x : d;
}

}  // namespace

std::optional<Ref> softmax(Translator& t, Ref power, Ref r, const Type& type) {
  Emitter& e = t.emitter();
  const auto exponent = t.exp_of.find(power);
  if (exponent == t.exp_of.end()) return std::nullopt;
  const auto sum = reduction_of(t, e, r, t.sum_of, true);
  if (!sum || sum->x != power) return std::nullopt;
  const Ref x = before_maximum(t, e, exponent->second, sum->axis);
  return e.whole("Softmax", x, type, {}, {{"axis", static_cast<std::int64_t>(sum->axis)}});
}

}  // namespace lc::onnx
