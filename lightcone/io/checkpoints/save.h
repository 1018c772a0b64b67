// Checkpoints as they are written: safetensors and GGUF, which Weights reads back, and numpy's .npz.
//
// A file appears whole or not at all: it is written without a name in the same folder, forced to the disk and only then
// renamed over the old one. Whatever fails on the way (a full disk, a folder that may not be written, a descriptor that
// somebody closed) is an Error that leaves the old file as it was and nothing beside it. So does a kill, but that it
// may leave a ".lightcone-*.tmp" between the last two calls, and on a file system without files that have no name. A
// call that a signal interrupts is made again.
//
// A link is followed, and the file behind it replaced. A new file gets the rights that the umask leaves, one that is
// replaced passes its own on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lightcone/core/dtype.h"

namespace lc {

// One tensor to be written.
struct TensorToSave {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> shape;   // row-major, the last axis contiguous
  std::span<const std::byte> bytes;  // as many as the shape needs
};

// A safetensors file, byte for byte as safetensors.torch.save_file writes it: tensors by the alignment of their dtype,
// the largest first, then by name; the header padded so that each lies at a multiple of its element's size. (The words
// of the metadata come in the order of their names; the Python library leaves that order open.)
// Error when bytes and shape disagree, a name is there twice or is "__metadata__", or a word is not UTF-8.
void save_safetensors(const std::string& path, std::span<const TensorToSave> tensors,
                      const std::map<std::string, std::string>& metadata = {});

// The same as numpy.savez(path, **tensors) writes it, members stored and not deflated, in the order given; read_npz()
// and numpy.load() read it. Files, members and their number may exceed what 32 bits count. Error as above (names are
// free but for NUL and their length), and for bf16, which numpy does not have.
void save_npz(const std::string& path, std::span<const TensorToSave> tensors);

// What a GGUF file says of its tensors, in the order it is to be written: keys such as "general.architecture".
using GgufField = std::variant<std::uint32_t, std::int32_t, float, bool, std::string, std::vector<std::string>,
                               std::vector<float>, std::vector<std::int32_t>>;
using GgufFields = std::vector<std::pair<std::string, GgufField>>;

// A GGUF file of version 3, tensors in the order given at multiples of 32 bytes. Types: f32, f16, bf16, f64, i8, i32,
// i64. Error when bytes and shape disagree, a name or key is there twice, and for what ggml does not read: other types,
// names of more than 63 bytes, more than four axes.
void save_gguf(const std::string& path, std::span<const TensorToSave> tensors, const GgufFields& metadata);

}  // namespace lc
