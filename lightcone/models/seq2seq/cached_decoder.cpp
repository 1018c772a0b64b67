#include "lightcone/models/seq2seq/cached_decoder.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "lightcone/models/seq2seq/seq2seq_model.h"
#include "lightcone/nn/attention.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"
#include "lightcone/runtime/nan.h"

namespace lc {
namespace {

std::string cross_name(std::size_t layer, const char* what) { return str_cat("cross.", layer, ".", what); }
std::string self_name(std::int64_t layer, const char* what) { return str_cat("self.", layer, ".", what); }

// One part of a model in a graph of its own, with its weights.
struct Part {
  Part(const Weights& w, const Seq2SeqConfig& c, Seq2SeqPart part)
      : loaded(c.type, table(w, c)), model(loaded.add(Seq2SeqModel(c, part))) {}
  static WeightTable table(const Weights& w, const Seq2SeqConfig& c) {
    WeightTable t(w, seq2seq_prefixes(), seq2seq_weight_names(c));
    if (!c.tied) t.also("tokens.weight", "head.weight");
    return t;
  }
  Graph& graph() { return loaded.graph(); }
  LoadedModel loaded;
  const Seq2SeqModel& model;
};

Program encoder_program(const Weights& w, const Seq2SeqConfig& c, const Seq2SeqShape& s, const Compiler& compiler) {
  Part p(w, c, Seq2SeqPart::Encoder);
  Graph& g = p.graph();
  const Tensor source = c.hears() ? g.input("input_features", {1, c.mels, 2 * s.source})
                                  : g.input("input_ids", {1, Dim::symbol("length", 1, s.source)}, DType::I64);
  const std::vector<KeysValues> cross = p.model.cross(p.model.encode(source));
  for (std::size_t i = 0; i < cross.size(); ++i) {
    cross[i].keys.retrieve(cross_name(i, "keys"));
    cross[i].values.retrieve(cross_name(i, "values"));
  }
  return p.loaded.program(compiler);
}

// The keys and values of each layer that the encoder's program made.
std::vector<KeysValues> cross_inputs(Graph& g, const Seq2SeqConfig& c, const Seq2SeqShape& s) {
  const Dim length = c.hears() ? Dim(s.source) : Dim::symbol("length", 1, s.source);
  const Shape shape{1, c.decoder.heads, length, c.head};
  std::vector<KeysValues> all;
  for (std::size_t i = 0; i < static_cast<std::size_t>(c.decoder.layers); ++i)
    all.push_back({g.input(cross_name(i, "keys"), shape), g.input(cross_name(i, "values"), shape)});
  return all;
}

Program watcher_program(const Weights& w, const Seq2SeqConfig& c, const Seq2SeqShape& s, const Compiler& compiler) {
  if (s.watched.empty()) return {};
  Part p(w, c, Seq2SeqPart::Decoder);
  Graph& g = p.graph();
  const Dim seq = Dim::symbol("seq", 2, s.context);
  const Tensor ids = g.input("ids", {1, seq}, DType::I64);
  std::vector<Tensor> weights, seen;
  const Tensor hidden = p.model.decode(ids, {.cross = cross_inputs(g, c, s), .cross_weights = &weights});
  for (const auto& [layer, head] : s.watched)
    seen.push_back(weights.at(static_cast<std::size_t>(layer)).squeeze(0).slice(0, head, head + 1).squeeze(0));
  stack(seen).retrieve("weights");
  // The logits at a position are for the next id; those of ids from `below` on do not count.
  const Tensor logits = p.model.logits(hidden).squeeze(0).slice(0, 0, seq - 1);
  const Tensor next = ids.squeeze(0).slice(0, 1, seq), below = g.input("below", {1}, DType::I64);
  const Tensor counts = g.index(logits.shape(), Dim::index(1, c.vocab)) < below;
  const Tensor all = softmax(masked_fill(logits, logical_not(counts), -std::numeric_limits<double>::infinity()), 1);
  gather(all, 1, next.unsqueeze(1)).squeeze(1).retrieve("probabilities");
  return p.loaded.program(compiler);
}

// Reading the head is most of a small Whisper's step. As a parameter of its own it is packed for products, which the
// table of tokens is not, because rows are taken from it; and Whisper's vocabularies are small enough for a second
// copy.
Seq2SeqConfig with_own_head(Seq2SeqConfig c) {
  if (c.hears()) c.tied = false;
  return c;
}

Program decoder_program(const Weights& w, const Seq2SeqConfig& c, const Seq2SeqShape& s, const Compiler& compiler) {
  Part p(w, with_own_head(c), Seq2SeqPart::Decoder);
  Graph& g = p.graph();
  const Dim seq = Dim::symbol("seq", 1, s.context), past = Dim::symbol("past", 0, s.context - 1);
  const Tensor ids = g.input("ids", {s.rows, seq}, DType::I64);
  Seq2SeqModel::Known known{.cross = cross_inputs(g, c, s), .past = past};
  const Shape self{s.rows, c.decoder.heads, s.context, c.head};
  known.remember = [&](int layer, const KeysValues& now) -> KeysValues {
    const auto all = nn::KeyValueCache(g, self_name(layer, "keys"), self_name(layer, "values"), self, past)
                         .append(now.keys, now.values);
    return {all.keys, all.values};
  };
  const Tensor hidden = p.model.decode(ids, known);
  p.model.logits(hidden.slice(1, seq - 1, seq)).squeeze(1).retrieve("logits");
  return p.loaded.program(compiler);
}

}  // namespace

Seq2SeqPrograms::Seq2SeqPrograms(const Weights& w, const Seq2SeqConfig& c, const Seq2SeqShape& shape,
                                 const Compiler& compiler)
    : config_(c), shape_(shape) {
  if (!c.has_decoder || !c.predicts_words)
    throw Error("seq2seq", str_cat("a ", c.architecture, " predicts no words: it has no head for them"));
  encoder_ = encoder_program(w, c, shape, compiler);
  decoder_ = decoder_program(w, c, shape, compiler);
  watcher_ = watcher_program(w, c, shape, compiler);
}

CachedDecoder::CachedDecoder(std::shared_ptr<const Seq2SeqPrograms> programs)
    : programs_(std::move(programs)),
      encoder_(programs_->encoder()),
      decoder_(programs_->decoder()),
      parents_(static_cast<std::size_t>(programs_->shape().rows)) {
  const Seq2SeqConfig& c = programs_->config();
  const std::int64_t rows = programs_->shape().rows;
  if (rows == 1) return;
  const auto each = static_cast<std::size_t>(rows * c.decoder.heads * programs_->shape().context * c.head);
  for (std::int64_t i = 0; i < c.decoder.layers; ++i)
    for (const char* what : {"keys", "values"}) {
      std::vector<float>& state = states_.emplace_back(each);
      decoder_.use(self_name(i, what), state.data(), each * sizeof(float));
    }
}

void CachedDecoder::encode(std::span<const std::int64_t> ids) {
  const auto length = std::ssize(ids);
  if (length < 1 || length > programs_->shape().source)
    throw Error("encode", str_cat("a source of ", length, " tokens: it has 1 to ", programs_->shape().source));
  for (const std::int64_t id : ids)
    if (id < 0 || id >= programs_->config().vocab)
      throw Error("encode", str_cat("token ", id, " is outside the vocabulary of ", programs_->config().vocab));
  encoder_.bind("length", length);
  encoder_.set("input_ids", ids).run();
  take_cross(length);
}

void CachedDecoder::encode(std::span<const float> spectrogram) {
  const auto wanted = programs_->config().mels * 2 * programs_->shape().source;
  if (std::ssize(spectrogram) != wanted)
    throw Error("encode", str_cat("a spectrogram of ", spectrogram.size(), " numbers: the model takes ", wanted));
  encoder_.set("input_features", spectrogram).run();
  take_cross(programs_->shape().source);
}

// The decoder reads the encoder's results where they are, if they have one size: an input of several has to have room
// for the largest.
void CachedDecoder::take_cross(std::int64_t length) {
  length_ = length;
  const bool one_size = programs_->config().hears();
  if (!one_size) decoder_.bind("length", length);
  for (std::size_t i = 0; i < static_cast<std::size_t>(programs_->config().decoder.layers); ++i)
    for (const char* what : {"keys", "values"}) {
      const std::span<const std::byte> bytes = encoder_.bytes(cross_name(i, what));
      if (one_size) decoder_.use(cross_name(i, what), bytes);
      else decoder_.set_bytes(cross_name(i, what), bytes.data(), bytes.size());
    }
  encoded_ = true;
  begin();
}

void CachedDecoder::truncate(std::int64_t positions) {
  if (positions < 0 || positions > past_)
    throw Error("truncate", str_cat("there are ", past_, " positions, not ", positions));
  past_ = positions;
}

void CachedDecoder::check_ids(std::span<const std::int64_t> ids) const {
  const std::int64_t vocab = programs_->config().vocab;
  if (!encoded_) throw Error("step", "there is no source: encode() comes first");
  for (const std::int64_t id : ids)
    if (id < 0 || id >= vocab) throw Error("step", str_cat("token ", id, " is outside the vocabulary of ", vocab));
}

CachedDecoder::Watched CachedDecoder::watch(std::span<const std::int64_t> ids, std::int64_t below) {
  const Seq2SeqShape& shape = programs_->shape();
  if (shape.watched.empty()) throw Error("watch", "no head is watched: Seq2SeqShape::watched names them");
  if (std::ssize(ids) < 2 || std::ssize(ids) > shape.context)
    throw Error("watch", str_cat(ids.size(), " tokens: there are 2 to ", shape.context));
  check_ids(ids);
  Context run(programs_->watcher());
  run.bind("seq", std::ssize(ids));
  if (programs_->watcher().has_symbol("length")) run.bind("length", length_);
  for (std::size_t i = 0; i < static_cast<std::size_t>(programs_->config().decoder.layers); ++i)
    for (const char* what : {"keys", "values"}) run.use(cross_name(i, what), encoder_.bytes(cross_name(i, what)));
  run.set("ids", ids).set("below", std::vector<std::int64_t>{below}).run();
  Watched w{run.get("weights"), run.get("probabilities")};
  w.probabilities.insert(w.probabilities.begin(), 0);
  return w;
}

// Lets each row have the positions of its parent.
void CachedDecoder::reorder() {
  const Seq2SeqConfig& c = programs_->config();
  const auto heads = static_cast<std::size_t>(c.decoder.heads), head = static_cast<std::size_t>(c.head);
  const std::size_t all = static_cast<std::size_t>(programs_->shape().context) * head;  // elements of one head
  const std::size_t part = static_cast<std::size_t>(past_) * head, row = heads * part;
  moved_.resize(parents_.size() * row);
  const auto copy_rows = [&](const auto& copy) {
    for (std::size_t r = 0; r < parents_.size(); ++r)
      for (std::size_t h = 0; parents_[r] != static_cast<std::int64_t>(r) && h < heads; ++h)
        copy(r, h, moved_.data() + r * row + h * part);
  };
  for (std::vector<float>& state : states_) {
    copy_rows([&](std::size_t r, std::size_t h, float* to) {
      std::copy_n(state.data() + (static_cast<std::size_t>(parents_[r]) * heads + h) * all, part, to);
    });
    copy_rows([&](std::size_t r, std::size_t h, const float* from) {
      std::copy_n(from, part, state.data() + (r * heads + h) * all);
    });
  }
}

// The logits of the last run, where it wrote them. What is interpreted has them in f64.
std::span<const float> CachedDecoder::results() {
  if (programs_->decoder().interpreted() == 0) {
    const std::span<const std::byte> bytes = decoder_.bytes("logits");
    return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
  }
  logits_ = decoder_.get("logits");
  return logits_;
}

std::span<const float> CachedDecoder::step(std::span<const std::int64_t> ids, std::span<const std::int64_t> parents) {
  const std::int64_t rows = programs_->shape().rows;
  check_ids(ids);
  if (ids.empty() || std::ssize(ids) % rows != 0)
    throw Error("step", str_cat(ids.size(), " ids are not ", rows, " rows of the same length"));
  const std::int64_t n = std::ssize(ids) / rows;
  if (past_ + n > programs_->shape().context)
    throw Error("step", str_cat(n, " tokens after ", past_, " do not fit the context of ", programs_->shape().context));
  if (!parents.empty() && std::ssize(parents) != rows)
    throw Error("step", str_cat(parents.size(), " parents of ", rows, " rows"));
  if (parents.empty()) std::iota(parents_.begin(), parents_.end(), 0);
  else parents_.assign(parents.begin(), parents.end());
  for (const std::int64_t parent : parents_)
    if (parent < 0 || parent >= rows) throw Error("step", str_cat("row ", parent, " is none of ", rows));
  decoder_.bind("past", past_);
  if (programs_->decoder().has_symbol("seq")) decoder_.bind("seq", n);
  reorder();
  decoder_.set("ids", ids).run();
  const std::span<const float> logits = results();
  if (holds_nan(logits.data(), DType::F32, logits.size())) {
    decoder_.run_checked();  // throws with the operation of the first NaN
    throw Error("step", "there is NaN among the logits, but not when the step was run again: this machine errs");
  }
  past_ += n;
  return logits;
}

}  // namespace lc
