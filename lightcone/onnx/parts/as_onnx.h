// Operators that are another one of ai.onnx with something before or behind it.
#pragma once

#include <string_view>

#include "lightcone/onnx/read/call.h"

namespace lc::onnx {

// Reads the node as an operator of ai.onnx with the operands in c.in, whose meaning is that of operator set `version`.
Values as_onnx(Call& c, std::string_view name, std::int64_t version);
// As as_onnx(), with operands of its own.
Values as_onnx(Call& c, std::string_view name, std::int64_t version, Values operands);

}  // namespace lc::onnx
