// What a file is, holds, takes and needs, before any work is done with it.
//
//   const FileDescription d = inspect("model.onnx");
//   for (const auto& in : d.inputs) std::cout << in.name << ": " << in.type << '\n';
//   for (const std::string& sentence : d.unsupported) std::cerr << sentence << '\n';
//   if (d.needs) std::cout << d.needs->total() << " bytes\n";
//
// Files are recognised by what is in them, whatever they are called. Nothing is run, and no weight is read: types,
// shapes and the memory plan follow from headers and graphs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lightcone/core/array_view.h"
#include "lightcone/core/dtype.h"
#include "lightcone/core/graph.h"
#include "lightcone/io/read_options.h"
#include "lightcone/models/llama/llama_config.h"

namespace lc {

enum class FileFormat : std::uint8_t {
  Onnx,
  StableHlo,    // text or bytecode
  Gguf,         // one file or the parts of a model
  Safetensors,  // a file, a shard index, a folder
  PyTorch,      // the same
  Llama2c,
  Npz,
  Npy,
  Tokenizer,  // tokenizer.json, SentencePiece's tokenizer.model, llama2.c's tokenizer.bin
  Picture,    // JPEG or PNG
  Sound,      // WAV or FLAC
};
std::string_view name(FileFormat f);  // "ONNX", "safetensors"

// Recognises a file or folder by its contents. Throws Error for one that is missing or that none of the formats fits;
// the sentence names them, and what else the file is where that is known.
FileFormat file_format(const std::string& path);

struct InspectOptions {
  // Values of extents that an ONNX file names, or that the arguments of a module leave open ("x_0" for axis 0 of x).
  std::map<std::string, std::int64_t> extents = {};
  // Shapes of inputs of an ONNX model instead of what the file says, and values of inputs: they decide sizes and
  // branches where the model cannot be read without them.
  std::map<std::string, std::vector<std::int64_t>> shapes = {};
  std::map<std::string, ArrayView> values = {};
  bool plan =
      true;  // false: the graph is not read: no plan, and of what is not supported only what the file alone says
  std::int64_t context = 0;  // positions that a language model's cache is planned for; 0: its own, at most 4096
  DType kv_cache = DType::F32;
  ReadOptions read = {};
};

struct FileDescription {
  std::string path;
  FileFormat format = FileFormat::Onnx;
  std::string producer = {};  // what wrote an ONNX model

  struct Port {
    std::string name, type;           // "float [batch, 3, 224, 224]", as the file states it
    std::optional<DType> dtype = {};  // the element type of the graph's input; nullopt: it is not supported
    std::optional<std::vector<std::int64_t>> shape = {};  // -1 for an extent without a number; nullopt: no rank
  };
  std::vector<Port> inputs = {}, outputs = {};  // what a model takes and gives
  std::string architecture = {};                // the class of what load_model() makes of a checkpoint: "ViTModel"

  struct Stored {
    std::string name, type;  // the format's own name of the type: "BF16", "Q4_K"
    std::vector<std::int64_t> shape;
    std::int64_t bytes = 0;
  };
  std::vector<Stored> tensors = {};                // tensors, arrays, the picture or the sound, by name
  std::int64_t parameters = 0, bytes = 0;          // sums over all tensors
  std::map<std::string, std::int64_t> types = {};  // bytes by element type
  std::map<std::string, std::string> metadata = {};

  std::map<std::string, std::int64_t> opsets = {};     // operator sets of ONNX by domain; "" is ai.onnx
  std::map<std::string, std::int64_t> operators = {};  // number of nodes by operator: "Conv", "stablehlo.add"
  // Every operator, attribute, type and shape that is not supported: a sentence each, with names of nodes or lines.
  std::vector<std::string> unsupported = {};

  // The exact bytes that a run needs on the CPU, for these sizes. Weights: those that runs read in place, and what is
  // packed when they are loaded.
  struct Needs {
    std::int64_t weights = 0, working = 0, states = 0;
    Bindings sizes = {};  // open extents, which are planned with their least value, at least 1
    std::int64_t total() const { return weights + working + states; }
  };
  std::optional<Needs> needs = {};
  std::string not_runnable = {};  // why there are none; "" for a file that is no model and where no plan was wanted

  // What a checkpoint of the Llama family is.
  struct LanguageModel {
    LlamaConfig config;
    std::int64_t context = 0;           // positions that `needs` has a cache for
    std::int64_t unpacked_at_load = 0;  // bytes of weights that are unpacked to f32
    bool tokenizer = false, chat_template = false;
  };
  std::optional<LanguageModel> language_model = {};
};

// Describes a file or a folder. Throws Error for one that is missing, damaged, or of no known format. What of a model
// is not supported is no Error but `unsupported`; what keeps it from being planned is `not_runnable`.
FileDescription inspect(const std::string& path, const InspectOptions& o = {});
// The same for an open checkpoint.
FileDescription inspect(const Weights& w, const InspectOptions& o = {});

}  // namespace lc
