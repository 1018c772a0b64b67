// First and second derivatives of every loss agree with central differences in f64.
#include <gtest/gtest.h>

#include "differences.h"
#include "lightcone/ops/loss.h"

using namespace lc;

namespace {

// Inputs of one loss: f64 numbers in a range, i64 integers below a count.
struct Given {
  Graph g;
  Inputs values;
  std::mt19937_64 random{11};

  Tensor numbers(Shape s, double low = -2, double high = 2) {
    std::uniform_real_distribution<double> uniform(low, high);
    return input(s, DType::F64, [&](Value& v) { v.f.push_back(uniform(random)); });
  }
  Tensor classes(Shape s, std::int64_t count) {
    return input(s, DType::I64, [&](Value& v) {
      v.i.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count)));
    });
  }
  Tensor signs(Shape s) { return to(classes(std::move(s), 2) * 2.0 - 1.0, DType::F64); }

 private:
  Tensor input(const Shape& s, DType type, const std::function<void(Value&)>& one) {
    Value v = make_value(type, {});
    v.f.clear(), v.i.clear();
    std::int64_t n = 1;
    for (const Dim& d : s) v.shape.push_back(*d.constant()), n *= v.shape.back();
    for (std::int64_t k = 0; k < n; ++k) one(v);
    const std::string name = str_cat("in", values.size());
    values[name] = v;
    return g.input(name, s, type);
  }
};

struct Case {
  const char* name;
  Tensor (*loss)(Given& in, Reduction r);
};
const std::vector<Case> kCases{
    {"mse_loss",
     [](Given& in, Reduction r) {
       return mse_loss(in.numbers({2, 3}), in.numbers({2, 3}), r);
     }},
    {"l1_loss",
     [](Given& in, Reduction r) {
       return l1_loss(in.numbers({2, 3}), in.numbers({2, 3}), r);
     }},
    {"huber_loss",
     [](Given& in, Reduction r) {
       return huber_loss(in.numbers({2, 3}), in.numbers({2, 3}), r, 1.5);
     }},
    {"smooth_l1_loss",
     [](Given& in, Reduction r) {
       return smooth_l1_loss(in.numbers({2, 3}), in.numbers({2, 3}), r, 0.7);
     }},
    {"cross_entropy",
     [](Given& in, Reduction r) {
       return cross_entropy(in.numbers({4, 3, 2}), in.classes({4, 2}, 3),
                            {.weight = in.numbers({3}, 0.5, 2), .reduction = r, .label_smoothing = 0.2});
     }},
    {"cross_entropy of probabilities",
     [](Given& in, Reduction r) {
       return cross_entropy(in.numbers({4, 3}), in.numbers({4, 3}, 0.1, 1), {.reduction = r});
     }},
    {"nll_loss",
     [](Given& in, Reduction r) {
       return nll_loss(in.numbers({4, 3}), in.classes({4}, 3), {.weight = in.numbers({3}, 0.5, 2), .reduction = r});
     }},
    {"binary_cross_entropy",
     [](Given& in, Reduction r) {
       return binary_cross_entropy(in.numbers({2, 3}, 0.2, 0.8), in.numbers({2, 3}, 0.2, 0.8),
                                   {.weight = in.numbers({3}, 0.5, 2), .reduction = r});
     }},
    {"binary_cross_entropy_with_logits",
     [](Given& in, Reduction r) {
       return binary_cross_entropy_with_logits(
           in.numbers({2, 3}), in.numbers({2, 3}, 0.2, 0.8),
           {.weight = in.numbers({3}, 0.5, 2), .reduction = r, .pos_weight = in.numbers({3}, 0.5, 2)});
     }},
    {"kl_div",
     [](Given& in, Reduction r) {
       return kl_div(in.numbers({2, 3}), in.numbers({2, 3}, 0.2, 1), r);
     }},
    {"kl_div of logarithms",
     [](Given& in, Reduction r) {
       return kl_div(in.numbers({2, 3}), in.numbers({2, 3}), r, true);
     }},
    {"gaussian_nll_loss",
     [](Given& in, Reduction r) {
       return gaussian_nll_loss(in.numbers({2, 3}), in.numbers({2, 3}), in.numbers({2, 3}, 0.5, 2), {.reduction = r});
     }},
    {"poisson_nll_loss",
     [](Given& in, Reduction r) {
       return poisson_nll_loss(in.numbers({2, 3}), in.numbers({2, 3}, 2, 4), {.full = true, .reduction = r});
     }},
    {"poisson_nll_loss of rates",
     [](Given& in, Reduction r) {
       return poisson_nll_loss(in.numbers({2, 3}, 0.5, 2), in.numbers({2, 3}, 0, 1),
                               {.log_input = false, .reduction = r});
     }},
    {"cosine_embedding_loss",
     [](Given& in, Reduction r) {
       return cosine_embedding_loss(in.numbers({4, 3}), in.numbers({4, 3}), in.signs({4}), -0.9, r);
     }},
    {"hinge_embedding_loss",
     [](Given& in, Reduction r) {
       return hinge_embedding_loss(in.numbers({2, 3}), in.signs({2, 3}), 1, r);
     }},
    {"margin_ranking_loss",
     [](Given& in, Reduction r) {
       return margin_ranking_loss(in.numbers({5}), in.numbers({5}), in.signs({5}), 0.5, r);
     }},
    {"soft_margin_loss",
     [](Given& in, Reduction r) {
       return soft_margin_loss(in.numbers({2, 3}), in.signs({2, 3}), r);
     }},
    {"multilabel_soft_margin_loss",
     [](Given& in, Reduction r) {
       return multilabel_soft_margin_loss(in.numbers({2, 3}), in.numbers({2, 3}, 0, 1), {.reduction = r});
     }},
    {"triplet_margin_loss",
     [](Given& in, Reduction r) {
       return triplet_margin_loss(in.numbers({4, 3}), in.numbers({4, 3}), in.numbers({4, 3}),
                                  {.margin = 2, .swap = true, .reduction = r});
     }},
    {"ctc_loss",
     [](Given& in, Reduction r) {
       const Tensor x = log_softmax(in.numbers({5, 2, 4}), -1);
       const Tensor lengths = full(in.g, {2}, 5, DType::I64), targets = in.classes({2, 2}, 3) + 1;
       return ctc_loss(x, targets, lengths, full(in.g, {2}, 2, DType::I64), {.reduction = r});
     }},
};

TEST(LossGradients, AreWhatDifferencesSay) {
  for (const Case& c : kCases)
    for (const Reduction r : {Reduction::Mean, Reduction::None}) {
      SCOPED_TRACE(c.name);
      Given in;
      const Tensor y = c.loss(in, r);
      check_gradients(in.g, y, in.values, c.name, r == Reduction::Mean ? 2 : 1, {}, 5e-6);
    }
}

}  // namespace
