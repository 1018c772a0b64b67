// A training graph that runs: parameters and optimiser states begin, step after step, and are saved.
//
//   Trainer t(net, generic() | cpu(), {.seed = 1});
//   for (...) t.context().set("x", images).set("y", labels), std::cout << t.step() << '\n';
//   t.save("model.safetensors");
//
// A step allocates nothing. All that it changes are states of the program, so a checkpoint of them resumes a run bit
// for bit.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lightcone/nn/module.h"
#include "lightcone/runtime/program.h"

namespace lc {

class Weights;

struct TrainerOptions {
  std::int64_t seed = 0;      // of the first values of the parameters
  std::string loss = "loss";  // the output that step() gives
  // Look at every value and index: slow, but a NaN is named where it came from, and an index that is out of range.
  bool checked = false;
  CompileOptions compile = {};
};

class Trainer {
 public:
  // Compiles the model's graph as it is now, and gives the parameters their first values.
  Trainer(const nn::ModelBase& model, const Compiler& c, const TrainerOptions& o = {});

  Context& context() { return context_; }
  Program& program() { return program_; }
  std::int64_t steps() const { return steps_; }
  // One run: forward, backward, update. Gives the loss from before the update. Error where it is not a finite number.
  float step();

  // Loads the values that the model's parameters and buffers have now into another program, which evaluates. `average`
  // names states beside the parameters to take instead, where there are any: ".ema" of optim::ema(), ".swa".
  void copy_to(Program& other, const std::string& average = "") const;

  // Parameters and buffers alone, with PyTorch's names: safetensors. `metadata` is kept with them
  // (Weights::metadata(), safe_open(...).metadata() in Python).
  void save_parameters(const std::string& path, const std::map<std::string, std::string>& metadata = {}) const;
  // Stored numbers of another floating type are converted. Layers that `except` names ("fc", "layer4.1") keep the
  // values they have, as one of another number of classes must, and so do adapters (nn::Lora) where the file has none.
  // Error where such a name is none, where the file has no tensor of a parameter's name or one of another shape, and
  // where it has one that the model has not, unless `except` names it: no value is changed then.
  void load_parameters(const std::string& path, const std::vector<std::string>& except = {});
  // The same of a file that is open, whatever its format; the file has a parameter under the name that `name_in_file`
  // gives for it (GGUF's: llama_file_name()).
  void load_parameters(const Weights& file, const std::function<std::string(const std::string&)>& name_in_file,
                       const std::vector<std::string>& except = {});
  // The f32 values that a parameter has now, until the next step.
  std::span<const float> values(const std::string& name) const;
  // Of a model with adapters (nn::Lora): the weight of that name with the product of its adapter added, as it is with
  // one that has none. Row-major f32.
  std::vector<float> merged(const std::string& weight) const;
  // The adapters alone, under the names that Hugging Face's peft has for them: adapter_model.safetensors.
  void save_adapters(const std::string& path) const;
  void load_adapters(const std::string& path);  // what that wrote, or peft for a model with the same names
  const std::vector<nn::Adapter>& adapters() const { return adapters_; }
  // Everything that a run changes: those, what the optimiser remembers, counters and random states. `metadata` is kept
  // with it (a DataLoader's position), and load() gives it back, with "lightcone.steps". Error for the file of a run of
  // another model or optimiser.
  void save(const std::string& path, std::map<std::string, std::string> metadata = {}) const;
  std::map<std::string, std::string> load(const std::string& path);

 private:
  struct Stored {
    std::string name;
    DType dtype;
    std::vector<std::int64_t> shape;
    bool state = true;  // a run changes it
  };
  static bool has(const std::vector<Stored>& all, const std::string& name);
  std::vector<Stored> of_adapters() const;
  std::vector<Stored> all_, parameters_;
  const Stored& parameter(const std::string& name) const;
  std::span<const std::byte> bytes(const std::string& name) const;
  void write(const std::string& path, const std::vector<Stored>& what,
             std::map<std::string, std::string> metadata) const;
  enum class Types : std::uint8_t { Same, Converted };
  using Names = std::function<std::string(const std::string&)>;  // a parameter's name in a file
  // Before anything is taken, `also` may find something wrong, too.
  void read(const Weights& file, const std::vector<Stored>& what, Types types, const Names& name_in_file,
            const std::function<void()>& also = {});
  std::vector<Stored> wanted(const Weights& file, const Names& name_in_file,
                             const std::vector<std::string>& except) const;
  std::string loss_;
  bool checked_;
  std::int64_t steps_ = 0;
  Program program_;
  Context context_;
  // What no run changes, as it was given: a program may keep it in another order alone.
  std::map<std::string, nn::ModelBase::FirstValue> frozen_;
  std::vector<nn::Adapter> adapters_;
};

}  // namespace lc
