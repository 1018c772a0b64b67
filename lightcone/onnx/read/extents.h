// Extents of inputs as files write them, and constants as graph code.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/core/array_view.h"
#include "lightcone/core/tensor.h"

namespace lc::onnx {

// A name that a symbol of a graph can have: "i0" is one of its loop indices.
std::string symbol_name(std::string_view parameter);
// Parses an expression such as "past_sequence_length + 1" or "height//8" of names, numbers, + - * / // and parentheses.
// `known` gives what a name stands for. Returns nullopt for any other text, and if a name is not known.
std::optional<Dim> parse_extent(std::string_view text,
                                const std::function<std::optional<Dim>(std::string_view)>& known);

// Integers, which may have symbols, as a tensor of this shape.
Tensor value_tensor(Graph& g, const std::vector<Dim>& elements, const Shape& shape, DType dtype);
// Returns an array as graph code if its elements are all equal or form an arithmetic progression, or an undefined
// tensor.
Tensor regular_tensor(Graph& g, const ArrayView& a);

}  // namespace lc::onnx
