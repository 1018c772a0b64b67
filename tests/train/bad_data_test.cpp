// Wrong data give an Error before the first step, and a NaN that appears in training is traced to the line that made
// it.
#include <cmath>

#include <gtest/gtest.h>

#include "data.h"
#include "error_of.h"
#include "lightcone/io/data/csv.h"
#include "lightcone/io/data/loader.h"
#include "lightcone/io/data/readers.h"
#include "lightcone/io/data/text.h"
#include "small_training.h"

using namespace lc;
using Training = test::SmallTraining;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Dataset points(std::vector<float> x, std::vector<std::int64_t> y) {
  const auto n = static_cast<std::int64_t>(y.size());
  return Dataset(
      Arrays{{"x", Array::of<float>({n, static_cast<std::int64_t>(x.size()) / std::max<std::int64_t>(n, 1)}, x)},
             {"y", Array::of<std::int64_t>({n}, y)}});
}

// Expects an Error of one line that contains `words`, and a training that continues as if the call had not been made.
void expect_refused(Training& t, const std::function<void()>& f, const std::string& words) {
  const std::vector<float> before = t.weights();
  const std::string said = error_of(f);
  EXPECT_PRED2(contains, said, words);
  EXPECT_EQ(said.find('\n'), said.npos) << said;
  EXPECT_EQ(t.weights(), before);
  EXPECT_EQ(t.trainer->steps(), 0);
}

}  // namespace

// Each reader of tables gets an empty file, a text, and half of a valid file.
TEST(BadData, FilesOfTheWrongKind) {
  const TempDir folder;
  const std::string sound = std::string("\0\0\x08\x01\0\0\0\x04", 8) + std::string(4, 1);  // an IDX file of four labels
  spit(folder / "sound", sound);
  EXPECT_EQ(read_idx(folder / "sound").shape, (std::vector<std::int64_t>{4}));
  spit(folder / "empty", ""), spit(folder / "text", "these are no numbers\n"),
      spit(folder / "half", sound.substr(0, 10));
  using Read = std::function<void(const std::string&)>;
  const std::vector<std::pair<const char*, Read>> readers{
      {"idx", [](const std::string& p) { read_idx(p); }},
      {"mnist", [](const std::string& p) { read_mnist(p, p); }},
      {"cifar10", [](const std::string& p) { read_cifar10(std::vector<std::string>{p}); }},
      {"cifar100", [](const std::string& p) { read_cifar100(p); }},
      {"npy", [](const std::string& p) { read_npy(p); }},
      {"npz", [](const std::string& p) { read_npz(p); }},
      {"csv", [](const std::string& p) { read_csv(p, {.header = false}); }}};
  for (const auto& [name, read] : readers)
    for (const char* file : {"empty", "text", "half", "not there"}) {
      const std::string path = folder / file, said = error_of([&] { read(path); });
      EXPECT_PRED2(contains, said, path) << name << ", " << file;
    }
  EXPECT_PRED2(contains, error_of([&] { read_text(folder / "empty"); }), "empty");
}

TEST(BadData, ClassesThatDoNotExist) {
  Training t;
  const Dataset good = points({0, 1, 2}, {0, 2, 1}), high = points({0, 1, 2}, {0, 1, 3}), low = points({0}, {-1});
  EXPECT_EQ(&good.expect_classes("y", 3), &good);
  expect_refused(
      t, [&] { high.expect_classes("y", 3); }, "data set: 'y' of sample 2 is 3, and there are 3 classes");
  expect_refused(
      t, [&] { low.expect_classes("y", 3); }, "'y' of sample 0 is -1, and there are 3 classes");
  expect_refused(
      t, [&] { good.expect_classes("x", 3); }, "'x' is f32: classes are integers");
  expect_refused(
      t, [&] { good.expect_classes("z", 3); }, "it has no array 'z'");
  const Dataset masks(Arrays{{"mask", Array::of<std::int32_t>({2, 2}, std::vector<std::int32_t>{0, 1, 2, 9})}});
  expect_refused(
      t, [&] { masks.expect_classes("mask", 3); }, "'mask' of sample 1 is 9");
}

TEST(BadData, NumbersThatAreNone) {
  Training t;
  const Dataset good = points({0, 1, 2, 3}, {0, 1}), bad = points({0, 1, kNan, 3}, {0, 1});
  const Dataset infinite = points({0, -INFINITY, 2, 3}, {0, 1});
  EXPECT_EQ(&good.expect_finite("x"), &good);
  EXPECT_EQ(&good.expect_finite("y"), &good);  // integers are always finite
  expect_refused(
      t, [&] { bad.expect_finite("x"); }, "data set: 'x' of sample 1 holds nan");
  expect_refused(
      t, [&] { infinite.expect_finite("x"); }, "'x' of sample 0 holds -inf");
}

TEST(BadData, NothingToLearnFrom) {
  Training t;
  const TempDir folder;
  spit(folder / "names.csv", "a,b,c\n");
  const auto none = std::make_shared<const Dataset>(Arrays{{"x", read_csv(folder / "names.csv").values}});
  expect_refused(
      t, [&] { DataLoader(none, {.batch_size = 8}); }, "the data set has no samples");
  const auto few = std::make_shared<const Dataset>(points({0, 1}, {0, 1}));
  expect_refused(
      t, [&] { DataLoader(few, {.batch_size = 8}); }, "a batch of 8 is more than the 2 samples there are");
}

// A batch of another size or shape than the graph's.
TEST(BadData, ShapesThatDoNotFit) {
  Training t;
  const std::vector<float> x(8 * 4);
  const std::vector<std::int64_t> y(8);
  const auto step_with = [&](std::size_t points, std::size_t classes) {
    return [&t, &x, &y, points, classes] {
      t.trainer->context().set("x", std::span(x).first(points)).set("y", std::span(y).first(classes));
      t.trainer->step();
    };
  };
  expect_refused(t, step_with(28, 8), "'x'");
  expect_refused(t, step_with(32, 7), "'y'");
  const std::vector<float> more(40);
  expect_refused(
      t, [&] { t.trainer->context().set("x", more); }, "'x'");
  expect_refused(
      t, [&] { t.trainer->context().set("pixels", x); }, "'pixels'");
  const std::vector<std::byte> bytes(8 * 4);  // u8 images that were not converted to floats
  expect_refused(
      t, [&] { t.trainer->context().set_bytes("x", bytes.data(), bytes.size()), t.trainer->step(); }, "'x'");
  t.trainer->context().set("x", x).set("y", y);
  EXPECT_TRUE(std::isfinite(t.trainer->step()));
}

namespace {
struct Logarithm {
  nn::Linear<4, 8> fc;
  void visit(nn::Visitor& v) { v("fc", fc); }
  static constexpr int kLine = __LINE__ + 3;  // the line of the logarithm
  Tensor operator()(const Tensor& x) const {
    const Tensor h = fc(x) * 2.0;
    const Tensor l = log(h);
    const Tensor y = l + 1.0;
    return tanh(y);
  }
};
}  // namespace

// The logarithm of a negative number is computed in one kernel with the operations around it.
TEST(BadData, ANanOfAFusedKernelIsNamedAtTheUsersLine) {
  Graph g;
  nn::Model<Logarithm> net(g);
  const Tensor x = g.input("x", {8, 4});
  auto loss = trace(
      net, [](auto& net, const Tensor& x) { return mean(square(net(x))); }, x);
  loss.loss().retrieve("loss");
  auto d = backward(std::move(loss));
  d.clip_norm(1);
  update(net, optim::AdamW{}, std::move(d));
  Trainer t(net, generic() | cpu({.threads = 1}), {.checked = true});
  std::vector<float> points;
  for (int k = 0; k < 32; ++k) points.push_back(static_cast<float>(k % 7) - 3);
  const std::string said = error_of([&] { t.context().set("x", points), t.step(); });
  EXPECT_PRED2(contains, said, "the output 'loss' holds NaN: it first appears in");
  EXPECT_PRED2(contains, said, str_cat("bad_data_test.cpp:", Logarithm::kLine)) << "the line of the logarithm";
  EXPECT_PRED2(contains, said, "log") << said;
  EXPECT_PRED2(contains, said, "'fc.weight'") << "what it reads";
  // the parameters have already taken the bad step
  Trainer fresh(net, generic() | cpu({.threads = 1}), {.checked = true});
  points[3] = kNan;
  EXPECT_PRED2(contains, error_of([&] { fresh.context().set("x", points), fresh.step(); }), "; there is NaN in 'x'");
}
