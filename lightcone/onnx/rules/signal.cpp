// Fourier transforms, windows and filter banks.
#include "lightcone/onnx/read/call.h"

namespace lc::onnx {
namespace {}  // namespace

void add_signal(Operators& t) {
  const std::initializer_list<Operator> rows = {};
  t.insert(t.end(), rows);
}

}  // namespace lc::onnx
