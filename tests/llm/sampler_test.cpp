// Sampler's filters keep the tokens that their definitions allow, and a seed gives the same tokens again.
#include "lightcone/llm/sampler.h"

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "error_of.h"
#include "lightcone/base/error.h"

using namespace lc;
using llm::Sampler;
using llm::SamplerOptions;

TEST(Sampler, FiltersAndSeeds) {
  const std::vector<float> logits{1, 3, 2, std::nanf(""), 3};
  EXPECT_EQ(Sampler({})(logits), 1);
  EXPECT_EQ(Sampler({.temperature = 1, .top_k = 1})(logits), 1);
  EXPECT_EQ(Sampler({.temperature = 1, .top_p = 1e-9})(logits), 1);
  EXPECT_EQ(Sampler({.repetition_penalty = 10})(logits, std::vector<int>{1, 4}), 2);
  Sampler a({.temperature = 0.7, .seed = 5}), b({.temperature = 0.7, .seed = 5});
  std::vector<int> count(5);
  for (int i = 0; i < 4000; ++i) {
    const int id = a(logits);
    EXPECT_EQ(id, b(logits));
    ++count[static_cast<std::size_t>(id)];
  }
  EXPECT_EQ(count[3], 0);  // a NaN is never chosen
  EXPECT_NEAR(count[1], count[4], 300);
  const double ratio = static_cast<double>(count[2]) / count[1];
  EXPECT_NEAR(ratio, std::exp(-1 / 0.7), 0.04);
  Sampler min_p({.temperature = 1, .min_p = 0.9});
  for (int i = 0; i < 100; ++i) EXPECT_NE(min_p(logits), 2);
  EXPECT_EQ(Sampler({.repetition_penalty = 10})(std::vector<float>{-1, -2}, std::vector<int>{0}), 1);  // -10 and -2
  EXPECT_EQ(Sampler({.repetition_penalty = 10, .penalty_window = 1})(logits, std::vector<int>{1, 4}), 1);
  EXPECT_EQ(Sampler({.repetition_penalty = 10, .penalty_window = 0})(logits), 1);
  EXPECT_EQ(error_of([&] { Sampler({.repetition_penalty = 10})(logits); }),
            "sampler: repetition_penalty is 10, and no tokens are given that could repeat: "
            "pick(logits, session.tokens())");
  // probabilities 0.1, 0.2, 0.3, 0.4: checks which ids are possible
  const auto possible = [](const SamplerOptions& o, double scale = 1) {
    std::vector<float> l;
    for (double p : {0.1, 0.2, 0.3, 0.4}) l.push_back(static_cast<float>(std::log(p) * scale));
    Sampler s(o);
    std::set<int> ids;
    for (int i = 0; i < 400; ++i) ids.insert(s(l));
    return ids;
  };
  EXPECT_EQ(possible({.temperature = 1}), (std::set<int>{0, 1, 2, 3}));
  EXPECT_EQ(possible({.temperature = 1, .top_k = 2}), (std::set<int>{2, 3}));
  EXPECT_EQ(possible({.temperature = 1, .top_p = 0.65}), (std::set<int>{2, 3}));
  EXPECT_EQ(possible({.temperature = 1, .top_p = 0.75}), (std::set<int>{1, 2, 3}));
  EXPECT_EQ(possible({.temperature = 1, .min_p = 0.6}), (std::set<int>{2, 3}));
  EXPECT_EQ(possible({.temperature = 1, .min_p = 1}), (std::set<int>{3}));  // the best token is always allowed
  Sampler equals({.temperature = 1, .min_p = 1});  // tokens as likely as the best are allowed, too
  std::set<int> both;
  for (int i = 0; i < 100; ++i) both.insert(equals(std::vector<float>{5, 5, 4}));
  EXPECT_EQ(both, (std::set<int>{0, 1}));
  EXPECT_EQ(Sampler({.temperature = 1})(std::vector<float>{2000, 0}), 0);  // exp(2000) overflows a double
  EXPECT_EQ(Sampler({.temperature = 1})(std::vector<float>{-2000, -3000}), 0);
  EXPECT_THROW(Sampler({.temperature = -1}), Error);
  EXPECT_THROW(Sampler({.top_p = 0}), Error);
}

// The likeliest of any number of tokens is the first of equals, NaN is none, and there is always one.
TEST(Sampler, MostLikely) {
  const float nan = std::nanf(""), least = -std::numeric_limits<float>::infinity();
  for (std::size_t n = 1; n < 40; ++n)
    for (std::size_t at = 0; at < n; ++at) {
      std::vector<float> logits(n, -1);
      logits.front() = nan;
      logits[at] = 2, logits.back() = 2;
      EXPECT_EQ(llm::most_likely(logits), static_cast<int>(at)) << n;
    }
  EXPECT_EQ(llm::most_likely(std::vector<float>{nan, least, nan}), 0);
  EXPECT_EQ(llm::most_likely(std::vector<float>{nan, least, -1e30f}), 2);
  EXPECT_EQ(error_of([] { llm::most_likely({}); }), "sampler: there are no logits");
}
