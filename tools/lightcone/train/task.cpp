#include "task.h"

#include "../command.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/base/numbers.h"
#include "lightcone/core/graph.h"
#include "lightcone/device/kernel.h"
#include "lightcone/io/printable.h"
#include "lightcone/llm/adapters.h"
#include "lightcone/llm/checkpoint.h"
#include "lightcone/optim/schedule.h"
#include "lightcone/passes/passes.h"
#include "lightcone/train/trace.h"
#include "nets.h"

namespace lc::tool {
namespace {

LlamaConfig llama_config(const ModelConfig& m) {
  return {.vocab = m.vocabulary,
          .hidden = m.width,
          .intermediate = m.intermediate,
          .layers = m.layers,
          .heads = m.heads,
          .kv_heads = m.kv_heads,
          .head_dim = m.width / m.heads,
          .context = m.context,
          .rope_frequencies = {}};
}

// Returns logits [..., classes] as rows, each of which is one prediction.
Tensor as_rows(const Tensor& logits) {
  const Dim classes = logits.extent(-1);
  return logits.rank() == 2 ? logits : logits.reshape({logits.extent(0) * logits.extent(1), classes});
}
Tensor as_targets(const Tensor& y) { return y.rank() == 1 ? y : y.reshape({y.extent(0) * y.extent(1)}); }

optim::Schedule schedule(const StepsConfig& t) {
  const i64 rest = t.steps - t.warmup;
  const double end = t.lr > 0 ? t.final_lr / t.lr : 0;
  const optim::Schedule s = t.schedule == "cosine"   ? optim::cosine_annealing(t.lr, rest, t.final_lr)
                            : t.schedule == "linear" ? optim::linear(t.lr, 1, end, rest)
                                                     : optim::constant(t.lr);
  return t.warmup > 0 ? optim::warm_up(s, t.warmup, 1.0 / static_cast<double>(t.warmup)) : s;
}

optim::Optimizer optimizer(const StepsConfig& t) {
  if (t.optimizer == "sgd") return optim::SGD{.lr = t.lr, .momentum = t.momentum, .weight_decay = t.weight_decay};
  if (t.optimizer == "adam")
    return optim::Adam{.lr = t.lr, .beta1 = t.beta1, .beta2 = t.beta2, .weight_decay = t.weight_decay};
  if (t.optimizer == "lion")
    return optim::Lion{.lr = t.lr, .beta1 = t.beta1, .beta2 = t.beta2, .weight_decay = t.weight_decay};
  return optim::AdamW{.lr = t.lr, .beta1 = t.beta1, .beta2 = t.beta2, .weight_decay = t.weight_decay};
}

// Muon takes the matrices within layers; AdamW takes the rest, and Muon's rate is scaled to fit AdamW's.
std::vector<optim::Group> groups(const StepsConfig& t, const std::vector<optim::Update>& all) {
  if (t.optimizer != "muon") return {{optimizer(t), all}};
  std::vector<optim::Update> matrices, others;
  for (const optim::Update& u : all) {
    const std::string& name = u.parameter.node().name;
    (u.parameter.rank() == 2 && name.find("layers") != name.npos ? matrices : others).push_back(u);
  }
  std::vector<optim::Group> both;
  const optim::Muon muon{
      .lr = t.lr, .weight_decay = t.weight_decay, .adjust_lr_fn = optim::Muon::AdjustLr::MatchRmsAdamW};
  if (!matrices.empty()) both.push_back({muon, matrices});
  if (!others.empty()) both.push_back({optimizer(t), others});
  return both;
}

double flops_of(const Program& p) {
  double sum = 0;
  const Graph& g = p.graph();
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].kernel) sum += static_cast<double>(g[id].kernel->flops().constant().value_or(0));
  return sum;
}

// The loss is the cross entropy for classes, and the squared error for numbers.
Tensor loss_of(const Tensor& rows, const Tensor& targets, Reduction reduction) {
  if (is_float(targets.dtype())) return mse_loss(rows.squeeze(1), targets, reduction);
  return cross_entropy(rows, targets, {.reduction = reduction});
}

void give(Context& c, const Arrays& batch) {
  for (const auto& [name, a] : batch) c.set_bytes(name, a.bytes.data(), a.bytes.size());
}

}  // namespace

// Returns a model's logits; a language model takes the segments of packed rows, if there are any.
template <class M, class Net>
Tensor logits_of(Net& net, const Tensor& x, const Tensor& segments) {
  if constexpr (std::is_same_v<M, LlamaModel> || std::is_same_v<M, nn::Lora<LlamaModel>>)
    if (segments.defined()) return as_rows(net(x, segments));
  return as_rows(net(x));
}

// Writes a training step of the module into the graph, and returns the model.
template <class M>
std::unique_ptr<nn::Model<M>> write_step(Graph& g, const TrainConfig& c, const M& module, const Shape& x_shape,
                                         DType x_type, const Shape& y_shape, DType y_type) {
  auto model = std::make_unique<nn::Model<M>>(g, module, "", c.train.seed);
  const Tensor x = g.input("x", x_shape, x_type), y = g.input("y", y_shape, y_type);
  const Tensor segments = c.data.packing ? g.input("segments", x_shape, DType::I64) : Tensor();
  auto loss = trace(
      *model,
      [](auto& net, const Tensor& x, const Tensor& y, const Tensor& s) {
        return loss_of(logits_of<M>(net, x, s), as_targets(y), Reduction::Mean);
      },
      x, y, segments);
  loss.loss().retrieve("loss");
  auto gradients = backward(std::move(loss));
  if (c.train.clip > 0) gradients.clip_norm(c.train.clip);
  const Tensor done = optim::counter(g);
  optim::step(groups(c.train, gradients.updates()), {.lr = schedule(c.train)(done), .step = done});
  return model;
}

template <class M>
void Task::build(const M& module, const Shape& x_shape, DType x_type, const Shape& y_shape, DType y_type,
                 const Compiler& compiler, bool checked, const RunRanks& ranks) {
  graph_ = std::make_unique<Graph>(), other_graph_ = std::make_unique<Graph>();
  auto model = write_step(*graph_, c_, module, x_shape, x_type, y_shape, y_type);
  TrainerOptions options{.seed = c_.train.seed, .checked = checked};
  if (ranks.collectives()) options.ranks = TrainingRanks{*ranks.collectives(), specs_of(*graph_, c_.model, c_.ranks)};
  trainer_ = std::make_unique<Trainer>(*model, compiler, options);
  model_ = std::move(model);

  Graph& e = *other_graph_;
  auto other = std::make_unique<nn::Model<M>>(e, module);
  const Tensor ex = e.input("x", x_shape, x_type), ey = as_targets(e.input("y", y_shape, y_type));
  const Tensor segments = c_.data.packing ? e.input("segments", x_shape, DType::I64) : Tensor();
  const Tensor logits = logits_of<M>(*other, ex, segments);
  loss_of(logits, ey, Reduction::None).retrieve("losses");
  if (!c_.data.regression) to(eq(argmax(logits, 1), ey), DType::F32).retrieve("right");
  evaluation_ = compile(
      e, options.ranks ? shard(options.ranks->collectives, those_of(options.ranks->specs, e)) | compiler : compiler);
  other_model_ = std::move(other);
}

namespace {

LlamaModel llama_of(const TrainConfig& c, const Pretrained* first) {
  if (first) return first->model;
  return LlamaModel(llama_config(c.model), LlamaModelOptions{.tied = c.model.tied});
}

// Calls f with the module of a configuration, and with the shapes and types of a batch: what goes in, what comes out.
template <class F>
void with_module(const TrainConfig& c, const LlamaModel* llama, const PretrainedClassifier* classifier, const F& f) {
  const i64 batch = c.train.batch;
  if (llama) {
    const Shape ids{batch, c.model.context};
    const nn::LoraOptions lora{c.model.lora_rank, c.model.lora_alpha, c.model.lora_targets};
    if (lora.rank > 0) f(nn::Lora(*llama, lora), ids, DType::I64, ids, DType::I64);
    else f(*llama, ids, DType::I64, ids, DType::I64);
    return;
  }
  Shape x{batch};
  if (classifier) {
    for (const Dim& d : classifier->sample()) x.push_back(d);
    f(classifier->module(), x, classifier->sample_type(), Shape{Dim(batch)}, DType::I64);
    return;
  }
  for (const i64 d : c.data.shape) x.push_back(d);
  const DType targets = c.data.regression ? DType::F32 : DType::I64;
  with_network(c.model, c.data, [&](const auto& net) { f(net, x, DType::F32, Shape{Dim(batch)}, targets); });
}

}  // namespace

Task::Task(const TrainConfig& c, const Pretrained* first, const PretrainedClassifier* classifier, int threads,
           const DeviceChoice& device, bool checked, const RunRanks& ranks)
    : c_(c), first_(first), classifier_(classifier) {
  const Compiler compiler = compiler_for(open_device(device), {.threads = threads});
  if (c.language()) llama_.emplace(llama_of(c, first)), rows_ = c.model.context;
  with_module(c, llama_ ? &*llama_ : nullptr, classifier,
              [&](const auto& module, const Shape& x, DType x_type, const Shape& y, DType y_type) {
                build(module, x, x_type, y, y_type, compiler, checked, ranks);
              });
}

Graph step_graph(const TrainConfig& c, const Pretrained* first, const PretrainedClassifier* classifier) {
  std::optional<LlamaModel> llama;
  if (c.language()) llama.emplace(llama_of(c, first));
  Graph g;
  with_module(c, llama ? &*llama : nullptr, classifier,
              [&](const auto& module, const Shape& x, DType x_type, const Shape& y, DType y_type) {
                write_step(g, c, module, x, x_type, y, y_type);
              });
  return g;
}

std::string Task::load_weights() try {
  const ModelConfig& m = c_.model;
  if (classifier_) return classifier_->load(*trainer_);
  if (first_) {
    const auto name_in_file = [&](const std::string& path) { return llm::name_in_file(first_->weights, path); };
    trainer_->load_parameters(first_->weights, name_in_file, adapter_layers(*trainer_));
    return str_cat("weights     from ", in_quotes(m.weights), "\n");
  }
  trainer_->load_parameters(m.weights, m.reinitialize);
  std::string anew;
  for (const std::string& layer : m.reinitialize) anew += (anew.empty() ? ", but new ones for " : ", ") + layer;
  return str_cat("weights     from ", in_quotes(m.weights), printable(anew, 500), "\n");
} catch (const Error& e) {
  if (first_ || classifier_) throw;
  throw Error("train", str_cat(e.what(),
                               ". Layers that shall begin with new values are named by model.reinitialize: "
                               "[\"fc\"] is the last one of a ResNet"));
}

std::string Task::known_beforehand() const {
  const MemoryPlan& step = trainer_->program().plan();
  const auto bytes = [](std::size_t n) { return human_bytes(static_cast<double>(n)); };
  const double flops = flops_of(trainer_->program());
  const std::string work =
      formatted("%.2f GFLOP a step, %.3g TFLOP in %lld steps", flops / 1e9,
                flops * static_cast<double>(c_.train.steps) / 1e12, static_cast<long long>(c_.train.steps));
  return str_cat("parameters  ", model_->count(), "\n",  //
                 c_.ranks.mesh.size() > 1 ? str_cat("ranks       ", c_.ranks.mesh.size(), " (", c_.ranks.mesh,
                                                    "), shard ", c_.ranks.shard, "; what follows is for each\n")
                                          : "",
                 "memory      ", bytes(step.total_bytes()), " a step: ", bytes(step.state_bytes),            //
                 " of parameters and what the optimiser keeps, ", bytes(step.arena_bytes), " for values; ",  //
                 bytes(evaluation_.plan().total_bytes()), " to evaluate\n",                                  //
                 "arithmetic  ", work, "\n");
}

float Task::step(const Arrays& batch) {
  give(trainer_->context(), batch);
  return trainer_->step();
}

void Task::begin_evaluation() {
  trainer_->copy_to(evaluation_);
  context_.emplace(evaluation_);
  loss_ = right_ = sum_ = squares_ = 0, counted_ = 0;
}
void Task::evaluate(const Arrays& batch, i64 samples) {
  give(*context_, part_of_batch(batch, c_));
  context_->run();
  const std::vector<float> losses = context_->get("losses");
  if (c_.data.regression) {
    const auto wanted = batch.at("y").values<float>();
    for (std::size_t k = 0; k < static_cast<std::size_t>(samples); ++k) {
      const auto y = static_cast<double>(wanted[k]);
      loss_ += static_cast<double>(losses[k]), sum_ += y, squares_ += y * y;
    }
    counted_ += samples;
    return;
  }
  const std::vector<float> right = context_->get("right");
  const auto wanted = batch.at("y").values<i64>();
  for (std::size_t k = 0; k < static_cast<std::size_t>(samples * rows_); ++k) {
    if (wanted[k] < 0) continue;  // the token is not learned
    loss_ += static_cast<double>(losses[k]), right_ += static_cast<double>(right[k]);
    ++counted_;
  }
}
Measured Task::end_evaluation() const {
  const double n = static_cast<double>(counted_);
  if (!c_.data.regression) return {loss_ / n, right_ / n};
  const double around_mean = squares_ - sum_ * sum_ / n;  // as sklearn's r2_score does if all are equal
  return {loss_ / n, around_mean > 0 ? 1 - loss_ / around_mean : loss_ > 0 ? 0 : 1};
}

void Task::save_adapters(const std::string& folder) const {
  if (trainer_->adapters().empty()) return;
  if (classifier_) return classifier_->save_adapters(*trainer_, folder);
  const std::string base = c_.model.weights.empty() ? "" : absolute_path(c_.model.weights);
  llm::save_adapters(
      folder, (first_ ? first_->model : *llama_).parameters(), trainer_->adapters(),
      [&](const std::string& name) { return trainer_->values(name); }, base);
}

void Task::save_language_model(const std::string& path, const Vocabulary& tokens, DType type,
                               const std::string& name) const {
  const MergedValues values(*trainer_);
  if (first_) first_->save(path, values, type, name);
  else save_llama(path, *llama_, values, tokens, type, name);
}

}  // namespace lc::tool
