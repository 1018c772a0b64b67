#include "lightcone/models/sentence/sentence_encoder.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "lightcone/io/checkpoints/gguf.h"
#include "lightcone/io/json_internal.h"
#include "lightcone/io/printable.h"
#include "lightcone/llm/model_tokenizer.h"
#include "lightcone/models/load/load_model.h"
#include "lightcone/models/sentence/pooling.h"
#include "lightcone/ops/ops.h"
#include "lightcone/runtime/default_compiler.h"
#include "lightcone/runtime/names.h"

namespace lc {
namespace {

namespace fs = std::filesystem;

// The length that a tokenizer's file states, or `otherwise`; files write 10^30 for none.
std::int64_t tokenizer_length(const std::string& folder, std::int64_t otherwise, const ReadOptions& o) {
  const fs::path file = fs::path(folder) / "tokenizer_config.json";
  std::error_code wrong;
  if (!fs::is_regular_file(file, wrong)) return otherwise;
  Budget budget(o, file.string());
  const io::JsonDocument document = io::read_json(file.string(), budget);
  const auto n = document.root()["model_max_length"].number();
  return n && *n >= 1 && *n < static_cast<double>(otherwise) ? static_cast<std::int64_t>(*n) : otherwise;
}

// The file of weights in the folder of a module, which has a config.json of another kind.
std::string weights_of(const std::string& folder) {
  for (const char* name : {"model.safetensors", "pytorch_model.bin"}) {
    const fs::path file = fs::path(folder) / name;
    std::error_code wrong;
    if (fs::is_regular_file(file, wrong)) return file.string();
  }
  throw file_error("load_model", folder, "there is no model.safetensors and no pytorch_model.bin in it");
}

// llama.cpp's number of a pooling; a file that asks for none gets the mean.
Pooling pooling_of(const Weights& w) {
  const std::string type = w.gguf()->text("general.architecture").value_or("");
  switch (const double n = w.gguf()->number(type + ".pooling_type").value_or(0); static_cast<int>(n)) {
    case 0:
    case 1: return Pooling::Mean;
    case 2: return Pooling::Cls;
    case 3: return Pooling::Last;
    default: throw file_error("load_model", w.path(), type, ".pooling_type is ", n, ", and only 0 to 3 give vectors");
  }
}

std::int64_t rows_of_tokens(const LoadedModel& m) {
  const StoredTensor* t = m.weights.find("tokens.weight");
  return t && !t->shape.empty() ? t->shape.front() : 0;
}

}  // namespace

struct SentenceEncoder::Loaded {
  SentenceConfig config;
  Program program;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::int64_t width = 0, length = 0, batch = 0, padding = 0;
  bool types = false;

  // Computes the texts with these numbers; all[k] is the encoding of text k.
  void run(Context& c, std::span<const std::size_t> texts, const std::vector<Encoding>& all,
           std::span<float> out) const;
};

SentenceEncoder SentenceEncoder::load(const std::string& path, const SentenceOptions& o) {
  const auto loaded = std::make_shared<Loaded>();
  Loaded& l = *loaded;
  std::error_code wrong;
  const std::string folder = fs::is_directory(path, wrong) ? path : fs::path(path).parent_path().string();
  const bool beside = folder == path || !path.ends_with(".gguf");  // what lies beside a GGUF file says nothing of it
  if (beside) l.config = SentenceConfig::from(folder, o.ignore, {});
  const Weights weights = Weights::open(folder == path ? l.config.encoder : path);
  if (weights.gguf()) l.config.pooling = {pooling_of(weights)};
  if (o.pooling) l.config.pooling = {*o.pooling};
  if (o.normalize) l.config.normalize = *o.normalize;
  LoadedModel m = load_model(weights, {.ignore = o.ignore, .batch = o.batch, .outputs = std::vector<std::string>()});
  if (!m.outputs.contains("hidden") || !m.inputs.contains("attention_mask"))
    throw file_error("load_model", path, "a ", m.architecture, " gives no vectors of tokens");
  l.batch = o.batch, l.padding = m.padding, l.types = m.inputs.contains("token_type_ids");
  const std::int64_t most = m.limits.at("length");
  l.length = l.config.length > 0 ? l.config.length
             : weights.gguf()    ? most
                                 : tokenizer_length(l.config.encoder, most, {});
  if (o.length > 0) l.length = o.length;
  l.length = std::min(l.length, most);
  l.tokenizer = llm::model_tokenizer(weights, rows_of_tokens(m), {}, o.tokenizer);
  if (!l.tokenizer)
    throw file_error("load_model", path,
                     "there is no tokenizer beside the model: name a file in SentenceOptions::tokenizer");
  Tensor v = pooled(m.outputs.at("hidden"), m.inputs.at("attention_mask"), l.config.pooling);
  for (std::size_t k = 0; k < l.config.dense.size(); ++k) {
    const SentenceDense& d = l.config.dense[k];
    if (v.extent(1) != Dim(d.in))
      throw file_error("load_model", d.folder, "a dense layer takes ", d.in, " numbers, and there are ", v.extent(1));
    constexpr WeightName kNames[] = {{"linear", "linear"}};
    const WeightTable table(Weights::open(weights_of(d.folder)), {}, kNames);
    v = m.add(SentenceDenseLayer(d), str_cat("dense.", k), table.below(str_cat("dense.", k)))(v);
    table.require_all_used("a dense layer");
  }
  if (l.config.normalize) v = normalize(v);
  v.retrieve("embedding");
  l.width = *v.extent(1).constant();
  l.program = m.program(o.compiler ? *o.compiler : default_compiler({.threads = o.threads, .precision = o.precision}));
  return SentenceEncoder(loaded);
}

void SentenceEncoder::Loaded::run(Context& c, std::span<const std::size_t> texts, const std::vector<Encoding>& all,
                                  std::span<float> out) const {
  std::size_t longest = 1;
  for (const std::size_t k : texts) longest = std::max(longest, all[k].ids.size());
  std::vector<std::int64_t> ids(texts.size() * longest, padding), mask(ids.size(), 0), kinds(ids.size(), 0);
  for (std::size_t row = 0; row < texts.size(); ++row) {
    const Encoding& e = all[texts[row]];
    const auto to = static_cast<std::ptrdiff_t>(row * longest);
    std::ranges::copy(e.ids, ids.begin() + to);
    std::ranges::copy(e.type_ids, kinds.begin() + to);
    std::fill_n(mask.begin() + to, e.ids.size(), 1);
  }
  if (program.has_symbol("batch")) c.bind("batch", std::ssize(texts));  // otherwise one text at once is a constant
  if (program.has_symbol("length")) c.bind("length", static_cast<std::int64_t>(longest));
  c.set("input_ids", ids).set("attention_mask", mask);
  if (types) c.set("token_type_ids", kinds);
  const std::vector<float> v = c.run().get("embedding");
  const auto each = static_cast<std::size_t>(width);
  for (std::size_t row = 0; row < texts.size(); ++row)
    std::copy_n(v.begin() + static_cast<std::ptrdiff_t>(row * each), each,
                out.begin() + static_cast<std::ptrdiff_t>(texts[row] * each));
}

std::vector<float> SentenceEncoder::embed(std::span<const std::string> texts,
                                          const std::function<void(double)>& progress) const {
  const Loaded& l = *loaded_;
  std::vector<Encoding> all;
  for (std::size_t k = 0; k < texts.size(); ++k) try {
      const std::string_view text = texts[k];
      all.push_back(l.tokenizer->encode_within(std::span(&text, 1), static_cast<std::size_t>(l.length)));
    } catch (const Error& e) {
      throw Error("embed", str_cat("text ", k + 1, " of ", texts.size(), ": ", e.problem()));
    }
  std::vector<std::size_t> order(texts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t k) { return all[k].ids.size(); });
  std::vector<float> out(texts.size() * static_cast<std::size_t>(l.width));
  Context context(l.program);
  for (std::size_t at = 0; at < order.size(); at += static_cast<std::size_t>(l.batch)) {
    if (progress) progress(static_cast<double>(at) / static_cast<double>(order.size()));
    const std::size_t n = std::min(order.size() - at, static_cast<std::size_t>(l.batch));
    l.run(context, std::span(order).subspan(at, n), all, out);
  }
  return out;
}

std::int64_t SentenceEncoder::width() const { return loaded_->width; }
std::int64_t SentenceEncoder::length() const { return loaded_->length; }
const SentenceConfig& SentenceEncoder::config() const { return loaded_->config; }
const Program& SentenceEncoder::program() const { return loaded_->program; }
const Tokenizer& SentenceEncoder::tokenizer() const { return *loaded_->tokenizer; }
const std::string& SentenceEncoder::prompt(const std::string& name) const {
  const auto& prompts = loaded_->config.prompts;
  const auto at = prompts.find(name);
  if (at != prompts.end()) return at->second;
  std::vector<std::string_view> names;
  for (const auto& [known, text] : prompts) names.push_back(known);
  throw Error("prompt", str_cat("the model has no prompt ", in_quotes(name), names.empty() ? ", and no other" : "; ",
                                names_near(name, names)));
}

std::vector<double> cosines(std::span<const float> vectors, std::size_t count) {
  if (count == 0 || vectors.size() % count != 0)
    throw Error("cosines", str_cat(vectors.size(), " numbers are not ", count, " vectors"));
  const std::size_t width = vectors.size() / count;
  const auto dot = [&](std::size_t a, std::size_t b) {
    double s = 0;
    for (std::size_t k = 0; k < width; ++k)
      s += static_cast<double>(vectors[a * width + k]) * static_cast<double>(vectors[b * width + k]);
    return s;
  };
  std::vector<double> length(count), all(count * count);
  for (std::size_t k = 0; k < count; ++k) length[k] = std::sqrt(dot(k, k));
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = 0; b < count; ++b) {
      const double scale = length[a] * length[b];
      all[a * count + b] = scale > 0 ? dot(a, b) / scale : 0;
    }
  return all;
}

}  // namespace lc
