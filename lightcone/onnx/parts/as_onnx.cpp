#include "lightcone/onnx/parts/as_onnx.h"

#include <utility>

namespace lc::onnx {

Values as_onnx(Call& c, std::string_view name, std::int64_t version) {
  const Operator* row = find_operator("", name);
  if (!row || !row->rule) c.refuse(str_cat("becomes ", name, ", which is not supported"));
  const std::int64_t outside = std::exchange(c.opset, version);
  Values r = row->rule(c);
  c.opset = outside;
  return r;
}
Values as_onnx(Call& c, std::string_view name, std::int64_t version, Values operands) {
  Values outside = std::exchange(c.in, std::move(operands));
  Values r = as_onnx(c, name, version);
  c.in = std::move(outside);
  return r;
}

}  // namespace lc::onnx
