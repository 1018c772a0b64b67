// Weights: the tensors of a checkpoint, where they lie in the mapped file. Nothing is copied (unless asked for) and
// nothing is converted until a model asks for it.
//
// Read: safetensors (one file, a shard index, or a directory holding either), GGUF (one file, or all parts of a
// model whose part is named: NAME-00001-of-00003.gguf), and llama2.c's .bin. What ONNX, torch.save(), Keras and
// others wrote is an Error that says what it is and what makes a checkpoint of it. Any bytes give weights or an Error;
// a file can neither crash the reader nor make it allocate more than ReadOptions::memory, nor work longer than in
// proportion to its size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/composites/block_formats.h"
#include "lightcone/core/array_view.h"
#include "lightcone/core/dtype.h"
#include "lightcone/io/checkpoints/save.h"  // what it reads back
#include "lightcone/io/read_options.h"

namespace lc {

struct GgufFile;
class MappedFile;

struct StoredTensor {
  std::vector<std::int64_t> shape;  // row-major, the last axis contiguous
  std::string type;                 // as its format calls it: "BF16", "Q4_K"
  std::span<const std::byte> bytes;
  // How a graph reads the bytes in place; when neither is set, only read() can.
  std::optional<DType> dtype = {};
  std::optional<QuantFormat> quant = {};
  int ggml = -1;  // GGUF's number of the type
  // As a graph stores it: blocks of a quantised format are u8 [..., bytes]. Error when only read() can.
  operator ArrayView() const;
  std::int64_t elements() const;  // Error when the shape is larger than any memory; readers refuse such a tensor
};

class Weights {
 public:
  // A file, or a directory with config.json and safetensors inside.
  static Weights open(const std::string& path, const ReadOptions& o = {});
  // The same from bytes in memory: GGUF or llama2.c, which need no second file.
  static Weights open(std::shared_ptr<const MappedFile> file, const ReadOptions& o = {});

  const std::string& path() const { return path_; }
  const ReadOptions& options() const { return options_; }  // with which it was opened
  const std::string& format() const { return format_; }    // "safetensors", "GGUF" or "llama2.c"
  const std::map<std::string, StoredTensor, std::less<>>& tensors() const { return tensors_; }
  const StoredTensor* find(std::string_view name) const;
  const StoredTensor& at(std::string_view name) const;  // Error when it is not there
  std::size_t bytes() const;                            // of all tensors

  // The values as f32, whatever the storage (a copy).
  static std::vector<float> read(const StoredTensor& t);

  // What else the files say: config.json's text, the GGUF header, llama2.c's seven integers.
  const std::string& config_json() const { return config_json_; }
  const GgufFile* gguf() const { return gguf_.get(); }
  std::span<const std::int32_t> llama2c() const { return llama2c_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }  // safetensors'
  // See MappedFile: these bytes of a tensor will not be read soon, or will be.
  void release(std::span<const std::byte> bytes) const;
  void prefetch(std::span<const std::byte> bytes) const;

 private:
  friend class SafetensorsReader;
  friend class Llama2cReader;
  friend class GgufWeightsReader;
  static Weights open(std::shared_ptr<const MappedFile> file, const ReadOptions& o, Budget& budget, bool on_disk);
  std::string path_, format_, config_json_;
  ReadOptions options_;
  std::map<std::string, StoredTensor, std::less<>> tensors_;
  std::map<std::string, std::string> metadata_;
  std::shared_ptr<const GgufFile> gguf_;
  std::vector<std::int32_t> llama2c_;
  const MappedFile* file_of(std::span<const std::byte> bytes) const;
  std::vector<std::shared_ptr<const MappedFile>> files_;
};

// A file's text; Error when it is missing, not a regular file or longer than `limit` bytes.
std::string read_text_file(const std::string& path, std::size_t limit = 256u << 20);

}  // namespace lc
