#include "lightcone/models/seq2seq/seq2seq_model.h"

#include <cmath>
#include <limits>

#include "lightcone/models/blocks/activation.h"
#include "lightcone/models/blocks/positions/relative_bias.h"
#include "lightcone/ops/creation.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc {
namespace {

// The sines and cosines of positions, i64 [...] -> [..., width]: all sines stand before all cosines.
Tensor sines(const Tensor& positions, std::int64_t width, double steps) {
  Graph& g = positions.graph();
  const Tensor wave = g.index({width / 2}, Dim::index(0, width / 2), DType::F64);
  const Tensor angle = prim::cast(positions, DType::F64).unsqueeze(-1) * exp2(wave * (-std::log2(1e4) / steps));
  return prim::cast(cat({sin(angle), cos(angle)}, -1), DType::F32);
}

}  // namespace

Seq2SeqModel::Stack::Stack(const Seq2SeqConfig& c, const Seq2SeqStack& s, Seq2SeqPart part, bool decoder)
    : positions(s.length + c.first_position, c.width), embedding_norm(c), norm(c) {
  for (std::int64_t i = 0; i < s.layers; ++i)
    layers.emplace_back(c, s, part, decoder, c.knows_distances() && (i == 0 || c.bias_each_layer));
}

Seq2SeqModel::Seq2SeqModel(Seq2SeqConfig c, Seq2SeqPart part)
    : c_(std::move(c)),
      part_(part),
      tokens_(c_.vocab, c_.width),
      target_tokens_(c_.vocab, c_.width),
      conv1_(std::max<std::int64_t>(c_.mels, 1), c_.width, 3, {.padding = {1}}),
      conv2_(c_.width, c_.width, 3, {.stride = {2}, .padding = {1}}),
      encoder_(c_, c_.encoder, part, false),
      decoder_(c_, c_.has_decoder ? c_.decoder : Seq2SeqStack{.heads = 1}, part, true),
      head_(c_.width, c_.vocab, {.bias = false}) {}

void Seq2SeqModel::visit(nn::Visitor& v) {
  const auto stack = [&](const std::string& name, const Seq2SeqStack& s, Stack& to) {
    if (s.positions == PositionKind::Table) v(name + ".positions", to.positions);
    if (c_.embedding_norm) v(name + ".embedding_norm", to.embedding_norm);
    if (c_.final_norm) v(name + ".norm", to.norm);
  };
  const bool encodes = part_ != Seq2SeqPart::Decoder, decodes = part_ != Seq2SeqPart::Encoder && c_.has_decoder;
  const bool target_table = decodes && c_.own_target_table;
  if ((encodes && !c_.hears()) || (decodes && !target_table)) v("tokens", tokens_);
  if (target_table) v("decoder.tokens", target_tokens_);
  if (encodes) {
    if (c_.hears()) v("encoder.conv1", conv1_)("encoder.conv2", conv2_);
    stack("encoder", c_.encoder, encoder_);
    v("encoder.layers", encoder_.layers);
  }
  v("decoder.layers", decoder_.layers);
  if (!decodes) return;
  stack("decoder", c_.decoder, decoder_);
  if (!c_.predicts_words) return;
  if (!c_.tied) v("head", head_);
  if (c_.logits_bias) v.parameter("logits_bias", logits_bias_, {1, c_.vocab}, nn::constant_init(0));
}

// The positions `past`, past + 1, ... as they are added to n embeddings: [n, width] or, where padding has none,
// [batch, n, width].
Tensor Seq2SeqModel::positions(const Tensor& ids, const Dim& n, const Seq2SeqStack& s, const Stack& stack,
                               const Dim& past) const {
  Graph& g = ids.graph();
  if (c_.count_tokens) {
    const Tensor counted = to(ne(ids, c_.padding), DType::I64);
    const Tensor place = (cumsum(counted, 1) + g.index({1}, past)) * counted + c_.padding;
    return sines(place, c_.width, c_.sine_steps) * prim::cast(counted, DType::F32).unsqueeze(-1);
  }
  const Tensor place = g.index({n}, past + c_.first_position + Dim::index(0, n));
  return s.positions == PositionKind::Table ? stack.positions(place) : sines(place, c_.width, c_.sine_steps);
}

Tensor Seq2SeqModel::embed(const Tensor& ids, const nn::Embedding<>& table, const Seq2SeqStack& s, const Stack& stack,
                           const Dim& past) const {
  Tensor x = table(ids);
  if (c_.embedding_scale != 1) x = x * c_.embedding_scale;
  if (!c_.knows_distances()) x = x + positions(ids, ids.extent(1), s, stack, past);
  return c_.embedding_norm ? stack.embedding_norm(x) : x;
}

Tensor Seq2SeqModel::listen(const Tensor& spectrogram) const {
  const Tensor x = gelu(conv2_(gelu(conv1_(spectrogram)))).permute({0, 2, 1});
  return x + positions(x, x.extent(1), c_.encoder, encoder_, 0);
}

// For the scores of an encoder with padding: bool [batch, 1, 1, length], or -infinity added where padding is.
Tensor Seq2SeqModel::encoder_mask(const Tensor& mask, const Seq2SeqLayer& layer, const Dim& length) const {
  Tensor seen = mask.defined() ? ne(mask, 0).unsqueeze(1).unsqueeze(1) : Tensor();
  if (!c_.knows_distances()) return seen;
  const Tensor bias = relative_bias(layer.distance_table(),
                                    {.buckets = c_.buckets, .most_distance = c_.most_distance, .both_directions = true},
                                    length, length, 0);
  return seen.defined() ? where(seen, bias, -std::numeric_limits<double>::infinity()) : bias;
}

Tensor Seq2SeqModel::encode(const Tensor& source, const Tensor& mask) const {
  Tensor x = c_.hears() ? listen(source) : embed(source, tokens_, c_.encoder, encoder_, 0);
  Tensor seen;
  for (const Seq2SeqLayer& layer : encoder_.layers) {
    if (!seen.defined() || c_.bias_each_layer) seen = encoder_mask(mask, layer, x.extent(1));
    x = layer(x, {.mask = seen});
  }
  return c_.final_norm ? encoder_.norm(x) : x;
}

std::vector<KeysValues> Seq2SeqModel::cross(const Tensor& encoder_hidden) const {
  std::vector<KeysValues> all;
  for (const Seq2SeqLayer& layer : decoder_.layers) all.push_back(layer.cross(encoder_hidden));
  return all;
}

// For the scores [n, past + n] of a decoder: true up to the own position, or -infinity added behind it.
Tensor Seq2SeqModel::decoder_mask(const Dim& n, const Dim& past, const Seq2SeqLayer& layer) const {
  Graph& g = target_table().weight.graph();
  const Shape shape{n, past + n};
  const Tensor seen = g.index(shape, Dim::index(1, past + n)) <= g.index(shape, past + Dim::index(0, n));
  if (!c_.knows_distances()) return seen;
  const Tensor bias = relative_bias(layer.distance_table(), {.buckets = c_.buckets, .most_distance = c_.most_distance},
                                    n, past + n, past);
  return where(seen, bias, -std::numeric_limits<double>::infinity());
}

Tensor Seq2SeqModel::decode(const Tensor& ids, const Known& known) const {
  Tensor x = embed(ids, target_table(), c_.decoder, decoder_, known.past), mask;
  const Tensor seen = known.source_mask.defined() ? ne(known.source_mask, 0).unsqueeze(1).unsqueeze(1) : Tensor();
  for (std::size_t i = 0; i < decoder_.layers.size(); ++i) {
    const Seq2SeqLayer& layer = decoder_.layers[i];
    if (!mask.defined() || c_.bias_each_layer) mask = decoder_mask(ids.extent(1), known.past, layer);
    Seq2SeqLayer::Sight sight{.mask = mask, .cross = known.cross[i], .cross_mask = seen};
    if (known.remember)
      sight.remember = [&](const KeysValues& now) { return known.remember(static_cast<int>(i), now); };
    Tensor weights;
    if (known.cross_weights) sight.cross_weights = &weights;
    x = layer(x, sight);
    if (known.cross_weights) known.cross_weights->push_back(weights);
  }
  return c_.final_norm ? decoder_.norm(x) : x;
}

Tensor Seq2SeqModel::logits(const Tensor& decoder_hidden) const {
  const Tensor x = c_.logits_scale == 1 ? decoder_hidden : decoder_hidden * c_.logits_scale;
  const Tensor y = c_.tied ? linear(x, target_table().weight) : head_(x);
  return c_.logits_bias ? y + logits_bias_.squeeze(0) : y;
}

LoadedModel load_seq2seq(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  Seq2SeqConfig c = Seq2SeqConfig::from(config);
  c.complete(w, config);
  LoadedModel m(c.type, WeightTable(w, seq2seq_prefixes(), seq2seq_weight_names(c)));
  m.architecture = c.architecture, m.padding = c.padding;
  m.limits = {{"batch", o.batch}};
  const Seq2SeqModel& model = m.add(Seq2SeqModel(c));
  m.weights.require_all_used(str_cat("a ", c.architecture));
  const Dim batch = Dim::symbol("batch", 1, o.batch);
  Tensor source, mask;
  if (c.hears()) {
    source = m.inputs["input_features"] = m.graph().input("input_features", {batch, c.mels, 2 * c.encoder.length});
  } else {
    const Shape shape{batch, Dim::symbol("length", 1, c.encoder.length)};
    m.limits["length"] = c.encoder.length;
    source = m.inputs["input_ids"] = m.graph().input("input_ids", shape, DType::I64);
    mask = m.inputs["attention_mask"] = m.graph().input("attention_mask", shape, DType::I64);
  }
  const Tensor hidden = model.encode(source, mask);
  m.give("encoder_hidden", hidden);
  if (c.has_decoder) {
    m.limits["target"] = c.decoder.length;
    const Tensor ids = m.inputs["decoder_input_ids"] =
        m.graph().input("decoder_input_ids", {batch, Dim::symbol("target", 1, c.decoder.length)}, DType::I64);
    const Tensor decoded = model.decode(ids, {.cross = model.cross(hidden), .source_mask = mask});
    m.give("decoder_hidden", decoded);
    if (c.predicts_words) m.give("logits", model.logits(decoded));
  }
  m.retrieve(o);
  return m;
}

}  // namespace lc
