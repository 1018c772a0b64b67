#include "lightcone/backends/pjrt/kernel.h"

#include <algorithm>

#include "lightcone/backends/pjrt/device.h"
#include "lightcone/base/error.h"
#include "lightcone/core/composite.h"
#include "lightcone/passes/symbols.h"
#include "lightcone/stablehlo/write.h"

namespace lc::backends::pjrt {
namespace {

std::vector<Dim> sizes_of(const Graph& g) {
  std::vector<Dim> dims;
  for (const auto& [name, b] : symbols_of(g)) dims.push_back(Dim::symbol(name, b.lo, b.hi));
  return dims;
}

}  // namespace

struct ProgramKernel::Compiled {
  struct Type {
    DType dtype;
    std::vector<std::int64_t> shape;
    std::size_t bytes;
  };
  static Type settle(const TensorType& t) {
    Type s{t.dtype, {}, size_of(t.dtype)};
    for (const Dim& d : t.shape) s.shape.push_back(d.eval({})), s.bytes *= static_cast<std::size_t>(s.shape.back());
    return s;
  }
  Executable executable;
  struct Argument {
    std::size_t operand;
    Type type;
    bool donated;
  };
  std::vector<Argument> arguments;
  std::vector<Type> results;
};

ProgramKernel::ProgramKernel(const Graph& g, std::vector<std::string> operands, std::vector<std::int64_t> offsets,
                             Precision precision, std::size_t programs)
    : graph_(g.clone()),
      offsets_(std::move(offsets)),
      precision_(precision),
      programs_(std::max<std::size_t>(programs, 1)),
      sizes_(sizes_of(g)) {
  for (std::size_t k = 0; k < operands.size(); ++k) operands_.emplace(std::move(operands[k]), k);
}

std::shared_ptr<const ProgramKernel::Compiled> ProgramKernel::compile(const Bindings& sizes, PjrtDevice& device) const {
  const StableHloExport exported = export_stablehlo(graph_, sizes, precision_);
  auto done = std::make_shared<Compiled>(Compiled{device.client().compile(exported.text(), device.index()), {}, {}});
  for (const StableHloExport::Argument& a : exported.arguments) {
    const auto at = operands_.find(a.name);
    check(at != operands_.end(), "an argument of the program is no input of the graph");
    done->arguments.push_back({at->second, Compiled::settle(a.type), a.result >= 0});
  }
  for (const StableHloExport::Result& r : exported.results) done->results.push_back(Compiled::settle(r.type));
  if (done->executable.results() != done->results.size())
    throw Error("pjrt", str_cat("the plugin makes ", done->executable.results(), " results of a program that has ",
                                done->results.size(), ": it does not do what StableHLO says"));
  return done;
}

std::shared_ptr<const ProgramKernel::Compiled> ProgramKernel::compiled(const Bindings& sizes,
                                                                       PjrtDevice& device) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(kept_, sizes, [](const auto& k) -> const Bindings& { return k.first; });
  if (found != kept_.end()) {
    std::rotate(found, found + 1, kept_.end());
  } else {
    auto fresh = compile(sizes, device);
    if (kept_.size() >= programs_) kept_.erase(kept_.begin());
    kept_.emplace_back(sizes, std::move(fresh));
  }
  return kept_.back().second;
}

void ProgramKernel::run(const Launch& l, PjrtDevice& device) const {
  Bindings sizes;
  for (std::size_t k = 0; k < sizes_.size(); ++k) sizes.emplace(*sizes_[k].name(), l.sizes[k]);
  const std::shared_ptr<const Compiled> program = compiled(sizes, device);
  Table& out = static_cast<Table&>(*l.out.buffer);
  // The last run's value may have become the value of a state by now, and must not be shared.
  out.clear(l.out.offset, static_cast<std::size_t>(offsets_.back()));

  std::vector<std::shared_ptr<const Array>> arrays;
  std::vector<const Array*> arguments;
  std::vector<std::int64_t> kept;
  for (const Compiled::Argument& a : program->arguments) {
    const BufferSlice at = l.in[a.operand];
    Table& in = static_cast<Table&>(*at.buffer);
    const std::shared_ptr<const Data> data = in.value(at.offset, a.type.bytes);
    if (!a.donated || !in.owns(at.offset, data)) kept.push_back(static_cast<std::int64_t>(arguments.size()));
    arrays.push_back(data->array(device.client(), device.index(), a.type.dtype, a.type.shape));
    arguments.push_back(arrays.back().get());
  }
  std::optional<Event> done;
  std::vector<Array> results = program->executable.execute(arguments, kept, &done);
  for (std::size_t k = 0; k < results.size(); ++k)
    out.put(
        l.out.offset + static_cast<std::size_t>(offsets_[k]),
        std::make_shared<const Data>(program->results[k].bytes, std::make_shared<const Array>(std::move(results[k]))));
  device.remember(std::move(*done));
}

}  // namespace lc::backends::pjrt
