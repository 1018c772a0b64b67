#include "lightcone/backends/opencl/device.h"

#include "lightcone/backends/opencl/error.h"

namespace lc::backends::opencl {

namespace {

// Returns true for PoCL, which has a cache of its own. For a binary it would compile each kernel once more, for groups
// of any size, which takes longer than all else.
bool is_pocl(const DeviceInfo& d) { return d.platform.starts_with("Portable Computing Language"); }

}  // namespace

std::shared_ptr<gpu::GpuDevice> open_device(const OpenClOptions& options) {
  auto session = std::make_shared<Session>();
  session->library = load_library(options.library);
  const std::vector<Found> all = find_devices(*session->library, options);
  if (options.device < 0 || static_cast<std::size_t>(options.device) >= all.size()) {
    std::string known;
    for (const Found& f : all) known += str_cat(known.empty() ? ": " : ", ", f.info.limits.name);
    throw Error("opencl",
                str_cat("there is no device ", options.device,
                        options.platform.empty() ? "" : str_cat(" of a platform named '", options.platform, "'"),
                        "; there are ", all.size(), known,
                        all.empty() ? ". Install the driver of your device (for the processor, Debian's is "
                                      "pocl-opencl-icd); the loader looks for drivers in /etc/OpenCL/vendors"
                                    : ", counted from 0"));
  }
  session->found = all[options.device];
  const DeviceInfo& info = session->found.info;
  if (!info.unusable.empty())
    throw Error("opencl", str_cat("the device ", options.device, " ('", session->name(), "' of ", info.platform,
                                  ") cannot be used: ", info.unusable));
  if (!options.cache.empty() || !is_pocl(info))
    session->cache = cache::ObjectCache({options.cache, options.cache_bytes});
  const api::Functions& f = session->functions();
  api::Int code = api::kSuccess;
  session->context = f.CreateContext(nullptr, 1, &session->found.device, nullptr, nullptr, &code);
  take(code, session->name(), "be opened");
  session->queue = f.CreateCommandQueue(session->context, session->found.device, 0, &code);
  take(code, session->name(), "make a queue");
  return std::make_shared<OpenClDevice>(std::move(session));
}

Session::~Session() {
  if (queue) functions().ReleaseCommandQueue(queue);
  if (context) functions().ReleaseContext(context);
}

// ---- memory -----------------------------------------------------------------------------------

namespace {

[[noreturn]] void refuse(const Session& s, std::size_t bytes, std::string_view why) {
  throw Error("opencl",
              str_cat(s.name(), " cannot allocate ", bytes, " bytes: ", why, " (", s.found.info.limits.memory,
                      " bytes in all, ", s.allocated.load(), " of them allocated). Free some of it, or take a ",
                      "smaller model or batch, or another device"));
}

}  // namespace

OpenClBuffer::OpenClBuffer(std::shared_ptr<Session> session, std::size_t bytes)
    : Buffer(bytes), session_(std::move(session)) {
  // Drivers for processors promise more memory than there is, and the system kills a process that uses it.
  const std::size_t all = session_->found.info.limits.memory;
  std::size_t used = session_->allocated;
  do {
    if (used > all || taken() > all - used) refuse(*session_, bytes, "it has not so much memory left");
  } while (!session_->allocated.compare_exchange_weak(used, used + taken()));
  api::Int code = api::kSuccess;
  memory_ = session_->functions().CreateBuffer(session_->context, api::kReadWrite, taken(), nullptr, &code);
  if (code == api::kSuccess) return;
  session_->allocated -= taken();
  const std::size_t most = session_->found.info.max_allocation;
  refuse(*session_, bytes,
         code == api::kInvalidBufferSize && bytes > most
             ? str_cat("its driver has buffers of at most ", most, " bytes, ", code_name(code))
             : code_name(code));
}

OpenClBuffer::~OpenClBuffer() {  // the driver waits for commands that still use it
  session_->functions().ReleaseMemObject(memory_);
  session_->allocated -= taken();
}

std::unique_ptr<Buffer> OpenClDevice::allocate(std::size_t bytes) {
  auto made = std::make_unique<OpenClBuffer>(session_, bytes);
  switch (const api::Int code = fill({made.get(), 0}, bytes)) {
    case api::kSuccess: return made;
    case api::kAllocationFailure:  // many drivers allocate the memory when it is first used
    case api::kOutOfResources:
    case api::kOutOfHostMemory: made.reset(); refuse(*session_, bytes, code_name(code));
    default: fail(code, session_->name(), "zero memory");
  }
}

api::Memory* OpenClDevice::memory(const BufferSlice& p) const {
  const auto* buffer = dynamic_cast<const OpenClBuffer*>(p.buffer);
  if (!buffer || buffer->session() != session_.get())
    throw Error("opencl", str_cat("a buffer is in no memory of ", name(), ": copy the values there first"));
  return buffer->memory();
}

api::Memory* OpenClDevice::piece(const BufferSlice& p, std::size_t bytes) const {
  api::Memory* const m = memory(p);
  const std::size_t size = p.buffer->size();
  if (p.offset > size || bytes > size - p.offset)
    throw Error("opencl",
                str_cat(bytes, " bytes from byte ", p.offset, " on are asked for, of a buffer of ", size, " bytes"));
  return m;
}

void OpenClDevice::copy_in(BufferSlice to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  take(session_->functions().EnqueueWriteBuffer(session_->queue, piece(to, bytes), api::kTrue, to.offset, bytes, from,
                                                0, nullptr, nullptr),
       session_->name(), "copy from the host");
}
void OpenClDevice::copy_out(void* to, BufferSlice from, std::size_t bytes) {
  if (bytes == 0) return;
  take(session_->functions().EnqueueReadBuffer(session_->queue, piece(from, bytes), api::kTrue, from.offset, bytes, to,
                                               0, nullptr, nullptr),
       session_->name(), "copy to the host");
}
void OpenClDevice::copy(BufferSlice to, BufferSlice from, std::size_t bytes) {
  if (bytes == 0) return;
  take(session_->functions().EnqueueCopyBuffer(session_->queue, piece(from, bytes), piece(to, bytes), from.offset,
                                               to.offset, bytes, 0, nullptr, nullptr),
       session_->name(), "copy");
}
api::Int OpenClDevice::fill(const BufferSlice& to, std::size_t bytes) {
  if (bytes == 0) return api::kSuccess;
  static constexpr std::byte kZeros[16] = {};
  std::size_t pattern = sizeof kZeros;  // the longest that fits: a thread of the device writes one pattern
  while ((to.offset | bytes) % pattern != 0) pattern /= 2;
  return session_->functions().EnqueueFillBuffer(session_->queue, piece(to, bytes), kZeros, pattern, to.offset, bytes,
                                                 0, nullptr, nullptr);
}
void OpenClDevice::zero(BufferSlice to, std::size_t bytes) { take(fill(to, bytes), session_->name(), "zero memory"); }

OpenClDevice::~OpenClDevice() { session_->functions().Finish(session_->queue); }
void OpenClDevice::synchronise() {
  take(session_->functions().Finish(session_->queue), session_->name(), "finish its work");
}

// ---- kernels ----------------------------------------------------------------------------------

std::shared_ptr<const gpu::Code> OpenClDevice::compile(const std::string& text,
                                                       const std::vector<std::string>& kernels) {
  return std::make_shared<OpenClCode>(session_, text, kernels);
}

// Returns the function to launch. Throws Error if the launch does not fit it or exceeds the device's limits.
const OpenClCode::Function& OpenClDevice::function(const gpu::KernelLaunch& s, const OpenClCode& code) const {
  if (s.function >= code.functions().size())
    throw Error("opencl", str_cat("kernel ", s.function, " of ", code.functions().size(), " is asked for"));
  const OpenClCode::Function& f = code.functions()[s.function];
  const std::size_t given = 2 * s.buffers.size() + s.sizes.size() + (s.shared ? 1 : 0);
  if (given != f.arguments)
    throw Error("opencl", str_cat("the kernel '", f.name, "' has ", f.arguments, " arguments, and ", given,
                                  " are given: two for a buffer, one for a size, one for shared memory"));
  if (s.block_size < 1 || static_cast<std::size_t>(s.block_size) > f.threads || s.block_size > limits().max_block_size)
    throw Error("opencl",
                str_cat("the kernel '", f.name, "' cannot run in groups of ", s.block_size, " threads on ", name(),
                        ", which has at most ", std::min<std::size_t>(f.threads, limits().max_block_size), " for it"));
  if (s.grid_size < 0 || s.grid_size > limits().max_grid_size)
    throw Error("opencl", str_cat("the kernel '", f.name, "' cannot be started as ", s.grid_size, " groups: ", name(),
                                  " has at most ", limits().max_grid_size));
  if (s.shared > limits().shared)
    throw Error("opencl",
                str_cat("the kernel '", f.name, "' needs ", s.shared, " bytes of shared memory, and a group on ",
                        session_->name(), " has at most ", limits().shared));
  return f;
}

void OpenClDevice::launch_kernel(const gpu::KernelLaunch& s) {
  if (s.grid_size == 0) return;
  const auto* code = dynamic_cast<const OpenClCode*>(s.code);
  if (!code || code->session() != session_.get())
    throw Error("opencl", str_cat("what is to be started was not compiled for ", name()));
  const OpenClCode::Function& f = function(s, *code);
  const api::Functions& cl = session_->functions();
  api::UInt index = 0;
  const auto set = [&](std::size_t bytes, const void* value) {
    const api::Int result = cl.SetKernelArg(f.kernel, index, bytes, value);
    if (result != api::kSuccess) fail(result, name(), str_cat("set argument ", index, " of the kernel '", f.name, "'"));
    ++index;
  };
  const std::lock_guard lock(code->mutex());
  for (const BufferSlice& p : s.buffers) {
    api::Memory* const m = p ? memory(p) : nullptr;
    const auto offset = static_cast<std::int64_t>(p.offset);
    set(sizeof m, &m);
    set(sizeof offset, &offset);
  }
  for (const std::int64_t& size : s.sizes) set(sizeof size, &size);
  if (s.shared) set(s.shared, nullptr);
  const auto threads = static_cast<std::size_t>(s.block_size);
  const std::size_t global = static_cast<std::size_t>(s.grid_size) * threads;
  const api::Int result =
      cl.EnqueueNDRangeKernel(session_->queue, f.kernel, 1, nullptr, &global, &threads, 0, nullptr, nullptr);
  if (result != api::kSuccess)
    fail(result, name(),
         str_cat("start the kernel '", f.name, "' as ", s.grid_size, " groups of ", s.block_size, " threads"));
}

}  // namespace lc::backends::opencl

namespace lc {

Compiler opencl(OpenClOptions options, GpuOptions gpu) {
  return backends::gpu::compiler([options = std::move(options)] { return backends::opencl::open_device(options); },
                                 gpu);
}

}  // namespace lc
