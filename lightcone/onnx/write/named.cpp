#include "lightcone/onnx/write/named.h"

#include "lightcone/base/error.h"
#include "lightcone/composites/composites.h"
#include "lightcone/onnx/write/translate.h"

namespace lc::onnx {
namespace {

std::string constant_of(Emitter& e, const std::string& element, const Extents& shape, double v) {
  const DType d = dtype_of_element(element);
  std::vector<std::byte> one(size_of(d));
  store_f64(one.data(), d, 0, v);
  return e.name(e.splat({true, element, shape}, one));
}

OutAttribute epsilon(const Operation& o) { return {"epsilon", static_cast<float>(attribute(o, "eps").real)}; }

// The operands after x, with ones and zeros for a weight and a bias that are not given.
std::vector<std::string> with_weights(Translator& t, const Operation& o, const Extents& shape, std::size_t wanted) {
  Emitter& e = t.emitter();
  std::vector<std::string> in{e.name(t.in(o, 0))};
  for (std::size_t k = 1; k <= wanted; ++k)
    in.push_back(k < o.operands.size() ? e.name(t.in(o, k))
                                       : constant_of(e, t.result_type(o).element, shape, k == 1 ? 1 : 0));
  return in;
}

void last_axes_norm(Translator& t, const Operation& o, std::string_view op) {
  Emitter& e = t.emitter();
  const Type& type = t.result_type(o);
  const std::int64_t axes = attribute(o, "axes").integer;
  const Extents last(type.shape.end() - axes, type.shape.end());
  const std::size_t given = o.operands.size() - 1;
  t.result(o,
           e.value(e.node(op, with_weights(t, o, last, given < 1 ? 1 : given), {{"axis", -axes}, epsilon(o)}), type));
}

void group_norm(Translator& t, const Operation& o) {
  Emitter& e = t.emitter();
  const Type& type = t.result_type(o);
  const OutAttributes attributes{{"num_groups", attribute(o, "groups").integer}, epsilon(o)};
  t.result(o, e.value(e.node("GroupNormalization", with_weights(t, o, {type.shape[1]}, 2), attributes), type));
}

void attention(Translator& t, const Operation& o) {
  Emitter& e = t.emitter();
  std::vector<std::string> in;
  for (std::size_t k = 0; k < o.operands.size(); ++k) in.push_back(e.name(t.in(o, k)));
  t.result(o, e.value(e.node("Attention", std::move(in),
                             {{"scale", static_cast<float>(attribute(o, "scale").real)},
                              {"is_causal", attribute(o, "causal").integer}}),
                      t.result_type(o)));
}

constexpr Entry kNamedEntries[] = {
    {"lightcone.layer_norm", [](Translator& t, const Operation& o) { last_axes_norm(t, o, "LayerNormalization"); }},
    {"lightcone.rms_norm", [](Translator& t, const Operation& o) { last_axes_norm(t, o, "RMSNormalization"); }},
    {"lightcone.group_norm", group_norm},
    {"lightcone.scaled_dot_product_attention", attention},
};

bool known_last_axes(const Node& n) {
  const auto axes = static_cast<std::size_t>(n.attributes.integer("axes"));
  for (std::size_t i = n.shape.size() - axes; i < n.shape.size(); ++i)
    if (!n.shape[i].constant()) return false;
  return true;
}

}  // namespace

bool has_operator(const Node& n, int opset) {
  if (n.op == Op::Log2 || n.op == Op::Exp2 || n.op == Op::Recip) return true;
  if (n.op != Op::Composite || n.dtype != DType::F32) return false;  // runtimes compute the others in other types
  const bool weights = n.in.size() > 1;
  if (is(n, builtin::layer_norm())) return opset >= 17 && (weights || known_last_axes(n));
  if (is(n, builtin::rms_norm())) return opset >= 23 && (weights || known_last_axes(n));
  if (is(n, builtin::group_norm())) return opset >= 21 && n.shape.size() > 2 && (weights || n.shape[1].constant());
  // A mask may leave a query without keys, of which the two say different things.
  if (is(n, builtin::attention())) return opset >= 23 && n.shape.size() == 4 && n.in.size() == 3;
  return false;
}

std::span<const Entry> named_entries() { return kNamedEntries; }

}  // namespace lc::onnx
