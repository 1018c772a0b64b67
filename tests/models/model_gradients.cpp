// The gradients of a loss with respect to every weight of a folder of load_model(), for model_gradients_check.py.
//
//   model_gradients FOLDER GIVEN.safetensors MADE.safetensors
//
// GIVEN has the inputs by their names, and "loss.NAME" for outputs: the loss is the sum of each output times its
// factors. MADE gets "cpu.NAME" in f32 and "reference.NAME" in f64, where NAME is the file's name of a weight, and
// "cpu." alone for the loss.
#include <cstdio>
#include <map>

#include "lightcone/autograd/autograd.h"
#include "lightcone/io/checkpoints/save.h"
#include "lightcone/io/data/array.h"
#include "lightcone/lightcone.h"
#include "lightcone/models/load/load_model.h"
#include "lightcone/reference/interpreter.h"

using namespace lc;

namespace {

constexpr const char* kLoss = "loss";

struct Gradients {
  LoadedModel model;
  std::map<std::string, std::string> outputs = {};  // outputs of the graph, and the file's names
  std::map<std::string, std::int64_t> sizes = {};   // values of symbols
};

// Appends the loss and its gradients to the graph.
void differentiate(Gradients& d, const Weights& given) {
  LoadedModel& m = d.model;
  Graph& g = m.graph();
  Tensor loss;
  for (const auto& [name, factors] : given.tensors()) {
    const auto input = m.inputs.find(name);
    const bool of_loss = name.starts_with("loss.");
    if (!of_loss && input == m.inputs.end()) throw Error("model_gradients", str_cat("there is no input ", name));
    const Tensor t = of_loss ? m.outputs.at(name.substr(5)) : input->second;
    for (int k = 0; k < t.rank(); ++k)
      if (!t.extent(k).constant()) d.sizes[t.extent(k).str()] = factors.shape[static_cast<std::size_t>(k)];
    if (!of_loss) continue;
    const Tensor part = sum(t * g.input(name, t.shape()));
    loss = loss.defined() ? loss + part : part;
  }
  std::vector<Tensor> weights;
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].parameter && is_float(g[id].dtype) && m.weights.find(g[id].name))
      weights.push_back(Tensor(g, {id, View(g[id].shape)}));
  const std::vector<Tensor> all = gradients(loss, weights);
  for (std::size_t k = 0; k < all.size(); ++k) {
    const std::string& ours = g[weights[k].edge().node].name;
    g.output("d." + ours, all[k]);
    d.outputs["d." + ours] = m.weights.name_in_file(ours);
  }
  g.output(kLoss, loss);
}

using Made = std::map<std::string, Array>;

void by_cpu(const Gradients& d, const Weights& given, Made& made) {
  const Program p = d.model.program(generic() | cpu({.threads = 2}));
  Context run(p);
  for (const auto& [name, n] : d.sizes) run.bind(name, n);
  for (const auto& [name, t] : given.tensors()) run.set(name, ArrayView(t));
  run.run();
  for (const auto& [output, name] : d.outputs) {
    const std::vector<float> v = run.get(output);
    made["cpu." + name] = Array::of(d.model.weights.find(output.substr(2))->shape, std::span<const float>(v));
  }
  made["cpu."] = Array::of<float>({1}, run.get(kLoss));
}

void by_reference(const Gradients& d, const Weights& given, Made& made) {
  const Graph& g = d.model.graph();
  std::map<std::string, Value> inputs;
  for (NodeId id = 0; id < g.size(); ++id) {
    if (g[id].op != Op::Input) continue;
    const StoredTensor* t = given.find(g[id].name);
    if (!t) t = d.model.weights.find(g[id].name);
    if (t) inputs.emplace(g[id].name, read_value(t->bytes.data(), *t->dtype, t->shape));
  }
  const Results r = interpret(g, inputs, {d.sizes.begin(), d.sizes.end()});
  for (const auto& [output, name] : d.outputs) {
    const Value& v = r.outputs.at(output);
    made["reference." + name] = Array::of(v.shape, std::span<const double>(v.f));
  }
}

void save(const std::string& path, const Made& made) {
  std::vector<TensorToSave> all;
  for (const auto& [name, a] : made) all.push_back({name, a.dtype, a.shape, a.bytes});
  save_safetensors(path, all);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    const Weights given = Weights::open(argv[2]);
    LoadModelOptions o;
    if (const StoredTensor* pictures = given.find("pixel_values"))
      o.height = pictures->shape.at(2), o.width = pictures->shape.at(3);
    Gradients d{load_model(argv[1], o)};
    differentiate(d, given);
    Made made;
    by_cpu(d, given, made);
    by_reference(d, given, made);
    save(argv[3], made);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
