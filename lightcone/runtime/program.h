// Program: a compiled graph. Context: one run's buffers.
//
//   Program p = compile(g, generic() | cpu());
//   Context c(p);
//   c.set(a, {1, 2, 3}).run();
//   std::vector<float> y = c.get(b);
//
// A Program is immutable once its weights are loaded and may run from many threads at once, each
// with a Context of its own. Context::run() allocates nothing when every node is a kernel; nodes
// no back end took are run by the reference interpreter.
//
// Values lie in the memory of the device that the kernels are for. Where that is not the host's, inputs and results are
// copied, and so are the operands and results of nodes that the interpreter runs.
//
// Memory follows the sizes that are bound. Addresses are reserved for the largest ones, and the first run with larger
// sizes than before may ask the system for pages behind them. Where there are not that many addresses (a limit on
// virtual memory), that run lays the values out anew, which allocates.
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

class Program {
 public:
  // Gives an input its bytes for every context: a weight. `owner` keeps them alive; nothing is
  // copied where the device shares the host's memory. The data must be aligned to its element size. Of a state it is
  // the value that each new context begins with, in a copy of its own. What depends on parameters alone (nn::parameter)
  // is computed here, into memory of the program. An input that the compilers found no use for may be loaded, too; a
  // name that the graph never had is an Error. Contexts that exist take what is loaded later with their next run, but
  // for states; none may be running meanwhile.
  Program& load(std::string_view input, const void* data, std::size_t bytes, std::shared_ptr<const void> owner = {});
  // The same with the shape and the element type, which must be those of the input; the bytes outlive the program, or
  // `owner` keeps them alive.
  Program& load(std::string_view input, const ArrayView& array, std::shared_ptr<const void> owner = {});
  // Do runs read the bytes of this input themselves, or only what was made of them?
  bool resident(std::string_view input) const;
  bool is_parameter(std::string_view input) const;

  const Graph& graph() const;            // as the compilers left it
  std::span<const PassLog> log() const;  // what each pass did
  // What the user should know, as sentences: that kernels are interpreted because no compiler works, for one.
  std::vector<std::string> notes() const;
  std::shared_ptr<Device> device() const;  // that the kernels are for
  // Exact bytes for the largest sizes that the bounds of the symbols allow, known before any weight is read;
  const MemoryPlan& plan() const;
  // and for these. A symbol without a value has its largest.
  MemoryPlan plan(const Bindings& sizes) const;
  std::vector<std::string> inputs() const;
  std::vector<std::string> outputs() const;
  bool has_symbol(std::string_view name) const;  // in the sizes of the graph that was compiled, needed or not
  std::size_t kernels() const;                   // nodes a back end runs
  std::size_t interpreted() const;               // nodes left to the interpreter
  // The generated code of a kernel, by the name profiles show; "" where there is none.
  std::string source(std::string_view kernel) const;

  struct Impl;

 private:
  friend class Context;
  friend Program compile(const Graph&, const Compiler&, const CompileOptions&);
  Impl& impl() const;
  std::shared_ptr<Impl> impl_;
};

// Error for an array of another element type or shape than an input has.
void check_array(const char* op, const Node& input, const ArrayView& array);

Program compile(const Graph& g, const Compiler& c = {}, const CompileOptions& options = {});

class Context {
 public:
  // `parallel` runs the kernels; by default what the back end was compiled with.
  explicit Context(const Program& p, std::shared_ptr<Parallel> parallel = {});
  // On another device than the program's, which must share its memory with it.
  explicit Context(const Program& p, std::shared_ptr<Device> device);
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;
  ~Context();

  // The number behind a symbolic extent, within its bounds. Error for a name that the graph never had.
  Context& bind(std::string_view symbol, std::int64_t value);
  // Copies data in, converting numbers to the input's dtype.
  Context& set(std::string_view input, std::span<const float> values);
  Context& set(std::string_view input, std::span<const std::int64_t> values);
  Context& set(const Tensor& input, std::span<const float> values);
  Context& set(const Tensor& input, std::initializer_list<float> values) {
    return set(input, std::span<const float>(values.begin(), values.size()));
  }
  // The same with a shape and an element type, which must be those of the input.
  Context& set(std::string_view input, const ArrayView& array);
  Context& set(const Tensor& input, const ArrayView& array);
  Context& set_bytes(std::string_view input, const void* data, std::size_t bytes);
  // Uses the caller's memory for an input or a state; it must hold the largest size and be aligned to
  // the element size. A state keeps what the memory holds. A device with memory of its own copies it in before each
  // run, and a state out behind it.
  Context& use(std::string_view input, void* data, std::size_t bytes);
  // The same for an input that is only read, such as what bytes() of another context gives (good until that one's next
  // run). Error for a state, which is written.
  Context& use(std::string_view input, std::span<const std::byte> data);
  void clear_states();  // all to zero, those that were loaded too

  Context& run();
  // The same with every value looked at, kernel by kernel: where an output holds NaN, an Error says in which operation
  // it appeared first, which parameters that reads, and where the infinity came from that it was made of, if it was. An
  // infinity in an output may be refused in the same way.
  enum class Infinities : std::uint8_t { Allowed, Refused };
  Context& run_checked(Infinities infinities = Infinities::Allowed);

  // The plan for what is bound so far (Program::plan() is for the largest sizes), and the bytes this context has from
  // the system: for values of the largest sizes so far, for states and for inputs that were set.
  MemoryPlan plan() const;
  std::size_t memory_bytes() const;

  // The result of an output (or what a state holds), converted. get_i64() gives the bits of a u64: numbers above
  // INT64_MAX come out negative, a cast to std::uint64_t has them back, and set() takes them so.
  std::vector<float> get(std::string_view output) const;
  std::vector<float> get(const Tensor& output) const;
  std::vector<double> get_f64(std::string_view output) const;
  std::vector<std::int64_t> get_i64(std::string_view output) const;
  float scalar(std::string_view output) const;
  // The raw bytes in row-major order: valid until the next run. Outputs that are a view of
  // something else are copied by the back end, so that this always works for compiled programs. Of a state or another
  // input: what it holds.
  std::span<const std::byte> bytes(std::string_view output) const;
  std::vector<std::int64_t> shape(std::string_view output) const;
  Value value(std::string_view output) const;

  // Switched on, runs are measured kernel by kernel (from zero); profile() says what was found.
  void profile(bool on);
  Profile profile() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lc
