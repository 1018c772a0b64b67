// Whole training steps: forward, loss, backward, clipping and update as one program.
#include <algorithm>
#include <map>

#include "lightcone/lowering/types/mixed_precision.h"
#include "lightcone/passes/passes.h"
#include "lightcone/train/trace.h"
#include "lightcone/train/trainer.h"
#include "temp_dir.h"
#include "train_models.h"
#include "workload.h"

namespace lc::bench {
namespace {

constexpr std::size_t kSteps = 3;  // after which the loss is compared
constexpr double kProfiled = 2;    // seconds of steps
constexpr std::size_t kCostliest = 10;

// The data that a model learns, and the optimiser.
struct Task {
  std::vector<i64> input;  // numbers, or tokens [batch, context] that are each followed by their label
  bool tokens;
  i64 classes;
  optim::Optimizer optimizer;
  double max_norm = 0;  // 0: gradients stay as they are
};

std::size_t elements(const Shape& s) {
  std::size_t n = 1;
  for (const Dim& d : s) n *= static_cast<std::size_t>(*d.constant());
  return n;
}

enum Phase { kForward, kBackward, kUpdate, kPhases };
constexpr const char* kPhaseNames[] = {"forward", "backward", "update"};

// Returns the phase of a kernel. A kernel that computes a gradient and uses it belongs to the backward pass.
Phase phase(const KernelProfile& k) {
  const auto has = [&](const char* word) { return k.what.find(word) != std::string::npos; };
  if (has("backward") || has("gradients")) return kBackward;
  return has("optim") || has("clip_grad_norm") ? kUpdate : kForward;
}

// Returns the costliest rows. Equal kernels are one row: the same kernel of each layer.
Json costliest(const Profile& p) {
  std::map<std::string, KernelProfile> alike;
  for (const KernelProfile& k : p.kernels) {
    KernelProfile& sum = alike.try_emplace(str_cat(k.name, k.shape, k.what), k).first->second;
    if (sum.node == k.node) continue;
    sum.calls += k.calls;
    sum.seconds += k.seconds;
    sum.flops += k.flops;
    sum.bytes_read += k.bytes_read;
    sum.bytes_written += k.bytes_written;
  }
  std::vector<const KernelProfile*> order;
  for (const auto& [key, k] : alike) order.push_back(&k);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->seconds > b->seconds; });
  if (order.size() > kCostliest) order.resize(kCostliest);
  Json rows = Json::array();
  for (const KernelProfile* k : order)
    rows.push_back({{"ms", 1e3 * k->seconds / static_cast<double>(p.runs)},
                    {"calls", k->calls / p.runs},
                    {"gflops", 1e-9 * k->flops / k->seconds},
                    {"gbytes_per_s", 1e-9 * k->bytes() / k->seconds},
                    {"phase", kPhaseNames[phase(*k)]},
                    {"kernel", k->name},
                    {"shape", k->shape},
                    {"what", k->what}});
  return rows;
}

template <class M>
class Training final : public Workload {
 public:
  Training(const Json& w, const Task& t) : net_(graph_, M()) {
    const Tensor x = graph_.input("x", Shape(t.input.begin(), t.input.end()), t.tokens ? DType::I64 : DType::F32);
    const i64 rows = t.tokens ? t.input[0] * t.input[1] : t.input[0];
    const Tensor y = graph_.input("y", {rows}, DType::I64);
    auto loss = trace(
        net_,
        [&](auto& net, const Tensor& x, const Tensor& y) {
          return cross_entropy(net(x).reshape({rows, t.classes}), y);
        },
        x, y);
    loss.loss().retrieve("loss");
    Gradients<M> gradients = backward(std::move(loss));
    if (t.max_norm > 0) gradients.clip_norm(t.max_norm);
    update(net_, t.optimizer, std::move(gradients));
    CpuOptions options = cpu_options(w);
    options.jit.cache_dir = cache_.path();  // the first step compiles everything
    const double begin = now();
    const Compiler narrow = w.value("dtype", "f32") == "bf16" ? autocast(DType::BF16) : Compiler();
    trainer_ = std::make_unique<Trainer>(net_, narrow | generic() | cpu(options));
    compile_s_ = now() - begin;
    for (const nn::Entry& e : net_.entries())
      if (e.kind == nn::Entry::Kind::Parameter) {
        std::vector<i64> shape;
        for (const Dim& d : e.tensor.shape()) shape.push_back(*d.constant());
        trainer_->context().set(e.name, parameter_values(e.name, shape));
      }
    show(t);
  }

  void call() override {
    const float loss = trainer_->step();
    if (losses_.size() <= kSteps) losses_.push_back(loss);
  }
  Json answer() override {
    while (losses_.size() <= kSteps) call();
    return summary(std::span(losses_).last(1));
  }
  Json facts() override {
    const Program& p = trainer_->program();
    Json all{{"parameters", net_.count()},
             {"losses", losses_},
             {"kernels", p.kernels()},
             {"interpreted", p.interpreted()},
             {"compile_s", compile_s_},
             {"arena", p.plan().arena_bytes},
             {"planned_bytes", p.plan().total_bytes()}};
    all["profile"] = profile();
    return all;
  }

 private:
  void show(const Task& t) {
    Context& c = trainer_->context();
    if (!t.tokens) {
      c.set("x", input_values("x", elements(Shape(t.input.begin(), t.input.end()))));
      c.set("y", class_values("y", static_cast<std::size_t>(t.input[0]), t.classes));
      return;
    }
    const i64 length = t.input[1] + 1;
    const std::vector<i64> text = class_values("tokens", static_cast<std::size_t>(t.input[0] * length), t.classes);
    std::vector<i64> x, y;
    for (i64 i = 0; i < static_cast<i64>(text.size()); ++i) {
      if (i % length < length - 1) x.push_back(text[static_cast<std::size_t>(i)]);
      if (i % length > 0) y.push_back(text[static_cast<std::size_t>(i)]);
    }
    c.set("x", x).set("y", y);
  }
  // Returns how a step's time divides, measured in steps that are not in the table.
  Json profile() {
    Context& c = trainer_->context();
    trainer_->step();  // cores that slept are slow at first
    c.profile(true);
    for (const double begin = now(); now() - begin < kProfiled;) trainer_->step();
    const Profile p = c.profile();
    c.profile(false);
    double seconds[kPhases] = {};
    for (const KernelProfile& k : p.kernels) seconds[phase(k)] += k.seconds;
    const double ms = 1e3 / static_cast<double>(p.runs);
    return {{"step_ms", p.seconds * ms},
            {"forward_ms", seconds[kForward] * ms},
            {"backward_ms", seconds[kBackward] * ms},
            {"update_ms", seconds[kUpdate] * ms},
            {"costliest", costliest(p)}};
  }

  TempDir cache_;
  Graph graph_;
  nn::Model<M> net_;
  std::unique_ptr<Trainer> trainer_;
  double compile_s_ = 0;
  std::vector<float> losses_;
};

template <class M>
std::unique_ptr<Workload> training(const Json& w, const Task& t) {
  return std::make_unique<Training<M>>(w, t);
}

}  // namespace

std::unique_ptr<Workload> make_train(const Json& w) {
  const auto net = w.at("net").get<std::string>();
  const i64 batch = w.at("batch").get<i64>();
  const optim::AdamW adamw{.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1};
  if (net == "mlp") return training<Mlp>(w, {{batch, 784}, false, 10, optim::Adam{.lr = 1e-3}});
  if (net == "resnet18")
    return training<Resnet18>(
        w, {{batch, 3, 32, 32}, false, 10, optim::SGD{.lr = 1e-3, .momentum = 0.9, .weight_decay = 5e-4}});
  if (net == "gpt") return training<Gpt>(w, {{batch, GptOptions().context}, true, GptOptions().vocabulary, adamw, 1});
  if (net == "llama")
    return training<Llama>(w, {{batch, LlamaOptions().context}, true, LlamaOptions().vocabulary, adamw, 1});
  throw Error("bench", "no model to train is called " + net);
}

}  // namespace lc::bench
