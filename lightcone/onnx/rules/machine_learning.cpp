// ai.onnx.ml: linear models, trees, scalers.
#include "lightcone/onnx/read/call.h"

namespace lc::onnx {
namespace {}  // namespace

void add_machine_learning(Operators& t) {
  const std::initializer_list<Operator> rows = {};
  t.insert(t.end(), rows);
}

}  // namespace lc::onnx
