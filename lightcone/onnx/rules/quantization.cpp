// Quantised integers, their products and convolutions.
#include "lightcone/onnx/read/call.h"

namespace lc::onnx {
namespace {}  // namespace

void add_quantization(Operators& t) {
  const std::initializer_list<Operator> rows = {};
  t.insert(t.end(), rows);
}

}  // namespace lc::onnx
