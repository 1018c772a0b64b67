// The loss that trains language models.
#pragma once

#include "lightcone/ops/loss.h"

namespace lc::llm {

// The cross entropy of the next tokens: ids and next are i64 [batch, length]. `model` is a model in training or any
// callable that returns logits [batch, length, vocab].
template <class Model>
Tensor next_token_loss(Model& model, const Tensor& ids, const Tensor& next, Reduction reduction = Reduction::Mean) {
  const Tensor logits = model(ids);
  const Dim tokens = logits.extent(0) * logits.extent(1);
  return cross_entropy(logits.reshape({tokens, logits.extent(2)}), next.reshape({tokens}), {.reduction = reduction});
}

}  // namespace lc::llm
