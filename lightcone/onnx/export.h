// Writes graphs as ONNX models, for onnxruntime and whatever else reads them (torch.onnx.export).
//
//   export_onnx(session.graph(), session.parameters(), "model.onnx");       // what a Session trained or loaded
//   export_onnx(graph, onnx_values(Weights::open("model.safetensors")), "model.onnx");
//   export_onnx(program.graph, program.values(), "again.onnx");             // what read_onnx() read
//
// A model has the live part of a graph: what its outputs need. Inputs, outputs and parameters keep their names, and
// parameters the types in which they are stored; blocks of a quantised format become the f32 numbers that they stand
// for. Symbolic extents become extents of the same name, and one file answers for every size within their bounds. A
// state is an input, and its next value is an output named "<state>.next". An output that has the name of an input is
// named "<output>.out", and a parameter with that of an output "<parameter>.parameter".
//
// Products and convolutions are written as MatMul, Einsum and Conv, pools as MaxPool and AveragePool, norms as the
// operator that the opset has, loops as Loop. Where ONNX or onnxruntime's kernels for CPUs lack an element type, values
// are converted to one that holds them and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lightcone/core/array_view.h"
#include "lightcone/core/graph.h"

namespace lc {

class Weights;

// Values of parameters by name. An input that has a value here is a constant of the model.
using OnnxValues = std::map<std::string, ArrayView, std::less<>>;
// The tensors of a checkpoint, which must live as long as the result. Those that only Weights::read() can read are left
// out.
OnnxValues onnx_values(const Weights& file);

struct OnnxExportOptions {
  // The version of ONNX's operators, 17 to 26. From 18 on there are sums by index and operations on the bits of
  // integers, from 21 on GroupNormalization, from 23 on RMSNormalization and Attention, and from 26 on BitCast.
  int opset = 21;
  // Where weights are: in the file itself; in a second file beside it, named "<file>.data"; or beside it if they have
  // more than 1 GiB, because a file has at most 2.
  enum class WeightsIn : std::uint8_t { Automatic, File, FileBeside };
  WeightsIn weights = WeightsIn::Automatic;
  Bindings sizes = {};                            // numbers for symbolic extents; the others stay open
  std::map<std::string, std::string> names = {};  // names in the file of inputs and outputs, by those in the graph
  std::map<std::string, std::string> metadata = {};
};

// Writes a model file, whole or not at all; weights beside it are written first. Throws Error if a parameter has no
// value or another shape than its value, and an Error that lists, with lines of the program, what ONNX cannot say. A
// value of another floating type is converted.
void export_onnx(const Graph& g, const OnnxValues& values, const std::string& path, const OnnxExportOptions& o = {});
// Returns the bytes of a model file. Throws Error if they are 2 GiB or more.
std::vector<std::byte> export_onnx(const Graph& g, const OnnxValues& values, const OnnxExportOptions& o = {});

}  // namespace lc
