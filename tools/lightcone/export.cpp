// lightcone export: a network as one StableHLO module, or as an ONNX model with its weights.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

#include "checkpoint_graph.h"
#include "command.h"
#include "commands.h"
#include "explain.h"
#include "lightcone/llm/checkpoint.h"
#include "lightcone/models/llama/llama.h"
#include "lightcone/models/vision/vision.h"
#include "lightcone/onnx/export.h"
#include "lightcone/ops/loss.h"
#include "lightcone/passes/passes.h"
#include "lightcone/passes/symbols.h"
#include "lightcone/stablehlo/write.h"
#include "lightcone/train/trace.h"

namespace lc::tool {
namespace {

bool is_vision(const std::string& name) {
  const auto& all = vision_model_names();
  return std::ranges::find(all, name) != all.end();
}

Tensor pictures_of(const ExportOptions& o, Graph& g) {
  constexpr std::int64_t kSize = 224;
  const std::int64_t most = std::max<std::int64_t>(o.batch, 1), size = o.size > 0 ? o.size : kSize;
  const Dim batch = o.open ? Dim::symbol("batch", 1, most) : Dim(most);
  return g.input("pictures", {batch, 3, size, size});
}

// Builds a network from pictures to logits or, for training, the loss of a batch and one step of gradient descent.
Graph vision_graph(const ExportOptions& o) {
  Graph g;
  nn::Model<VisionModel> net(g, vision_model(o.model));
  const Tensor pictures = pictures_of(o, g);
  if (!o.train) {
    net(pictures).retrieve("logits");
    return g;
  }
  const Dim batch = pictures.extent(0);
  const Tensor labels = g.input("labels", {batch}, DType::I64);
  auto loss = trace(
      net, [](auto& n, const Tensor& x, const Tensor& y) { return cross_entropy(n(x), y); }, pictures, labels);
  loss.loss().retrieve("loss");
  update(net, optim::SGD{.lr = o.learning_rate}, backward(std::move(loss)));
  return g;
}

Graph llama_graph(const Weights& w) {
  Graph written;
  LlamaOptions load{.load_weights = false};
  load.observe = [&](const Pass&, const Graph& before, const Graph&) {
    if (written.size() == 0) written = before.clone();
  };
  Llama::load(w, load);
  return written;
}

Bindings given_sizes(const ExportOptions& o) {
  Bindings b;
  for (const std::string& each : o.sizes) {
    const std::size_t at = each.find('=');
    char* end = nullptr;
    const std::int64_t n = at == std::string::npos ? 0 : std::strtoll(each.c_str() + at + 1, &end, 10);
    if (at == std::string::npos || *end || end == each.c_str() + at + 1)
      throw Error("export", str_cat("--bind is NAME=NUMBER, not '", each, "'"));
    b[each.substr(0, at)] = n;
  }
  return b;
}

// The same for a checkpoint, whose batch is a symbol: --batch is its number, or with --open its bound.
Bindings sizes_of_checkpoint(const ExportOptions& o) {
  Bindings b = given_sizes(o);
  if (o.batch > 0 && !o.open) b.emplace("batch", o.batch);
  return b;
}

// Returns numbers for the graph's symbolic extents, which must be all of them unless extents may stay open.
Bindings bindings(const ExportOptions& o, const Graph& g, Bindings b) {
  std::erase_if(b, [&](const auto& size) { return size.first == "batch" && !symbols_of(g).contains("batch"); });
  if (o.open) return b;
  std::string open, first;
  for (const auto& [name, bounds] : symbols_of(g)) {
    if (b.contains(name)) continue;
    if (first.empty()) first = str_cat(name, "=", bounds.hi);
    open += str_cat(open.empty() ? "" : ", ", name, " in [", bounds.lo, ", ", bounds.hi, "]");
  }
  if (!open.empty())
    throw Error("export", str_cat("'", o.model, "' has sizes without a number: ", open,
                                  ". Give each of them one, as in --bind ", first, ", or leave them open with --open"));
  return b;
}

// Returns a line for each argument of @main, for the program that runs it.
std::string table_of_arguments(const StableHloExport& e) {
  std::string s = "# argument kind type name result\n";
  for (std::size_t k = 0; k < e.arguments.size(); ++k) {
    const auto& a = e.arguments[k];
    using Kind = StableHloExport::Argument::Kind;
    s += str_cat(k, " ",
                 a.kind == Kind::Parameter ? "parameter"
                 : a.kind == Kind::State   ? "state"
                 : a.kind == Kind::Size    ? "size"
                                           : "input",
                 " ", name(a.type.dtype), str(a.type.shape), " ", a.name, " ");
    s += a.result < 0 ? std::string("-\n") : str_cat(a.result, "\n");
  }
  s += "# result kind type name\n";
  for (std::size_t k = 0; k < e.results.size(); ++k) {
    const auto& r = e.results[k];
    s += str_cat(k, " ", r.state ? "state" : "output", " ", name(r.type.dtype), str(r.type.shape), " ", r.name, "\n");
  }
  return s;
}

// Returns how often each operation occurs: in the graph as written, and after generic(). Entry: in @main itself; total:
// including loops and reducers.
std::string table_of_instructions(const ExportOptions& o, const stablehlo::Instructions& written,
                                  const stablehlo::Instructions& after) {
  std::map<std::string, std::pair<stablehlo::Instructions::Count, stablehlo::Instructions::Count>> rows;
  for (const auto& [name, n] : written.by_name) rows[name].first = n;
  for (const auto& [name, n] : after.by_name) rows[name].second = n;
  char line[160];
  std::snprintf(line, sizeof line, "%-34s %8s %8s   %8s %8s\n", "", "written", "", "generic", "");
  std::string s = line;
  std::snprintf(line, sizeof line, "%-34s %8s %8s   %8s %8s\n", "operation", "entry", "total", "entry", "total");
  s += line;
  const auto row = [&](const std::string& name, const stablehlo::Instructions::Count& a,
                       const stablehlo::Instructions::Count& b) {
    std::snprintf(line, sizeof line, "%-34s %8d %8d   %8d %8d\n", name.c_str(), a.entry, a.total, b.entry, b.total);
    s += line;
  };
  for (const auto& [name, n] : rows) row(name, n.first, n.second);
  row("all", written.all, after.all);
  if (o.model == "vgg19" && !o.train)
    s += "Fischer and Saba 2018 (arXiv 1810.09868) count 183 in the entry computation of VGG19's forward pass, 361 in "
         "all.\n";
  return s;
}

// Values of parameters, and what owns those that are in no file.
struct Values {
  OnnxValues of = {};
  std::vector<std::shared_ptr<const void>> kept = {};
  void add(const std::string& name, DType dtype, std::vector<std::int64_t> shape, std::span<const std::byte> bytes,
           std::shared_ptr<const void> owner) {
    of[name] = {dtype, std::move(shape), bytes};
    kept.push_back(std::move(owner));
  }
  void add(const std::string& name, const StoredTensor& t) {
    if (t.dtype || t.quant) {
      of[name] = t;
      return;
    }
    const auto v = std::make_shared<const std::vector<float>>(Weights::read(t));
    add(name, DType::F32, t.shape, std::as_bytes(std::span(*v)), v);
  }
};

void vision_onnx(const ExportOptions& o) {
  Graph g;
  nn::Model<VisionModel> net(g, vision_model(o.model));
  net(pictures_of(o, g)).retrieve("logits");
  std::optional<Weights> file;
  if (!o.weights.empty()) file = Weights::open(o.weights);
  Values values;
  for (const nn::Entry& e : net.entries()) {
    if (file) {
      if (const StoredTensor* t = file->find(e.name)) values.add(e.name, *t);
      continue;
    }
    const auto first = nn::ModelBase::first_value(e, 0);
    std::vector<std::int64_t> shape;
    for (const Dim& d : e.tensor.shape()) shape.push_back(d.constant().value_or(0));
    values.add(e.name, e.tensor.node().dtype, std::move(shape), first.bytes, first.owner);
  }
  export_onnx(g, values.of, o.out, {.opset = static_cast<int>(o.opset), .sizes = given_sizes(o)});
  if (!file)
    std::fprintf(stderr, "%s: the weights are first values for training; --weights gives others\n", o.out.c_str());
}

void llama_onnx(const ExportOptions& o, const Weights& file) {
  const Graph g = llama_graph(file);
  Values values;
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].parameter)
      if (const StoredTensor* t = file.find(llm::name_in_file(file, g[id].name))) values.add(g[id].name, *t);
  const auto f = std::make_shared<const std::vector<double>>(LlamaConfig::from(file).rope_frequencies);
  values.add("rope.frequencies", DType::F64, {std::ssize(*f)}, std::as_bytes(std::span(*f)), f);
  export_onnx(g, values.of, o.out, {.opset = static_cast<int>(o.opset), .sizes = given_sizes(o)});
}

LoadedModel loaded(const ExportOptions& o, const Weights& file) {
  constexpr std::int64_t kBatch = 64;
  return open_checkpoint(
      o.model, file, {.whole = o.whole, .batch = o.batch > 0 ? o.batch : kBatch, .size = o.size, .outputs = o.outputs});
}

void checkpoint_onnx(const ExportOptions& o) {
  const Weights file = open_model(o.model);
  if (!o.whole && is_cached_llama(o.model, file)) return llama_onnx(o, file);
  LoadedModel m = loaded(o, file);
  export_onnx(m.graph(), m.values(), o.out, {.opset = static_cast<int>(o.opset), .sizes = sizes_of_checkpoint(o)});
}

// The graph of a network of torchvision's, or of a checkpoint.
class Source {
 public:
  explicit Source(const ExportOptions& o) {
    if (is_vision(o.model)) {
      graph_ = vision_graph(o);
      return;
    }
    // vision_model() throws Error, with the known names, for any other name.
    if (o.model != "builtin" && !std::filesystem::exists(o.model)) vision_model(o.model);
    if (o.train)
      throw Error("export", "--train is for the networks of torchvision; a checkpoint is exported for inference");
    const Weights file = open_model(o.model);
    if (!o.whole && is_cached_llama(o.model, file)) graph_ = llama_graph(file);
    else model_.emplace(loaded(o, file));
  }
  const Graph& graph() const { return model_ ? model_->graph() : graph_; }

 private:
  Graph graph_;
  std::optional<LoadedModel> model_;
};

}  // namespace

void export_model(const ExportOptions& o) {
  if (o.out.ends_with(".onnx") && !o.explain) {
    if (o.train) throw Error("export", "--train is for StableHLO: an ONNX model is for inference");
    (is_vision(o.model) ? vision_onnx : checkpoint_onnx)(o);
    return;
  }
  if (!o.weights.empty()) throw Error("export", "--weights is for ONNX, whose models have weights: -o FILE.onnx");
  const Source source(o);
  const Graph& g = source.graph();
  const Bindings sizes = bindings(o, g, sizes_of_checkpoint(o));
  const UnboundSizes unbound = o.bounds ? UnboundSizes::Bounded : o.open ? UnboundSizes::Open : UnboundSizes::Error;
  const auto as_module = [&](const Graph& graph) {
    return export_stablehlo(graph, sizes, Precision::Highest, unbound);
  };
  const StableHloExport written = as_module(g);
  if (o.explain) {
    const StableHloExport after = as_module(transform(g, generic()).graph);
    write_stdout(
        table_of_instructions(o, stablehlo::instructions(written.module), stablehlo::instructions(after.module)));
  } else if (o.out.empty()) {
    write_stdout(written.text());
  } else {
    write_file(o.out, written.text());
    std::fprintf(stderr, "%s: %zu arguments, %zu results\n", o.out.c_str(), written.arguments.size(),
                 written.results.size());
  }
  if (!o.arguments.empty()) write_file(o.arguments, table_of_arguments(written));
}

}  // namespace lc::tool
