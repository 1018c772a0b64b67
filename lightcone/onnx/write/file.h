// An ONNX file in bytes: the graph's fields, and the weights in it or in a file beside it.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "lightcone/onnx/export.h"
#include "lightcone/onnx/write/nodes.h"

namespace lc::onnx {

using Sink = std::function<void(std::span<const std::byte>)>;

// Weights of at least this many bytes are the ones that can lie beside a file.
inline constexpr std::uint64_t kSmall = 1024;
std::uint64_t bytes_of_weights(const OutGraph& g);

// Writes the model. With `beside`, weights refer to the file of this name instead of having their bytes. Throws Error
// if the file would have 2 GiB or more.
void write_model(const OutGraph& g, const OnnxExportOptions& o, const std::string& beside, const Sink& sink);
// Writes the weights that lie beside a file.
void write_weights_beside(const OutGraph& g, const Sink& sink);

}  // namespace lc::onnx
