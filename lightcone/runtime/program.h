// Program: a compiled graph. Context: the buffers of one run.
//
//   Program p = compile(g, generic() | cpu());
//   Context c(p);
//   c.set(a, {1, 2, 3}).run();
//   std::vector<float> y = c.get(b);
//
// A Program is immutable once its weights are loaded. Many threads may run it at once, each with its own Context.
// Context::run() allocates nothing if every node is a kernel. The reference interpreter runs nodes that no back end
// compiled.
//
// Values are in the memory of the device that the kernels are for. If this is not host memory, inputs and results are
// copied, and so are the operands and results of interpreted nodes.
//
// Memory grows with the bound sizes. Addresses are reserved for the largest sizes, and the first run with larger sizes
// than before may commit further pages. If the system has too few addresses (a limit on virtual memory), such a run
// plans the memory anew, which allocates.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/core/array_view.h"
#include "lightcone/core/tensor.h"
#include "lightcone/device/device.h"
#include "lightcone/device/plan.h"
#include "lightcone/passes/compiler.h"
#include "lightcone/reference/interpreter.h"
#include "lightcone/runtime/profile/profile.h"

namespace lc {

// A compiled graph with its weights. Copies share both.
class Program {
 public:
  // Gives an input its value in every context: a weight. `owner` keeps the bytes alive; they are not copied if the
  // device shares the host's memory. The data must be aligned to the element size. A state gets the value with which
  // each new context begins, as a copy. Values that depend on parameters alone (nn::parameter) are computed here and
  // stored in the program. An input that the compilers removed as unused may be loaded, too. Existing contexts use
  // newly loaded weights, except for states, from their next run on; none of them may be running meanwhile. Throws
  // Error for a name that the graph never had and for a wrong number of bytes.
  Program& load(std::string_view input, const void* data, std::size_t bytes, std::shared_ptr<const void> owner = {});
  // Loads an array whose shape and element type are checked. Its bytes must outlive the program unless `owner` keeps
  // them alive. Throws Error if the shape or type differs from the input's.
  Program& load(std::string_view input, const ArrayView& array, std::shared_ptr<const void> owner = {});
  // Loads elements [begin, begin + n) of one axis of a larger array, where n is the input's extent along that axis: the
  // part of a weight that one rank of several has. A slice of axis 0 is not copied if the device shares the host's
  // memory; of other axes only the slice is held. Throws Error if types, ranks or other extents differ, or if the slice
  // leaves the array.
  Program& load_slice(std::string_view input, const ArrayView& array, int axis, std::int64_t begin,
                      std::shared_ptr<const void> owner = {});
  // Returns true if runs read the bytes of this input themselves, and not only values computed from it at load.
  bool resident(std::string_view input) const;
  // Returns true if the input is a parameter, that is, made by nn::parameter or Graph::parameter().
  bool is_parameter(std::string_view input) const;

  const Graph& graph() const;            // the graph after all compilers
  std::span<const PassLog> log() const;  // the effect of each pass
  // Returns notes for the user as sentences, for example that kernels are interpreted because no C compiler works.
  std::vector<std::string> notes() const;
  std::shared_ptr<Device> device() const;  // device that the kernels are for
  // Returns the exact memory plan for the largest sizes that the bounds of the symbols allow. It is available before
  // any weight is loaded.
  const MemoryPlan& plan() const;
  // Returns the exact memory plan for the given sizes. Symbols without a value have their largest one.
  MemoryPlan plan(const Bindings& sizes) const;
  // Returns the names of the inputs that computed values read.
  std::vector<std::string> inputs() const;
  // Returns the names of the outputs.
  std::vector<std::string> outputs() const;
  bool has_symbol(std::string_view name) const;  // whether a size of the original graph has this symbol, needed or not
  std::size_t kernels() const;                   // number of nodes run as kernels
  std::size_t interpreted() const;               // number of nodes run by the interpreter
  // Returns the generated code of a kernel, by the name that profiles show, or "" if there is none.
  std::string source(std::string_view kernel) const;

  struct Impl;

 private:
  friend class Context;
  friend Program compile(const Graph&, const Compiler&, const CompileOptions&);
  Impl& impl() const;
  std::shared_ptr<Impl> impl_;
};

// Throws Error if the element type or shape of an array differs from the input's.
void check_array(const char* op, const Node& input, const ArrayView& array);

// Compiles a graph with a chain of compilers, such as generic() | cpu(). Throws Error for a graph without results and
// for kernels of two devices in one graph.
Program compile(const Graph& g, const Compiler& c = {}, const CompileOptions& options = {});

// The buffers, states and inputs of runs of one Program. A context may be used by one thread at a time.
class Context {
 public:
  // Creates a context that runs kernels on `parallel`, by default on the threads that the back end was compiled with.
  explicit Context(const Program& p, std::shared_ptr<Parallel> parallel = {});
  // Creates a context on another device, which must share its memory with the program's device.
  explicit Context(const Program& p, std::shared_ptr<Device> device);
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;
  ~Context();

  // Binds a symbolic extent to a value. Throws Error for a value outside of its bounds and for a name that the graph
  // never had.
  Context& bind(std::string_view symbol, std::int64_t value);
  // Copies numbers into an input and converts them to its dtype. Throws Error if an integer dtype cannot represent one
  // of them.
  Context& set(std::string_view input, std::span<const float> values);
  Context& set(std::string_view input, std::span<const std::int64_t> values);
  Context& set(const Tensor& input, std::span<const float> values);
  Context& set(const Tensor& input, std::initializer_list<float> values) {
    return set(input, std::span<const float>(values.begin(), values.size()));
  }
  // Copies an array into an input. Binds symbols that are extents of the input to those of the array. Throws Error if
  // its shape or element type differs from the input's.
  Context& set(std::string_view input, const ArrayView& array);
  Context& set(const Tensor& input, const ArrayView& array);
  // Copies raw bytes into an input, in row-major order and in the input's dtype.
  Context& set_bytes(std::string_view input, const void* data, std::size_t bytes);
  // Uses the caller's memory for an input or a state, without a copy. It must hold the largest size and be aligned to
  // the element size. A state keeps the value that the memory holds. A device with its own memory copies it in before
  // each run and copies a state out after it.
  Context& use(std::string_view input, void* data, std::size_t bytes);
  // Uses constant memory for an input that is only read, such as bytes() of another context (valid until that one's
  // next run). Throws Error for a state, because runs write it.
  Context& use(std::string_view input, std::span<const std::byte> data);
  // Sets all states to zero, including loaded ones.
  void clear_states();

  // Runs the program once with the inputs and sizes set so far. Throws Error if an input or a size is missing.
  Context& run();
  // Whether run_checked() accepts an output that holds an infinity.
  enum class Infinities : std::uint8_t { Allowed, Refused };
  // Runs the program and examines every value after each kernel. If an output holds NaN, throws Error with the
  // operation in which it first appeared, the parameters that this operation reads and the origin of the infinity that
  // caused it, if any. With Refused, an infinity in an output throws in the same way.
  Context& run_checked(Infinities infinities = Infinities::Allowed);

  // Returns the memory plan for the sizes bound so far (Program::plan() is for the largest ones).
  MemoryPlan plan() const;
  // Returns the bytes that this context has from the system: for values of the largest sizes so far, states and inputs
  // that were set.
  std::size_t memory_bytes() const;

  // Returns an output, or the value of a state, converted to the element type of the result. get_i64() returns the bits
  // of a u64: numbers above INT64_MAX come out negative, and a cast to std::uint64_t restores them; set() accepts them
  // in this form.
  std::vector<float> get(std::string_view output) const;
  std::vector<float> get(const Tensor& output) const;
  std::vector<double> get_f64(std::string_view output) const;
  std::vector<std::int64_t> get_i64(std::string_view output) const;
  // Returns the only element of an output. Throws Error if it has another number of elements.
  float scalar(std::string_view output) const;
  // Returns the raw bytes of an output in row-major order, valid until the next run. For a state or another input: its
  // current value. Outputs that are views of other values are copied by the back end, so this works for every compiled
  // program.
  std::span<const std::byte> bytes(std::string_view output) const;
  // Returns the shape of an output for the sizes bound so far.
  std::vector<std::int64_t> shape(std::string_view output) const;
  // Returns an output, or the value of a state or input, as the reference interpreter represents it.
  Value value(std::string_view output) const;

  // Starts profiling from zero, or stops it. While it is on, every kernel of a run is measured; profile() returns the
  // result.
  void profile(bool on);
  // Returns what was measured since profile(true).
  Profile profile() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lc
