#include "lightcone/lowering/types/int8.h"

#include <algorithm>
#include <cmath>

#include "lightcone/codegen/symbols.h"
#include "lightcone/composites/composites.h"
#include "lightcone/lowering/contraction.h"
#include "lightcone/lowering/products.h"
#include "lightcone/passes/composites.h"

namespace lc {
namespace {

using namespace prim;
using lowering::Aligned;
using lowering::Factors;

// Returns the parameter that an edge reads through conversions of all of its elements, or null.
const Node* parameter_of(const Graph& g, const Edge& e) {
  const Node* n = &g[e.node];
  while (n->op == Op::Contiguous && n->in[0].view.identity()) n = &g[n->in[0].node];
  const bool fits = n->op == Op::Input && n->parameter && (n->dtype == DType::F32 || is_half(n->dtype)) &&
                    std::all_of(n->shape.begin(), n->shape.end(), [](const Dim& d) { return d.is_constant(); });
  return fits ? n : nullptr;
}

// A product in which one factor is a weight.
struct Weighted {
  Factors factors;
  int side;  // index of the weight among the factors
  std::string parameter;
  bool rows = false;  // the parameter is [outputs, summed] and is read as a whole
};

bool reads_rows(const Graph& g, const Weighted& w) {
  const Node& n = *parameter_of(g, w.factors.edge[w.side]);
  const auto at = lowering::linear(w.factors.at[w.side].offset, w.factors.symbols);
  if (n.shape.size() != 2 || !at || !(at->offset == Dim(0)) || !(at->strides.back() == Dim(1))) return false;
  int axes = 0;
  for (std::size_t i = 0; i + 1 < at->strides.size(); ++i) {
    if (at->strides[i] == Dim(0)) continue;
    if (!(at->strides[i] == n.shape[1]) || !(g[w.factors.sum].shape[i] == n.shape[0])) return false;
    ++axes;
  }
  const Node& sum = g[w.factors.sum];
  return axes == 1 && sum.in[0].view.shape()[sum.axis] == n.shape[1];
}

std::optional<Weighted> weighted(const Graph& g, NodeId sum, const std::set<std::string, std::less<>>& loaded) {
  auto f = g[sum].dtype == DType::F32 ? lowering::factors(g, sum) : std::nullopt;
  if (!f) return std::nullopt;
  const Node* in[2] = {parameter_of(g, f->edge[0]), parameter_of(g, f->edge[1])};
  for (const Node*& n : in)
    if (n && !loaded.contains(n->name)) n = nullptr;
  if (!in[0] == !in[1]) return std::nullopt;
  const int side = in[0] ? 0 : 1;
  if (!(f->at[side].valid == Dim(1)) || !lowering::aligned(g, *f, side)) return std::nullopt;
  Weighted w{std::move(*f), side, in[side]->name};
  w.rows = reads_rows(g, w);
  return w;
}

// Returns true for a convolution, including 1x1 ones, which have the strides of a matrix product.
bool is_filter(const Graph& g, const Weighted& w) {
  const Shape& s = parameter_of(g, w.factors.edge[w.side])->shape;
  return s.size() > 2 && (s.back() == Dim(1) || !lowering::match_contraction(g, w.factors));
}

std::set<std::string, std::less<>> names_of_parameters(const Graph& g) {
  std::set<std::string, std::less<>> names;
  const std::vector<bool> loaded = lowering::loaded_parameters(g);
  for (NodeId id = 0; id < g.size(); ++id)
    if (loaded[id]) names.insert(g[id].name);
  return names;
}

Tensor number(const Tensor& like, double v) { return full_like(like, v); }
Tensor absolute(const Tensor& x) { return maximum(x, mul(x, number(x, -1))); }
// [.., k] -> [.., 1]
Tensor largest(const Tensor& x) { return max_reduce(absolute(x), x.rank() - 1).unsqueeze(-1); }

// Rounds to the nearest integer from -127 to 127, ties to even, as signed bytes. NaN becomes 0. The first guess is off
// by about half a step at most, and the difference is exact.
Tensor nearest_byte(const Tensor& given) {
  const Tensor x =
      minimum(maximum(where(equal(given, given), given, number(given, 0)), number(given, -127)), number(given, 127));
  const Tensor guess = add(cast(cast(add(x, number(x, 128.5)), DType::I32), x.dtype()), number(x, -128));
  const Tensor rest = add(x, mul(guess, number(x, -1)));
  const Tensor odd = equal(absolute(mod(guess, number(x, 2))), number(x, 1));
  const auto beyond = [&](const Tensor& r) {  // the remainder exceeds 1/2, or is 1/2 and the guess is odd
    const Tensor half = number(r, 0.5);
    return cast(bitwise_or(less_than(half, r), bitwise_and(equal(half, r), odd)), x.dtype());
  };
  const Tensor down = mul(beyond(mul(rest, number(x, -1))), number(x, -1));
  return cast(add(guess, add(beyond(rest), down)), DType::I8);
}

struct Quantised {
  Tensor codes, scale;  // i8 [.., k], f32 [.., 1]
};
Quantised by_channel(const Tensor& w) {
  const Tensor most = largest(w), scale = div(most, number(most, 127));
  return {nearest_byte(div(w, scale.expand(w.shape()))), scale};
}

// Quantises [.., k] to blocks of Q8_0, [.., k / 32 * 34]: an f16 scale (two bytes) followed by 32 codes.
Tensor in_blocks(const Tensor& w, int group) {
  const QuantInfo& q = info(QuantFormat::Q8_0);
  Shape groups = w.shape();
  const Dim k = groups.back();
  groups.back() = k / Dim(group), groups.push_back(group);
  const Tensor x = w.reshape(groups), most = largest(x);
  const Tensor scale = cast(div(most, number(most, 127)), DType::F16);
  Shape blocks = w.shape();
  blocks.back() = k / Dim(q.elements), blocks.push_back(q.elements);
  const Tensor codes = bitcast(nearest_byte(div(x, cast(scale, DType::F32).expand(groups))), DType::U8).reshape(blocks);
  Shape one = blocks;
  one.back() = 1;
  Shape repeated = groups;  // one copy of the group's scale per block
  repeated.back() = group / q.elements;
  const Tensor bits = bitcast(scale, DType::U16).expand(repeated).reshape(one);
  const Tensor low = cast(bitwise_and(bits, number(bits, 255)), DType::U8),
               high = cast(div(bits, number(bits, 256)), DType::U8);
  const int last = codes.rank() - 1;
  Shape bytes = w.shape();
  bytes.back() = k / Dim(q.elements) * Dim(q.bytes);
  const auto at = [&](const Tensor& t, int before, int behind) { return t.pad(last, before, behind).reshape(bytes); };
  return add(add(at(low, 0, q.bytes - 1), at(high, 1, q.bytes - 2)), at(codes, 2, 0));
}

class InBytes {
 public:
  InBytes(const Graph& g, const Int8Options& o, PassLog& log);
  Graph run();

 private:
  bool wanted(NodeId sum, const Weighted& w) const;
  void check_names() const;
  Edge emit(Graph& dst, NodeId was, Node n);
  std::optional<Tensor> rows(Graph& dst, const Node& gather) const;
  Tensor product(Graph& dst, const Weighted& w);
  Tensor by_channels(Graph& dst, const Weighted& w);
  Tensor in_groups(Graph& dst, const Weighted& w) const;
  Tensor weight(Graph& dst, const Weighted& w, const Aligned& a) const;

  const Graph& g_;
  const Int8Options& options_;
  PassLog& log_;
  std::set<std::string, std::less<>> names_, rows_;
  std::vector<bool> wanted_;
};

InBytes::InBytes(const Graph& g, const Int8Options& o, PassLog& log)
    : g_(g), options_(o), log_(log), names_(names_of_parameters(g)), wanted_(g.size()) {
  check_names();
  const std::vector<bool> live = g.live(), attention = lowering::inside_attention(g);
  std::set<std::string, std::less<>> apart;  // parameters that some product reads in another order
  for (NodeId id = 0; id < g.size(); ++id) {
    const auto w = live[id] && !attention[id] ? weighted(g, id, names_) : std::nullopt;
    if (!w || !wanted(id, *w)) continue;
    wanted_[id] = true;
    (w->rows ? rows_ : apart).insert(w->parameter);
  }
  for (const std::string& name : apart) rows_.erase(name);
  if (std::none_of(wanted_.begin(), wanted_.end(), [](bool b) { return b; }))
    throw Error("int8",
                "no product has a parameter for a factor, so there are no weights to store in bytes: mark them, "
                "nn::parameter or Graph::parameter()");
}

void InBytes::check_names() const {
  const auto known = [&](const std::string& name) {
    if (!names_.contains(name)) throw Error("int8", str_cat("the graph has no parameter '", name, "'"));
  };
  for (const std::string& name : options_.leave) known(name);
  for (const auto& [name, of] : options_.activations) known(name);
  if (options_.group && !options_.activations.empty())
    throw Error("int8", "activations in bytes need a scale for each channel, and not for groups: leave `group` at 0");
}

bool InBytes::wanted(NodeId sum, const Weighted& w) const {
  if (options_.leave.contains(w.parameter) || (!options_.convolutions && is_filter(g_, w))) return false;
  const Dim k = g_[sum].in[0].view.shape()[g_[sum].axis];
  if (options_.group && !(k % Dim(options_.group) == Dim(0)))
    throw Error("int8",
                str_cat("'", w.parameter, "' is summed along ", k.str(), " numbers, which groups of ", options_.group,
                        " do not divide: another group, or leave it as it is, Int8Options::leave"),
                g_[sum].where);
  return true;
}

// Returns the weight in f32: the whole parameter, or its axes in the product's order.
Tensor InBytes::weight(Graph& dst, const Weighted& w, const Aligned& a) const {
  const NodeId node = w.factors.edge[w.side].node;
  return rows_.contains(w.parameter) ? Tensor(dst, {node, View(dst[node].shape)}) : a.small;
}

Tensor InBytes::in_groups(Graph& dst, const Weighted& w) const {
  const Aligned a = *lowering::aligned(dst, w.factors, w.side), x = *lowering::aligned(dst, w.factors, 1 - w.side);
  const Tensor numbers = dequantize(in_blocks(weight(dst, w, a), options_.group), QuantFormat::Q8_0);
  return sum_reduce(mul(x.whole, numbers.reshape(a.small.shape()).expand(a.whole.shape())), a.whole.rank() - 1);
}

Tensor InBytes::by_channels(Graph& dst, const Weighted& w) {
  const Aligned a = *lowering::aligned(dst, w.factors, w.side), x = *lowering::aligned(dst, w.factors, 1 - w.side);
  const int last = a.whole.rank() - 1;
  const Quantised q = by_channel(weight(dst, w, a));
  Shape one = a.small.shape(), all = a.whole.shape();
  one.back() = 1, all.back() = 1;
  Tensor factor = x.whole, scale = q.scale.reshape(one).expand(all).squeeze(last);
  const auto range = options_.activations.find(w.parameter);
  const double most = range == options_.activations.end() || range->second.empty()
                          ? 0
                          : *std::max_element(range->second.begin(), range->second.end());
  if (most > 0 && std::isfinite(most)) {
    const Tensor from(dst, {x.whole.edge().node, View(x.whole.node().shape)});
    const double step = static_cast<float>(most / 127);
    factor = cast(nearest_byte(div(from, number(from, step))), DType::F32).with(x.whole.view());
    scale = mul(scale, number(scale, step));
    ++log_.fired["product of bytes"];
  }
  const Tensor codes = cast(q.codes, DType::F32).reshape(a.small.shape()).expand(a.whole.shape());
  return mul(sum_reduce(mul(factor, codes), last), scale);
}

Tensor InBytes::product(Graph& dst, const Weighted& w) {
  ++log_.fired["weight in bytes"];
  return options_.group ? in_groups(dst, w) : by_channels(dst, w);
}

// Returns true if the index does not change along the last axis.
bool of_whole_rows(const Edge& index) {
  const std::vector<Dim> at = index_symbols(index.view.shape());
  const auto last = at.back().name();
  return !last || !index.view.locate(at).offset.symbols().contains(*last);
}

// Replaces an embedding of a matrix whose rows are stored as bytes.
std::optional<Tensor> InBytes::rows(Graph& dst, const Node& n) const {
  if (!is(n, builtin::gather()) || n.attributes.integer("axis") != 0 || !n.in[0].view.identity()) return std::nullopt;
  const Node* p = parameter_of(dst, n.in[0]);
  if (!p || !rows_.contains(p->name) || !of_whole_rows(n.in[1])) return std::nullopt;
  const Tensor ids(dst, n.in[1]), row = ids.slice(1, 0, 1);
  const auto rows_of = [&](const Tensor& t) { return gather(t, row.expand({ids.extent(0), t.extent(1)}), 0); };
  const Tensor w = cast(Tensor(dst, {n.in[0].node, View(dst[n.in[0].node].shape)}), DType::F32);
  if (options_.group) return cast(dequantize(rows_of(in_blocks(w, options_.group)), QuantFormat::Q8_0), n.dtype);
  const Quantised q = by_channel(w);
  return cast(mul(cast(rows_of(q.codes), DType::F32), rows_of(q.scale).expand(ids.shape())), n.dtype);
}

Edge InBytes::emit(Graph& dst, NodeId was, Node n) {
  if (const auto r = rows(dst, n)) return ++log_.fired["embedding of bytes"], r->edge();
  const NodeId id = dst.add(std::move(n));
  if (wanted_[was])
    if (const auto w = weighted(dst, id, names_)) return product(dst, *w).edge();
  return {id, View(dst[id].shape)};
}

Graph InBytes::run() {
  return copy_graph(g_, [&](Graph& dst, NodeId was, Node n) { return emit(dst, was, std::move(n)); });
}

}  // namespace

Compiler int8(Int8Options options) {
  if (options.group != 0 && options.group != 32 && options.group != 64 && options.group != 128)
    throw Error("int8",
                str_cat("groups of ", options.group, ": 32, 64 or 128 weights share a scale, or with 0 a channel"));
  Pass p;
  p.name = "int8";
  p.redefines = true;
  p.run = [options = std::move(options)](const Graph& g, PassLog& log) {
    const Graph written_out = inline_transparent(g, log, builtin::attention());
    return InBytes(written_out, options, log).run();
  };
  return Compiler(std::move(p));
}

Calibration::Calibration(const Graph& given) {
  PassLog log;
  const Graph g = inline_transparent(given, log, builtin::attention());
  const auto names = names_of_parameters(g);
  const std::vector<bool> attention = lowering::inside_attention(g);
  std::vector<std::pair<std::string, Edge>> seen;
  graph_ = copy_graph(g, [&](Graph& dst, NodeId was, Node n) {
    const NodeId id = dst.add(std::move(n));
    const auto w = attention[was] ? std::nullopt : weighted(dst, id, names);
    if (w && !is_filter(dst, *w)) {
      Tensor x = absolute(lowering::aligned(dst, w->factors, 1 - w->side)->small);
      while (x.rank() > 1) x = max_reduce(x, 0);
      seen.push_back({w->parameter, contiguous(x).edge()});
    }
    return Edge{id, View(dst[id].shape)};
  });
  if (seen.empty())
    throw Error("Calibration", "no product has a parameter for a factor: there is nothing to calibrate");
  for (std::size_t k = 0; k < seen.size(); ++k) {
    outputs_.push_back({str_cat("range ", k, " of ", seen[k].first), seen[k].first});
    graph_.root(outputs_.back().first, seen[k].second);
  }
}

// Values that are not finite are skipped.
void Calibration::widen(const std::string& parameter, const std::vector<float>& found) {
  std::vector<float>& all = ranges_[parameter];
  all.resize(std::max(all.size(), found.size()));
  for (std::size_t k = 0; k < found.size(); ++k)
    if (std::isfinite(found[k])) all[k] = std::max(all[k], found[k]);
}

ActivationRanges Calibration::ranges() const {
  if (ranges_.empty()) throw Error("Calibration", "nothing was run yet: add() a context that has run graph()");
  return ranges_;
}

}  // namespace lc
