#include "lightcone/llm/program_model.h"

#include <utility>

#include "lightcone/base/error.h"
#include "lightcone/runtime/nan.h"

namespace lc::llm {

ProgramDecoder::ProgramDecoder(const Program& program, const DecoderSizes& sizes, std::shared_ptr<const void> owner)
    : Decoder(sizes),
      owner_(std::move(owner)),
      context_(program),
      compiled_(program.interpreted() == 0),
      open_(program.has_symbol("seq")),
      placed_(program.has_symbol("past")) {
  ids_.reserve(static_cast<std::size_t>(sizes.step));
}

std::span<const float> ProgramDecoder::step(std::span<const int> tokens, std::int64_t past) {
  ids_.assign(tokens.begin(), tokens.end());
  if (open_) context_.bind("seq", static_cast<std::int64_t>(tokens.size()));
  if (placed_) context_.bind("past", past);
  context_.set("tokens", ids_).run();
  std::span<const float> logits;
  if (compiled_) {
    const auto bytes = context_.bytes("logits");
    logits = {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
  } else {
    logits_ = context_.get("logits");
    logits = logits_;
  }
  if (holds_nan(logits.data(), DType::F32, logits.size())) {
    context_.run_checked();  // throws with the operation of the first NaN; it rewrites the same positions of the caches
    throw Error("feed", "there is NaN among the logits, but not when the step was run again: this machine errs");
  }
  return logits;
}

}  // namespace lc::llm
