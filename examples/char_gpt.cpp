// A GPT of characters, as nanoGPT trains it on a processor (https://github.com/karpathy/nanoGPT: README, "I only have a
// macbook"): char_gpt FILE [STEPS]
// FILE is any text; the model learns from nine tenths of it, and then writes a text of its own.
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <vector>

#include "lightcone/io/data/seeded_random.h"
#include "lightcone/io/data/text.h"
#include "lightcone/lightcone.h"
#include "lightcone/nn/layers.h"
#include "lightcone/optim/schedule.h"
#include "lightcone/train/trace.h"
#include "lightcone/train/trainer.h"

using namespace lc;

constexpr std::int64_t kLayers = 4, kHeads = 4, kWidth = 128, kBlock = 64, kBatch = 12;

// A matrix with GPT-2's first values: normal, with deviation `std`. No layer has a bias.
struct Matrix {
  std::int64_t rows, columns;
  double std = 0.02;
  Tensor weight = {};
  void visit(nn::Visitor& v) {
    v.parameter("weight", weight, {rows, columns},
                [std = std](auto& shape, auto& source) { return nn::init::normal(shape, source, 0, std); });
  }
  Tensor operator()(const Tensor& x) const { return linear(x, weight); }
};
struct Norm : nn::LayerNorm<kWidth> {
  Norm() : LayerNorm({.bias = false}) {}
};

struct Block {
  static constexpr double kBeforeSum =
      0.14142135623730951 / 20;  // 0.02 / sqrt(2 * layers), for matrices whose results are added to the stream
  Norm ln_1, ln_2;
  Matrix c_attn{3 * kWidth, kWidth}, attn_proj{kWidth, kWidth, kBeforeSum};
  Matrix c_fc{4 * kWidth, kWidth}, mlp_proj{kWidth, 4 * kWidth, kBeforeSum};
  void visit(nn::Visitor& v) {
    v("ln_1", ln_1)("attn.c_attn", c_attn)("attn.c_proj", attn_proj);
    v("ln_2", ln_2)("mlp.c_fc", c_fc)("mlp.c_proj", mlp_proj);
  }
  Tensor attention(const Tensor& x) const {
    std::vector<Tensor> heads;
    for (const Tensor& part : chunk(c_attn(x), 3, -1))
      heads.push_back(part.reshape({x.extent(0), kBlock, kHeads, kWidth / kHeads}).permute({0, 2, 1, 3}));
    const Tensor y = scaled_dot_product_attention(heads[0], heads[1], heads[2], AttentionOptions{.is_causal = true});
    return attn_proj(y.permute({0, 2, 1, 3}).reshape(x.shape()));
  }
  Tensor operator()(const Tensor& x) const {
    const Tensor h = x + attention(ln_1(x));
    return h + mlp_proj(gelu(c_fc(ln_2(h))));
  }
};

// From tokens [n, 64] to the logits of each one's successor [n, 64, vocabulary].
struct Gpt {
  Matrix wte, wpe{kBlock, kWidth};  // tables of tokens and of positions
  nn::Repeated<Block, kLayers> h;
  Norm ln_f;
  explicit Gpt(std::int64_t vocabulary) : wte{vocabulary, kWidth} {}
  void visit(nn::Visitor& v) { v("wte", wte)("wpe", wpe)("h", h)("ln_f", ln_f); }
  Tensor operator()(const Tensor& tokens) const {
    return wte(ln_f(h(embedding(tokens, wte.weight) + wpe.weight)));  // the last layer is the table of tokens again
  }
};

Tensor loss_of(auto&& gpt, const Tensor& x, const Tensor& y, std::int64_t vocabulary) {
  return cross_entropy(gpt(x).reshape({x.extent(0) * kBlock, vocabulary}), y.reshape({x.extent(0) * kBlock}));
}

// Matrices decay, norms do not. The rate rises for 100 steps, and then falls to a tenth.
void update_as_nanogpt(Graph& g, Gradients<Gpt> d, std::int64_t steps) {
  d.clip_norm(1.0);
  std::vector<optim::Update> matrices, others;
  for (const optim::Update& u : d.updates()) (u.parameter.rank() > 1 ? matrices : others).push_back(u);
  const Tensor done = optim::counter(g);
  const auto rate =
      optim::warm_up(optim::cosine_annealing(1e-3, std::max<std::int64_t>(steps - 100, 1), 1e-4), 100, 1.0 / 101);
  optim::step({{optim::AdamW{.beta2 = 0.99, .weight_decay = 0.1}, matrices},
               {optim::AdamW{.beta2 = 0.99, .weight_decay = 0}, others}},
              {.lr = rate(done), .step = done});
}

// Returns the mean loss of all blocks of a text, 12 at a time.
double evaluate(const Trainer& trainer, const Gpt& gpt, std::span<const std::int64_t> tokens, std::int64_t vocabulary) {
  Graph g;
  nn::Model<Gpt> net(g, gpt);
  loss_of(net, g.input("x", {kBatch, kBlock}, DType::I64), g.input("y", {kBatch, kBlock}, DType::I64), vocabulary)
      .retrieve("loss");
  Program program = compile(g, generic() | cpu());
  trainer.copy_to(program);
  Context run(program);
  const Dataset blocks = next_token_samples(tokens, kBlock, kBlock);
  double total = 0;
  const std::int64_t batches = blocks.size() / kBatch;
  for (std::int64_t k = 0; k < batches; ++k) {
    const Dataset b = blocks.part(k * kBatch, kBatch);
    run.set("x", b.at("x").values<std::int64_t>()).set("y", b.at("y").values<std::int64_t>());
    total += run.run().scalar("loss");
  }
  return total / static_cast<double>(std::max<std::int64_t>(batches, 1));
}

// Continues `tokens`, a character at a time: each is drawn from the probabilities given by the 64 before it.
std::vector<std::int64_t> write(const Trainer& trainer, const Gpt& gpt, std::vector<std::int64_t> tokens,
                                int characters) {
  Graph g;
  nn::Model<Gpt> net(g, gpt);
  Random random(g, 1337);
  const Tensor last = net(g.input("x", {1, kBlock}, DType::I64)).slice(1, kBlock - 1, kBlock);
  random.categorical(last).retrieve("next");
  Program program = compile(g, generic() | cpu());
  trainer.copy_to(program);
  Context run(program);
  for (int k = 0; k < characters; ++k) {
    run.set("x", std::span<const std::int64_t>(tokens).last(kBlock));
    tokens.push_back(run.run().get_i64("next")[0]);
  }
  return tokens;
}

int train(const std::string& file, std::int64_t steps) {
  const std::string text = read_text(file);
  const CharVocabulary vocabulary = CharVocabulary::of(text);
  const Array all = vocabulary.encode(text);
  const auto tokens = all.values<std::int64_t>();
  const std::size_t learned = tokens.size() * 9 / 10;

  Graph g;
  const Gpt gpt(vocabulary.size());
  nn::Model<Gpt> net(g, gpt);
  const Tensor x = g.input("x", {kBatch, kBlock}, DType::I64), y = g.input("y", {kBatch, kBlock}, DType::I64);
  auto loss = trace(
      net, [&](auto& net, auto& x, auto& y) { return loss_of(net, x, y, vocabulary.size()); }, x, y);
  loss.loss().retrieve("loss");
  update_as_nanogpt(g, backward(std::move(loss)), steps);
  Trainer trainer(net, generic() | cpu(), {.seed = 1337});
  std::cout << vocabulary.size() << " characters, " << net.count() << " parameters\n";

  SeededRandom random({1337});
  std::vector<std::int64_t> now, next;
  float first = 0, last = 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    now.clear(), next.clear();
    for (std::int64_t k = 0; k < kBatch; ++k) {
      const auto from = tokens.begin() + static_cast<std::ptrdiff_t>(random.below(learned - kBlock));
      now.insert(now.end(), from, from + kBlock);
      next.insert(next.end(), from + 1, from + kBlock + 1);
    }
    trainer.context().set("x", now).set("y", next);
    last = trainer.step();
    if (step == 0) first = last;
    if (step % 250 == 0) std::cout << "step " << step << ": loss " << last << std::endl;
  }
  const auto rest = tokens.subspan(learned);
  std::cout << "validation loss " << evaluate(trainer, gpt, rest, vocabulary.size()) << '\n';
  const std::vector<std::int64_t> begin(rest.begin(), rest.begin() + kBlock);
  std::cout << vocabulary.decode(write(trainer, gpt, begin, 300)) << '\n';
  return last < first ? 0 : 1;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cout << "char_gpt FILE [STEPS]: learns to write as the text in FILE is written\n";
    return 0;
  }
  try {
    return train(argv[1], argc > 2 ? std::atoll(argv[2]) : 2000);
  } catch (const Error& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
