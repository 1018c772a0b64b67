// Whatever happens while a run is saved (a kill, a full disk, a damaged file), the last checkpoint stays whole and
// resumes bit for bit.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include <gtest/gtest.h>

#include "data.h"
#include "error_of.h"
#include "on_device.h"
#include "small_training.h"

using namespace lc;
using Training = test::SmallTraining;

namespace {

// Memory shared with child processes.
template <class T>
struct Shared {
  T* at = static_cast<T*>(::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ~Shared() { ::munmap(at, sizeof(T)); }
};

// The losses and weights of an uninterrupted run after each step, computed as far as needed.
struct Expected {
  Training run;
  std::vector<std::vector<float>> weights_{run.weights()};
  std::vector<float> losses_;
  void reach(std::size_t steps) {
    while (losses_.size() < steps) losses_.push_back(run.trainer->step()), weights_.push_back(run.weights());
  }
  const std::vector<float>& weights(std::int64_t steps) {
    reach(static_cast<std::size_t>(steps));
    return weights_[static_cast<std::size_t>(steps)];
  }
  std::vector<float> losses(std::int64_t from, std::int64_t count) {
    reach(static_cast<std::size_t>(from + count));
    return {losses_.begin() + from, losses_.begin() + from + count};
  }
};

std::size_t files_in(const TempDir& dir) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(dir.path), {}));
}

// Expects a save to fail with these words, and to change neither the file, nor the folder, nor the run.
void expect_no_save(Training& t, const TempDir& dir, const std::string& path, const std::string& words) {
  const std::string before = std::filesystem::exists(path) ? slurp(path) : "none";
  const std::size_t files = files_in(dir);
  const std::vector<float> weights = t.weights();
  EXPECT_PRED2(contains, error_of([&] { t.trainer->save(path); }), words);
  EXPECT_EQ(std::filesystem::exists(path) ? slurp(path) : "none", before);
  EXPECT_EQ(files_in(dir), files);
  EXPECT_EQ(t.weights(), weights);
}

}  // namespace

// A process that trains and saves repeatedly is killed a thousand times, at random times. Each time a complete
// checkpoint exists, which resumes: the last for which save() had returned, or the one that was just being put in its
// place.
TEST(Checkpoint, SurvivesAThousandKills) {
  struct Progress {
    volatile std::int64_t saved;
    volatile bool saving;
  };
  const TempDir folder;
  const std::string path = folder / "run.safetensors";
  Expected expected;
  Training t;
  t.trainer->save(path);
  const Shared<Progress> progress;
  std::mt19937 random(3);
  int within_a_save = 0;
  for (int round = 0; round < 1000; ++round) {
    *progress.at = {t.trainer->steps(), false};
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (;;) {
        t.trainer->step();
        progress.at->saving = true;
        try {
          t.trainer->save(path);
        } catch (...) {
          ::_exit(1);
        }
        progress.at->saved = t.trainer->steps();
        progress.at->saving = false;
      }
    }
    // on a busy machine the child starts slowly, so every fourth one may finish a save first
    for (int waited = 0; round % 4 == 0 && progress.at->saved == t.trainer->steps() && waited < 100'000; ++waited)
      ::usleep(100);
    ::usleep(static_cast<useconds_t>(random() % 3500));
    ::kill(child, SIGKILL);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child could not save";
    within_a_save += progress.at->saving;
    t.trainer->load(path);
    const std::int64_t steps = t.trainer->steps();
    ASSERT_GE(steps, progress.at->saved) << "round " << round;
    ASSERT_LE(steps, progress.at->saved + 1) << "round " << round;
    ASSERT_EQ(t.weights(), expected.weights(steps)) << "round " << round;
    if (round % 50 != 0) continue;
    Training other(99);  // as another process would
    other.trainer->load(path);
    ASSERT_EQ(other.run(5), expected.losses(steps, 5)) << "round " << round;
  }
  EXPECT_GE(t.trainer->steps(), 250);
  EXPECT_GT(within_a_save, 50);
  RecordProperty("within_a_save", std::to_string(within_a_save));
  std::printf("1000 kills, %d of them within a save, after %d steps\n", within_a_save,
              static_cast<int>(t.trainer->steps()));
}

TEST(Checkpoint, AFullDiskLeavesTheOldOne) {
  const TempDir folder;
  const std::string path = folder / "run.safetensors";
  Training t;
  t.run(3);
  t.trainer->save(path);
  t.run(1);
  rlimit old;
  getrlimit(RLIMIT_FSIZE, &old);
  for (const rlim_t most : {0, 1, 1000}) {
    const rlimit tight{most, old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &tight);
    expect_no_save(t, folder, path, "cannot write it");
    setrlimit(RLIMIT_FSIZE, &old);
  }
  EXPECT_PRED2(contains, error_of([&] { t.trainer->save("/dev/full"); }), "not a regular file");
  t.trainer->save(path);  // space is available again
  Training other(5);
  other.trainer->load(path);
  EXPECT_EQ(other.run(4), t.run(4));
}

TEST(Checkpoint, AFolderThatMayNotBeWrittenLeavesTheOldOne) {
  const TempDir folder;
  const std::string path = folder / "run.safetensors";
  Training t;
  t.run(3);
  t.trainer->save(path);
  expect_no_save(t, folder, folder / "no such folder/run.safetensors", "cannot open the folder");
  std::filesystem::permissions(folder.path, std::filesystem::perms(0555));
  const bool root = ::geteuid() == 0;  // root may write everywhere
  constexpr uid_t kNobody = 65534;
  if (root && ::seteuid(kNobody) != 0) GTEST_SKIP() << "root may write everywhere, and cannot become anyone else here";
  t.run(1);
  expect_no_save(t, folder, path, "cannot create a file in the folder");
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  std::filesystem::permissions(folder.path, std::filesystem::perms(0700));
}

// A truncated or damaged file gives an Error and leaves the run unchanged. (A flipped bit within a number is another
// number, and no Error.)
TEST(Checkpoint, ADamagedFileChangesNothing) {
  const TempDir folder;
  const std::string path = folder / "run.safetensors", damaged = folder / "damaged.safetensors";
  Training t;
  t.run(3);
  t.trainer->save(path);
  const std::string bytes = slurp(path);
  const std::vector<float> before = t.weights();
  for (std::size_t length = 0; length < bytes.size(); length += length < 700 ? 1 : 97) {
    spit(damaged, bytes.substr(0, length));
    ASSERT_NE(error_of([&] { t.trainer->load(damaged); }), "no error") << length;
    ASSERT_EQ(t.weights(), before) << length;
  }
  std::mt19937 random(7);
  for (int k = 0; k < 300; ++k) {
    std::string other = bytes;
    other[random() % 1000] ^= static_cast<char>(1u << random() % 8);
    spit(damaged, other);
    if (error_of([&] { t.trainer->load(damaged); }) == "no error") t.trainer->load(path);
    ASSERT_EQ(t.weights(), before) << k;
  }
}

TEST(Checkpoint, OfAnotherRunChangesNothing) {
  const TempDir folder;
  Training a;
  a.run(3);
  const std::string good = folder / "good.safetensors";
  a.trainer->save(good);
  const std::vector<float> before = a.weights();
  const std::string bytes = slurp(good);
  spit(folder / "short.safetensors", bytes.substr(0, bytes.size() - 5));
  EXPECT_NE(error_of([&] { a.trainer->load(folder / "short.safetensors"); }), "no error");
  Graph g;
  nn::Model<nn::Sequential<nn::Linear<4, 5>, nn::Linear<5, 3>>> small(g);
  const Tensor x = g.input("x", {1, 4});
  auto loss = trace(
      small, [](auto& net, const Tensor& x) { return sum(net(x)); }, x);
  loss.loss().retrieve("loss");
  update(small, optim::AdamW{}, backward(std::move(loss)));
  Trainer other(small, generic() | test::device());
  other.save(folder / "other.safetensors");
  EXPECT_PRED2(contains, error_of([&] { a.trainer->load(folder / "other.safetensors"); }), "'0.bias' is F32 [5] in");
  EXPECT_NE(error_of([&] { a.trainer->save(folder / "no such folder/run.safetensors"); }), "no error");
  EXPECT_EQ(a.weights(), before);
}
