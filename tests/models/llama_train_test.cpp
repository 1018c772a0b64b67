// The Llama that trains: against PyTorch, and against the Llama that speaks.
#include <cmath>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "data.h"
#include "error_of.h"
#include "lightcone/io/text/train_bpe.h"
#include "lightcone/models/llama/llama.h"
#include "lightcone/models/llama/llama_model.h"
#include "lightcone/passes/passes.h"
#include "lightcone/train/trace.h"
#include "lightcone/train/trainer.h"

using namespace lc;
using Json = nlohmann::json;

namespace {

// A step of a model on one batch, gradients shown.
struct Training {
  Graph g;
  nn::Model<LlamaModel> model;
  std::optional<Trainer> trainer;

  Training(const LlamaConfig& c, const optim::Optimizer& o, std::int64_t batch, std::int64_t length)
      : model(g, LlamaModel(c)) {
    const Tensor x = g.input("x", {batch, length}, DType::I64), y = g.input("y", {batch, length}, DType::I64);
    auto loss = trace(
        model, [](auto& net, const Tensor& x, const Tensor& y) { return next_token_loss(net, x, y); }, x, y);
    loss.loss().retrieve("loss");
    auto d = backward(std::move(loss));
    for (const optim::Update& u : d.updates()) g.output("grad." + u.parameter.node().name, u.gradient);
    update(model, o, std::move(d));
    trainer.emplace(model, generic() | cpu({.threads = 2}));
  }
  void show(const std::vector<std::vector<std::int64_t>>& rows) {
    std::vector<std::int64_t> x, y;
    for (const auto& r : rows) x.insert(x.end(), r.begin(), r.end() - 1), y.insert(y.end(), r.begin() + 1, r.end());
    trainer->context().set("x", x).set("y", y);
  }
};

double off(const std::vector<float>& have, const std::vector<float>& want) {
  double difference = 0, size = 0;
  for (std::size_t k = 0; k < want.size(); ++k) {
    difference += std::pow(have.at(k) - want[k], 2);
    size += std::pow(want[k], 2);
  }
  return std::sqrt(difference / size);
}

const LlamaConfig kSmall{.vocab = 300,
                         .hidden = 32,
                         .intermediate = 48,
                         .layers = 2,
                         .heads = 4,
                         .kv_heads = 2,
                         .head_dim = 8,
                         .context = 24,
                         .rope_frequencies = {}};

std::vector<std::vector<std::int64_t>> some_rows(std::int64_t vocab) {
  std::vector<std::vector<std::int64_t>> rows(3);
  std::int64_t v = 1;
  for (auto& r : rows)
    for (int k = 0; k < 13; ++k) r.push_back(v = (v * 29 + 17) % vocab);
  return rows;
}

void trains_as_pytorch(const std::string& name, const Json& reference, const Weights& gradients) {
  const Weights begin = Weights::open(data("llm/" + name + "/hf"));
  const LlamaConfig c = LlamaConfig::from(begin);
  const auto batch = reference["batch"].get<std::vector<std::vector<std::int64_t>>>();
  const Json &a = reference["adamw"], &s = reference["sgd"];
  const std::pair<optim::Optimizer, const Json*> both[] = {
      {optim::AdamW{.lr = a["lr"],
                    .beta1 = a["betas"][0],
                    .beta2 = a["betas"][1],
                    .eps = a["eps"],
                    .weight_decay = a["weight_decay"]},
       &a},
      {optim::SGD{.lr = s["lr"], .momentum = s["momentum"]}, &s}};
  for (const auto& [optimizer, want] : both) {
    Training t(c, optimizer, static_cast<std::int64_t>(batch.size()), static_cast<std::int64_t>(batch[0].size()) - 1);
    t.trainer->load_parameters(data("llm/" + name + "/hf/model.safetensors"));
    t.show(batch);
    const auto losses = (*want)["loss"].get<std::vector<double>>();
    for (std::size_t step = 0; step < losses.size(); ++step) {
      EXPECT_NEAR(t.trainer->step(), losses[step], 2e-3 * losses[step]) << "step " << step;
      if (step > 0) continue;
      EXPECT_NEAR(t.trainer->context().scalar("loss"), reference["loss0"].get<double>(), 1e-5);
      for (const auto& [path, stored] : gradients.tensors())
        EXPECT_LT(off(t.trainer->context().get("grad." + path), Weights::read(stored)), 2e-4) << path;
      EXPECT_EQ(gradients.tensors().size(), t.model.entries().size());
    }
  }
}

}  // namespace

TEST(LlamaModel, TrainsAsInPyTorch) {
  int found = 0;
  if (std::filesystem::exists(data("llm")))
    for (const auto& folder : std::filesystem::directory_iterator(data("llm"))) {
      const std::string train = folder.path().string() + "/train";
      if (!std::filesystem::exists(train + "/training.json")) continue;
      ++found;
      trains_as_pytorch(folder.path().filename().string(), Json::parse(std::ifstream(train + "/training.json")),
                        Weights::open(train + "/grads_step0.safetensors"));
    }
  if (found == 0) GTEST_SKIP() << "the reference data llm/*/train is not here";
}

// What training saves says the same in the program that speaks: in halves, as here, rows change places in the file.
TEST(LlamaModel, SpeaksAsItTrained) {
  for (const bool interleaved : {false, true}) {
    LlamaConfig c = kSmall;
    c.rope_interleaved = interleaved;
    Training t(c, optim::SGD{.lr = 0.5}, 3, 12);
    const auto rows = some_rows(c.vocab);
    t.show(rows);
    const float first = t.trainer->step();
    for (int k = 0; k < 4; ++k) t.trainer->step();
    const Vocabulary tokens = train_bpe(std::vector<std::string>{"abc abc"}, {.size = 300});
    const TempDir folder;
    const auto values = [&](const std::string& path) {
      const auto bytes = t.trainer->context().bytes(path);
      return std::span(reinterpret_cast<const float*>(bytes.data()), bytes.size() / 4);
    };
    save_llama(folder / "m.gguf", t.model.module(), values, tokens, DType::F32, "test");
    const Llama speaks = Llama::load(folder / "m.gguf", {.all_logits = true});
    double sum = 0;
    for (const auto& r : rows) {
      LlamaSession s(speaks);
      const std::vector<int> ids(r.begin(), r.end() - 1);
      const auto logits = s.feed(ids);
      for (std::size_t k = 0; k < ids.size(); ++k) {
        const auto row = logits.subspan(k * 300, 300);
        double all = 0;
        for (const float v : row) all += std::exp(static_cast<double>(v));
        sum += std::log(all) - static_cast<double>(row[static_cast<std::size_t>(r[k + 1])]);
      }
    }
    const float now = t.trainer->step();
    EXPECT_NEAR(sum / 36, now, 1e-4);
    EXPECT_LT(now, first);
    EXPECT_EQ(speaks.tokenizer().size(), 300);
    const auto as_bytes = [&] { save_llama(folder / "i.gguf", t.model.module(), values, tokens, DType::I8); };
    EXPECT_PRED2(contains, error_of(as_bytes), "f32, f16 or bf16");
  }
}

TEST(LlamaModel, RefusesWhatMakesNoModel) {
  LlamaConfig c = kSmall;
  c.kv_heads = 3;
  EXPECT_PRED2(contains, error_of([&] { LlamaModel m(c); }), "3 key heads do not divide 4 query heads");
  c = kSmall, c.layers = 0;
  EXPECT_PRED2(contains, error_of([&] { LlamaModel m(c); }), "makes no model");
  c = kSmall, c.head_dim = 7;
  EXPECT_PRED2(contains, error_of([&] { LlamaModel m(c); }), "cannot be rotated");
  c = kSmall, c.rope_frequencies = {0.5, 0.1, 0.01, 0.001};
  EXPECT_PRED2(contains, error_of([&] { LlamaModel m(c); }), "RoPE is scaled");
}
