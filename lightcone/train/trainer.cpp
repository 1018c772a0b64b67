#include "lightcone/train/trainer.h"

#include <algorithm>
#include <cmath>

#include "lightcone/base/numbers.h"
#include "lightcone/io/checkpoints/parts.h"
#include "lightcone/io/checkpoints/save.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/io/printable.h"

namespace lc {
namespace {

std::vector<std::int64_t> extents(const Node& n) {
  std::vector<std::int64_t> s;
  for (const Dim& d : n.shape) {
    const auto known = d.constant();
    if (!known)
      throw Error("trainer", str_cat("the state '", n.name, "' has an extent ", d, ": states of training are numbers"));
    s.push_back(*known);
  }
  return s;
}

// Loads a copy of `bytes` that lives as long as the program needs it.
void load_copy(Program& p, const std::string& name, std::span<const std::byte> bytes) {
  const auto kept = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
  p.load(name, kept->data(), kept->size(), kept);
}

std::string same_name(const std::string& name) { return name; }

void check_trains(const nn::ModelBase& model) {
  const auto assigned = model.graph().assignments();
  const auto is_assigned = [&](const nn::Entry& e) {
    return std::ranges::find(assigned, e.tensor.edge().node, &Assignment::state) != assigned.end();
  };
  if (!model.entries().empty() && std::ranges::none_of(model.entries(), is_assigned))
    throw Error("trainer",
                "no step would change a parameter: update(model, optimizer, backward(std::move(loss))) is missing");
}

// A buffer in which PyTorch counts batches. A file may hold it although the model does not have it.
constexpr std::string_view kCounter = "num_batches_tracked";

bool is_of(const std::string& name, const std::string& layer) { return name == layer || name.starts_with(layer + "."); }

// The first value of an entry, or this rank's part of it.
nn::ModelBase::FirstValue part_of_first(const nn::Entry& e, const std::optional<TrainingRanks>& ranks,
                                        std::int64_t seed) {
  nn::ModelBase::FirstValue whole = nn::ModelBase::first_value(e, seed);
  if (!ranks) return whole;
  const Node& n = e.tensor.graph()[e.tensor.edge().node];
  const auto kept = std::make_shared<const ArrayPart>(part_of(
      ranks->collectives.mesh(), ranks->collectives.rank(), ranks->specs, n.name, {n.dtype, extents(n), whole.bytes}));
  return {kept, kept->bytes};
}
void initialise_parts(const nn::ModelBase& model, Program& p, const TrainingRanks& ranks, std::int64_t seed) {
  for (const nn::Entry& e : model.entries()) {
    const auto v = part_of_first(e, ranks, seed);
    p.load(e.name, v.bytes.data(), v.bytes.size(), v.owner);
  }
}

}  // namespace

Trainer::Trainer(const nn::ModelBase& model, const Compiler& c, const TrainerOptions& o)
    : loss_(o.loss),
      ranks_(o.ranks),
      checked_(o.checked),
      program_(compile(model.graph(), o.ranks ? shard(o.ranks->collectives, o.ranks->specs) | c : c,
                       [&] {
                         check_trains(model);
                         CompileOptions options = o.compile;
                         options.checks = options.checks || o.checked;
                         return options;
                       }())),
      context_([&] {
        if (ranks_) initialise_parts(model, program_, *ranks_, o.seed);
        else model.initialise(program_, o.seed);
        return Context(program_);
      }()),
      adapters_(model.adapters()) {
  const Graph &g = model.graph(), &compiled = program_.graph();  // compilers may add states: a loss scale
  std::map<std::string, Stored> states;
  const auto add = [&](const Node& n) { states.insert({n.name, {n.name, n.dtype, extents(n), false}}); };
  for (const Assignment& a : compiled.assignments()) add(compiled[a.state]);
  for (const Assignment& a : g.assignments())
    if (const auto s = states.find(g[a.state].name); s != states.end()) s->second.shape = extents(g[a.state]);
  for (auto& [name, s] : states) s.state = true;
  for (const nn::Entry& e : model.entries()) {
    const Node& n = g[e.tensor.edge().node];
    add(n);  // includes frozen parameters
    const Stored& s = states.at(n.name);
    parameters_.push_back(s);
    if (!s.state) frozen_[s.name] = part_of_first(e, ranks_, o.seed);
  }
  for (auto& [name, s] : states) all_.push_back(std::move(s));
}

float Trainer::step() {
  if (checked_) context_.run_checked(Context::Infinities::Refused);
  else context_.run();
  const float loss = context_.scalar(loss_);
  if (!std::isfinite(loss))
    throw Error(
        "step",
        str_cat("the loss of step ", steps_, " is ", loss,
                checked_
                    ? ""
                    : "; with TrainerOptions::checked the operation that gave the first NaN or infinity is named"));
  ++steps_;
  return loss;
}

void Trainer::copy_to(Program& other, const std::string& average) const {
  bool found = average.empty();
  for (const Stored& s : parameters_) {
    const bool averaged = std::ranges::any_of(all_, [&](const Stored& o) { return o.name == s.name + average; });
    found = found || averaged;
    load_copy(other, s.name, bytes(averaged ? s.name + average : s.name));
  }
  if (!found) throw Error("copy_to", str_cat("no parameter has a state '<parameter>", average, "'"));
}

void Trainer::write(const std::string& path, const std::vector<Stored>& what,
                    std::map<std::string, std::string> metadata) const {
  SafetensorsWriter file(path, to_save(what), metadata);
  for (const TensorToSave& t : in_file_order(to_save(what))) {
    ArrayPart kept;
    file.write(gathered(*std::ranges::find(what, t.name, &Stored::name), kept));
  }
  file.commit();
}

// Checks the whole file before it changes any value.
void Trainer::read(const Weights& file, const std::vector<Stored>& what, Types types, const Names& name_in_file,
                   const std::function<void()>& also) {
  for (const Stored& s : what) {
    const std::string in_file = name_in_file(s.name);
    const StoredTensor* t = file.find(in_file);
    if (!t) throw Error("load", str_cat("'", file.path(), "' has no '", in_file, "'"));
    const bool converts = types == Types::Converted && s.dtype == DType::F32 && (!t->dtype || is_float(*t->dtype));
    if ((t->dtype != s.dtype && !converts) || t->shape != s.shape)
      throw Error("load", str_cat("'", in_file, "' is ", t->type, " ", str(Shape(t->shape.begin(), t->shape.end())),
                                  " in '", file.path(), "', the model has ", name(s.dtype), " ",
                                  str(Shape(s.shape.begin(), s.shape.end()))));
  }
  if (also) also();
  for (const Stored& s : what) {
    const StoredTensor& t = file.at(name_in_file(s.name));
    const std::vector<float> converted = t.dtype == s.dtype ? std::vector<float>() : Weights::read(t);
    const auto bytes = t.dtype == s.dtype ? t.bytes : std::as_bytes(std::span(converted));
    if (s.state && !is_divided(s)) {
      context_.set_bytes(s.name, bytes.data(), bytes.size());
      continue;
    }
    const auto kept = std::make_shared<const ArrayPart>(part(s, {s.dtype, s.shape, bytes}));
    if (s.state) {
      context_.set_bytes(s.name, kept->bytes.data(), kept->bytes.size());
      continue;
    }
    program_.load(s.name, kept->bytes.data(), kept->bytes.size(), kept);
    frozen_[s.name] = {kept, kept->bytes};
  }
}

void Trainer::save_parameters(const std::string& path, const std::map<std::string, std::string>& metadata) const {
  on_rank_0([&] { write(path, parameters_, metadata); });
}
void Trainer::load_parameters(const std::string& path, const std::vector<std::string>& except) {
  const Weights file = Weights::open(path);
  read(file, wanted(file, same_name, except), Types::Converted, same_name, [&] {
    for (const auto& [name, tensor] : file.tensors())
      if (!has(parameters_, name) && !name.ends_with(kCounter) &&
          std::ranges::none_of(except, [&, &name = name](const std::string& layer) { return is_of(name, layer); }))
        throw Error("load_parameters", str_cat(in_quotes(path), " holds ", in_quotes(name),
                                               ", which the model has not: name it in `except` to leave it"));
  });
}
void Trainer::load_parameters(const Weights& file, const Names& name_in_file, const std::vector<std::string>& except) {
  read(file, wanted(file, name_in_file, except), Types::Converted, name_in_file);
}

std::vector<Trainer::Stored> Trainer::wanted(const Weights& file, const Names& name_in_file,
                                             const std::vector<std::string>& except) const {
  std::vector<Stored> all = parameters_;
  for (const std::string& layer : except) {
    const auto of_layer = [&](const Stored& s) { return is_of(s.name, layer); };
    const auto in_file = [&](const auto& tensor) { return is_of(tensor.first, layer); };
    if (std::ranges::none_of(parameters_, of_layer) && std::ranges::none_of(file.tensors(), in_file))
      throw Error("load_parameters", str_cat("no layer and no parameter is called ", in_quotes(layer)));
    std::erase_if(all, of_layer);
  }
  // A checkpoint without any adapter was made before the adapters were added: the adapters keep their values.
  const std::vector<Stored> adapters = of_adapters();
  const auto in_file = [&](const Stored& s) { return file.find(name_in_file(s.name)) != nullptr; };
  if (std::ranges::none_of(adapters, in_file))
    std::erase_if(all, [&](const Stored& s) { return has(adapters, s.name); });
  return all;
}

bool Trainer::has(const std::vector<Stored>& all, const std::string& name) {
  return std::ranges::find(all, name, &Stored::name) != all.end();
}

const Trainer::Stored& Trainer::parameter(const std::string& name) const {
  const auto found = std::ranges::find(parameters_, name, &Stored::name);
  if (found == parameters_.end()) throw Error("trainer", str_cat("no parameter is called ", in_quotes(name)));
  return *found;
}
std::span<const std::byte> Trainer::bytes(const std::string& name) const {
  const auto kept = frozen_.find(name);
  return kept == frozen_.end() ? context_.bytes(name) : kept->second.bytes;
}
void Trainer::save_adapters(const std::string& path) const {
  on_rank_0([&] {
    const std::string prefix = "base_model.model.";
    const std::vector<TensorToSave> all = to_save(of_adapters(), prefix);
    SafetensorsWriter file(path, all, {{"format", "pt"}});
    for (const TensorToSave& t : in_file_order(all)) {
      ArrayPart kept;
      file.write(gathered(parameter(t.name.substr(prefix.size())), kept));
    }
    file.commit();
  });
}

void Trainer::load_adapters(const std::string& path) {
  if (adapters_.empty()) throw Error("load_adapters", "the model has no adapters: nn::Lora goes around it");
  read(Weights::open(path), of_adapters(), Types::Converted,
       [](const std::string& name) { return "base_model.model." + name; });
}

std::vector<Trainer::Stored> Trainer::of_adapters() const {
  std::vector<Stored> all;
  for (const nn::Adapter& each : adapters_)
    for (const std::string& name : {each.a, each.b}) all.push_back(parameter(name));
  return all;
}

void Trainer::save(const std::string& path, std::map<std::string, std::string> metadata) const {
  metadata["lightcone.steps"] = std::to_string(steps_);
  if (ranks_ && ranks_->collectives.mesh().size() > 1) return save_parts(path, metadata);
  write(path, all_, std::move(metadata));
  if (io::has_parts(path)) io::remove_parts(path);
}
std::map<std::string, std::string> Trainer::load(const std::string& path) {
  const Weights file = Weights::open(io::latest_checkpoint(path));
  read(file, all_, Types::Same, same_name, [&] {
    for (const auto& [name, tensor] : file.tensors())
      if (!has(all_, name))
        throw Error("load", str_cat(in_quotes(path), " holds ", in_quotes(name),
                                    ", which this run has not: it is of another model or optimizer"));
  });
  const auto& metadata = file.metadata();
  const auto steps = metadata.find("lightcone.steps");
  if (steps == metadata.end()) throw Error("load", str_cat("'", path, "' holds parameters, not a run"));
  const auto v = real_of<double>(steps->second);
  if (!v || !(*v >= 0 && *v < 0x1p53))
    throw Error("load", str_cat(in_quotes(path), " has '", printable(steps->second, 40), "' for a number of steps"));
  steps_ = static_cast<std::int64_t>(*v);
  return metadata;
}

}  // namespace lc
