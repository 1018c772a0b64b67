// A two-layer network whose shapes the compiler checks; the batch is known when it runs.
#include <iostream>
#include <vector>

#include "lightcone/lightcone.h"

using lc::typed::Tensor;

template <lc::typed::Dim In, lc::typed::Dim Out>
struct Linear {
  lc::typed::Variable<float, Out, In> weight;
  lc::typed::Variable<float, Out> bias;
  explicit Linear(lc::Session& cx) : weight(cx.tensor<Out, In>()), bias(cx.tensor<Out>()) {}
  auto operator()(const auto& x) const { return linear(x, weight) + bias; }
};

int main() {
  lc::Session cx;
  auto x = cx.tensor<"batch", 4>();
  Linear<4, 8> first(cx);
  Linear<8, 3> second(cx);
  Tensor<float, "batch", 3> y = softmax<-1>(second(relu(first(x)))).retrieve();
  // second(x) would not compile:
  //   linear: [batch, 4] with a weight [3, 8]: the last axis must be 8

  std::vector<float> w(32), v(24);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = 0.1f * static_cast<float>(i % 7) - 0.3f;
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = 0.2f * static_cast<float>(i % 5) - 0.4f;
  first.weight.set(w), first.bias.set(std::vector<float>(8, 0.1f));
  second.weight.set(v), second.bias.set(std::vector<float>(3, 0));
  cx.compile(lc::generic() | lc::cpu());
  for (int batch : {1, 2}) {  // a single program runs every size
    x.set(std::vector<float>(static_cast<std::size_t>(4 * batch), 0.5f));
    cx.bind("batch", batch).execute();
    std::cout << cx.str(y) << '\n';
  }
}
