#include "lightcone/io/checkpoints/quantize.h"

#include <cmath>

#include "lightcone/base/error.h"
#include "lightcone/io/checkpoints/block_writer.h"

namespace lc {
namespace {

using Write = void (*)(const QuantInfo&, const float*, std::byte*);
Write writer_of(QuantFormat f) {
  using enum QuantFormat;
  switch (f) {
    case Q4_0:
    case Q4_1:
    case Q5_0:
    case Q5_1:
    case Q8_0:
    case TQ1_0:
    case TQ2_0:
    case MXFP4: return io::quantize_plain;
    case Q2_K:
    case Q3_K:
    case Q4_K:
    case Q5_K:
    case Q6_K:
    case IQ4_NL:
    case IQ4_XS: return io::quantize_scaled;
    default: return nullptr;
  }
}

}  // namespace

bool can_quantize(QuantFormat f) { return writer_of(f) != nullptr; }

void quantize(QuantFormat format, std::span<const float> values, std::span<std::byte> to) {
  const QuantInfo& f = info(format);
  const Write write = writer_of(format);
  if (!write) throw Error("quantize", str_cat("blocks of ", f.ggml_name, " are read and not written"));
  const auto each = static_cast<std::size_t>(f.elements), bytes = static_cast<std::size_t>(f.bytes);
  const std::size_t blocks = values.size() / each;
  if (values.size() % each != 0 || to.size() != blocks * bytes)
    throw Error("quantize", str_cat(values.size(), " values are no whole blocks of ", each, ", or ", to.size(),
                                    " bytes are not those of their blocks"));
  constexpr float kMost = 65504;  // the largest number of 16 bits
  for (const float v : values)
    if (!(std::fabs(v) <= kMost))
      throw Error("quantize",
                  str_cat("the value ", static_cast<double>(v), " has no place in a block: scales have 16 bits"));
  for (std::size_t k = 0; k < blocks; ++k) write(f, values.data() + k * each, to.data() + k * bytes);
}

}  // namespace lc
