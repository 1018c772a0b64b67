#include "lightcone/backends/gpu/scan.h"

#include <algorithm>
#include <cstring>

#include "lightcone/base/error.h"

namespace lc::backends::gpu {
namespace {

constexpr std::size_t kAligned = 64;  // alignment, in bytes, that kernels expect of operands
constexpr std::size_t kMostOperands = kMaxBuffers;

class ScanKernel final : public GpuKernel {
 public:
  explicit ScanKernel(LoopPlan plan) : plan_(std::move(plan)), scratch_(plan_.scratch_bytes) {
    // unaligned slices are copied to an aligned address
    for (std::size_t k = 0; k < plan_.slices; ++k) {
      const std::size_t bytes = plan_.bytes[plan_.states + k];
      copied_at_.push_back(bytes % kAligned ? scratch_ : 0);
      if (bytes % kAligned) scratch_ += (bytes + kAligned - 1) / kAligned * kAligned;
    }
  }
  std::string name() const override { return "scan"; }
  Dim scratch_bytes(int) const override { return static_cast<std::int64_t>(scratch_); }
  Dim flops() const override { return plan_.flops; }
  bool records() const override { return !may_settle(); }
  void enqueue(const Launch& l, GpuDevice& device) const override;

 private:
  struct Run;
  // Without slices a step is a function of the states alone: if it leaves them as they are, so do all later steps.
  bool may_settle() const { return plan_.slices == 0; }
  LoopPlan plan_;
  std::size_t scratch_;
  std::vector<std::size_t> copied_at_;  // offset of a slice's copy in scratch memory; 0: it is read in place
};

struct ScanKernel::Run {
  const ScanKernel& kernel;
  const LoopPlan& k;
  const Launch& l;
  GpuDevice& device;
  int parity = 0;
  std::int64_t slice = 0;

  BufferSlice state(std::size_t i, int of) const { return l.scratch.offset_by(k.state_at[of][i]); }
  BufferSlice result(std::size_t i, std::int64_t at = 0, std::size_t bytes = 0) const {
    return l.out.offset_by(static_cast<std::size_t>(k.result_at[i]) + static_cast<std::size_t>(at) * bytes);
  }
  BufferSlice at(const LoopPlan::Ref& r) const {
    switch (r.base) {
      case LoopPlan::Ref::Scratch: return l.scratch.offset_by(r.at);
      case LoopPlan::Ref::Operand: return l.in[r.at];
      case LoopPlan::Ref::Slice:
        if (const std::size_t copy = kernel.copied_at_[r.at - k.states]) return l.scratch.offset_by(copy);
        return l.in[r.at].offset_by(static_cast<std::size_t>(slice) * k.bytes[r.at]);
      case LoopPlan::Ref::State: return state(r.at, parity);
    }
    return {};
  }
  void copy(BufferSlice to, BufferSlice from, std::size_t bytes) const {
    if (bytes) device.copy(to, from, bytes);
  }
  void launch(const LoopPlan::Step& s) const {
    BufferSlice in[kMostOperands];
    for (std::size_t i = 0; i < s.in.size(); ++i) in[i] = at(s.in[i]);
    device.launch(
        {s.kernel, {in, s.in.size()}, l.scratch.offset_by(s.out.at), s.sizes, l.scratch.offset_by(s.scratch)});
  }
  void step() {
    for (std::size_t i = 0; i < k.slices; ++i)
      if (const std::size_t to = kernel.copied_at_[i]) {
        const std::size_t bytes = k.bytes[k.states + i];
        copy(l.scratch.offset_by(to), l.in[k.states + i].offset_by(static_cast<std::size_t>(slice) * bytes), bytes);
      }
    if (k.keeps)
      for (std::size_t i = 0; i < k.states; ++i)
        copy(result(k.states + k.ys + i, slice, k.bytes[i]), state(i, parity), k.bytes[i]);
    for (const LoopPlan::Step& s : k.steps) launch(s);
    for (std::size_t i = 0; i < k.states; ++i) copy(state(i, 1 - parity), at(k.next[i]), k.bytes[i]);
    for (std::size_t i = 0; i < k.ys; ++i) {
      const std::size_t bytes = k.bytes[k.states + k.slices + i];
      copy(result(k.states + i, slice, bytes), at(k.next[k.states + i]), bytes);
    }
    parity = 1 - parity;
  }
  bool settled() const {
    for (std::size_t i = 0; i < k.states; ++i) {
      const HostView before(device, state(i, 0), k.bytes[i]), now(device, state(i, 1), k.bytes[i]);
      if (k.bytes[i] && std::memcmp(before.data(), now.data(), k.bytes[i]) != 0) return false;
    }
    return true;
  }
  // Copies the kept states and the results of step `of` to step `to`, which would compute the same.
  void repeat_results(std::int64_t of, std::int64_t to) const {
    const auto repeat = [&](std::size_t i, std::size_t bytes) {
      copy(result(i, to, bytes), result(i, of, bytes), bytes);
    };
    for (std::size_t i = 0; i < k.states && k.keeps; ++i) repeat(k.states + k.ys + i, k.bytes[i]);
    for (std::size_t i = 0; i < k.ys; ++i) repeat(k.states + i, k.bytes[k.states + k.slices + i]);
  }
};

// To see whether the loop has settled, the host waits for the device. It looks after 8 steps, and doubles that number
// each time.
void ScanKernel::enqueue(const Launch& l, GpuDevice& device) const {
  Run r{*this, plan_, l, device};
  for (const LoopPlan::Step& s : plan_.once) r.launch(s);
  for (std::size_t i = 0; i < plan_.states; ++i) r.copy(r.state(i, 0), l.in[i], plan_.bytes[i]);
  const auto number = [&](std::int64_t step) { return plan_.reverse ? plan_.length - 1 - step : step; };
  for (std::int64_t step = 0, look = 8; step < plan_.length; ++step) {
    r.slice = number(step);
    r.step();
    if (!may_settle() || step + 1 < look || step + 1 == plan_.length) continue;
    look += look;
    if (!r.settled()) continue;
    if (plan_.ys == 0 && !plan_.keeps) break;
    for (const std::int64_t of = r.slice; ++step < plan_.length;) r.repeat_results(of, number(step));
  }
  for (std::size_t i = 0; i < plan_.states; ++i) r.copy(r.result(i), r.state(i, r.parity), plan_.bytes[i]);
}

}  // namespace

std::shared_ptr<Kernel> scan_kernel(LoopPlan plan) {
  for (const auto* steps : {&plan.once, &plan.steps})
    for (const LoopPlan::Step& s : *steps)
      check(s.in.size() < kMostOperands, "a kernel of a GPU with too many operands");
  return std::make_shared<ScanKernel>(std::move(plan));
}

}  // namespace lc::backends::gpu
