#include "lightcone/models/llama/llama.h"

#include <algorithm>

#include "lightcone/llm/checkpoint.h"
#include "lightcone/llm/model_tokenizer.h"
#include "lightcone/llm/ranks.h"
#include "lightcone/runtime/default_compiler.h"

namespace lc {
namespace {

// A parameter and the stored tensor that is loaded into it.
struct WeightBinding {
  std::string path;
  const StoredTensor* stored;
  bool convert;   // to f32, because no kernel reads the stored format
  int parts = 1;  // this rank has one of so many
  std::size_t bytes() const {
    const std::size_t all = convert ? static_cast<std::size_t>(stored->elements()) * 4 : stored->bytes.size();
    return all / static_cast<std::size_t>(parts);
  }
};

// Returns the part of the file that the program has read, of which it keeps nothing, or an empty one.
std::span<const std::byte> load_weight(Program& p, const WeightBinding& b, const llm::RankPart& mine,
                                       const std::shared_ptr<const Weights>& weights) {
  const StoredPart part = mine.of(b.path, *b.stored);
  if (b.convert) {
    const auto values = std::make_shared<const std::vector<float>>(Weights::read(part.tensor));
    p.load(b.path, values->data(), values->size() * 4, values);
  } else {
    p.load(b.path, part.tensor.bytes.data(), part.tensor.bytes.size(), part.copy ? part.copy : weights);
  }
  if (part.copy) return b.stored->bytes;
  if (b.convert || !p.resident(b.path)) return part.tensor.bytes;
  return {};
}

// Loads the weights into the program. File pages of weights that are packed or converted are released at once, and the
// pages of the next weights are prefetched meanwhile.
void load_weights(Program& p, const std::vector<WeightBinding>& all, const llm::RankPart& mine,
                  const std::shared_ptr<const Weights>& weights, const std::function<void(double part)>& progress) {
  constexpr std::size_t kAhead = 64u << 20;
  std::vector<std::span<const std::byte>> read;
  std::size_t next = 0, ahead = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    progress(static_cast<double>(i) / static_cast<double>(all.size()));
    for (; next < all.size() && (next <= i || ahead < kAhead); ++next) {
      if (all[next].parts == 1) weights->prefetch(all[next].stored->bytes);
      ahead += all[next].stored->bytes.size();
    }
    weights->release(read.emplace_back(load_weight(p, all[i], mine, weights)));
    ahead -= all[i].stored->bytes.size();
  }
  for (const auto& bytes : read) weights->release(bytes);  // pages that were read along with their neighbours
}

bool readable_in_place(const StoredTensor& t) {
  if (t.quant) return true;
  if (!t.dtype || (*t.dtype != DType::F32 && *t.dtype != DType::F16 && *t.dtype != DType::BF16)) return false;
  return reinterpret_cast<std::uintptr_t>(t.bytes.data()) % size_of(*t.dtype) == 0;
}

void check_tensor(const Weights& w, const std::string& name, const StoredTensor& t, const Shape& want) {
  if (t.dtype &&
      (!is_float(*t.dtype) || is_f8(*t.dtype)))  // 8-bit floats need scales stored elsewhere, which nothing reads here
    throw Error("load",
                str_cat(w.path(), ": '", name, "' holds ", is_float(*t.dtype) ? "floats of 8 bits" : "whole numbers",
                        " (", t.type, "), not weights"));
  bool same = t.shape.size() == want.size();
  for (std::size_t i = 0; same && i < want.size(); ++i) same = Dim(t.shape[i]) == want[i];
  Shape have(t.shape.begin(), t.shape.end());
  if (!same)
    throw Error("load", str_cat(w.path(), ": '", name, "' has the shape ", str(have), ", the model needs ", str(want)));
}

void check_memory(const Llama& m, std::size_t limit) {
  const MemoryPlan& plan = m.program().plan();
  const std::size_t weights = plan.prepared_bytes + m.converted_bytes(),
                    needs = plan.state_bytes + plan.arena_bytes + weights;
  if (limit > 0 && needs > limit)
    throw Error("load", str_cat("a context of ", m.shape().context, " positions takes ", needs / 1000000,
                                " MB (KV cache ", plan.state_bytes / 1000000, ", working memory ",
                                plan.arena_bytes / 1000000, ", weights packed or unpacked ", weights / 1000000,
                                "), and there are ", limit / 1000000, " MB: ask for a smaller context"));
}

}  // namespace

Llama Llama::load(const std::string& path, const LlamaOptions& o) {
  if (o.progress) o.progress("reading", 0);
  return load(Weights::open(path, {.map = o.map}), o);
}

Llama Llama::load(Weights opened, const LlamaOptions& o) {
  const auto progress = [&](std::string_view stage, double part) {
    if (o.progress) o.progress(stage, part);
  };
  const auto weights = std::make_shared<const Weights>(std::move(opened));
  const auto model = std::make_shared<Loaded>();
  Loaded& m = *model;
  m.config = LlamaConfig::from(*weights);
  if (o.layers > 0) m.config.layers = std::min<std::int64_t>(m.config.layers, o.layers);
  m.shape.context = o.context > 0 ? o.context : std::min<std::int64_t>(m.config.context, 4096);
  m.shape.chunk = std::clamp<std::int64_t>(o.chunk, 1, m.shape.context);
  m.shape.all_logits = o.all_logits;
  m.shape.cache = o.kv_cache;
  m.tokenizer = llm::model_tokenizer(*weights, m.config.vocab, m.config.eos, o.tokenizer);
  m.chat_template = find_chat_template(*weights);

  std::vector<WeightBinding> bindings;
  const Graph g =
      llama_graph(m.config, m.shape, [&](Graph& graph, const std::string& name, Shape shape) -> nn::Parameter {
        const StoredTensor* t = weights->find(llm::name_in_file(*weights, name));
        if (!t) return {};
        check_tensor(*weights, name, *t, shape);
        const bool in_place = readable_in_place(*t);
        bindings.push_back({name, t, !in_place});
        if (!in_place) return nn::parameter(graph, name, std::move(shape), DType::F32);
        return nn::parameter(graph, name, std::move(shape), t->dtype.value_or(DType::U8), t->quant);
      });
  progress("compiling", 0);
  const llm::RankPart mine(o.ranks, g);
  for (WeightBinding& b : bindings) b.parts = mine.parts(b.path);
  const Compiler local = o.compiler ? *o.compiler : default_compiler({.threads = o.threads, .precision = o.precision});
  m.program = compile(g, mine.compiler() | local, {.observe = o.observe});
  const bool tied =
      std::none_of(bindings.begin(), bindings.end(), [](const WeightBinding& b) { return b.path == "lm_head.weight"; });
  for (const WeightBinding& b : bindings) {
    m.weight_bytes += b.bytes();
    // If the embedding table is not also the head, a token reads one row of it only.
    if (b.path != "model.embed_tokens.weight" || tied) m.bytes_per_token += b.bytes();
    if (b.convert) m.converted_bytes += b.bytes();
  }
  const Llama llama(model);
  check_memory(llama, o.memory_limit);
  if (o.load_weights) load_weights(m.program, bindings, mine, weights, [&](double part) { progress("loading", part); });
  const auto f = std::make_shared<const std::vector<double>>(m.config.rope_frequencies);
  m.program.load("rope.frequencies", f->data(), f->size() * 8, f);
  progress("loading", 1);
  return llama;
}

const Tokenizer& Llama::tokenizer() const {
  if (!model_->tokenizer)
    throw Error("tokenizer",
                "the checkpoint holds no tokenizer and none lies beside it: name a file in LlamaOptions::tokenizer");
  return *model_->tokenizer;
}

bool Llama::ends(int token) const {
  const std::vector<int>& eos = config().eos;
  return std::find(eos.begin(), eos.end(), token) != eos.end() || (has_tokenizer() && tokenizer().is_end(token));
}

std::unique_ptr<llm::ProgramDecoder> Llama::session() const { return std::make_unique<LlamaSession>(*this); }

LlamaSession::LlamaSession(const Llama& model)
    : ProgramDecoder(model.program(),
                     {.vocabulary = model.config().vocab,
                      .context = model.shape().context,
                      .step = model.shape().chunk,
                      .all_logits = model.shape().all_logits},
                     model.model_) {}

}  // namespace lc
