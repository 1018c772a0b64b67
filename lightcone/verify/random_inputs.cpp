// Draws numbers for the symbols of a graph and values for its inputs.
#include <algorithm>
#include <cmath>
#include <random>

#include "lightcone/composites/composites.h"
#include "lightcone/formats/block_formats.h"
#include "lightcone/verify/random_graph.h"

namespace lc {
namespace {

// Requirements that the graph puts on an input's values.
struct Use {
  double scale = 1;         // keeps sums of products near one
  bool positive = false;    // argument of a root or a logarithm
  std::int64_t places = 0;  // number of valid values of an index
  int format = -1;          // a QuantFormat if the input holds its blocks
};

class Uses {
 public:
  Uses(const Graph& g, const Bindings& env) : g_(g), env_(env), uses_(g.size()) {
    const auto live = g.live();
    for (NodeId id = 0; id < g.size(); ++id)
      if (live[id]) look_at(g[id]);
  }
  const Use& operator[](NodeId id) const { return uses_[id]; }

 private:
  static constexpr NodeId kNone = static_cast<NodeId>(-1);
  bool constant(NodeId id) const {
    while (g_[id].op == Op::Contiguous) id = g_[id].in[0].node;
    return g_[id].op == Op::Constant;
  }
  // Follows an edge to its input through views, casts and block formats, optionally through sums with constants.
  NodeId input_of(NodeId id, bool through_sums = false) {
    for (;;) {
      const Node& n = g_[id];
      if (n.op == Op::Input) return id;
      if (n.op == Op::Contiguous || is(n, builtin::dequantize())) id = n.in[0].node;
      else if (through_sums && n.op == Op::Add && constant(n.in[1].node)) id = n.in[0].node;
      else if (through_sums && n.op == Op::Add && constant(n.in[0].node)) id = n.in[1].node;
      else return kNone;
    }
  }
  void look_at(const Node& n) {
    if (n.op == Op::Sqrt || n.op == Op::Log2) {
      if (const NodeId in = input_of(n.in[0].node, true); in != kNone) uses_[in].positive = true;
    } else if (is(n, builtin::gather()) || is(n, builtin::scatter()) || is(n, builtin::scatter_add())) {
      const NodeId in = input_of(n.in[1].node);
      const auto axis = static_cast<std::size_t>(n.attributes.integer("axis"));
      const auto places = numbers(n.in[0].view.shape(), env_)[axis];
      if (in != kNone) uses_[in].places = places;
    } else if (is(n, builtin::gather_mm())) {
      const NodeId index = input_of(n.in[2].node), matrices = input_of(n.in[1].node);
      if (index != kNone) uses_[index].places = numbers(n.in[1].view.shape(), env_)[0];
      if (matrices != kNone) uses_[matrices].format = static_cast<int>(n.attributes.integer("format"));
    } else if (is(n, builtin::dequantize())) {
      NodeId blocks = n.in[0].node;
      while (is(g_[blocks], builtin::gather())) blocks = g_[blocks].in[0].node;  // rows of an embedding
      if (const NodeId in = input_of(blocks); in != kNone)
        uses_[in].format = static_cast<int>(n.attributes.integer("format"));
    } else if (n.op == Op::SumReduce && g_[n.in[0].node].op == Op::Mul) {
      const auto terms = numbers(n.in[0].view.shape(), env_)[n.axis];
      scale_factors(g_[n.in[0].node], static_cast<double>(std::max<std::int64_t>(1, terms)));
    }
  }
  // A sum of n products of numbers near one is about the root of n. Scales a parameter if there is one, else every
  // factor that is an input.
  void scale_factors(const Node& product, double terms) {
    const NodeId a = input_of(product.in[0].node), b = input_of(product.in[1].node);
    if (a == b) return;
    const auto parameter = [&](NodeId id) { return id != kNone && g_[id].parameter; };
    const auto shrink = [&](NodeId id, double power) {
      if (id != kNone) uses_[id].scale = std::min(uses_[id].scale, std::pow(terms, -power));
    };
    if (a != kNone && b != kNone && parameter(a) == parameter(b)) return shrink(a, 0.25), shrink(b, 0.25);
    if (a != kNone && b != kNone) return shrink(parameter(a) ? a : b, 0.5);
    shrink(a, 0.5), shrink(b, 0.5);
  }

  const Graph& g_;
  const Bindings& env_;
  std::vector<Use> uses_;
};

// Fills blocks with random codes and scales that give the weights the wanted size.
void fill_blocks(Value& v, QuantFormat format, double scale, std::mt19937_64& random) {
  const QuantInfo& q = info(format);
  for (auto& byte : v.i) byte = static_cast<std::int64_t>(random() % 256);
  const auto bytes = static_cast<std::size_t>(q.bytes);
  for (std::size_t block = 0; block + bytes <= v.i.size(); block += bytes) {
    const auto put = [&](int at, int byte) { v.i[block + static_cast<std::size_t>(at)] = byte; };
    put_quant_scales(format, 1, put);
    double squares = 0;
    for (int k = 0; k < q.elements; ++k) {
      const auto byte = [&](std::int64_t at) { return static_cast<int>(v.i[block + static_cast<std::size_t>(at)]); };
      const auto w = static_cast<double>(quant_value(format, k, byte));
      squares += w * w;
    }
    put_quant_scales(format, scale / std::sqrt(std::max(1.0, squares / q.elements)), put);
  }
}

Value store_and_load(const Value& v) {  // rounds to the dtype, as on a device
  std::vector<std::byte> stored(v.size() * size_of(v.dtype));
  write_value(v, stored.data());
  return read_value(stored.data(), v.dtype, v.shape);
}

constexpr double kSpecial[] = {kNaN, kInf, -kInf, 0.0, -0.0, 1e30, -1e-30, 65504, 0.5, 1, -1, 2, 3};

// Returns a small integer or, if `any_bits`, sometimes an arbitrary bit pattern.
std::int64_t whole_number(DType t, std::mt19937_64& random, bool any_bits) {
  const std::int64_t lo = std::max<std::int64_t>(info(t).lowest, size_of(t) > 1 ? -4 : -128);
  if (any_bits && size_of(t) > 1 && random() % 16 == 0) {
    std::uint64_t raw = random();
    return load_i64(&raw, t, 0);
  }
  const std::int64_t range = size_of(t) > 1 ? 16 : info(t).highest - lo + 1;
  return lo + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(range));
}

}  // namespace

Bindings random_bindings(const Graph& g, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bindings env;
  const auto add = [&](const Shape& shape) {
    for (const Dim& d : shape)
      for (const auto& [name, b] : d.symbols())
        if (!env.contains(name))
          env[name] = b.lo + static_cast<std::int64_t>(
                                 random() % static_cast<std::uint64_t>(std::min<std::int64_t>(b.hi - b.lo + 1, 64)));
  };
  const auto add_view = [&](const View& v) {
    add(v.base());
    for (const Move& m : v.moves()) add(m.to), add(m.before);
  };
  for (NodeId id = 0; id < g.size(); ++id) {
    add(g[id].shape), add(extents(g[id].attributes));
    for (const Edge& e : g[id].in) add_view(e.view);
  }
  for (const Root& r : g.roots()) add_view(r.edge.view);
  for (const Assignment& a : g.assignments()) add_view(a.next.view);
  return env;
}

std::map<std::string, Value> random_inputs(const Graph& g, const Bindings& env, std::uint64_t seed, bool wild) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::map<std::string, Value> inputs;
  for (NodeId id = 0; id < g.size(); ++id) {
    const Node& n = g[id];
    if (n.op != Op::Input) continue;
    Value v = make_value(n.dtype, numbers(n.shape, env));
    const bool odd = wild && random() % 4 == 0;
    for (std::size_t k = 0; k < v.size(); ++k) {
      if (!is_float(n.dtype)) {
        v.i[k] = whole_number(n.dtype, random, true);
        continue;
      }
      v.f[k] = odd && random() % 6 == 0 ? kSpecial[random() % std::size(kSpecial)] : normal(random) * 2;
    }
    inputs[n.name] = store_and_load(v);
  }
  return inputs;
}

std::map<std::string, Value> fitting_inputs(const Graph& g, const Bindings& env, std::uint64_t seed, bool wild) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  const Uses uses(g, env);
  std::vector<NodeId> floats;
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].op == Op::Input && is_float(g[id].dtype)) floats.push_back(id);
  // special values only in a few inputs, or every output of a network would be NaN
  const std::uint64_t some = std::max<std::uint64_t>(4, floats.size() / 2);
  const NodeId surely = floats.empty() ? 0 : floats[random() % floats.size()];
  std::map<std::string, Value> inputs;
  for (NodeId id = 0; id < g.size(); ++id) {
    const Node& n = g[id];
    if (n.op != Op::Input) continue;
    const Use& use = uses[id];
    Value v = make_value(n.dtype, numbers(n.shape, env));
    for (auto& i : v.i)
      i = use.places > 0 ? static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(use.places))
                         : whole_number(n.dtype, random, false);
    for (auto& x : v.f) x = use.positive ? 0.25 + std::fabs(normal(random)) : normal(random) * use.scale;
    if (use.format >= 0) fill_blocks(v, static_cast<QuantFormat>(use.format), use.scale, random);
    if (wild && is_float(n.dtype) && (id == surely || random() % some == 0)) {
      const std::uint64_t one_in = std::max<std::uint64_t>(6, v.size() / 4);
      for (auto& x : v.f)
        if (random() % one_in == 0) x = kSpecial[random() % std::size(kSpecial)];
    }
    if (wild && use.places > 0)  // some indices out of range
      for (auto& i : v.i)
        if (random() % 16 == 0) i = whole_number(n.dtype, random, true);
    inputs[n.name] = store_and_load(v);
  }
  return inputs;
}

}  // namespace lc
