// Every bit of a DataLoader's batch follows from its position alone, with or without a thread. Exceptions reach the
// consumer.
#include "lightcone/io/data/loader.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <ctime>
#include <numeric>
#include <thread>

#include "data.h"
#include "lightcone/base/error.h"
#include "lightcone/io/checkpoints/weights.h"

using namespace lc;

namespace {

using Shape = std::vector<std::int64_t>;
using Ids = std::vector<std::int64_t>;

// Returns `n` images of 3 x 5 x 4 with distinct numbers, and their indices.
std::shared_ptr<const Dataset> pictures(std::int64_t n) {
  Arrays arrays;
  Array x = Array::zeros(DType::I32, {n, 3, 5, 4}), id = Array::zeros(DType::I64, {n});
  for (std::size_t i = 0; i < x.values<std::int32_t>().size(); ++i)
    x.values<std::int32_t>()[i] = static_cast<std::int32_t>(i + 1);
  for (std::size_t i = 0; i < id.values<std::int64_t>().size(); ++i)
    id.values<std::int64_t>()[i] = static_cast<std::int64_t>(i);
  arrays.emplace("x", std::move(x));
  arrays.emplace("id", std::move(id));
  return std::make_shared<const Dataset>(std::move(arrays));
}

LoaderOptions all_of_it(std::int64_t batch, Rest rest, std::int64_t prefetch) {
  LoaderOptions o{.batch_size = batch, .shuffle = true, .rest = rest, .seed = 42, .prefetch = prefetch};
  o.transforms["x"] = {RandomCrop{4, 4, 2}, RandomHorizontalFlip{}, ToFloat{7}, Normalize{{1, 2, 3}, {4, 5, 6}}};
  return o;
}

bool same(const Batch& a, const Batch& b) {
  if (a.position != b.position || a.samples != b.samples || a.arrays.size() != b.arrays.size()) return false;
  for (const auto& [name, array] : a.arrays)
    if (array.dtype != b.at(name).dtype || array.shape != b.at(name).shape || array.bytes != b.at(name).bytes)
      return false;
  return true;
}

template <class Make>
void refuses(const Make& make, const std::string& words) {
  try {
    make();
    ADD_FAILURE() << "nothing was wrong: " << words;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << "'" << e.what() << "' does not say " << words;
  }
}

double cpu_seconds() {
  timespec t = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Applies one transform to one sample.
template <class T>
std::vector<T> transformed(Transform t, const Shape& shape, std::vector<T> values, std::uint64_t sample = 0) {
  const Array a = Array::of<T>(shape, values);
  Transforms list({std::move(t)}, a.dtype, shape);
  std::vector<T> out(list.bytes() / sizeof(T));
  list.apply(a.bytes.data(), reinterpret_cast<std::byte*>(out.data()), {1, 2, sample});
  return out;
}

}  // namespace

// The expected numbers come from an independent implementation in Python:
//   M = 2**64 - 1; G = 0x9E3779B97F4A7C15
//   def mix(z):
//     z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & M; z = (z ^ z >> 27) * 0x94D049BB133111EB & M
//     return z ^ z >> 31
//   def begin(key):
//     s = 0
//     for k in key: s = mix(s + G & M) ^ k
//     return mix(s)
//   draw: s = s + G & M; mix(s)
TEST(SeededRandom, IsTheSameEverywhere) {
  SeededRandom r({1, 2, 3});
  const std::uint64_t want[] = {0x2c8a29297714ab70u, 0x45244875753ac172u, 0x2bebfef911ffddb0u, 0x839bf067c4367665u};
  for (std::uint64_t w : want) EXPECT_EQ(r(), w);
  EXPECT_EQ(random_permutation(10, SeededRandom({7, 0})), (Ids{7, 6, 9, 1, 0, 2, 8, 5, 3, 4}));
  EXPECT_EQ(random_permutation(10, SeededRandom({7, 1})), (Ids{3, 2, 8, 5, 7, 0, 4, 1, 9, 6}));
  EXPECT_TRUE(random_permutation(0, SeededRandom({7, 0})).empty());
}

TEST(SeededRandom, EachOrderIsAsLikely) {
  std::map<Ids, int> seen;
  constexpr int kDraws = 24'000;
  for (std::uint64_t k = 0; k < kDraws; ++k) ++seen[random_permutation(4, SeededRandom({k, 5}))];
  EXPECT_EQ(seen.size(), 24u);
  double chi = 0;
  for (const auto& [order, n] : seen) chi += (n - 1000.0) * (n - 1000.0) / 1000.0;
  EXPECT_LT(chi, 49.7);  // 23 degrees of freedom: one in a thousand seeds gives more
  SeededRandom r({9});
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double u = r.uniform();
    ASSERT_TRUE(u >= 0 && u < 1);
    sum += u;
    ASSERT_LT(r.below(3), 3u);
    ASSERT_EQ(r.below(1), 0u);
    r.below((std::uint64_t{1} << 63) + 1);  // half of all draws are rejected and repeated
  }
  EXPECT_NEAR(sum / 10'000, 0.5, 0.01);
}

TEST(Loader, AnEpochHasEverySampleOnce) {
  for (std::int64_t prefetch : {0, 1, 3}) {
    DataLoader loader(pictures(10), {.batch_size = 3, .shuffle = true, .seed = 5, .prefetch = prefetch});
    ASSERT_EQ(loader.batches(), 3);
    Ids first, second;
    for (int i = 0; i < 6; ++i) {
      EXPECT_EQ(loader.position(), (LoaderPosition{i / 3, i % 3}));
      const Batch b = loader.next();
      EXPECT_EQ(b.position, (LoaderPosition{i / 3, i % 3}));
      EXPECT_EQ(b.at("x").shape, (Shape{3, 3, 5, 4}));
      const auto id = b.at("id").values<std::int64_t>();
      EXPECT_EQ(Ids(id.begin(), id.end()), b.samples);
      for (std::size_t k = 0; k < 3; ++k)
        EXPECT_EQ(b.at("x").values<std::int32_t>()[k * 60 + 59], (b.samples[k] + 1) * 60);
      Ids& epoch = i < 3 ? first : second;
      epoch.insert(epoch.end(), b.samples.begin(), b.samples.end());
    }
    EXPECT_NE(first, second);
    std::sort(first.begin(), first.end());
    EXPECT_EQ(std::unique(first.begin(), first.end()), first.end());
    refuses([&] { loader.next().at("z"); }, "no array 'z'");
  }
  DataLoader in_order(pictures(4), {.batch_size = 2});
  EXPECT_EQ(in_order.next().samples, (Ids{0, 1}));
  EXPECT_EQ(in_order.next().samples, (Ids{2, 3}));
  EXPECT_EQ(in_order.next().samples, (Ids{0, 1}));
}

TEST(Loader, WrappedBatchesBeginTheEpochAgain) {
  DataLoader loader(pictures(5), {.batch_size = 2, .rest = Rest::Wrap});
  ASSERT_EQ(loader.batches(), 3);
  loader.seek({0, 2});
  EXPECT_EQ(loader.next().samples, (Ids{4, 0}));
  EXPECT_EQ(loader.position(), (LoaderPosition{1, 0}));
  DataLoader few(pictures(2), {.batch_size = 5, .rest = Rest::Wrap});
  EXPECT_EQ(few.batches(), 1);
  EXPECT_EQ(few.next().samples, (Ids{0, 1, 0, 1, 0}));
  DataLoader even(pictures(4), {.batch_size = 2, .rest = Rest::Wrap});
  EXPECT_EQ(even.batches(), 2);
}

// A loader gives the same bits from any starting position, with and without a thread.
TEST(Loader, APositionDeterminesEveryBit) {
  for (Rest rest : {Rest::Drop, Rest::Wrap}) {
    const auto data = pictures(11);
    std::vector<Batch> all;
    DataLoader loader(data, all_of_it(4, rest, 2));
    for (int i = 0; i < 12; ++i) all.push_back(loader.next());
    for (std::size_t from : {0u, 1u, 2u, 5u, 11u})
      for (std::int64_t prefetch : {0, 1, 5}) {
        DataLoader again(data, all_of_it(4, rest, prefetch), all[from].position);
        for (std::size_t i = from; i < all.size(); ++i) ASSERT_TRUE(same(again.next(), all[i])) << from << " " << i;
        again.seek(all[from].position);  // seeks backwards, with batches prefetched
        ASSERT_TRUE(same(again.next(), all[from]));
      }
    LoaderOptions other = all_of_it(4, rest, 2);
    other.seed = 43;
    EXPECT_FALSE(same(DataLoader(data, other).next(), all[0]));
  }
}

// Stores the position in a checkpoint with the weights, as programs do.
TEST(Loader, ResumesFromACheckpoint) {
  const TempDir dir;
  const auto data = pictures(9);
  DataLoader first(data, all_of_it(2, Rest::Drop, 2));
  for (int i = 0; i < 7; ++i) first.next();
  const LoaderPosition at = first.position();
  save_safetensors(dir / "x", {}, {{"epoch", std::to_string(at.epoch)}, {"batch", std::to_string(at.batch)}});
  const auto words = Weights::open(dir / "x").metadata();
  DataLoader second(data, all_of_it(2, Rest::Drop, 2), {std::stoll(words.at("epoch")), std::stoll(words.at("batch"))});
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(same(first.next(), second.next())) << i;
}

TEST(Transforms, DoWhatTheyDo) {
  EXPECT_EQ(transformed<float>(ToFloat{2}, {3}, {1, 2, -0.f}), (std::vector<float>{0.5f, 1, -0.f}));
  EXPECT_EQ(transformed<std::int32_t>(ChannelsFirst{}, {2, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}),
            (std::vector<std::int32_t>{1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12}));
  EXPECT_EQ(transformed<float>(Normalize{{1, 2}, {2, 4}}, {2, 1, 2}, {1, 3, 2, 6}), (std::vector<float>{0, 1, 0, 1}));
  EXPECT_EQ(transformed<float>(Normalize{{1}, {2}}, {1, 2}, {1, 3}), (std::vector<float>{0, 1}));
  EXPECT_EQ(transformed<std::int32_t>(RandomHorizontalFlip{1}, {2, 3}, {1, 2, 3, 4, 5, 6}),
            (std::vector<std::int32_t>{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(transformed<std::int32_t>(RandomHorizontalFlip{0}, {1, 3}, {1, 2, 3}),
            (std::vector<std::int32_t>{1, 2, 3}));
  // u8 / 255 equals torchvision's quotient for each of the 256 values
  Transforms list({ToFloat{}}, DType::U8, {256});
  std::vector<std::byte> bytes(256);
  std::vector<float> out(256);
  for (std::size_t i = 0; i < 256; ++i) bytes[i] = static_cast<std::byte>(i);
  list.apply(bytes.data(), reinterpret_cast<std::byte*>(out.data()), {0, 0, 0});
  for (std::size_t i = 0; i < 256; ++i) EXPECT_EQ(out[i], static_cast<float>(i) / 255.0f);
}

// Every crop is a window of the padded image, every position occurs, and both channels show the same window.
TEST(Transforms, CropsAndFlips) {
  const std::vector<std::int32_t> image{1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16};  // 2 x 2 x 3
  const auto at = [&](int plane, int y, int x) {
    return y < 0 || y > 1 || x < 0 || x > 2 ? 0 : image[static_cast<std::size_t>(plane * 6 + y * 3 + x)];
  };
  std::map<std::pair<int, int>, int> seen;
  for (std::uint64_t k = 0; k < 2000; ++k) {
    const auto crop = transformed<std::int32_t>(RandomCrop{2, 2, 1}, {2, 2, 3}, image, k);
    int matches = 0;
    for (int top = -1; top <= 1; ++top)
      for (int left = -1; left <= 2; ++left) {
        bool right = true;
        for (int i = 0; i < 8; ++i)
          right = right && crop[static_cast<std::size_t>(i)] == at(i / 4, top + i / 2 % 2, left + i % 2);
        if (right) ++matches, ++seen[{top, left}];
      }
    ASSERT_EQ(matches, 1) << k;
  }
  EXPECT_EQ(seen.size(), 12u);  // three vertical positions, four horizontal ones
  for (const auto& [place, n] : seen) EXPECT_NEAR(n, 2000 / 12.0, 60) << place.first << " " << place.second;
  int flipped = 0;
  for (std::uint64_t k = 0; k < 2000; ++k)
    flipped += transformed<std::int32_t>(RandomHorizontalFlip{0.25}, {1, 2}, {1, 2}, k)[0] == 2;
  EXPECT_NEAR(flipped, 500, 80);
  // padding alone, and windows outside the image
  EXPECT_EQ(transformed<std::int32_t>(RandomCrop{3, 3, 1}, {1, 1}, {7}),
            (std::vector<std::int32_t>{0, 0, 0, 0, 7, 0, 0, 0, 0}));
  for (std::uint64_t k = 0; k < 50; ++k) {
    const auto v = transformed<std::int32_t>(RandomCrop{1, 1, 5}, {1, 1}, {7}, k)[0];
    EXPECT_TRUE(v == 0 || v == 7);
  }
  EXPECT_TRUE(transformed<std::int32_t>(RandomCrop{0, 0, 0}, {1, 1}, {7}).empty());
  EXPECT_TRUE(transformed<std::int32_t>(RandomHorizontalFlip{1}, {0, 4}, {}).empty());
}

TEST(Loader, WhatDoesNotFitIsSaid) {
  const auto data = pictures(4);
  const auto with = [&](const std::string& array, std::vector<Transform> list) {
    LoaderOptions o{.batch_size = 2};
    o.transforms[array] = std::move(list);
    return DataLoader(data, o);
  };
  refuses([&] { DataLoader(nullptr, {}); }, "no samples");
  refuses([&] { DataLoader(pictures(0), {}); }, "no samples");
  refuses([&] { DataLoader(data, {.batch_size = 0}); }, "a batch of 0");
  refuses([&] { DataLoader(data, {.batch_size = 5}); }, "more than the 4 samples");
  refuses([&] { DataLoader(data, {.batch_size = 1, .prefetch = -1}); }, "prefetch is -1");
  refuses([&] { DataLoader(data, {.batch_size = 2}, {0, 2}); }, "no batch 2 of epoch 0: an epoch has 2");
  refuses([&] { DataLoader(data, {.batch_size = 2}, {-1, 0}); }, "no batch 0 of epoch -1");
  refuses([&] { DataLoader(data, {.batch_size = 2}).seek({0, -1}); }, "no batch -1");
  refuses([&] { with("y", {}); }, "no array 'y'");
  refuses([&] { with("x", {Normalize{{1, 1, 1}, {1, 1, 1}}}); }, "put ToFloat before it");
  refuses([&] { with("x", {ToFloat{}, Normalize{{1}, {1}}}); }, "1 means and 1 standard deviations for 3 channels");
  refuses([&] { with("x", {ToFloat{}, Normalize{{1, 1, 1}, {1, 0, 1}}}); }, "standard deviation of 0");
  refuses([&] { with("x", {ToFloat{0}}); }, "divisor");
  refuses([&] { with("x", {RandomCrop{8, 4, 1}}); }, "8 x 4 from 5 x 4 and a padding of 1");
  refuses([&] { with("x", {RandomCrop{4, 4, -1}}); }, "no sizes");
  refuses([&] { with("x", {RandomCrop{4, 4, INT64_MAX}}); }, "no sizes");
  refuses([&] { with("x", {RandomHorizontalFlip{1.5}}); }, "between 0 and 1");
  refuses([&] { with("id", {RandomHorizontalFlip{}}); }, "a sample of 0 axes");
  refuses([&] { with("id", {ChannelsFirst{}}); }, "needs three");
  refuses([&] { with("x", {EachSample{}}); }, "no function");
  refuses([&] { with("x", {EachSample{[](Array& a, SeededRandom&) { a.shape[0] = 1; }}}).next(); },
          "changed the shape");
}

// An exception of a user's function reaches next() after the batches before it, and again until seek().
TEST(Loader, ExceptionsReachTheConsumer) {
  for (std::int64_t prefetch : {0, 1, 4}) {
    LoaderOptions o{.batch_size = 1, .prefetch = prefetch};
    o.transforms["id"] = {EachSample{[](Array& a, SeededRandom&) {
      if (a.values<std::int64_t>()[0] == 2) throw std::out_of_range("two");
      a.values<std::int64_t>()[0] *= 10;
    }}};
    DataLoader loader(pictures(4), o);
    EXPECT_EQ(loader.next().at("id").values<std::int64_t>()[0], 0);
    EXPECT_EQ(loader.next().at("id").values<std::int64_t>()[0], 10);
    for (int i = 0; i < 2; ++i) {
      EXPECT_THROW(loader.next(), std::out_of_range);
      EXPECT_EQ(loader.position(), (LoaderPosition{0, 2}));
    }
    loader.seek({0, 3});
    EXPECT_EQ(loader.next().at("id").values<std::int64_t>()[0], 30);
  }
}

// A loader is destroyed at once, however far its thread is; a moved loader continues.
TEST(Loader, EndsAtAnyTime) {
  for (int i = 0; i < 200; ++i) {
    DataLoader loader(pictures(8), all_of_it(2, Rest::Drop, i % 5));
    for (int k = 0; k < i % 4; ++k) loader.next();
    if (i % 3 == 0) {
      DataLoader moved = std::move(loader);
      EXPECT_EQ(moved.next().position, (LoaderPosition{i % 4 / 4, i % 4}));
      loader = std::move(moved);
      loader.seek({3, 1});
    }
  }
}

// Batches are prefetched while the consumer is busy, and an idle thread takes no processor time.
TEST(Loader, WorksAheadAndWaitsQuietly) {
  LoaderOptions o{.batch_size = 1, .prefetch = 3};
  std::atomic<int> made{0};
  o.transforms["id"] = {EachSample{[&](Array&, SeededRandom&) { ++made; }}};
  DataLoader loader(pictures(100), o);
  EXPECT_EQ(made, 0);  // not before the first call
  loader.next();
  for (int i = 0; i < 500 && made < 4; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(made, 4);  // one delivered, three prefetched, and no more
  EXPECT_LT(cpu_seconds() - before, 0.05);
}
