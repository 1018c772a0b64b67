// Files that hold tensors or data: checkpoints, arrays, pictures, sounds, tokenizers.
#include <algorithm>
#include <utility>

#include "lightcone/base/error.h"
#include "lightcone/inspection/parts.h"
#include "lightcone/io/audio/audio.h"
#include "lightcone/io/checkpoints/gguf.h"
#include "lightcone/io/data/readers.h"
#include "lightcone/io/images/images.h"
#include "lightcone/io/printable.h"
#include "lightcone/io/text/tokenizer.h"
#include "lightcone/models/llama/llama.h"
#include "lightcone/models/load/load_model.h"

namespace lc::inspection {
namespace {

constexpr std::size_t kLongest = 1000;  // bytes of one value of metadata

std::int64_t size(std::size_t n) { return static_cast<std::int64_t>(n); }

bool is_llamas(const Weights& w) {
  if (!w.gguf()) return true;
  const std::string type = w.gguf()->text("general.architecture").value_or("");
  return (type == "llama" && !w.gguf()->metadata.contains("llama.expert_count")) || type == "mistral" ||
         type == "qwen2" || type == "qwen3";
}

FileDescription::Port port(const std::string& name, const Tensor& t) {
  FileDescription::Port p{name, str_cat(lc::name(t.dtype()), " ", str(t.shape())), t.dtype(),
                          std::vector<std::int64_t>()};
  for (const Dim& d : t.shape()) p.shape->push_back(d.constant().value_or(-1));
  return p;
}

// Adds what load_model() makes of a checkpoint. Returns false if it is no model of which that knows.
bool describe_loaded(FileDescription& d, const Weights& w) {
  try {
    const LoadedModel m = load_model(w);
    d.needs = needs_of(m.graph());
    d.architecture = m.architecture;
    for (const auto& [key, t] : m.inputs) d.inputs.push_back(port(key, t));
    for (const auto& [key, t] : m.outputs) d.outputs.push_back(port(key, t));
    return true;
  } catch (const Error& e) {
    d.not_runnable = e.what();
    return false;
  }
}

// Adds figures of a model of the Llama family, or the reason why it is not one.
void describe_llama(FileDescription& d, const Weights& w, const InspectOptions& o) {
  try {
    const Llama m = Llama::load(w, {.context = o.context, .kv_cache = o.kv_cache, .load_weights = false});
    d.language_model = {m.config(), m.shape().context, size(m.converted_bytes()), m.has_tokenizer(),
                        !m.chat_template().text.empty()};
    const MemoryPlan& p = m.program().plan();
    d.needs = {size(p.input_bytes + p.prepared_bytes), size(p.arena_bytes), size(p.state_bytes)};
  } catch (const Error& e) {
    d.not_runnable = e.what();
  }
}

}  // namespace

void describe_checkpoint(const Weights& w, FileDescription& d, const InspectOptions& o) {
  for (const auto& [name, t] : w.tensors()) add_tensor(d, {name, t.type, t.shape, size(t.bytes.size())}, t.elements());
  if (w.gguf())
    for (const auto& [key, value] : w.gguf()->metadata) d.metadata[std::string(key)] = str(value);
  for (const auto& [key, value] : w.metadata()) d.metadata[key] = printable(value, kLongest);
  if (!o.plan) return;
  if (is_llamas(w)) describe_llama(d, w, o);
  if (d.language_model || w.format() == "llama2.c" || (w.gguf() && is_llamas(w))) return;
  const std::string not_llama = std::exchange(d.not_runnable, "");
  if (!describe_loaded(d, w) && w.config_json().empty() && !w.gguf()) d.not_runnable = not_llama;
}

void describe_arrays(FileDescription& d, const InspectOptions& o) {
  Arrays all;
  if (d.format == FileFormat::Npy) all[""] = read_npy(d.path, o.read);
  else all = read_npz(d.path, o.read);
  for (const auto& [key, a] : all)
    add_tensor(d, {key, std::string(name(a.dtype)), a.shape, size(a.bytes.size())}, a.elements());
}

void describe_picture(FileDescription& d, const InspectOptions& o) {
  const Array a = read_image(d.path, o.read);
  add_tensor(d, {"", "u8", a.shape, size(a.bytes.size())}, a.elements());
}

void describe_sound(FileDescription& d, const InspectOptions& o) {
  const Audio a = read_audio(d.path, o.read);
  add_tensor(d, {"", "f32", a.samples.shape, size(a.samples.bytes.size())}, a.samples.elements());
  d.metadata["sample rate"] = str_cat(a.sample_rate);
  const std::int64_t frames = a.samples.shape.back();
  d.metadata["seconds"] = str_cat(static_cast<double>(frames) / static_cast<double>(a.sample_rate));
}

void describe_tokenizer(FileDescription& d, const InspectOptions& o) {
  const auto t = load_tokenizer(d.path, 0, o.read);
  constexpr const char* kKinds[] = {"SentencePiece BPE", "byte-level BPE", "WordPiece", "as its file says"};
  d.metadata["algorithm"] = kKinds[static_cast<std::size_t>(t->vocabulary().kind)];
  d.metadata["tokens"] = str_cat(t->size());
  if (t->bos() >= 0) d.metadata["first token"] = str_cat(t->bos());
  if (t->eos() >= 0) d.metadata["last token"] = str_cat(t->eos());
}

}  // namespace lc::inspection
