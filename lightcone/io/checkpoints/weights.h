// Weights: the tensors of a checkpoint as views of the mapped file. No bytes are copied (unless requested), and values
// are converted only on demand.
//
// It reads safetensors and PyTorch's files (one file, a shard index, or a directory with either), GGUF (one file, or
// all parts of a model of which one part is named: NAME-00001-of-00003.gguf), and llama2.c's .bin. For files of ONNX,
// Keras and others it throws an Error that names the format and a way to convert it. Any bytes lead to weights or an
// Error: a file cannot crash the reader, make it allocate more than ReadOptions::memory, or make it work longer than in
// proportion to the size of the file.
//
// PyTorch's files (torch.save(): .pt, .pth, .bin, .th, .ckpt, since 2017) are read as by torch.load(), but nothing in
// them is run. Names are paths: checkpoint["model"].layer[0].weight is model.layer.0.weight, and modules have the names
// of their state_dict(). If exactly one of the outermost keys state_dict, model_state_dict, model, module, net,
// network, params, params_ema, ema, model_ema, generator and weights has tensors, names leave it out; other keys
// (optimizer, ...) stay. Objects of any class are read as their attributes. Where the pickle calls a function that is
// not known to make tensors, containers or plain values, the file is an Error that names the function.
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

#include "lightcone/core/array_view.h"
#include "lightcone/core/dtype.h"
#include "lightcone/formats/block_formats.h"
#include "lightcone/io/checkpoints/save.h"  // what it reads back
#include "lightcone/io/pickled_module.h"
#include "lightcone/io/read_options.h"

namespace lc {

struct GgufFile;
class MappedFile;

// A tensor of a checkpoint, a view of the file. It is valid as long as the Weights or a copy of it.
struct StoredTensor {
  std::vector<std::int64_t> shape;  // row-major, the last axis contiguous
  std::string type;                 // name of the type in its format: "BF16", "Q4_K"
  std::span<const std::byte> bytes;
  // The type in which a graph reads the bytes in place. If neither is set, only Weights::read() can read them.
  std::optional<DType> dtype = {};
  std::optional<QuantFormat> quant = {};
  int ggml = -1;  // GGUF's number of the type; -1: another format
  // The tensor as graphs store it; blocks of a quantised format are u8 [..., bytes]. Throws Error if only
  // Weights::read() can read it.
  operator ArrayView() const;
  // Number of elements. Throws Error if the shape is larger than any memory; readers refuse such a tensor.
  std::int64_t elements() const;
};

// A tensor in memory, f32: product(shape) values.
struct NewTensor {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

// An open checkpoint. Copies share the files, which stay open as long as any copy.
class Weights {
 public:
  // Opens a file, or a directory with config.json and safetensors or pytorch_model.bin.
  static Weights open(const std::string& path, const ReadOptions& o = {});
  // Opens a GGUF, PyTorch or llama2.c checkpoint, which need no second file, from bytes in memory.
  static Weights open(std::shared_ptr<const MappedFile> file, const ReadOptions& o = {});
  // A checkpoint that another reader found in a file: tensors whose bytes lie in it or in what `owners` keep, and what
  // stands for config.json. It takes the memory of the table of tensors from the options' bound.
  static Weights of(std::shared_ptr<const MappedFile> file, const std::string& format, std::string config_json,
                    std::map<std::string, StoredTensor, std::less<>> tensors,
                    std::vector<std::shared_ptr<const void>> owners = {}, const ReadOptions& o = {});

  // A copy with other tensors, whose bytes lie in the same files or in what `owners` keep.
  Weights with(std::map<std::string, StoredTensor, std::less<>> tensors,
               std::vector<std::shared_ptr<const void>> owners) const;

  // Returns a copy with another config.json and with these tensors, in place of those of the same names or beside the
  // others: a model with a new head.
  Weights with(std::string config_json, std::map<std::string, NewTensor> tensors) const;
  // Returns the tensors for which `name` gives a name, under that name: a part of a model by itself.
  Weights part(const std::function<std::optional<std::string>(std::string_view name)>& name) const;

  const std::string& path() const { return path_; }        // the path of the checkpoint
  const ReadOptions& options() const { return options_; }  // the options it was opened with
  const std::string& format() const { return format_; }    // "safetensors", "PyTorch", "GGUF", "llama2.c", ...
  const std::map<std::string, StoredTensor, std::less<>>& tensors() const { return tensors_; }  // all tensors by name
  // Returns the tensor of this name, or null.
  const StoredTensor* find(std::string_view name) const;
  // Returns the tensor of this name. Throws Error if there is none.
  const StoredTensor& at(std::string_view name) const;
  std::size_t bytes() const;  // sum over all tensors

  // Returns a copy of the values as f32, whatever the storage. Throws Error for a type without a conversion.
  static std::vector<float> read(const StoredTensor& t);

  // Text of config.json; "" if there is none.
  const std::string& config_json() const { return config_json_; }
  // Header of the GGUF file; null for other formats.
  const GgufFile* gguf() const { return gguf_.get(); }
  // The seven integers of llama2.c's header; empty for other formats.
  std::span<const std::int32_t> llama2c() const { return llama2c_; }
  // Metadata of safetensors files. Of PyTorch's files: the values near the root that are no tensors, by their paths
  // ("epoch", "model.names"); texts as they are, everything else as JSON, large ones cut off.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // The modules of a model that PyTorch pickled whole, by paths as those of their tensors; empty for other files.
  const std::map<std::string, PickledModule, std::less<>>& modules() const { return modules_; }
  // Marks bytes of a tensor that will not be read soon: see MappedFile::release().
  void release(std::span<const std::byte> bytes) const;
  // Marks bytes of a tensor that will be read soon: see MappedFile::prefetch().
  void prefetch(std::span<const std::byte> bytes) const;

 private:
  friend class SafetensorsReader;
  friend class TorchReader;
  friend class Llama2cReader;
  friend class GgufWeightsReader;
  static Weights open(std::shared_ptr<const MappedFile> file, const ReadOptions& o, Budget& budget, bool on_disk);
  void read_config(const std::string& folder, Budget& budget);
  std::string path_, format_, config_json_;
  ReadOptions options_;
  std::map<std::string, StoredTensor, std::less<>> tensors_;
  std::map<std::string, std::string> metadata_;
  std::map<std::string, PickledModule, std::less<>> modules_;
  std::shared_ptr<const GgufFile> gguf_;
  std::vector<std::int32_t> llama2c_;
  const MappedFile* file_of(std::span<const std::byte> bytes) const;
  std::vector<std::shared_ptr<const MappedFile>> files_;
  std::vector<std::shared_ptr<const void>> owners_;  // they hold bytes that are in no file (strided tensors)
};

// Reads a file as text. Throws Error if it is missing, not a regular file, or longer than `limit` bytes.
std::string read_text_file(const std::string& path, std::size_t limit = 256u << 20);

}  // namespace lc
