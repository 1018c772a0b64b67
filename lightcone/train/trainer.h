// Trainer runs a training graph: it initialises parameters and optimiser states, runs steps, and saves.
//
//   Trainer t(net, generic() | cpu(), {.seed = 1});
//   for (...) t.context().set("x", images).set("y", labels), std::cout << t.step() << '\n';
//   t.save("model.safetensors");
//
// A step allocates no memory. It changes states of the program only, so a checkpoint of the states resumes a run bit
// for bit.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lightcone/distributed/sharding/shard.h"
#include "lightcone/nn/module.h"
#include "lightcone/runtime/program.h"

namespace lc {

class Weights;
struct TensorToSave;

// The ranks among which a training graph is divided, and how: the operands of shard().
struct TrainingRanks {
  Collectives collectives;
  ShardSpecs specs;
};

// Options of a Trainer.
struct TrainerOptions {
  std::int64_t seed = 0;      // seed of the initial values of the parameters
  std::string loss = "loss";  // the output that step() returns
  // Checks every value and index. This is slow, but an Error names the operation of the first NaN and any index out of
  // range.
  bool checked = false;
  CompileOptions compile = {};
  // Several ranks: the model's graph is that of the whole, which the Trainer divides by shard() in front of its
  // compiler. Inputs are set to this rank's parts. All ranks make a Trainer and call the same functions in the same
  // order.
  std::optional<TrainingRanks> ranks = {};
};

// A compiled training graph with its context.
class Trainer {
 public:
  // Compiles the model's graph in its current form and initialises the parameters. Throws Error if the graph updates no
  // parameter of the model.
  Trainer(const nn::ModelBase& model, const Compiler& c, const TrainerOptions& o = {});

  Context& context() { return context_; }        // the context of the run, to set inputs
  Program& program() { return program_; }        // the compiled program
  std::int64_t steps() const { return steps_; }  // number of steps done, those of a loaded run included
  // Runs one step: forward, backward, update. Returns the loss before the update. Throws Error if it is not finite.
  float step();

  // Loads the current values of the model's parameters and buffers into another program, for evaluation. `average` is
  // the suffix of states to load instead of the parameters that have one: ".ema" of optim::ema(), ".swa". Throws Error
  // if no parameter has such a state.
  void copy_to(Program& other, const std::string& average = "") const;

  // Runs `f` on rank 0, where it may read whole values: values(), merged(), save_parameters(), save_adapters() gather
  // them there tensor by tensor. All ranks call it; the others give their parts until `f` returns. An Error of `f` is
  // thrown on all. With one rank it is f().
  void on_rank_0(const std::function<void()>& f) const;

  // Saves parameters and buffers only, under PyTorch's names, as safetensors. `metadata` is stored with them
  // (Weights::metadata(), safe_open(...).metadata() in Python).
  void save_parameters(const std::string& path, const std::map<std::string, std::string>& metadata = {}) const;
  // Loads parameters and buffers. Stored numbers of another floating type are converted. Layers named in `except`
  // ("fc", "layer4.1") keep their values, as is necessary for a layer with another number of classes; so do adapters
  // (nn::Lora) if the file has none. Throws Error if `except` names no layer, if the tensor of a parameter is missing
  // or has another shape, or if the file has a tensor that is neither in the model nor in `except`. After an Error no
  // value has changed.
  void load_parameters(const std::string& path, const std::vector<std::string>& except = {});
  // The same for an open file of any format. `name_in_file` maps the name of a parameter to its name in the file (for
  // GGUF: llm::name_in_file()). Other tensors of the file are ignored.
  void load_parameters(const Weights& file, const std::function<std::string(const std::string&)>& name_in_file,
                       const std::vector<std::string>& except = {});
  // The current values of an f32 parameter, valid until the next step; on several ranks, within on_rank_0(), until the
  // next call. Throws Error for an unknown name.
  std::span<const float> values(const std::string& name) const;
  // The weight of this name with the product of its adapter (nn::Lora) added, or the weight itself if it has none: f32,
  // row-major.
  std::vector<float> merged(const std::string& weight) const;
  // Saves the adapters only, under the names of Hugging Face's peft: adapter_model.safetensors.
  void save_adapters(const std::string& path) const;
  // Loads adapters that save_adapters() wrote, or peft for a model with the same names. Throws Error if the model has
  // none.
  void load_adapters(const std::string& path);
  const std::vector<nn::Adapter>& adapters() const { return adapters_; }  // the adapters of nn::Lora
  // Saves everything that a run changes, and the parameters that are not trained: parameters, buffers, optimiser
  // states, counters and random states. `metadata` is stored with it, for example the position of a DataLoader.
  // Several ranks write a file each and an index, "<path>.index.json", all or nothing (io/checkpoints/parts.h), into a
  // folder that all of them see. The last checkpoint of one rank, or of several, is removed then.
  void save(const std::string& path, std::map<std::string, std::string> metadata = {}) const;
  // Loads the last save() to this path, by one rank or by several, and returns its metadata, including
  // "lightcone.steps". Throws Error if the file belongs to a run of another model or optimiser; then no value has
  // changed.
  std::map<std::string, std::string> load(const std::string& path);

 private:
  struct Stored {
    std::string name;
    DType dtype;
    std::vector<std::int64_t> shape;  // on all ranks together
    bool state = true;                // true if a run changes it
  };
  static bool has(const std::vector<Stored>& all, const std::string& name);
  std::vector<Stored> of_adapters() const;
  std::vector<Stored> all_, parameters_;
  const Stored& parameter(const std::string& name) const;
  std::span<const std::byte> bytes(const std::string& name) const;  // on this rank
  bool is_divided(const Stored& s) const;
  ArrayPart part(const Stored& s, const ArrayView& whole) const;  // this rank's
  ArrayPart whole(const Stored& s) const;                         // all ranks call it
  std::span<const std::byte> gathered(const Stored& s, ArrayPart& kept) const;
  std::vector<float> copied(const std::string& name) const;
  void serve() const;
  std::int64_t requested(std::int64_t what) const;
  void save_parts(const std::string& path, const std::map<std::string, std::string>& metadata) const;
  static std::vector<TensorToSave> to_save(const std::vector<Stored>& what, const std::string& prefix = "");
  void write(const std::string& path, const std::vector<Stored>& what,
             std::map<std::string, std::string> metadata) const;
  enum class Types : std::uint8_t { Same, Converted };
  using Names = std::function<std::string(const std::string&)>;  // maps a parameter's name to its name in the file
  // Checks everything before it changes any value. `also` runs after these checks and may throw, too.
  void read(const Weights& file, const std::vector<Stored>& what, Types types, const Names& name_in_file,
            const std::function<void()>& also = {});
  std::vector<Stored> wanted(const Weights& file, const Names& name_in_file,
                             const std::vector<std::string>& except) const;
  std::string loss_;
  std::optional<TrainingRanks> ranks_;
  mutable bool serving_ = false;  // rank 0 is within on_rank_0()
  mutable ArrayPart last_;        // what values() returned there
  bool checked_;
  std::int64_t steps_ = 0;
  Program program_;
  Context context_;
  // Values that no run changes, in their original layout. The program itself may hold them only repacked.
  std::map<std::string, nn::ModelBase::FirstValue> frozen_;
  std::vector<nn::Adapter> adapters_;
};

}  // namespace lc
