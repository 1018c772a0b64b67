// Proximal policy optimisation (J. Schulman et al., 2017) learns to balance a pole on a cart: ppo [STEPS]
// Eight carts run at once. It ends when the last hundred poles stood 475 of 500 steps on average, the measure by which
// Gymnasium calls CartPole-v1 solved, or after STEPS steps of a cart.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <numeric>
#include <optional>
#include <vector>

#include "cart_pole.h"
#include "lightcone/lightcone.h"
#include "lightcone/nn/layers.h"
#include "lightcone/optim/schedule.h"
#include "lightcone/train/trace.h"
#include "lightcone/train/trainer.h"

using namespace lc;

constexpr std::int64_t kCarts = 8, kSteps = 128, kBatch = 256, kEpochs = 4;
constexpr double kDiscount = 0.99, kLambda = 0.95, kClip = 0.2, kEntropy = 0.01;

// The policy and the value of states [n, 4].
using Net = nn::Sequential<nn::Linear<4, 64>, nn::Tanh, nn::Linear<64, 64>, nn::Tanh>;
struct ActorCritic {
  Net policy, value;
  nn::Linear<64, CartPole::kActions> act;
  nn::Linear<64, 1> judge;
  void visit(nn::Visitor& v) { v("policy", policy)("act", act)("value", value)("judge", judge); }
  struct Out {
    Tensor logits, value;  // [n, 2], [n]
  };
  Out operator()(const Tensor& x) const { return {act(policy(x)), judge(value(x)).squeeze(1)}; }
};

Tensor chosen(const Tensor& log_probabilities, const Tensor& actions) {
  return gather(log_probabilities, 1, actions.unsqueeze(1)).squeeze(1);
}

// The history of all carts, [kSteps, kCarts] each.
struct Rollout {
  std::vector<float> states, log_probs, values, advantages, returns;
  std::vector<std::int64_t> actions;
};

// The policy that acts: a program of its own, to which the trainer's parameters are copied.
class Player {
 public:
  Player() {
    nn::Model<ActorCritic> net(g_);
    Random random(g_, 1);
    const auto [logits, value] = net(g_.input("x", {kCarts, CartPole::kNumbers}));
    const Tensor action = random.categorical(logits);
    action.retrieve("action"), value.retrieve("value");
    chosen(log_softmax(logits, 1), action).retrieve("log_prob");
    program_.emplace(compile(g_, generic() | cpu({.threads = 1})));
  }
  // Plays 128 steps of each cart; the returns of poles that fell are added to `returns`.
  Rollout play(const Trainer& trainer, std::deque<double>& returns) {
    const std::int64_t step = run_ ? run_->get_i64("random.step")[0] : 0;
    trainer.copy_to(*program_);
    run_.emplace(*program_);
    run_->set("random.step", std::vector<std::int64_t>{step});  // its random numbers continue
    Rollout r;
    std::vector<float> rewards, ended;  // ended: 1 if another pole begins
    for (std::int64_t t = 0; t <= kSteps; ++t) {
      std::vector<float> x;
      for (const CartPole& c : carts_) x.insert(x.end(), c.state().begin(), c.state().end());
      run_->set("x", x).run();
      const std::vector<float> values = run_->get("value");
      r.values.insert(r.values.end(), values.begin(), values.end());
      if (t == kSteps) break;
      const std::vector<float> log_probs = run_->get("log_prob");
      const std::vector<std::int64_t> actions = run_->get_i64("action");
      r.states.insert(r.states.end(), x.begin(), x.end());
      r.log_probs.insert(r.log_probs.end(), log_probs.begin(), log_probs.end());
      r.actions.insert(r.actions.end(), actions.begin(), actions.end());
      for (std::size_t k = 0; k < kCarts; ++k) {
        const bool end = carts_[k].step(actions[k]) != CartPole::Stands;
        rewards.push_back(1), ended.push_back(end);
        if (!end) continue;
        returns.push_back(carts_[k].steps());
        if (returns.size() > 100) returns.pop_front();
        carts_[k].reset();
      }
    }
    advantages(r, rewards, ended);
    return r;
  }

 private:
  // Generalised advantage estimation (J. Schulman et al., 2016).
  static void advantages(Rollout& r, const std::vector<float>& rewards, const std::vector<float>& ended) {
    r.advantages.resize(rewards.size()), r.returns.resize(rewards.size());
    for (std::size_t k = 0; k < kCarts; ++k) {
      double later = 0;
      for (std::size_t t = kSteps; t-- > 0;) {
        const std::size_t i = t * kCarts + k;
        const double goes_on = 1 - ended[i],
                     delta = rewards[i] + kDiscount * goes_on * r.values[i + kCarts] - r.values[i];
        later = delta + kDiscount * kLambda * goes_on * later;
        r.advantages[i] = static_cast<float>(later), r.returns[i] = static_cast<float>(later) + r.values[i];
      }
    }
  }
  Graph g_;
  std::optional<Program> program_;
  std::optional<Context> run_;
  std::vector<CartPole> carts_ = CartPole::several(kCarts);
};

Tensor loss_of(InTraining<ActorCritic>& net, Graph& g) {
  const auto input = [&](const char* name) { return g.input(name, {kBatch}); };
  const Tensor actions = g.input("action", {kBatch}, DType::I64), advantage = input("advantage");
  const auto [logits, value] = net(g.input("x", {kBatch, CartPole::kNumbers}));
  const Tensor log_p = log_softmax(logits, 1), ratio = exp(chosen(log_p, actions) - input("log_prob"));
  const Tensor a = (advantage - mean(advantage)) / (stddev(advantage) + 1e-8);
  const Tensor gain = mean(minimum(ratio * a, clamp(ratio, 1 - kClip, 1 + kClip) * a));
  const Tensor entropy = -mean(sum(exp(log_p) * log_p, {1}));
  return 0.5 * mse_loss(value, input("return")) - gain - kEntropy * entropy;
}

int main(int argc, char** argv) {
  const std::int64_t steps = argc > 1 ? std::atoll(argv[1]) : 200'000;
  Graph g;
  nn::Model<ActorCritic> net(g);
  auto loss = trace(net, [&](auto& net) { return loss_of(net, g); });
  loss.loss().retrieve("loss");
  Gradients<ActorCritic> d = backward(std::move(loss));
  d.clip_norm(0.5);
  const Tensor done_updates = optim::counter(g);
  const std::int64_t updates = steps / (kSteps * kCarts) * (kSteps * kCarts / kBatch) * kEpochs;
  update(net, optim::Adam{.eps = 1e-5}, std::move(d),
         {.lr = optim::linear(1e-3, 1, 0, updates)(done_updates), .step = done_updates});
  Trainer trainer(net, generic() | cpu({.threads = 1}), {.seed = 1});

  Player player;
  SeededRandom random({1});
  std::deque<double> returns;
  double reached = 0;
  std::int64_t done = 0;
  for (std::int64_t round = 1; done < steps && reached < 475; ++round) {
    const Rollout r = player.play(trainer, returns);
    done += kSteps * kCarts;
    for (std::int64_t epoch = 0; epoch < kEpochs; ++epoch) {
      const std::vector<std::int64_t> order = random_permutation(kSteps * kCarts, SeededRandom({random()}));
      for (std::int64_t begin = 0; begin < kSteps * kCarts; begin += kBatch) {
        const auto batch = std::span(order).subspan(static_cast<std::size_t>(begin), kBatch);
        const auto some = [&]<class T>(const std::vector<T>& all, std::size_t width = 1) {
          std::vector<T> v;
          for (const std::int64_t k : batch)
            v.insert(v.end(), all.begin() + k * static_cast<std::int64_t>(width),
                     all.begin() + (k + 1) * static_cast<std::int64_t>(width));
          return v;
        };
        trainer.context().set("x", some(r.states, 4)).set("action", some(r.actions)).set("log_prob", some(r.log_probs));
        trainer.context().set("advantage", some(r.advantages)).set("return", some(r.returns));
        trainer.step();
      }
    }
    reached = returns.empty()
                  ? 0
                  : std::accumulate(returns.begin(), returns.end(), 0.0) / static_cast<double>(returns.size());
    if (round % 10 == 0) std::cout << done << " steps: poles stand " << reached << std::endl;
  }
  std::cout << "after " << done << " steps the last " << returns.size() << " poles stood " << reached << " steps\n";
  return reached > 100 ? 0 : 1;  // a random policy reaches some 20
}
