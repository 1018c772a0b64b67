// A pole on a cart that is pushed to the left or to the right: the equations of A. Barto, R. Sutton and C. Anderson,
// "Neuronlike adaptive elements that can solve difficult learning control problems" (1983), with the numbers of
// Gymnasium's CartPole-v1.
#pragma once

#include <array>
#include <cmath>
#include <vector>

#include "lightcone/io/data/seeded_random.h"

class CartPole {
 public:
  static constexpr int kNumbers = 4, kActions = 2, kMostSteps = 500;
  enum State { Stands, Fell, TimeIsUp };

  explicit CartPole(std::uint64_t seed) : random_({seed}) { reset(); }
  static std::vector<CartPole> several(std::uint64_t n) {
    std::vector<CartPole> carts;
    for (std::uint64_t k = 0; k < n; ++k) carts.emplace_back(k);
    return carts;
  }

  const std::array<float, kNumbers>& state() const { return state_; }  // position, speed, angle, angular speed
  int steps() const { return steps_; }                                 // for which the pole has stood so far
  void reset() {
    for (float& v : state_) v = static_cast<float>(0.1 * random_.uniform() - 0.05);
    steps_ = 0;
  }
  // Pushes to the left (0) or to the right (1) for a fiftieth of a second.
  State step(std::int64_t action) {
    constexpr double kGravity = 9.8, kCart = 1.0, kPole = 0.1, kHalfLength = 0.5, kForce = 10, kSeconds = 0.02;
    const double x = state_[0], v = state_[1], angle = state_[2], turn = state_[3];
    const double sine = std::sin(angle), cosine = std::cos(angle);
    const double push = ((action == 1 ? kForce : -kForce) + kPole * kHalfLength * turn * turn * sine) / (kCart + kPole);
    const double turning =
        (kGravity * sine - cosine * push) / (kHalfLength * (4.0 / 3 - kPole * cosine * cosine / (kCart + kPole)));
    const double moving = push - kPole * kHalfLength * turning * cosine / (kCart + kPole);
    state_ = {static_cast<float>(x + kSeconds * v), static_cast<float>(v + kSeconds * moving),
              static_cast<float>(angle + kSeconds * turn), static_cast<float>(turn + kSeconds * turning)};
    ++steps_;
    if (std::abs(state_[0]) > 2.4f || std::abs(state_[2]) > 0.20944f) return Fell;  // twelve degrees
    return steps_ >= kMostSteps ? TimeIsUp : Stands;
  }

 private:
  lc::SeededRandom random_;
  std::array<float, kNumbers> state_ = {};
  int steps_ = 0;
};
