// Loops over steps: LSTM, GRU, RNN and linear attention.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "lightcone/onnx/parts/quantized.h"
#include "lightcone/onnx/read/call.h"
#include "lightcone/ops/loop.h"

namespace lc::onnx {
namespace {

// ---- activations ----------------------------------------------------------------------------------

using CellFunction = std::function<Tensor(const Tensor&)>;

Tensor zero_like(const Tensor& x) { return zeros_like(x); }

// An activation and whether it takes an alpha and a beta, with their defaults. NaN: there is none.
struct Activation {
  std::string_view name;  // lower case
  bool has_alpha, has_beta;
  double alpha, beta;
  Tensor (*f)(const Tensor& x, double alpha, double beta);
};
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
const Activation kActivations[] = {
    {"relu", false, false, 0, 0, [](const Tensor& x, double, double) { return relu(x); }},
    {"tanh", false, false, 0, 0, [](const Tensor& x, double, double) { return tanh(x); }},
    {"sigmoid", false, false, 0, 0, [](const Tensor& x, double, double) { return sigmoid(x); }},
    {"affine", true, true, kNone, kNone, [](const Tensor& x, double a, double b) { return x * a + b; }},
    {"leakyrelu", true, false, 0.01, 0, [](const Tensor& x, double a, double) { return leaky_relu(x, a); }},
    {"thresholdedrelu", true, false, 1, 0,
     [](const Tensor& x, double a, double) { return where(x >= a, x, zero_like(x)); }},
    {"scaledtanh", true, true, kNone, kNone, [](const Tensor& x, double a, double b) { return tanh(x * b) * a; }},
    {"hardsigmoid", true, true, 0.2, 0.5,
     [](const Tensor& x, double a, double b) { return clamp(x * a + b, 0.0, 1.0); }},
    {"elu", true, false, 1, 0, [](const Tensor& x, double a, double) { return elu(x, a); }},
    {"softsign", false, false, 0, 0, [](const Tensor& x, double, double) { return softsign(x); }},
    {"softplus", false, false, 0, 0,
     [](const Tensor& x, double, double) { return maximum(x, zero_like(x)) + log1p(exp(-abs(x))); }},
};

// The functions of all directions. Those that take an alpha or a beta have the next number of the node's lists.
std::vector<CellFunction> activations_of(Call& c, std::vector<std::string_view> otherwise, std::size_t directions) {
  std::vector<std::string_view> names = c.texts("activations");
  const std::size_t each = otherwise.size();
  for (std::size_t k = names.empty() ? 0 : directions; k < directions; ++k)
    names.insert(names.end(), otherwise.begin(), otherwise.end());
  if (names.size() != each * directions) c.refuse(str_cat("has ", names.size(), " activations"));
  const std::vector<double> alphas = c.numbers("activation_alpha"), betas = c.numbers("activation_beta");
  std::size_t a = 0, b = 0;
  std::vector<CellFunction> r;
  for (const std::string_view name : names) {
    std::string lower(name);
    for (char& l : lower) l = l >= 'A' && l <= 'Z' ? static_cast<char>(l - 'A' + 'a') : l;
    const auto* const f = std::ranges::find(kActivations, lower, &Activation::name);
    if (f == std::end(kActivations)) c.refuse("has an activation that ONNX does not");
    const double alpha = f->has_alpha && a < alphas.size() ? alphas[a++] : f->alpha,
                 beta = f->has_beta && b < betas.size() ? betas[b++] : f->beta;
    if (std::isnan(alpha) || std::isnan(beta)) c.refuse(str_cat("gives its activation ", f->name, " no alpha or beta"));
    r.push_back([f, alpha, beta](const Tensor& x) { return f->f(x, alpha, beta); });
  }
  return r;
}

// ---- one direction --------------------------------------------------------------------------------

// The weights of one direction, in the order of the file's gates; undefined ones are absent.
struct CellWeights {
  Tensor input, hidden;              // [gates h, in], [gates h, h]
  CellFunction of_input, of_hidden;  // the products with them, if not linear()
  Tensor input_bias, hidden_bias;    // [gates h]
  Tensor peepholes;                  // [3 h]: of gates i, o and f
  std::vector<CellFunction> f;       // activations
  double clip = 0;                   // the bound of what activations are given; 0: none
  bool input_forgets = false;        // the forget gate is 1 - the input gate
  bool linear_before_reset = false;
  Dim size = 0;  // h
};
using CellState = std::vector<Tensor>;
// The next states from those before and W x of this step.
using CellStep = CellState (*)(const CellWeights& w, const Tensor& x, const CellState& s);

Tensor clipped(const CellWeights& w, const Tensor& x) { return w.clip > 0 ? clamp(x, -w.clip, w.clip) : x; }
Tensor gate_of(const CellWeights& w, const Tensor& t, int k) { return narrow(t, -1, Dim(k) * w.size, w.size); }

CellState rnn_step(const CellWeights& w, const Tensor& x, const CellState& s) {
  return {w.f[0](clipped(w, x + linear(s[0], w.hidden)))};
}

CellState lstm_step(const CellWeights& w, const Tensor& x, const CellState& s) {  // gates i, o, f, c
  const Tensor all = x + (w.of_hidden ? w.of_hidden(s[0]) : linear(s[0], w.hidden)), before = s[1];
  const auto of = [&](int k, int peephole, const Tensor& cell) {
    const Tensor t = gate_of(w, all, k);
    return clipped(w, w.peepholes.defined() && peephole >= 0 ? t + gate_of(w, w.peepholes, peephole) * cell : t);
  };
  const Tensor i = w.f[0](of(0, 0, before)), f = w.input_forgets ? 1.0 - i : w.f[0](of(2, 2, before));
  const Tensor cell = f * before + i * w.f[1](of(3, -1, before));
  return {w.f[0](of(1, 1, cell)) * w.f[2](cell), cell};
}

CellState gru_step(const CellWeights& w, const Tensor& x, const CellState& s) {  // gates z, r, h
  const Tensor h = s[0];
  const auto rows = [&](const Tensor& t, int first, int count) {
    return narrow(t, 0, Dim(first) * w.size, Dim(count) * w.size);
  };
  Tensor z, r, from_hidden;
  if (w.linear_before_reset) {
    const Tensor all = w.hidden_bias.defined() ? linear(h, w.hidden, w.hidden_bias) : linear(h, w.hidden);
    z = w.f[0](clipped(w, gate_of(w, x, 0) + gate_of(w, all, 0)));
    r = w.f[0](clipped(w, gate_of(w, x, 1) + gate_of(w, all, 1)));
    from_hidden = r * gate_of(w, all, 2);
  } else {
    const Tensor both = linear(h, rows(w.hidden, 0, 2));
    z = w.f[0](clipped(w, gate_of(w, x, 0) + gate_of(w, both, 0)));
    r = w.f[0](clipped(w, gate_of(w, x, 1) + gate_of(w, both, 1)));
    from_hidden = linear(r * h, rows(w.hidden, 2, 1));
  }
  const Tensor n = w.f[1](clipped(w, gate_of(w, x, 2) + from_hidden));
  return {(1.0 - z) * n + z * h};
}

// W x + the biases for all steps at once. A bias that a gate multiplies is left to the step.
Tensor of_inputs(const Tensor& x, const CellWeights& w) {
  const Tensor bias = w.linear_before_reset || !w.input_bias.defined() ? w.input_bias : w.input_bias + w.hidden_bias;
  if (w.of_input) return bias.defined() ? w.of_input(x) + bias : w.of_input(x);
  return bias.defined() ? linear(x, w.input, bias) : linear(x, w.input);
}

struct Ran {
  Tensor y;        // [steps, batch, h]
  CellState last;  // [batch, h] each
};
// Runs over x [steps, batch, in]. `inside`, bool [steps, batch, 1] or undefined, is false after the end of a sequence:
// there states stay and results are 0.
Ran run_cell(CellStep step, const CellWeights& w, const Tensor& x, const CellState& initial, const Tensor& inside,
             bool reverse) {
  std::vector<Tensor> xs{of_inputs(x, w)};
  if (inside.defined()) xs.push_back(inside);
  const Scanned r = scan(
      [&](const CellState& s, const std::vector<Tensor>& now) {
        CellState next = step(w, now[0], s);
        if (now.size() == 1) return Scanned{next, {next[0]}};
        const Tensor y = where(now[1], next[0], 0.0);
        for (std::size_t k = 0; k < next.size(); ++k) next[k] = where(now[1], next[k], s[k]);
        return Scanned{next, {y}};
      },
      initial, xs, {.reverse = reverse});
  return {r.ys[0], r.state};
}

// ---- the operators --------------------------------------------------------------------------------

struct CellKind {
  int gates;
  std::vector<std::string_view> activations;  // the defaults
  CellStep step;
  bool has_cell = false;
  bool quantized = false;  // weights are bytes, and what they multiply is rounded to bytes at each product
};

Tensor cell_input(const Tensor& t) {
  return t.dtype() == DType::F16 || t.dtype() == DType::BF16 ? t.to(DType::F32) : t;
}

// The product with weights w [in, n] of bytes, whose scale and zero point are operands k and k + 1: [directions] or
// [directions, n]. All numbers that they multiply are rounded to 256 steps between their least and their largest value.
// Products are summed in f32, because a step has few rows, for which a loop packs no bytes.
CellFunction byte_linear(Call& c, const Tensor& w, std::size_t k, std::int64_t d) {
  const Tensor scale = c.x(k).select(0, d);
  Tensor centred = prim::cast(w, DType::F32);
  if (c.optional(k + 1).defined() && !known_zero(c, c.x(k + 1)))
    centred = centred - prim::cast(c.x(k + 1).select(0, d), DType::F32);
  return [&c, centred, scale](const Tensor& x) {
    const DynamicBytes a = dynamic_bytes(c, x);
    const Tensor steps = prim::cast(a.codes, DType::F32) - prim::cast(a.zero, DType::F32);
    return matmul(steps, centred) * (a.scale * scale);
  };
}

// Reads the weights of direction d: of W [directions, gates h, in], R [directions, gates h, h], B [directions, 2 gates
// h] and P [directions, 3 h].
CellWeights weights_of(Call& c, const CellKind& kind, std::int64_t d, const Dim& size) {
  const auto part = [&](std::size_t k) { return cell_input(c.x(k)).select(0, d); };
  CellWeights w;
  w.size = size;
  const Dim rows = Dim(kind.gates) * size;
  w.input = part(1), w.hidden = part(2);
  if (kind.quantized) {
    w.of_input = byte_linear(c, w.input, 8, d), w.of_hidden = byte_linear(c, w.hidden, 10, d);
    w.input = w.input.transpose(0, 1), w.hidden = w.hidden.transpose(0, 1);
  }
  if (!(w.input.extent(0) == rows) || !(w.hidden.extent(0) == rows) || !(w.hidden.extent(1) == size))
    c.refuse(str_cat("its weights ", str(c.x(1).shape()), " and ", str(c.x(2).shape()), " are not those of ",
                     kind.gates, " gates"));
  if (c.optional(3).defined()) {
    w.input_bias = narrow(part(3), 0, 0, rows);
    w.hidden_bias = narrow(part(3), 0, rows, rows);
  }
  if (kind.has_cell && c.optional(7).defined()) w.peepholes = part(7);
  return w;
}

Tensor before_end(Call& c, const Tensor& x) {  // bool [steps, batch, 1], undefined if all sequences are whole
  const Tensor lengths = c.optional(4);
  if (!lengths.defined()) return {};
  if (const auto known = c.known(4);
      known && std::ranges::all_of(*known, [&](const Dim& n) { return n == x.extent(0); }))
    return {};
  const Tensor steps = x.graph().index({x.extent(0), 1}, Dim::index(0, x.extent(0)), lengths.dtype());
  const auto both = broadcast(c, {steps, lengths.unsqueeze(0)});
  return lt(both[0], both[1]).unsqueeze(-1);
}

Values recurrent(Call& c, const CellKind& kind) {
  const DType type = c.x(0).dtype();
  const std::string_view direction = c.text("direction", "forward");
  const bool both = direction == "bidirectional", batch_first = c.flag("layout");
  if (!both && direction != "forward" && direction != "reverse") c.refuse("its direction is none that ONNX has");
  const std::size_t directions = both ? 2 : 1;
  Tensor x = cell_input(c.x(0));
  if (x.rank() != 3 || c.x(1).rank() != 3 || c.x(2).rank() != 3) c.refuse("needs operands with 3 axes");
  if (batch_first) x = x.transpose(0, 1);
  fixed(c, x.extent(0), "the number of steps");
  if (!(c.x(1).extent(0) == Dim(static_cast<std::int64_t>(directions))) || !(c.x(2).extent(0) == c.x(1).extent(0)))
    c.refuse(str_cat("its weights ", str(c.x(1).shape()), " are not those of ", directions, " directions"));
  const int in = kind.quantized ? 1 : 2;  // the axis of W and R that the product sums over
  const Dim size = c.x(2).extent(in), batch = x.extent(1);
  if (c.has_attribute("hidden_size") && !(size == Dim(c.integer("hidden_size"))))
    c.refuse("its hidden_size is not that of its weights");
  c.importer.same_extent(x.extent(2), c.x(1).extent(in));
  c.ignore("output_sequence");  // operator set 1: whether Y is wanted
  const std::vector<CellFunction> f = activations_of(c, kind.activations, directions);
  const double clip = c.number("clip", 0);
  const bool input_forgets = kind.has_cell && c.flag("input_forget");
  const bool linear_before_reset = kind.gates == 3 && c.flag("linear_before_reset");
  const Tensor inside = before_end(c, x);
  std::vector<Tensor> ys, hs, cells;
  for (std::size_t d = 0; d < directions; ++d) {
    const auto index = static_cast<std::int64_t>(d);
    CellWeights w = weights_of(c, kind, index, size);
    const auto each = static_cast<std::ptrdiff_t>(kind.activations.size()),
               first = each * static_cast<std::ptrdiff_t>(d);
    w.f.assign(f.begin() + first, f.begin() + first + each);
    w.clip = clip, w.input_forgets = input_forgets, w.linear_before_reset = linear_before_reset;
    CellState initial;
    for (std::size_t k = 5; k < (kind.has_cell ? 7 : 6); ++k) {
      const Tensor given = c.optional(k);
      const Tensor s = given.defined() ? cell_input(given).select(batch_first ? 1 : 0, index)
                                       : full(x.graph(), {batch, size}, 0, x.dtype());
      initial.push_back(expand_to(c, s, {batch, size}));
    }
    const Ran r = run_cell(kind.step, w, x, initial, inside, d == 1 || direction == "reverse");
    ys.push_back(r.y), hs.push_back(r.last[0]);
    if (kind.has_cell) cells.push_back(r.last[1]);
  }
  Tensor y = stack(ys, 1).to(type);  // [steps, directions, batch, h]
  if (batch_first) y = y.permute({2, 0, 1, 3});
  const auto states = [&](const std::vector<Tensor>& all) { return stack(all, batch_first ? 1 : 0).to(type); };
  Values r{y, states(hs)};
  if (kind.has_cell) r.push_back(states(cells));
  return r;
}

Values lstm(Call& c) { return recurrent(c, {4, {"Sigmoid", "Tanh", "Tanh"}, lstm_step, true}); }
Values dynamic_quantize_lstm(Call& c) { return recurrent(c, {4, {"Sigmoid", "Tanh", "Tanh"}, lstm_step, true, true}); }
Values gru(Call& c) { return recurrent(c, {3, {"Sigmoid", "Tanh"}, gru_step}); }
Values rnn(Call& c) { return recurrent(c, {1, {"Tanh"}, rnn_step}); }

// ---- linear attention ---------------------------------------------------------------------------------

// For each step, with one state [dk, dv] for each head of keys: S = exp(decay) S + k (v - S^T k, times beta), read by
// queries as q^T S.
Values linear_attention(Call& c) {
  const std::string_view rule = c.text("update_rule", "gated_delta");
  const bool decays = rule == "gated" || rule == "gated_delta", corrects = rule == "delta" || rule == "gated_delta";
  if (!decays && !corrects && rule != "linear") c.refuse("its update_rule is none that ONNX has");
  if (decays != c.has(4) || corrects != c.has(5)) c.refuse("its decay and beta are not those of its update_rule");
  const Tensor q = c.x(0), k = c.x(1), v = c.x(2), past = c.optional(3);
  if (q.rank() != 3 || k.rank() != 3 || v.rank() != 3) c.refuse("needs [batch, steps, heads * size]");
  const std::int64_t heads = c.integer("kv_num_heads"), readers = c.integer("q_num_heads");
  if (heads < 1 || readers < heads || readers % heads != 0)
    c.refuse(str_cat("has ", readers, " heads of queries and ", heads, " of keys"));
  c.ignore("chunk_size");
  const Dim batch = q.extent(0), steps = fixed(c, q.extent(1), "the number of steps");
  const Dim dk = q.extent(2) / Dim(readers), dv = v.extent(2) / Dim(heads);
  for (const Tensor& t : {k, v}) c.importer.same_extent(t.extent(0), batch), c.importer.same_extent(t.extent(1), steps);
  c.importer.same_extent(k.extent(2), dk * Dim(heads));
  const double given = c.number("scale", 0);
  const double scale = given != 0 ? given : 1 / std::sqrt(static_cast<double>(fixed(c, dk, "the size of a head")));
  // [batch, steps, n] -> [steps, batch, heads, rows, columns]
  const auto split = [&](const Tensor& t, const Dim& h, const Dim& rows, const Dim& columns) {
    return t.to(DType::F32).reshape({batch, steps, h, rows, columns}).permute({1, 0, 2, 3, 4});
  };
  std::vector<Tensor> xs{split(q, heads, readers / heads, dk), split(k, heads, 1, dk), split(v, heads, 1, dv)};
  if (decays) xs.push_back(exp(split(c.x(4), heads, c.x(4).extent(2) / Dim(heads), 1)));
  if (corrects) xs.push_back(split(c.x(5), c.x(5).extent(2), 1, 1));
  const Tensor first = past.defined() ? past.to(DType::F32) : full(q.graph(), {batch, heads, dk, dv}, 0);
  const Scanned r = scan(
      [&](const CellState& s, const std::vector<Tensor>& x) {
        Tensor state = decays ? s[0] * x[3] : s[0], value = x[2];
        if (corrects) value = (value - matmul(x[1], state)) * x.back();
        state = state + x[1].transpose(2, 3) * value;
        return Scanned{{state}, {matmul(x[0], state) * scale}};
      },
      {first}, xs);
  const Tensor y = r.ys[0].permute({1, 0, 2, 3, 4}).reshape({batch, steps, Dim(readers) * dv});
  return {y.to(q.dtype()), r.state[0].to(past.defined() ? past.dtype() : q.dtype())};
}

}  // namespace

void add_recurrent(Operators& t) {
  const Operator rows[] = {
      {"", "GRU", 1, gru, "scan; the products with the input are one for all steps"},
      {"", "LSTM", 1, lstm, "scan; the products with the input are one for all steps"},
      {"", "LinearAttention", 27, linear_attention, "scan"},
      {"", "RNN", 1, rnn, "scan; the products with the input are one for all steps"},
      {kMicrosoft, "DynamicQuantizeLSTM", 1, dynamic_quantize_lstm,
       "scan; what is multiplied is rounded to bytes, and summed in f32"},
  };
  t.insert(t.end(), std::begin(rows), std::end(rows));
}

}  // namespace lc::onnx
