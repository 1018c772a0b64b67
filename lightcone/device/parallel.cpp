#include "lightcone/device/parallel.h"

namespace lc {
namespace {

class OneThread final : public Parallel {
 public:
  int workers() const override { return 1; }
  void run(int tasks, void (*task)(void*, int, int), void* arg) override {
    for (int t = 0; t < tasks; ++t) task(arg, t, 0);
  }
};

}  // namespace

std::shared_ptr<Parallel> one_thread() {
  static const auto p = std::make_shared<OneThread>();
  return p;
}

}  // namespace lc
