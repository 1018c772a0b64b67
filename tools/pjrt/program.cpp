// Programs: StableHLO as text or bytecode, compiled by generic() and cpu(), and their runs.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/pjrt/client.h"
#include "lightcone/passes/passes.h"
#include "lightcone/stablehlo/read.h"
#include "objects.h"
#include "options.h"

namespace lc::backends::pjrt::api {
namespace {

template <class Args>
void say(Args& args, std::string_view text) {
  args.list = text.data(), args.count = text.size();
}

// FNV-1a, 64 bits.
std::string fingerprint_of(std::string_view text) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  std::string hex;
  for (int shift = 60; shift >= 0; shift -= 4) hex += "0123456789abcdef"[h >> shift & 15];
  return hex;
}

// Reads a module. The reader's message has the place and the reason; features that are not supported are no error of
// the caller.
StableHloProgram read(const stablehlo::Module& module) {
  try {
    return read_stablehlo(module);
  } catch (const lc::Error& e) {
    const bool lacking = e.problem().find("not supported") != std::string::npos;
    throw Failure(lacking ? ErrorCode::Unimplemented : ErrorCode::InvalidArgument, e.what());
  }
}
stablehlo::Module parse(std::string_view text) {
  try {
    return stablehlo::parse(text);
  } catch (const lc::Error& e) {
    invalid(e.what());
  }
}

// Returns the type of an argument or result. A graph has complex numbers as arrays of their parts, with a last axis of
// two and the same layout in memory.
ArrayType type_of(const TensorType& t, bool is_complex) {
  std::vector<std::int64_t> dims;
  for (const Dim& d : t.shape) dims.push_back(d.eval({}));
  if (!is_complex) return {backends::pjrt::type_of(t.dtype), std::move(dims)};
  dims.pop_back();
  return {t.dtype == DType::F64 ? BufferType::C128 : BufferType::C64, std::move(dims)};
}

// Lists the program's inputs and outputs, in the order of @main's arguments and results.
void describe(const StableHloProgram& p, Compiled& c) {
  std::map<std::string_view, TensorType> inputs, outputs;
  for (NodeId id = 0; id < p.graph.size(); ++id)
    if (const Node& n = p.graph[id]; n.op == Op::Input) inputs.emplace(n.name, TensorType{n.dtype, n.shape});
  for (const Root& r : p.graph.roots())
    outputs.emplace(r.name, TensorType{p.graph[r.edge.node].dtype, r.edge.view.shape()});
  c.inputs = p.inputs, c.outputs = p.outputs;
  const auto types = [](const auto& names, const auto& all, const std::set<int>& complex) {
    std::vector<ArrayType> r;
    for (const std::string& name : names)
      r.push_back(type_of(all.at(name), complex.contains(static_cast<int>(r.size()))));
    return r;
  };
  c.arguments = types(p.inputs, inputs, p.complex_inputs);
  c.results = types(p.outputs, outputs, p.complex_outputs);
  c.takes_memory_of.assign(c.results.size(), -1);
  for (const auto& [argument, result] : p.donated) {
    const auto a = static_cast<std::size_t>(argument), r = static_cast<std::size_t>(result);
    if (a >= c.arguments.size() || r >= c.results.size()) invalid("a donated argument or its result does not exist");
    if (c.arguments[a].bytes != c.results[r].bytes)
      invalid(str_cat("argument ", a, ", ", c.arguments[a].str(), ", cannot give its memory to ", c.results[r].str()));
    c.takes_memory_of[r] = argument;
  }
}

void compile(ClientCompile& args) {
  if (args.program) check_part(args.program, known_size<Program>(), "the program");
  if (!args.program || !args.program->code) invalid("there is no program to compile");
  const std::string_view format(args.program->format, args.program->format_size);
  if (format != "mlir")
    unimplemented(str_cat("a program of format '", format, "': StableHLO, of format 'mlir', is supported"));
  check_options({args.options, args.options_size});
  const std::string_view text(args.program->code, args.program->code_size);
  const stablehlo::Module module = parse(text);
  const StableHloProgram source = read(module);
  if (!source.checks.empty())
    unimplemented("the program checks its own results, which is for tests and not supported here");
  auto c = std::make_shared<Compiled>();
  c->name = module.name.empty() ? "main" : module.name;
  c->fingerprint = fingerprint_of(text);
  describe(source, *c);
  c->program = lc::compile(source.graph, generic() | lc::cpu({.threads = args.of->threads}));
  source.load_constants(c->program);
  for (const Root& r : c->program.graph().roots())
    c->passes_inputs_on = c->passes_inputs_on || c->program.graph()[r.edge.node].op == Op::Input;
  args.executable = new LoadedExecutable(std::move(c));
}

// ---- runs ---------------------------------------------------------------------------------------

// A context that no other run uses meanwhile. It is not reused if a run threw Error.
class Borrowed {
 public:
  explicit Borrowed(Compiled& c) : c_(c) {
    const std::lock_guard lock(c.mutex);
    if (c.idle.empty()) return;
    context_ = std::move(c.idle.back());
    c.idle.pop_back();
  }
  lc::Context& get() {
    if (!context_) context_ = std::make_unique<lc::Context>(c_.program);
    return *context_;
  }
  void give_back() {
    const std::lock_guard lock(c_.mutex);
    c_.idle.push_back(std::move(context_));
  }

 private:
  Compiled& c_;
  std::unique_ptr<lc::Context> context_;
};

void check_arguments(const LoadedExecutableExecute& args, const Compiled& c) {
  if (args.devices != 1) invalid(str_cat("the program runs on one device, not on ", args.devices));
  if (args.device && args.device != &machine().device) invalid("there is no such device: there is one");
  if (args.options) check_part(args.options, known_size<ExecuteOptions>(), "the options of a run");
  if (args.options && (args.options->callback_counts[0] || args.options->callback_counts[1]))
    unimplemented("send and receive callbacks are not supported");
  if (args.count != c.arguments.size())
    invalid(str_cat("the program takes ", c.arguments.size(), " arguments, and there are ", args.count));
  for (std::size_t k = 0; k < args.count; ++k) {
    const Buffer* b = args.arguments[0][k];
    if (!b) invalid(str_cat("argument ", k, " is no buffer"));
    if (!(b->type == c.arguments[k]))
      invalid(str_cat("argument ", k, " is ", b->type.str(), ", and the program takes ", c.arguments[k].str()));
  }
}

// Returns, by result, the argument whose memory this run donates to it, or -1.
std::vector<int> donated(const LoadedExecutableExecute& args, const Compiled& c) {
  std::vector<int> from = c.takes_memory_of;
  const ExecuteOptions* o = args.options;
  for (std::size_t k = 0; o && k < o->not_donated_count; ++k)
    std::ranges::replace(from, static_cast<int>(o->not_donated[k]), -1);
  return from;
}

void execute(LoadedExecutableExecute& args) {
  const std::shared_ptr<Compiled> c = args.of->compiled();
  check_arguments(args, *c);
  std::vector<std::shared_ptr<Bytes>> in;
  for (std::size_t k = 0; k < args.count; ++k) in.push_back(args.arguments[0][k]->bytes());

  Borrowed borrowed(*c);
  lc::Context& context = borrowed.get();
  for (std::size_t k = 0; k < in.size(); ++k) context.use(c->inputs[k], in[k]->data(), in[k]->size());
  context.run();

  const std::vector<int> from = donated(args, *c);
  std::vector<std::unique_ptr<Buffer>> out;
  for (std::size_t k = 0; k < c->results.size(); ++k) {
    const std::span<const std::byte> value = context.bytes(c->outputs[k]);
    std::shared_ptr<Bytes> bytes;
    if (from[k] >= 0 && !c->passes_inputs_on) bytes = in[static_cast<std::size_t>(from[k])];
    // The buffer, `in` and this function have a reference each; with three in all, nothing else reads it.
    if (!bytes || !bytes->is_own() || bytes.use_count() != 3) bytes = std::make_shared<Bytes>(value.size());
    if (!value.empty()) std::memcpy(bytes->data(), value.data(), value.size());
    out.push_back(std::make_unique<Buffer>(c->results[k], std::move(bytes)));
  }
  std::unique_ptr<Event> ready(args.done ? done() : nullptr);
  borrowed.give_back();
  // No call below can fail.
  for (const int argument : from)
    if (argument >= 0) args.arguments[0][argument]->release();
  for (std::size_t k = 0; k < out.size(); ++k) args.results[0][k] = out[k].release();
  if (args.done) args.done[0] = ready.release();
}

// ---- what a program says of itself --------------------------------------------------------------

void get_executable(LoadedExecutableGetExecutable& args) { args.value = new Executable(args.of->compiled()); }
void devices(LoadedExecutableAddressableDevices& args) { args.list = machine().devices, args.count = 1; }
// Returns a DeviceAssignmentProto: one replica, one computation, on device 0.
void device_assignment(LoadedExecutableGetDeviceAssignment& args) {
  static constexpr char kBytes[] = {0x08, 1, 0x10, 1, 0x1a, 3, 0x0a, 1, 0};
  args.bytes = kBytes, args.size = sizeof kBytes;
  args.owner = nullptr, args.destroy = [](void*) {};
}
void remove(LoadedExecutableDelete& args) { args.of->release(); }
void is_deleted(LoadedExecutableIsDeleted& args) { args.value = args.of->is_deleted(); }
void loaded_fingerprint(LoadedExecutableFingerprint& args) { say(args, args.of->compiled()->fingerprint); }
void fingerprint(ExecutableFingerprint& args) { say(args, args.of->compiled->fingerprint); }
void name(ExecutableName& args) { say(args, args.of->compiled->name); }
void replicas(ExecutableNumReplicas& args) { args.value = 1; }
void partitions(ExecutableNumPartitions& args) { args.value = 1; }
void num_outputs(ExecutableNumOutputs& args) { args.value = args.of->types.size(); }
void output_types(ExecutableOutputElementTypes& args) {
  args.list = args.of->types.data(), args.count = args.of->types.size();
}
void output_dimensions(ExecutableOutputDimensions& args) {
  args.count = args.of->ranks.size(), args.dims = args.of->dims.data(), args.ranks = args.of->ranks.data();
}
void output_memory_kinds(ExecutableOutputMemoryKinds& args) {
  args.count = args.of->memory_kinds.size();
  args.kinds = args.of->memory_kinds.data(), args.sizes = args.of->memory_kind_sizes.data();
}
void cost(ExecutableGetCostAnalysis& args) { args.list = args.of->cost.data(), args.count = args.of->cost.size(); }

// The code of kernels is not counted.
void memory_stats(ExecutableCompiledMemoryStats& args) {
  const Compiled& c = *args.of->compiled;
  args.host = args.device = {};
  for (const ArrayType& t : c.arguments) args.device.arguments += static_cast<std::int64_t>(t.bytes);
  for (std::size_t k = 0; k < c.results.size(); ++k) {
    const auto bytes = static_cast<std::int64_t>(c.results[k].bytes);
    args.device.results += bytes;
    if (c.takes_memory_of[k] >= 0) args.device.shared += bytes;
  }
  args.device.temporary = static_cast<std::int64_t>(c.program.plan().arena_bytes);
}

void optimised(ExecutableOptimizedProgram& args) {
  if (!args.program) invalid("there is no program to fill in");
  check_part(args.program, known_size<Program>(), "the program");
  const std::string code = args.of->compiled->program.graph().str();
  args.program->format = "lightcone", args.program->format_size = 9;
  if (args.program->code) {
    if (args.program->code_size < code.size()) invalid(str_cat("the program has ", code.size(), " bytes"));
    std::memcpy(args.program->code, code.data(), code.size());
  }
  args.program->code_size = code.size();
}

}  // namespace

Executable::Executable(std::shared_ptr<Compiled> c) : compiled(std::move(c)) {
  for (const ArrayType& t : compiled->results) {
    types.push_back(t.type);
    dims.insert(dims.end(), t.dims.begin(), t.dims.end());
    ranks.push_back(t.dims.size());
    memory_kinds.push_back(Memory::kind.data());
    memory_kind_sizes.push_back(Memory::kind.size());
  }
  double flops = 0;
  const Graph& g = compiled->program.graph();
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].op == Op::Kernel) flops += static_cast<double>(g[id].kernel->flops().eval({}));
  NamedValue v{{sizeof(NamedValue), nullptr}, "flops", 5, ValueKind::Float, {}, 1};
  v.real = static_cast<float>(flops);
  cost.push_back(v);
}

std::shared_ptr<Compiled> LoadedExecutable::compiled() const {
  const std::lock_guard lock(mutex_);
  if (!compiled_) invalid("the program was deleted");
  return compiled_;
}
void LoadedExecutable::release() {
  const std::lock_guard lock(mutex_);
  compiled_ = nullptr;
}
bool LoadedExecutable::is_deleted() const {
  const std::lock_guard lock(mutex_);
  return !compiled_;
}

void add_program_functions(Api& table) {
  add<ClientCompile, compile>(table);
  add_destroy<LoadedExecutableDestroy>(table);
  add_destroy<ExecutableDestroy>(table);
  add<LoadedExecutableExecute, execute>(table);
  add<LoadedExecutableGetExecutable, get_executable>(table);
  add<LoadedExecutableAddressableDevices, devices>(table);
  add<LoadedExecutableGetDeviceAssignment, device_assignment>(table);
  add<LoadedExecutableDelete, remove>(table);
  add<LoadedExecutableIsDeleted, is_deleted>(table);
  add<LoadedExecutableFingerprint, loaded_fingerprint>(table);
  add<ExecutableFingerprint, fingerprint>(table);
  add<ExecutableName, name>(table);
  add<ExecutableNumReplicas, replicas>(table);
  add<ExecutableNumPartitions, partitions>(table);
  add<ExecutableNumOutputs, num_outputs>(table);
  add<ExecutableOutputElementTypes, output_types>(table);
  add<ExecutableOutputDimensions, output_dimensions>(table);
  add<ExecutableOutputMemoryKinds, output_memory_kinds>(table);
  add<ExecutableGetCostAnalysis, cost>(table);
  add<ExecutableOptimizedProgram, optimised>(table);
  add<ExecutableCompiledMemoryStats, memory_stats>(table);
}

}  // namespace lc::backends::pjrt::api
