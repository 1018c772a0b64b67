#include "lightcone/backends/cpu/scan.h"

#include <cstring>

#include "lightcone/base/error.h"
#include "lightcone/device/host_kernel.h"
#include "lightcone/device/loop_plan.h"

namespace lc::backends::cpu {
namespace {

// A single thread. It is used if the launch has more workers than the scratch memory was planned for.
class Serial final : public Parallel {
 public:
  int workers() const override { return 1; }
  void run(int tasks, void (*task)(void*, int, int), void* arg) override {
    for (int k = 0; k < tasks; ++k) task(arg, k, 0);
  }
};

using Ref = LoopPlan::Ref;

class ScanKernel final : public HostKernel {
 public:
  ScanKernel(LoopPlan plan, int workers) : plan_(std::move(plan)), workers_(workers) {
    for (const auto* steps : {&plan_.once, &plan_.steps})
      for (const LoopPlan::Step& s : *steps)
        check(dynamic_cast<const HostKernel*>(s.kernel), "a kernel of a loop is not one of the host's");
  }
  std::string name() const override { return "scan"; }
  // The scratch memory of the plan, followed by a table of operand addresses.
  Dim scratch_bytes(int) const override {
    return static_cast<std::int64_t>(plan_.scratch_bytes + plan_.operands * sizeof(void*));
  }
  Dim flops() const override { return plan_.flops; }
  void run(const HostLaunch& l) const override;

 private:
  struct Run;
  LoopPlan plan_;
  int workers_;
};

struct ScanKernel::Run {
  const LoopPlan& k;
  const HostLaunch& l;
  Parallel& parallel;
  int parity = 0;
  std::int64_t slice = 0;

  std::byte* scratch(std::size_t at) const { return l.scratch + at; }
  std::byte* state(std::size_t i, int of) const { return scratch(k.state_at[of][i]); }
  const std::byte* operand(std::size_t i) const { return static_cast<const std::byte*>(l.in[i]); }
  std::byte* result(std::size_t i) const { return static_cast<std::byte*>(l.out) + k.result_at[i]; }
  const std::byte* at(const Ref& r) const {
    switch (r.base) {
      case Ref::Scratch: return scratch(r.at);
      case Ref::Operand: return operand(r.at);
      case Ref::Slice: return operand(r.at) + static_cast<std::size_t>(slice) * k.bytes[r.at];
      case Ref::State: return state(r.at, parity);
    }
    return nullptr;
  }
  void launch(const LoopPlan::Step& s) const {
    const auto** in = reinterpret_cast<const void**>(scratch(k.scratch_bytes)) + s.first;
    for (std::size_t i = 0; i < s.in.size(); ++i) in[i] = at(s.in[i]);
    static_cast<const HostKernel*>(s.kernel)->run(
        {{in, s.in.size()}, scratch(s.out.at), s.sizes, scratch(s.scratch), parallel});
  }
  void step() {
    if (k.keeps)
      for (std::size_t i = 0; i < k.states; ++i)
        copy(result(k.states + k.ys + i) + static_cast<std::size_t>(slice) * k.bytes[i], state(i, parity), k.bytes[i]);
    for (const LoopPlan::Step& s : k.steps) launch(s);
    for (std::size_t i = 0; i < k.states; ++i) copy(state(i, 1 - parity), at(k.next[i]), k.bytes[i]);
    for (std::size_t i = 0; i < k.ys; ++i) {
      const std::size_t bytes = k.bytes[k.states + k.slices + i];
      copy(result(k.states + i) + static_cast<std::size_t>(slice) * bytes, at(k.next[k.states + i]), bytes);
    }
    parity = 1 - parity;
  }
  // Returns whether the last step changed no state. A body without slices then repeats itself in all later steps.
  bool settled() const {
    for (std::size_t i = 0; i < k.states; ++i)
      if (k.bytes[i] && std::memcmp(state(i, 0), state(i, 1), k.bytes[i]) != 0) return false;
    return true;
  }
  // Copies this step's ys and kept states (step `of`) to those of step `at`.
  void repeat_results(std::int64_t of, std::int64_t at) const {
    for (std::size_t i = 0; i < k.states && k.keeps; ++i) repeat(result(k.states + k.ys + i), k.bytes[i], of, at);
    for (std::size_t i = 0; i < k.ys; ++i) repeat(result(k.states + i), k.bytes[k.states + k.slices + i], of, at);
  }
  static void repeat(std::byte* all, std::size_t bytes, std::int64_t of, std::int64_t at) {
    copy(all + static_cast<std::size_t>(at) * bytes, all + static_cast<std::size_t>(of) * bytes, bytes);
  }
  static void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
    if (bytes) std::memcpy(to, from, bytes);
  }
};

void ScanKernel::run(const HostLaunch& l) const {
  Serial serial;
  Run r{plan_, l, l.parallel.workers() <= workers_ ? l.parallel : static_cast<Parallel&>(serial)};
  for (const LoopPlan::Step& s : plan_.once) r.launch(s);
  for (std::size_t i = 0; i < plan_.states; ++i) Run::copy(r.state(i, 0), r.operand(i), plan_.bytes[i]);
  for (std::int64_t step = 0; step < plan_.length; ++step) {
    r.slice = plan_.reverse ? plan_.length - 1 - step : step;
    r.step();
    if (plan_.slices > 0 || !r.settled()) continue;
    if (plan_.ys == 0 && !plan_.keeps) break;
    for (const std::int64_t of = r.slice; ++step < plan_.length;)
      r.repeat_results(of, plan_.reverse ? plan_.length - 1 - step : step);
  }
  for (std::size_t i = 0; i < plan_.states; ++i) Run::copy(r.result(i), r.state(i, r.parity), plan_.bytes[i]);
}

}  // namespace

Graph compile_loops(const Graph& g, PassLog& log, const CpuOptions& options, int workers) {
  return lc::compile_loops(g, log, "cpu", lc::cpu(options), workers,
                           [workers](LoopPlan plan) { return std::make_shared<ScanKernel>(std::move(plan), workers); });
}

}  // namespace lc::backends::cpu
