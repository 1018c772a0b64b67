// If, Loop and Scan.
#include "lightcone/onnx/read/call.h"

namespace lc::onnx {
namespace {}  // namespace

void add_control(Operators& t) {
  const std::initializer_list<Operator> rows = {};
  t.insert(t.end(), rows);
}

}  // namespace lc::onnx
