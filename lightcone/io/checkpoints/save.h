// Writes checkpoints: safetensors and GGUF, which Weights reads, and numpy's .npz.
//
// A file appears whole or not at all. It is written without a name in the same folder, forced to the disk, and only
// then renamed over the old file. Any failure (a full disk, a folder without write permission, a descriptor that
// somebody closed) is an Error that leaves the old file unchanged and no other file. The same holds if the process is
// killed, except that a ".lightcone-*.tmp" may remain if that happens between the last two calls, or on a file system
// that does not support files without a name. Calls interrupted by signals are repeated.
//
// Links are followed, and the target is replaced. A new file gets the permissions of the umask; a replacement keeps
// those of the old file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lightcone/core/dtype.h"
#include "lightcone/formats/block_formats.h"

namespace lc {

// A tensor to be written. `bytes` is a view, which must stay valid during the call.
struct TensorToSave {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> shape;   // row-major, the last axis contiguous
  std::span<const std::byte> bytes;  // elements in row-major order, as many bytes as the shape needs
  // Set: the bytes are blocks of this format (io/checkpoints/quantize.h makes them), and the last extent of `shape`,
  // which counts numbers, is a multiple of a block's. `dtype` says nothing then. GGUF alone has blocks.
  std::optional<QuantFormat> quant = {};
};

// Writes a safetensors file, byte for byte as safetensors.torch.save_file does: tensors in order of decreasing
// alignment of their dtypes, then by name, with a header padded so that each tensor begins at a multiple of its element
// size. Metadata is sorted by key; the Python library leaves that order open. Throws Error if bytes and shape of a
// tensor disagree, if a name occurs twice or is "__metadata__", or if a text is not UTF-8.
void save_safetensors(const std::string& path, std::span<const TensorToSave> tensors,
                      const std::map<std::string, std::string>& metadata = {});

// Writes the same file tensor by tensor, for tensors that are not all in memory at once.
class SafetensorsWriter {
 public:
  // The tensors' bytes are not looked at. Throws Error as save_safetensors(). Without commit() no file appears.
  SafetensorsWriter(const std::string& path, std::span<const TensorToSave> tensors,
                    const std::map<std::string, std::string>& metadata = {});
  ~SafetensorsWriter();
  // Appends the bytes of the next tensor, in the order of in_file_order(). Throws Error if it has another size.
  void write(std::span<const std::byte> bytes);
  void commit();  // throws Error if tensors are missing

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};
// The tensors in the order in which a safetensors file has them. A part of them is in the same order.
std::vector<TensorToSave> in_file_order(std::vector<TensorToSave> tensors);

// Writes a .npz archive as numpy.savez(path, **tensors) does: members in the given order, not compressed. read_npz()
// and numpy.load() read it. Sizes and numbers of members may exceed 32 bits. Throws Error if bytes and shape disagree,
// if a name occurs twice, contains NUL or is too long, or for bf16 and f8, which numpy does not have.
void save_npz(const std::string& path, std::span<const TensorToSave> tensors);

// Writes one array as numpy.save(path, array) does. The name is not written. Throws Error as save_npz().
void save_npy(const std::string& path, const TensorToSave& tensor);

// A value of GGUF metadata as another file has it, GgufFile::stored; it must stay valid during the call.
struct GgufStored {
  std::span<const std::byte> bytes;
};
// A value of GGUF metadata.
using GgufField = std::variant<std::uint32_t, std::int32_t, float, bool, std::string, std::vector<std::string>,
                               std::vector<float>, std::vector<std::int32_t>, GgufStored>;
// The metadata of a GGUF file in the order to be written, with keys such as "general.architecture".
using GgufFields = std::vector<std::pair<std::string, GgufField>>;

// Writes a GGUF file of version 3 with the tensors in the given order at multiples of 32 bytes. The types are f32, f16,
// bf16, f64, i8, i16, i32, i64 and all block formats. Throws Error if bytes and shape disagree, if a name or key occurs
// twice, and for anything that ggml cannot read: other types, names of more than 63 bytes, more than four axes.
void save_gguf(const std::string& path, std::span<const TensorToSave> tensors, const GgufFields& metadata);

}  // namespace lc
