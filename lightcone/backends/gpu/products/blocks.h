// Block formats as kernels here keep them: what is read by 16 bytes at multiples of 16, apart from the rest.
//
//   plane 0    of every block the bytes that codes are read from: a multiple of 16 each
//   plane 1    of every block the rest: scales of few bytes
//
// Q4_K and Q5_K have no rest: they lie so in the file.
#pragma once

#include <string>

#include "lightcone/backends/gpu/products/product.h"
#include "lightcone/backends/gpu/products/writer.h"
#include "lightcone/codegen/simt/dialect.h"
#include "lightcone/composites/block_formats.h"

namespace lc::backends::gpu {

// The bytes of a block that plane 1 has.
struct BlockRest {
  int first, bytes;
};
BlockRest block_rest(QuantFormat f);
// The kernel that makes planes of blocks. Its number is how many there are; a thread takes one.
std::string repack_text(QuantFormat f, std::string_view name, int threads, codegen::simt::Language language);

// lc_value_FORMAT(p, i): element i of blocks as the file has them; lc_value_FORMAT_planes(p, i, blocks): of planes.
std::string block_functions(QuantFormat f);

// Can sixteen neighbours be read at once? In planes, or where the file has them so.
bool reads_sixteen(const Operand& s);
// Defines NAME[16], the numbers from element `place` on, a multiple of sixteen.
void read_sixteen(Writer& w, const Operand& s, const std::string& place, const std::string& name);

}  // namespace lc::backends::gpu
