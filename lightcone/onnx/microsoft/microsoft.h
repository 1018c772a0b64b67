// The operators that onnxruntime adds, com.microsoft, by theme.
#pragma once

#include <string_view>

#include "lightcone/onnx/parts/as_onnx.h"

namespace lc::onnx {

void add_microsoft_layers(Operators& t);
void add_microsoft_attention(Operators& t);
void add_microsoft_products(Operators& t);
void add_microsoft_bytes(Operators& t);
void add_microsoft_refused(Operators& t);

// Applies the activation that the attributes activation, activation_alpha and so on name.
Tensor activated(Call& c, const Tensor& x, std::string_view name, double alpha, double beta);

// Attention of queries, keys and values [b, s, q + k + v] that one product made, with the attributes of Attention.
// `past` is [2, b, h, p, d]. Results: [b, s, v], and [2, b, h, p + s, d] with keys and values.
Values joined_attention(Call& c, const Tensor& qkv, const Tensor& mask, const Tensor& past, const Tensor& bias);

}  // namespace lc::onnx
