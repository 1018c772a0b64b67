// Reads ONNX models as graphs: what PyTorch, TensorFlow, scikit-learn and others export.
//
//   OnnxProgram m = read_onnx("model.onnx");
//   Program p = compile(m.graph, generic() | cpu());
//   m.load_weights(p);
//   Context c(p);
//   c.set("input_ids", ids).run();
//   c.get("logits");
//
// Weights are parameters of the graph under their names in the file; they are read from the mapped file. Extents that
// the file names are symbols of the graph, bound when inputs are set. Shape arithmetic becomes part of the shapes. If,
// Loop and Scan become part of the graph; functions are inlined. Sizes that depend on data have a bound: the output
// has room for as many elements as there can be, and another output holds their number.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lightcone/core/array_view.h"
#include "lightcone/core/graph.h"
#include "lightcone/io/read_options.h"

namespace lc {

class MappedFile;

struct OnnxOptions {
  // Shapes of inputs, by name, instead of what the file says of them. An extent of -1 keeps the file's.
  std::map<std::string, std::vector<std::int64_t>> shapes = {};
  // Values of extents that the file names ("batch_size"), which then are numbers.
  std::map<std::string, std::int64_t> extents = {};
  // Values of inputs on which sizes depend: the integers of a shape, a number of steps. They become part of the graph,
  // and the input exists no more. The bytes are copied.
  std::map<std::string, ArrayView> values = {};
  // The largest value of an extent that the file does not state. It is lowered, down to 256, until every tensor of the
  // model needs at most 8 TB of addresses, because memory is planned for the largest sizes.
  std::int64_t most_extent = 65536;
  std::int64_t max_steps = 1000;  // the most that a Loop runs if their number depends on data
  std::int64_t seed = 0;          // the seed of random numbers, which differ from run to run
  ReadOptions read = {};
};

// A model as a graph. `inputs` and `outputs` are in the order of the file, under its names.
struct OnnxProgram {
  struct Port {
    std::string name;
    DType dtype;
    Shape shape;
    std::string count = {};  // an output that holds how many elements of axis `count_axis` are valid; "": all are
    int count_axis = 0;
    std::vector<std::string> labels = {};  // an output of texts holds the numbers of these, from 0 on
  };
  Graph graph;
  std::vector<Port> inputs = {}, outputs = {};

  struct Weight {
    std::string name;
    ArrayView view;                               // its bytes may be at an address that is not aligned
    std::shared_ptr<const void> owner;            // keeps the bytes
    std::shared_ptr<const MappedFile> file = {};  // the file that holds them; null: they are elsewhere
    Weight aligned() const;  // a copy in memory of its own if the file holds the bytes at an odd address
    void release() const;    // hints that the bytes will not be read soon
  };
  std::vector<Weight> weights = {};
  // Loads all weights into a compiled program, without a copy where its kernels read them as they are stored. The
  // system may reclaim the pages of the others, of which the program keeps another form.
  template <class Program>
  void load_weights(Program& p) const {
    for (const Weight& w : weights) {
      const Weight read = w.aligned();
      p.load(read.name, read.view, read.owner);
      if (!p.resident(w.name) || read.owner != w.owner) w.release();
    }
  }
  // The weights by name, as export_onnx() takes them. They are valid as long as the program.
  std::map<std::string, ArrayView, std::less<>> values() const {
    std::map<std::string, ArrayView, std::less<>> all;
    for (const Weight& w : weights) all.emplace(w.name, w.view);
    return all;
  }

  std::map<std::string, std::string> metadata = {};
  std::string producer = {};
  std::map<std::string, std::int64_t> opsets = {};  // by domain; "" is ai.onnx
};

// What a model takes and gives, and what of it is not supported: known from the file alone.
struct OnnxDescription {
  struct Port {
    std::string name;
    DType dtype = DType::F32;
    std::string type;                       // "float [batch, 3, 224, 224]", as the file states it
    int rank = -1;                          // -1: the file does not state it
    std::vector<std::string> extents = {};  // "batch", "3", "" for one that the file leaves open
    bool supported = true;                  // false: it is no tensor of elements that graphs have
  };
  struct Weight {
    std::string name, type;  // its name and type in the file
    std::vector<std::int64_t> shape;
    std::int64_t bytes = 0;
  };
  std::vector<Port> inputs = {}, outputs = {};
  std::map<std::string, std::int64_t> opsets = {};     // by domain; "" is ai.onnx
  std::map<std::string, std::int64_t> operators = {};  // "Conv", "com.microsoft.Gelu": the number of its nodes
  std::vector<std::string> unsupported = {};           // a sentence each, with the names of nodes
  std::int64_t parameters = 0, weight_bytes = 0;
  std::map<std::string, std::int64_t> weight_types = {};  // bytes by element type
  std::vector<Weight> weights = {};                       // the initializers of the model's graph
  std::string producer = {};
  std::map<std::string, std::string> metadata = {};
};
// Describes a model file without reading it as a graph. Throws Error for a damaged file.
OnnxDescription describe_onnx(const std::string& path, const ReadOptions& o = {});

// Returns every sentence on what keeps a model from being read, all at once: OnnxDescription::unsupported, and
// attributes, values of them, types and shapes that nodes have, with their names. Nothing is computed. Nodes whose
// operands are results of unsupported ones are looked at as far as the file alone tells; the last sentence then counts
// them. Empty for a model that read_onnx() reads with these options. Throws Error for a damaged file.
std::vector<std::string> survey_onnx(const std::string& path, const OnnxOptions& o = {});
// The same for a model in memory.
std::vector<std::string> survey_onnx(std::span<const std::byte> bytes, const OnnxOptions& o = {});

// Reads a model file, and the files beside it that hold its weights. Throws Error for a file that is damaged, and an
// Error that lists every node that is not supported.
OnnxProgram read_onnx(const std::string& path, const OnnxOptions& o = {});
// Reads the initializers of a model's graph as they are stored, in the order of the file. Integers of 2 and 4 bits have
// a byte each. Bytes may be at an odd address (OnnxProgram::Weight::aligned()). Throws Error for strings and for types
// that graphs do not have.
std::vector<OnnxProgram::Weight> read_onnx_weights(const std::string& path, const ReadOptions& o = {});
// Reads a model from memory, which must outlive the program. It cannot refer to other files.
OnnxProgram read_onnx(std::span<const std::byte> bytes, const OnnxOptions& o = {});

}  // namespace lc
