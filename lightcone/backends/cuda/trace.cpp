#include "lightcone/backends/cuda/trace.h"

namespace lc::backends::cuda {
namespace {

// The most steps of a launch: a loop of many steps is one launch, and the driver takes longer to make a graph of more
// than the graph saves.
constexpr std::size_t kMostSteps = 1 << 16;

struct NotTraceable {};

// The device that a traced launch gets: it records commands.
class Recorder final : public gpu::GpuDevice {
 public:
  Recorder(CudaDevice& device, Trace& to) : device_(device), to_(to) {}
  std::string name() const override { return device_.name(); }
  const gpu::Limits& limits() const override { return device_.limits(); }
  std::shared_ptr<const gpu::Code> compile(const std::string& text, const std::vector<std::string>& kernels) override {
    return device_.compile(text, kernels);
  }

  void launch_kernel(const gpu::KernelLaunch& s) override {
    if (s.grid_size == 0) return;
    Trace::Step& step = add(Trace::Kind::Launch, words_of(s));
    step.call = kernel_call(s, device_.limits());
    to_.values.resize(step.first + step.count);
    write_words(device_.stream()->context().driver(), s, std::span(to_.values).subspan(step.first));
  }
  void call(const gpu::LibraryCall& c, std::span<const BufferSlice> buffers,
            std::span<const std::int64_t> sizes) override {
    std::array<std::uint64_t, kMostCallWords> words;
    const std::size_t n = write_call_words(buffers, sizes, words);
    add(Trace::Kind::Call, n).work = &stream_call(c);
    to_.values.insert(to_.values.end(), words.begin(), words.begin() + static_cast<std::ptrdiff_t>(n));
  }
  void copy(BufferSlice to, BufferSlice from, std::size_t bytes) override {
    if (bytes) {
      add(Trace::Kind::Copy, 3);
      to_.values.insert(to_.values.end(), {address_of(to), address_of(from), bytes});
    }
  }
  void zero(BufferSlice to, std::size_t bytes) override {
    if (bytes) {
      add(Trace::Kind::Zero, 2);
      to_.values.insert(to_.values.end(), {address_of(to), bytes});
    }
  }

  std::unique_ptr<Buffer> allocate(std::size_t) override { throw NotTraceable(); }
  std::unique_ptr<Buffer> reserve(std::size_t) override { throw NotTraceable(); }
  void copy_in(BufferSlice, const void*, std::size_t) override { throw NotTraceable(); }
  void copy_out(void*, BufferSlice, std::size_t) override { throw NotTraceable(); }
  void synchronise() override { throw NotTraceable(); }

 private:
  Trace::Step& add(Trace::Kind kind, std::size_t values) {
    if (to_.steps.size() >= kMostSteps) throw NotTraceable();
    return to_.steps.emplace_back(Trace::Step{kind, {}, to_.values.size(), values, nullptr});
  }
  CudaDevice& device_;
  Trace& to_;
};

}  // namespace

api::Result enqueue(const Context& c, api::Stream* stream, const Trace& t, const Trace::Step& s) {
  const api::Driver& a = c.api();
  const std::span<const std::uint64_t> v = s.in(t);
  switch (s.kind) {
    case Trace::Kind::Call: s.work->enqueue(c, stream, v); return api::Result::Success;
    case Trace::Kind::Copy: return a.copy(v[0], v[1], v[2], stream);
    case Trace::Kind::Zero: return a.fill(v[0], 0, v[1], stream);
    default: return start_kernel(a, stream, s.call, v);
  }
}

bool trace(const Launch& l, CudaDevice& device, Trace& to) {
  const std::size_t steps = to.steps.size(), values = to.values.size();
  bool all = true;
  try {
    Recorder(device, to).launch(l);
  } catch (const NotTraceable&) {
    to.steps.resize(steps), to.values.resize(values);
    all = false;
  }
  to.ends.push_back(to.steps.size());
  return all;
}

}  // namespace lc::backends::cuda
