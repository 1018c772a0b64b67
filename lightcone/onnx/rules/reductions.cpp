// Reductions over axes, running sums, softmax, and the extreme elements.
#include "lightcone/onnx/read/call.h"

namespace lc::onnx {
namespace {}  // namespace

void add_reductions(Operators& t) {
  const std::initializer_list<Operator> rows = {};
  t.insert(t.end(), rows);
}

}  // namespace lc::onnx
