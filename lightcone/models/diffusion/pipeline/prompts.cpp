#include "lightcone/models/diffusion/pipeline/prompts.h"

#include <algorithm>

#include "lightcone/models/seq2seq/seq2seq_model.h"
#include "lightcone/models/vision_transformer/clip.h"

namespace lc::diffusion {
namespace {

// One matrix [rows, sum of the widths] of several [rows, width] each; `width`, if it is larger, is filled up with 0.
std::vector<float> side_by_side(const std::vector<std::vector<float>>& parts, std::size_t rows, std::size_t width) {
  std::vector<float> all;
  for (std::size_t r = 0; r < rows; ++r) {
    for (const std::vector<float>& p : parts) {
      const auto w = static_cast<std::ptrdiff_t>(p.size() / rows), at = static_cast<std::ptrdiff_t>(r) * w;
      all.insert(all.end(), p.begin() + at, p.begin() + at + w);
    }
    all.resize(std::max(all.size(), (r + 1) * width));
  }
  return all;
}

std::int64_t last_extent(const LoadedModel& m, const std::string& output) {
  return m.outputs.at(output).extent(-1).constant().value_or(0);
}

}  // namespace

PromptEncoder::PromptEncoder(const PipelineIndex& index, const Compiler& compiler, const LoadModelOptions& o,
                             std::vector<Lora>& loras, std::int64_t t5_length, std::int64_t t5_width)
    : family_(index.family) {
  if (t5_length == 0) t5_length = family_ == Family::Flux ? 512 : 256;
  for (const char* number : {"", "_2", "_3"})
    if (index.has(str_cat("text_encoder", number))) add(index, compiler, o, loras, number, t5_length);
  if (family_ != Family::StableDiffusion3 || encoders_.back().t5) return;
  missing_length_ = t5_length, missing_width_ = t5_width;
}

void PromptEncoder::add(const PipelineIndex& index, const Compiler& compiler, const LoadModelOptions& o,
                        std::vector<Lora>& loras, const std::string& number, std::int64_t t5_length) {
  const std::string name = "text_encoder" + number;
  const Weights w = open_part(index.part(name), o.read);
  const ConfigFile config(w, o.ignore);
  Encoder e;
  e.t5 = config.text("model_type") == "t5";
  const bool wants_t5 = family_ == Family::Flux ? number == "_2" : number == "_3";
  if (e.t5 != wants_t5)
    config.fail("it is the ", name, " of ", index.class_name, ", which is ", wants_t5 ? "a T5" : "CLIP's");
  LoadModelOptions chosen = o;
  if (e.t5) {
    e.states = "encoder_hidden";
  } else {
    const bool projected = family_ == Family::StableDiffusion3 || number == "_2";
    if (family_ != Family::Flux) e.states = family_ == Family::StableDiffusion ? "text_hidden" : "text_penultimate";
    if (projected) e.pooled = "text_embeds";
    else if (family_ == Family::Flux) e.pooled = "text_pooled";
  }
  chosen.outputs.emplace();
  for (const std::string& output : {e.states, e.pooled})
    if (!output.empty()) chosen.outputs->push_back(output);
  const LoadedModel m = e.t5 ? load_seq2seq(w, config, chosen) : load_clip(w, config, chosen);
  e.length = e.t5 ? t5_length : m.limits.at("length");
  if (e.length < 1 || e.length > m.limits.at("length"))
    throw Error("StableDiffusion", str_cat("texts of ", e.length, " tokens; 1 to ", m.limits.at("length"), " fit"));
  e.tokenizer = PromptTokenizer::load(index.part("tokenizer" + number), e.length, e.t5, o.read);
  if (!e.states.empty()) e.width = last_extent(m, e.states);
  if (!e.pooled.empty()) e.pooled_width = last_extent(m, e.pooled);
  e.program = m.program(compiler);
  merge_loras(e.program, m, name, loras);
  encoders_.push_back(std::move(e));
}

Prompts PromptEncoder::run(const Encoder& e, const std::vector<std::string>& texts) const {
  std::vector<std::int64_t> ids;
  for (const std::string& text : texts) {
    const std::vector<std::int64_t> one = e.tokenizer.ids(text);
    ids.insert(ids.end(), one.begin(), one.end());
  }
  Context c(e.program);
  // Padding is a part of the text for all of these models.
  c.bind(e.t5 ? "batch" : "texts", std::ssize(texts)).bind("length", e.length);
  c.set("input_ids", ids).set("attention_mask", std::vector<std::int64_t>(ids.size(), 1)).run();
  return {e.states.empty() ? std::vector<float>() : c.get(e.states),
          e.pooled.empty() ? std::vector<float>() : c.get(e.pooled)};
}

Prompts PromptEncoder::operator()(const std::vector<std::string>& texts) const {
  std::vector<std::vector<float>> clips, pooled;
  std::vector<float> t5(texts.size() * static_cast<std::size_t>(missing_length_ * missing_width_));
  std::size_t length = 0;
  for (const Encoder& e : encoders_) {
    Prompts p = run(e, texts);
    if (!p.pooled.empty()) pooled.push_back(std::move(p.pooled));
    if (e.t5) t5 = std::move(p.states);
    else if (!p.states.empty()) clips.push_back(std::move(p.states)), length = static_cast<std::size_t>(e.length);
  }
  Prompts all{.states = {}, .pooled = side_by_side(pooled, texts.size(), 0)};
  const std::vector<float> beside =
      side_by_side(clips, texts.size() * length, t5.empty() ? 0 : static_cast<std::size_t>(width()));
  // CLIP's tokens of a text come before T5's.
  all.states = side_by_side({beside, t5}, texts.size(), 0);
  return all;
}

std::int64_t PromptEncoder::length() const {
  std::int64_t clip = 0, t5 = missing_length_;
  for (const Encoder& e : encoders_)
    if (e.t5) t5 = e.length;
    else if (e.width > 0) clip = e.length;
  return clip + t5;
}
std::int64_t PromptEncoder::width() const {
  std::int64_t clips = 0, t5 = missing_width_;
  for (const Encoder& e : encoders_) (e.t5 ? t5 : clips) += e.width;
  return std::max(clips, t5);
}
std::int64_t PromptEncoder::pooled_width() const {
  std::int64_t all = 0;
  for (const Encoder& e : encoders_) all += e.pooled_width;
  return all;
}
std::int64_t PromptEncoder::cut_to(const std::string& text) const {
  const auto longest = std::ranges::max_element(encoders_, {}, &Encoder::length);
  return longest->tokenizer.too_long(text) ? longest->length : 0;
}

}  // namespace lc::diffusion
