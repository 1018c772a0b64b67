// Block formats repacked for GPU kernels, as two arrays: the bytes that are read in vectors of 16, aligned to 16 bytes,
// and the rest.
//
//   plane 0    of every block the bytes from which codes are read: a multiple of 16 each
//   plane 1    of every block the rest: scales of few bytes
//
// Q4_K and Q5_K have no rest: the file has this layout already. Formats whose codes are no vectors of sixteen bytes, as
// those with grids, stay as they are, too.
#pragma once

#include <string>

#include "lightcone/backends/gpu/products/product.h"
#include "lightcone/backends/gpu/products/writer.h"
#include "lightcone/codegen/simt/dialect.h"
#include "lightcone/formats/block_formats.h"

namespace lc::backends::gpu {

// The bytes of a block that are in plane 1.
struct BlockRest {
  int first, bytes;
};
BlockRest block_rest(QuantFormat f);
// Returns the kernel that repacks blocks. Its size argument is their number; a thread repacks one block.
std::string repack_text(QuantFormat f, std::string_view name, int threads, codegen::simt::Language language);

// Defines lc_value_FORMAT(p, i), element i of blocks as the file has them, and lc_value_FORMAT_planes(p, i, blocks),
// element i of repacked blocks.
std::string block_functions(QuantFormat f);

// Returns true if sixteen adjacent elements can be read at once: the operand is repacked, or the file has that layout.
bool reads_sixteen(const Operand& s);
// Defines NAME[16], the numbers from element `index` on, which is a multiple of sixteen.
void read_sixteen(Writer& w, const Operand& s, const std::string& index, const std::string& name);

}  // namespace lc::backends::gpu
