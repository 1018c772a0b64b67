// A deep Q-network (V. Mnih et al., "Human-level control through deep reinforcement learning", 2015) with the two
// networks of H. van Hasselt et al., "Deep reinforcement learning with double Q-learning" (2016) learns to balance a
// pole on a cart:
//   dqn [STEPS]
// It ends when the last hundred poles stood 475 of 500 steps on average, or after STEPS steps.
#include <algorithm>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <map>
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

constexpr std::int64_t kBatch = 128, kMemory = 50'000, kFirst = 1'000, kEach = 4;  // trains in every fourth step
constexpr double kDiscount = 0.99, kFollow = 0.01;

// The value of each push, from states [n, 4] to [n, 2].
using Net = nn::Sequential<nn::Linear<CartPole::kNumbers, 128>, nn::ReLU, nn::Linear<128, 128>, nn::ReLU,
                           nn::Linear<128, CartPole::kActions>>;
// The network that learns, and one that follows it slowly and values the next state.
struct Agent {
  Net online;
  nn::Frozen<Net> target;
  void visit(nn::Visitor& v) { v("online", online)("target", target); }
  Tensor operator()(const Tensor& x) const { return online(x); }
};

Tensor loss_of(InTraining<Agent>& net, Graph& g) {
  const Tensor x = g.input("x", {kBatch, CartPole::kNumbers}), next = g.input("next", {kBatch, CartPole::kNumbers});
  const Tensor action = g.input("action", {kBatch, 1}, DType::I64), goes_on = g.input("goes_on", {kBatch, 1});
  const Tensor best = argmax(net(next), 1, true);  // chosen by one network, valued by the other
  const Tensor worth = 1.0 + kDiscount * goes_on * gather(net.module().target(next), 1, best);
  return smooth_l1_loss(gather(net(x), 1, action), stop_gradient(worth));
}

// Assigns target = target + 0.01 (online - target) after each step, as an optimiser assigns its states.
void follow(Graph& g, const nn::Model<Agent>& net, const optim::Step& s) {
  std::map<std::string, Tensor> next;
  for (std::size_t k = 0; k < s.parameters.size(); ++k) next[s.parameters[k].node().name] = s.next[k];
  for (const nn::Entry& e : net.entries()) {
    if (e.kind != nn::Entry::Kind::Frozen) continue;
    const Tensor online = next.at("online" + e.name.substr(std::string("target").size()));
    g.assign(e.tensor, e.tensor + kFollow * (online - e.tensor));
  }
}

struct Memory {
  struct Step {
    std::array<float, CartPole::kNumbers> x, next;
    std::int64_t action;
    float goes_on;  // 0 if the pole fell
  };
  std::vector<Step> steps;
  std::size_t oldest = 0;
  void add(const Step& s) {
    if (steps.size() < kMemory) steps.push_back(s);
    else steps[oldest] = s, oldest = (oldest + 1) % kMemory;
  }
  void sample(Context& c, SeededRandom& random) const {
    std::vector<float> x, next, goes_on;
    std::vector<std::int64_t> action;
    for (std::int64_t k = 0; k < kBatch; ++k) {
      const Step& s = steps[random.below(steps.size())];
      x.insert(x.end(), s.x.begin(), s.x.end()), next.insert(next.end(), s.next.begin(), s.next.end());
      action.push_back(s.action), goes_on.push_back(s.goes_on);
    }
    c.set("x", x).set("next", next).set("action", action).set("goes_on", goes_on);
  }
};

int main(int argc, char** argv) {
  const std::int64_t steps = argc > 1 ? std::atoll(argv[1]) : 150'000;
  Graph g;
  nn::Model<Agent> net(g);
  auto loss = trace(net, [&](auto& net) { return loss_of(net, g); });
  loss.loss().retrieve("loss");
  Gradients<Agent> d = backward(std::move(loss));
  d.clip_norm(10);
  const Tensor done = optim::counter(g);
  const auto rate = optim::linear(1e-3, 1, 0.05, steps / kEach);
  follow(g, net, update(net, optim::Adam{}, std::move(d), {.lr = rate(done), .step = done}));
  Trainer trainer(net, generic() | cpu({.threads = 1}), {.seed = 1});

  Graph acting;
  nn::Model<Agent> player(acting);
  argmax(player(acting.input("x", {1, CartPole::kNumbers})), 1).retrieve("action");
  Program play = compile(acting, generic() | cpu({.threads = 1}));
  std::optional<Context> run;

  CartPole cart(1);
  Memory memory;
  SeededRandom random({1});
  std::deque<double> returns;
  double reached = 0;
  std::int64_t step = 0;
  for (; step < steps && reached < 475; ++step) {
    if (step % 16 == 0) trainer.copy_to(play), run.emplace(play);
    const double at_random = std::max(0.02, 1 - static_cast<double>(step) / 10'000);
    std::int64_t action = static_cast<std::int64_t>(random.below(CartPole::kActions));
    const auto x = cart.state();
    if (random.uniform() >= at_random) action = run->set("x", x).run().get_i64("action")[0];
    const CartPole::State state = cart.step(action);
    memory.add({x, cart.state(), action, state == CartPole::Fell ? 0.f : 1.f});
    if (state != CartPole::Stands) {
      returns.push_back(cart.steps());
      if (returns.size() > 100) returns.pop_front();
      reached = std::accumulate(returns.begin(), returns.end(), 0.0) / static_cast<double>(returns.size());
      cart.reset();
    }
    if (step >= kFirst && step % kEach == 0) memory.sample(trainer.context(), random), trainer.step();
    if (step % 5'000 == 0) std::cout << step << " steps: poles stand " << reached << std::endl;
  }
  std::cout << "after " << step << " steps the last " << returns.size() << " poles stood " << reached << " steps\n";
  return reached > 100 ? 0 : 1;  // a random policy reaches some 20
}
