// What a denoiser reads of texts: the states of one to three text encoders, joined as each family of pipelines does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lightcone/models/diffusion/pipeline/components.h"
#include "lightcone/models/diffusion/pipeline/lora.h"
#include "lightcone/models/diffusion/pipeline/prompt_tokenizer.h"
#include "lightcone/passes/compiler.h"

namespace lc::diffusion {

// Texts as a denoiser reads them, f32.
struct Prompts {
  std::vector<float> states;  // [texts, length, width]
  std::vector<float> pooled;  // [texts, pooled width]; empty: the family has none
};

// The text encoders of a pipeline with their tokenizers.
//
//   Stable Diffusion    states of CLIP after the last norm
//   XL                  states of two CLIPs before the last layer, side by side; pooled: the second one's projection
//   3                   the same, filled up with zeros to T5's width, and T5's states after them, or zeros if the
//   folder
//                       has no T5; pooled: both projections side by side
//   FLUX                states of T5; pooled: CLIP's state at the end of the text
class PromptEncoder {
 public:
  PromptEncoder() = default;
  // `t5_length` is the length of T5's texts; 0: what diffusers takes (256 for Stable Diffusion 3, 512 for FLUX).
  // `t5_width` is the width of what stands in place of a T5 that is not there. Throws Error for the reasons of
  // load_model(), and for a tokenizer that does not fit.
  PromptEncoder(const PipelineIndex& index, const Compiler& compiler, const LoadModelOptions& o,
                std::vector<Lora>& loras, std::int64_t t5_length, std::int64_t t5_width);

  Prompts operator()(const std::vector<std::string>& texts) const;
  std::int64_t length() const;  // in the states
  std::int64_t width() const;
  std::int64_t pooled_width() const;                    // 0: there are no pooled texts
  bool lacks_t5() const { return missing_width_ > 0; }  // zeros stand in place of Stable Diffusion 3's T5
  // The number of tokens that count, if the encoder that reads the longest texts cuts this one off; else 0.
  std::int64_t cut_to(const std::string& text) const;

 private:
  struct Encoder {
    PromptTokenizer tokenizer;
    Program program;
    std::string states, pooled;  // names of the outputs that are read; "": none
    std::int64_t length = 0, width = 0, pooled_width = 0;
    bool t5 = false;
  };
  void add(const PipelineIndex& index, const Compiler& compiler, const LoadModelOptions& o, std::vector<Lora>& loras,
           const std::string& number, std::int64_t t5_length);
  Prompts run(const Encoder& e, const std::vector<std::string>& texts) const;

  Family family_ = Family::StableDiffusion;
  std::vector<Encoder> encoders_;
  std::int64_t missing_length_ = 0, missing_width_ = 0;  // Stable Diffusion 3's, without T5
};

}  // namespace lc::diffusion
