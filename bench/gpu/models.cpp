// Whole models: the story model's tokens, and a GPT's training step.
#include "bench/runner/protocol.h"
#include "bench/runner/train_models.h"
#include "lightcone/models/llama/llama.h"
#include "lightcone/passes/passes.h"
#include "lightcone/train/trace.h"
#include "lightcone/train/trainer.h"
#include "rows.h"

namespace lc::gpu_bench {
namespace {

using i64 = std::int64_t;

Json story(const Setting& s) {
  const int prompt = s.tiny ? 8 : 128, tokens = s.tiny ? 4 : 200;
  const Llama model =
      Llama::load(s.story, {.context = 384, .chunk = 128, .compiler = generic() | backends::gpu::compiler(s.device)});
  std::vector<int> ids;
  for (int k = 0; k < prompt; ++k) ids.push_back(3 + k % 200);
  LlamaSession session(model);
  session.feed(ids), session.feed(5);  // the first call of each does what is deferred to it
  session.reset();
  const double begin = now();
  session.feed(ids);
  const double read = now();
  for (int k = 0; k < tokens; ++k) session.feed(5 + k % 100);
  const double end = now();
  return {{"tokens_per_s", tokens / (end - read)},
          {"prompt_tokens_per_s", prompt / (read - begin)},
          {"kernels", model.program().kernels()}};
}

Json training(const Setting& s) {
  const bench::GptOptions o =
      s.tiny ? bench::GptOptions{.layers = 6, .heads = 2, .width = 16, .context = 8, .vocabulary = 11}
             : bench::GptOptions{};
  const i64 batch = s.tiny ? 1 : 8, rows = batch * o.context;
  Graph g;
  nn::Model<bench::Gpt> net(g, bench::Gpt(o));
  const Tensor x = g.input("x", {batch, o.context}, DType::I64), y = g.input("y", {rows}, DType::I64);
  auto loss = trace(
      net,
      [&](auto& net, const Tensor& x, const Tensor& y) {
        return cross_entropy(net(x).reshape({rows, o.vocabulary}), y);
      },
      x, y);
  loss.loss().retrieve("loss");
  update(net, optim::AdamW{.lr = 1e-3}, backward(std::move(loss)));
  Trainer trainer(net, generic() | backends::gpu::compiler(s.device), {.seed = 1});
  trainer.context().set("x", bench::class_values("x", static_cast<std::size_t>(rows), o.vocabulary));
  trainer.context().set("y", bench::class_values("y", static_cast<std::size_t>(rows), o.vocabulary));
  const float first = trainer.step();
  float last = first;
  const double t = time_of(s, [&] { last = trainer.step(); });
  return {{"ms_a_step", 1e3 * t}, {"first_loss", first}, {"last_loss", last}, {"kernels", trainer.program().kernels()}};
}

}  // namespace

std::vector<Row> models() { return {{"story model", story}, {"training step, GPT of 6 layers", training}}; }

}  // namespace lc::gpu_bench
