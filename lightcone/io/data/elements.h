// Reads elements in the formats of files into arrays.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lightcone/io/data/array.h"
#include "lightcone/io/data/byte_stream.h"
#include "lightcone/io/read_options.h"

namespace lc::io {

// The format of the elements in a file.
struct StoredElement {
  enum class Kind { Float, Complex, Signed, Unsigned, Bool };
  Kind kind;
  int bytes;  // per element; both parts of a complex number together
  bool big_endian = false;
};

// Reads an array of this shape and checks that the stream ends after it. If `first_axis_fastest`, the file is in
// Fortran's order. Complex numbers get a last axis of two (torch.view_as_real). Bools are 0 or 1, whatever the byte.
// Memory is taken from the budget only after a check that the stream can fill it.
Array read_elements(ByteStream& from, const StoredElement& stored, std::vector<std::int64_t> shape,
                    bool first_axis_fastest, Budget& budget);

}  // namespace lc::io
