// Elements as files store them, and the arrays they become.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lightcone/io/data/array.h"
#include "lightcone/io/data/byte_stream.h"
#include "lightcone/io/read_options.h"

namespace lc::io {

struct StoredElement {
  enum class Kind { Float, Complex, Signed, Unsigned, Bool };
  Kind kind;
  int bytes;  // of one; a complex number's two parts together
  bool big_endian = false;
};

// Reads an array of this shape, the first axis fastest where `first_axis_fastest` (Fortran's order), and nothing behind
// it. Complex numbers get a last axis of two, as torch.view_as_real has it. Bools are 0 or 1 whatever their byte.
// Memory is taken from the budget once it is known that the stream can fill it.
Array read_elements(ByteStream& from, const StoredElement& stored, std::vector<std::int64_t> shape,
                    bool first_axis_fastest, Budget& budget);

}  // namespace lc::io
