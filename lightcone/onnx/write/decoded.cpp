#include "lightcone/onnx/write/decoded.h"

#include <cstring>

#include "lightcone/composites/composites.h"
#include "lightcone/passes/compiler.h"

namespace lc::onnx {
namespace {

class Decoder {
 public:
  explicit Decoder(std::map<std::string, Decoded>& decoded) : decoded_(decoded) {}

  Edge emit(Graph& dst, Node n) {
    if (is(n, builtin::dequantize())) {
      const auto format = static_cast<QuantFormat>(n.attributes.integer("format"));
      const Edge& e = n.in[0];
      if (const auto whole = numbers(dst, e, format)) return *whole;
      if (const auto rows = rows_of(dst, e, format)) return *rows;
    }
    const NodeId id = dst.add(std::move(n));
    return {id, View(dst[id].shape)};
  }

 private:
  // The parameter with the numbers of a parameter that has blocks.
  std::optional<Edge> numbers(Graph& dst, const Edge& e, QuantFormat format) {
    const Node& blocks = dst[e.node];
    if (blocks.op != Op::Input || !blocks.parameter || !e.view.identity() || blocks.shape.empty()) return std::nullopt;
    const QuantInfo& q = info(format);
    Shape shape = blocks.shape;
    shape.back() = shape.back() / Dim(q.bytes) * Dim(q.elements);
    const std::string name = blocks.name + ".f32";
    if (const auto it = made_.find(name); it != made_.end()) return Edge{it->second, View(shape)};
    const NodeId id = dst.parameter(name, shape).edge().node;
    decoded_[name] = {blocks.name, format};
    made_[name] = id;
    return Edge{id, View(shape)};
  }

  // Rows of blocks that are gathered and decoded: gathers rows of numbers.
  std::optional<Edge> rows_of(Graph& dst, const Edge& e, QuantFormat format) {
    const Node gather = dst[e.node];
    if (!is(gather, builtin::gather()) || gather.attributes.integer("axis") != 0 || gather.shape.size() != 2)
      return std::nullopt;
    for (const Move& m : e.view.moves())  // the rows may be arranged, but not cut
      if (m.kind != MoveKind::Reshape) return std::nullopt;
    const auto matrix = numbers(dst, gather.in[0], format);
    if (!matrix) return std::nullopt;
    const Edge& index = gather.in[1];
    const Dim columns = matrix->view.shape()[1];
    const Tensor of_rows = Tensor(dst, {index.node, index.view.slice({0, 0}, {gather.shape[0], 1})});
    const Tensor all = of_rows.expand({gather.shape[0], columns});
    Shape to = e.view.shape();
    to.back() = to.back() / Dim(info(format).bytes) * Dim(info(format).elements);
    return prim::gather(Tensor(dst, *matrix), all, 0).reshape(to).edge();
  }

  std::map<std::string, Decoded>& decoded_;
  std::map<std::string, NodeId> made_;
};

}  // namespace

Graph with_decoded_parameters(const Graph& g, std::map<std::string, Decoded>& decoded) {
  if (!any_node(g, [](const Node& n) { return is(n, builtin::dequantize()); })) return g.clone();
  Decoder decoder(decoded);
  return copy_graph(g, [&](Graph& dst, NodeId, Node n) { return decoder.emit(dst, std::move(n)); });
}

std::vector<std::byte> decode(QuantFormat format, std::span<const std::byte> blocks) {
  const QuantInfo& q = info(format);
  const auto bytes = static_cast<std::size_t>(q.bytes), elements = static_cast<std::size_t>(q.elements);
  std::vector<std::byte> all(blocks.size() / bytes * elements * sizeof(float));
  for (std::size_t b = 0; b < blocks.size() / bytes; ++b)
    for (std::size_t k = 0; k < elements; ++k) {
      const float v = quant_value(format, static_cast<std::int64_t>(k), [&](std::int64_t at) {
        return std::to_integer<int>(blocks[b * bytes + static_cast<std::size_t>(at)]);
      });
      std::memcpy(all.data() + (b * elements + k) * sizeof v, &v, sizeof v);
    }
  return all;
}

}  // namespace lc::onnx
