#include "lightcone/backends/cpu/random/random_bits.h"

#include <algorithm>

namespace lc::backends::cpu {
namespace {

using i64 = std::int64_t;

// random_bits. Sizes: number of elements.
class RandomBitsKernel final : public HostKernel {
 public:
  RandomBitsKernel(const Node& n, Isa isa)
      : key_(Philox::key(n.attributes.integer("seed"), n.attributes.integer("stream"))),
        elements_(product(n.shape)),
        table_(*kernel_tables(isa).random) {}
  std::string name() const override { return "random_bits"; }
  std::vector<Dim> sizes() const override { return {elements_}; }
  Dim flops() const override { return elements_; }

  void run(const HostLaunch& l) const override {
    Job job{*this, *static_cast<const i64*>(l.in[0]), l.sizes[0], static_cast<std::int32_t*>(l.out)};
    l.parallel.run(
        static_cast<int>((job.words + kTask - 1) / kTask),
        [](void* arg, int task, int) {
          const Job& j = *static_cast<const Job*>(arg);
          const Philox::Key& key = j.kernel.key_;
          const i64 first = task * kTask;
          const auto step = static_cast<std::uint64_t>(j.step), block = static_cast<std::uint64_t>(first / 4);
          const RandomBlocks blocks{{key[0], key[1]}, step, block};
          j.kernel.table_.blocks(&blocks, std::min(kTask, j.words - first), j.out + first);
        },
        &job);
  }

 private:
  static constexpr i64 kTask = 16384;  // words per task (64 KiB)
  struct Job {
    const RandomBitsKernel& kernel;
    i64 step, words;
    std::int32_t* out;
  };
  Philox::Key key_;
  Dim elements_;
  const RandomTable& table_;
};

}  // namespace

std::shared_ptr<HostKernel> random_bits_kernel(const Node& n, Isa isa) {
  return std::make_shared<RandomBitsKernel>(n, isa);
}

}  // namespace lc::backends::cpu
