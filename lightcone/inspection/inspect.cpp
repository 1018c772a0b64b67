#include "lightcone/inspection/inspect.h"

#include <algorithm>

#include "lightcone/inspection/parts.h"
#include "lightcone/passes/symbols.h"
#include "lightcone/runtime/default_compiler.h"
#include "lightcone/runtime/program.h"

namespace lc {
namespace inspection {

FileDescription::Needs needs_of(const Graph& g) {
  const Program p = compile(g, default_compiler());
  Bindings sizes;
  for (const auto& [name, bounds] : symbols_of(g)) sizes[name] = std::max<std::int64_t>(bounds.lo, 1);
  const MemoryPlan plan = p.plan(sizes);
  const auto bytes = [](std::size_t n) { return static_cast<std::int64_t>(n); };
  return {bytes(plan.input_bytes + plan.prepared_bytes), bytes(plan.arena_bytes), bytes(plan.state_bytes),
          std::move(sizes)};
}

void add_tensor(FileDescription& d, FileDescription::Stored t, std::int64_t elements) {
  d.parameters += elements;
  d.bytes += t.bytes;
  d.types[t.type] += t.bytes;
  d.tensors.push_back(std::move(t));
}

}  // namespace inspection

FileDescription inspect(const std::string& path, const InspectOptions& o) {
  FileDescription d{.path = path, .format = file_format(path)};
  switch (d.format) {
    case FileFormat::Onnx: inspection::describe_onnx_file(d, o); break;
    case FileFormat::StableHlo: inspection::describe_stablehlo_file(d, o); break;
    case FileFormat::Gguf:
    case FileFormat::Safetensors:
    case FileFormat::PyTorch:
    case FileFormat::Llama2c: return inspect(Weights::open(path, o.read), o);
    case FileFormat::Npz:
    case FileFormat::Npy: inspection::describe_arrays(d, o); break;
    case FileFormat::Tokenizer: inspection::describe_tokenizer(d, o); break;
    case FileFormat::Picture: inspection::describe_picture(d, o); break;
    case FileFormat::Sound: inspection::describe_sound(d, o); break;
  }
  return d;
}

FileDescription inspect(const Weights& w, const InspectOptions& o) {
  FileDescription d{.path = w.path(), .format = inspection::format_of(w)};
  inspection::describe_checkpoint(w, d, o);
  return d;
}

}  // namespace lc
