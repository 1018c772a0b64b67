#include "lightcone/backends/metal/device.h"

#include <algorithm>
#include <cstring>

#include "lightcone/backends/metal/metal.h"
#include "lightcone/base/error.h"

namespace lc::backends::metal {
namespace {

constexpr std::size_t kMaxBuffers = 30;                // a kernel has 31 buffers, and the last is for the sizes
constexpr std::size_t kInlineBytes = 4096;             // limit of setBytes:
constexpr std::size_t kStage = std::size_t{32} << 20;  // bytes of a buffer between the host and the GPU's own memory
enum Storage : unsigned long { kShared = 0, kPrivate = 2 << 4 };  // MTLResourceOptions

// Rounds up to a multiple of 16, in which shared memory is allocated.
std::size_t whole_words(std::size_t shared) { return shared / 16 * 16 + (shared % 16 ? 16 : 0); }

// Alignment that macOS requires of a blit's beginning and end.
constexpr std::size_t kWord = 4;
constexpr int kByteThreads = 256;
enum ByteKernel : std::size_t { CopyBytes, ZeroBytes };
constexpr const char* kByteKernels = R"(#include <metal_stdlib>
using namespace metal;
kernel void copy_bytes(device const uchar* from [[buffer(0)]], device uchar* to [[buffer(1)]],
                       constant long* n [[buffer(2)]], uint group [[threadgroup_position_in_grid]],
                       uint id [[thread_position_in_threadgroup]]) {
  for (long i = long(group) * 256 + id; i < n[0]; i += n[1]) to[i] = from[i];
}
kernel void zero_bytes(device uchar* to [[buffer(0)]], constant long* n [[buffer(1)]],
                       uint group [[threadgroup_position_in_grid]], uint id [[thread_position_in_threadgroup]]) {
  for (long i = long(group) * 256 + id; i < n[0]; i += n[1]) to[i] = 0;
}
)";

// Apple's GPUs by generation. The seventh (M1) is the first with all SIMD-group functions that our kernels use.
constexpr long kFirstFamily = 1001, kLastFamily = 1016, kFullFamily = 1007;  // MTLGPUFamilyApple1...

long family(const Runtime& r, Id device) {
  if (!r.responds(device, "supportsFamily:")) return 0;
  for (long f = kLastFamily; f >= kFirstFamily; --f)
    if (r.send<Bool>(device, "supportsFamily:", f)) return f;
  return 0;
}

gpu::Limits read_limits(const Runtime& r, Id device) {
  gpu::Limits l;
  l.language = gpu::Language::Metal;
  l.name = text_of(r, r.send(device, "name"));
  const long generation = family(r, device);
  if (r.responds(device, "architecture")) l.architecture = text_of(r, r.send(r.send(device, "architecture"), "name"));
  if (l.architecture.empty()) l.architecture = generation ? str_cat("apple", generation - kFirstFamily + 1) : "mac";
  const Id process = r.send(r.find_class("NSProcessInfo"), "processInfo");
  l.driver = text_of(r, r.send(process, "operatingSystemVersionString"));
  l.max_block_size = static_cast<int>(std::min(r.send<Size>(device, "maxThreadsPerThreadgroup").width, 1024ul));
  l.warp = generation >= kFullFamily ? 32 : 1;
  l.shared = r.send<unsigned long>(device, "maxThreadgroupMemoryLength");
  l.multiprocessors = 8;  // Metal does not report it: the smallest of Apple's for computers has 7 or 8
  l.memory = r.send<unsigned long>(device, "recommendedMaxWorkingSetSize");
  l.max_grid_size = 0xffffffff / std::max(l.max_block_size, 1);  // threads are counted with 32 bits
  l.max_buffers = kMaxBuffers;
  l.f64 = false;
  return l;
}

// Returns all GPUs, the preferred one first. Throws Error if there is none.
std::vector<Ref> find_devices(const Runtime& r) {
  std::vector<Ref> found;
  if (const Id preferred = r.default_device()) found.push_back(Ref::owned(r, preferred));
  const Ref all = Ref::owned(r, r.all_devices());
  const auto count = r.send<unsigned long>(all.get(), "count");
  for (unsigned long k = 0; k < count; ++k) {
    Ref device = Ref::retained(r, r.send(all.get(), "objectAtIndex:", k));
    const auto same = [&](const Ref& other) { return other.get() == device.get(); };
    if (device && std::none_of(found.begin(), found.end(), same)) found.push_back(std::move(device));
  }
  if (found.empty()) throw Error("metal", "Metal finds no GPU here: a virtual machine may have none; use cpu()");
  return found;
}

}  // namespace

std::vector<gpu::Limits> devices(const MetalOptions& options) {
  const Runtime& r = Runtime::load(options.library);
  const Pool pool(r);
  std::vector<gpu::Limits> all;
  for (const Ref& d : find_devices(r)) all.push_back(read_limits(r, d.get()));
  return all;
}

std::shared_ptr<gpu::GpuDevice> open_device(const MetalOptions& options) {
  const Runtime& r = Runtime::load(options.library);
  const Pool pool(r);
  std::vector<Ref> found = find_devices(r);
  if (options.device < 0 || static_cast<std::size_t>(options.device) >= found.size())
    throw Error("metal", str_cat("there is no device ", options.device, ": Metal finds ", found.size(), ", from 0 on"));
  return std::make_shared<MetalDevice>(r, std::move(found[options.device]));
}

MetalDevice::Selectors::Selectors(const Runtime& r)
    : pipeline(r.selector("setComputePipelineState:")),
      buffer(r.selector("setBuffer:offset:atIndex:")),
      bytes(r.selector("setBytes:length:atIndex:")),
      shared(r.selector("setThreadgroupMemoryLength:atIndex:")),
      dispatch(r.selector("dispatchThreadgroups:threadsPerThreadgroup:")),
      copy(r.selector("copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:")),
      fill(r.selector("fillBuffer:range:value:")) {}

MetalDevice::MetalDevice(const Runtime& runtime, Ref device)
    : runtime_(runtime),
      device_(std::move(device)),
      shared_memory_(runtime.responds(device_.get(), "hasUnifiedMemory") &&
                     runtime.send<Bool>(device_.get(), "hasUnifiedMemory") != 0),
      selectors_(runtime),
      limits_(read_limits(runtime, device_.get())),
      largest_(runtime.send<unsigned long>(device_.get(), "maxBufferLength")),
      stream_(runtime, device_.get()) {}

// ---- memory -----------------------------------------------------------------------------------

MetalBuffer& MetalDevice::check_range(BufferSlice p, std::size_t bytes, std::string_view doing) const {
  auto* b = dynamic_cast<MetalBuffer*>(p.buffer);
  if (!b || b->owner() != this)
    throw Error(doing, p.buffer ? "the buffer is another device's: copy it by way of the host" : "there is no buffer");
  if (p.offset > b->size() || bytes > b->size() - p.offset)
    throw Error(doing,
                str_cat(bytes, " bytes from byte ", p.offset, " on are not within a buffer of ", b->size(), " bytes"));
  return *b;
}

std::unique_ptr<MetalBuffer> MetalDevice::make_buffer(std::size_t bytes, bool shared) {
  const auto room = static_cast<unsigned long>(std::max<std::size_t>(bytes, 1));  // Metal makes no buffer of 0 bytes
  const auto make = [&] {
    return Ref::owned(runtime_, runtime_.send(device_.get(), "newBufferWithLength:options:", room,
                                              static_cast<unsigned long>(shared ? kShared : kPrivate)));
  };
  Ref object = room > largest_ ? Ref() : make();
  if (!object && room <= largest_) {  // commands that are done may have held the memory
    stream_.drain();
    object = make();
  }
  if (!object) {
    const auto used = runtime_.send<unsigned long>(device_.get(), "currentAllocatedSize");
    throw Error("memory", str_cat("'", limits_.name, "' has no buffer of ", bytes, " bytes to give: ", used, " of ",
                                  limits_.memory, " bytes are in use, and a buffer has ", largest_, " at most"));
  }
  std::byte* contents = shared ? runtime_.send<std::byte*>(object.get(), "contents") : nullptr;
  if (shared && !contents) throw Error("memory", str_cat("'", limits_.name, "' does not say where a buffer lies"));
  return std::make_unique<MetalBuffer>(this, std::move(object), bytes, contents);
}

// Metal zeroes new buffers.
std::unique_ptr<Buffer> MetalDevice::allocate(std::size_t bytes) {
  const Pool pool(runtime_);
  return make_buffer(bytes, shared_memory_);
}

void MetalDevice::copy_in(BufferSlice to, const void* from, std::size_t bytes) {
  MetalBuffer& b = check_range(to, bytes, "copy_in");
  if (!bytes) return;
  if (b.contents() && Stream::Turn(stream_).done(b.last_use)) {
    std::memcpy(b.contents() + to.offset, from, bytes);
    return;
  }
  const Pool pool(runtime_);
  for (std::size_t at = 0; at < bytes; at += kStage) {
    const std::size_t n = std::min(kStage, bytes - at);
    const auto stage = make_buffer(n, true);
    std::memcpy(stage->contents(), static_cast<const std::byte*>(from) + at, n);
    move({&b, to.offset + at}, {stage.get(), 0}, n, n);
  }
}

void MetalDevice::copy_out(void* to, BufferSlice from, std::size_t bytes) {
  MetalBuffer& b = check_range(from, bytes, "copy_out");
  if (b.contents() || !bytes) {
    stream_.wait();
    if (bytes) std::memcpy(to, b.contents() + from.offset, bytes);
    return;
  }
  const Pool pool(runtime_);
  const auto stage = make_buffer(std::min(kStage, bytes), true);
  for (std::size_t at = 0; at < bytes; at += kStage) {
    const std::size_t n = std::min(kStage, bytes - at);
    move({stage.get(), 0}, {&b, from.offset + at}, n);
    stream_.wait();
    std::memcpy(static_cast<std::byte*>(to) + at, stage->contents(), n);
  }
}

void MetalDevice::copy(BufferSlice to, BufferSlice from, std::size_t bytes) {
  check_range(to, bytes, "copy"), check_range(from, bytes, "copy");
  if (bytes) move(to, from, bytes);
}

void MetalDevice::zero(BufferSlice to, std::size_t bytes) {
  check_range(to, bytes, "zero");
  if (bytes) move(to, {}, bytes);
}

void MetalDevice::move(BufferSlice to, BufferSlice from, std::size_t bytes, std::size_t held) {
  const bool words = to.offset % kWord == 0 && (!from || from.offset % kWord == 0);
  const std::size_t by_blit = words ? bytes / kWord * kWord : 0;
  auto& target = static_cast<MetalBuffer&>(*to.buffer);
  if (by_blit) {
    Stream::Turn turn(stream_);
    const Id encoder = turn.blit();
    target.last_use = turn.ticket();
    if (from) {
      auto& source = static_cast<MetalBuffer&>(*from.buffer);
      source.last_use = turn.ticket();
      runtime_.send<void>(encoder, selectors_.copy, source.object(), static_cast<unsigned long>(from.offset),
                          target.object(), static_cast<unsigned long>(to.offset), static_cast<unsigned long>(by_blit));
    } else {
      runtime_.send<void>(encoder, selectors_.fill, target.object(), Range{to.offset, by_blit},
                          static_cast<unsigned char>(0));
    }
    turn.put(held);
  }
  if (by_blit == bytes) return;
  to.offset += by_blit;
  const auto n = static_cast<std::int64_t>(bytes - by_blit);
  const std::int64_t groups = std::min((n + kByteThreads - 1) / kByteThreads, limits_.max_grid_size);
  const std::int64_t sizes[] = {n, groups * kByteThreads};
  const BufferSlice buffers[] = {{from.buffer, from.offset + by_blit}, to};
  gpu::KernelLaunch s;
  s.code = &byte_code(), s.function = from ? CopyBytes : ZeroBytes, s.grid_size = groups, s.block_size = kByteThreads;
  s.buffers = std::span(buffers).subspan(from ? 0 : 1), s.sizes = sizes;
  launch_kernel(s);
}

const MetalCode& MetalDevice::byte_code() {
  const std::lock_guard lock(byte_code_mutex_);
  if (!byte_code_) byte_code_ = compile(kByteKernels, {"copy_bytes", "zero_bytes"});
  return static_cast<const MetalCode&>(*byte_code_);
}

// ---- kernels ----------------------------------------------------------------------------------

// Sums stay in the order in which they are written, and NaN and infinities are numbers like others.
Ref MetalDevice::make_options() const {
  const Id empty = runtime_.send(runtime_.find_class("MTLCompileOptions"), "alloc");
  Ref options = Ref::owned(runtime_, runtime_.send(empty, "init"));
  if (!options) throw Error("metal", "Metal gives no options of its compiler: there is no memory for them");
  if (runtime_.responds(options.get(), "setMathMode:")) {
    constexpr long kSafe = 0, kPrecise = 1;  // MTLMathModeSafe, MTLMathFloatingPointFunctionsPrecise
    runtime_.send<void>(options.get(), "setMathMode:", kSafe);
    runtime_.send<void>(options.get(), "setMathFloatingPointFunctions:", kPrecise);
  } else {
    runtime_.send<void>(options.get(), "setFastMathEnabled:", Bool{0});
  }
  return options;
}

MetalCode::Function MetalDevice::make_function(Id library, const std::string& name) const {
  const Ref wanted = make_string(runtime_, name);
  const Ref function = Ref::owned(runtime_, runtime_.send(library, "newFunctionWithName:", wanted.get()));
  if (!function) throw Error("metal", str_cat("the program has no kernel '", name, "'"));
  Id error = nullptr;
  MetalCode::Function f{
      name, Ref::owned(runtime_, runtime_.send(device_.get(),
                                               "newComputePipelineStateWithFunction:error:", function.get(), &error))};
  if (!f.pipeline)
    throw Error("metal", str_cat("'", limits_.name, "' cannot run the kernel '", name, "': ", what(runtime_, error)));
  const auto number = [&](const char* of) { return runtime_.send<unsigned long>(f.pipeline.get(), of); };
  f.threads = number("maxTotalThreadsPerThreadgroup");
  f.shared = number("staticThreadgroupMemoryLength");
  const auto width = number("threadExecutionWidth");
  if (limits_.warp > 1 && width != static_cast<unsigned long>(limits_.warp))
    throw Error("metal", str_cat("'", limits_.name, "' runs ", width, " threads of '", name, "' at once and not ",
                                 limits_.warp, ", as kernels for its family expect: use another device"));
  return f;
}

std::shared_ptr<const gpu::Code> MetalDevice::compile(const std::string& text,
                                                      const std::vector<std::string>& kernels) {
  const Pool pool(runtime_);
  const Ref source = make_string(runtime_, text), options = make_options();
  Id error = nullptr;
  const Ref library = Ref::owned(
      runtime_,
      runtime_.send(device_.get(), "newLibraryWithSource:options:error:", source.get(), options.get(), &error));
  if (!library)
    throw Error("metal", str_cat("the compiler of '", limits_.name, "' refuses a program: ", what(runtime_, error)));
  std::vector<MetalCode::Function> functions;
  for (const std::string& name : kernels) functions.push_back(make_function(library.get(), name));
  return std::make_shared<const MetalCode>(this, std::move(functions));
}

void MetalDevice::launch_kernel(const gpu::KernelLaunch& s) {
  const auto* code = dynamic_cast<const MetalCode*>(s.code);
  if (!code || code->owner() != this || s.function >= code->functions().size())
    throw Error("metal", "a kernel is started that was not compiled for this device");
  const MetalCode::Function& f = code->functions()[s.function];
  const auto refuse = [&](const std::string& why) { throw Error("metal", str_cat("the kernel '", f.name, "' ", why)); };
  if (s.grid_size < 0 || s.grid_size > limits_.max_grid_size)
    refuse(str_cat("has ", s.grid_size, " groups, and 0 to ", limits_.max_grid_size, " can be started at once"));
  if (s.block_size < 1 || static_cast<std::size_t>(s.block_size) > f.threads)
    refuse(str_cat("has groups of ", s.block_size, " threads, and 1 to ", f.threads, " can be started"));
  if (s.buffers.size() > kMaxBuffers) refuse(str_cat("takes ", s.buffers.size(), " buffers, more than ", kMaxBuffers));
  if (f.shared > limits_.shared || whole_words(s.shared) > limits_.shared - f.shared)
    refuse(str_cat("shares ", f.shared, " + ", s.shared, " bytes, and a group has ", limits_.shared));
  for (const BufferSlice& p : s.buffers) check_range(p, 0, "metal");
  if (s.grid_size == 0) return;
  const Pool pool(runtime_);
  std::unique_ptr<MetalBuffer> sizes;  // used if they are too many for setBytes:
  if (s.sizes.size_bytes() > kInlineBytes) {
    sizes = make_buffer(s.sizes.size_bytes(), true);
    std::memcpy(sizes->contents(), s.sizes.data(), s.sizes.size_bytes());
  }
  Stream::Turn turn(stream_);
  const Id encoder = turn.compute();
  for (const BufferSlice& p : s.buffers) static_cast<MetalBuffer*>(p.buffer)->last_use = turn.ticket();
  encode(encoder, f, s, sizes.get());
  turn.put();
}

void MetalDevice::encode(Id encoder, const MetalCode::Function& f, const gpu::KernelLaunch& s,
                         const MetalBuffer* sizes) const {
  runtime_.send<void>(encoder, selectors_.pipeline, f.pipeline.get());
  unsigned long k = 0;
  for (const BufferSlice& p : s.buffers)
    runtime_.send<void>(encoder, selectors_.buffer, static_cast<MetalBuffer*>(p.buffer)->object(),
                        static_cast<unsigned long>(p.offset), k++);
  if (sizes) {
    runtime_.send<void>(encoder, selectors_.buffer, sizes->object(), 0ul, k);
  } else if (!s.sizes.empty()) {
    runtime_.send<void>(encoder, selectors_.bytes, static_cast<const void*>(s.sizes.data()),
                        static_cast<unsigned long>(s.sizes.size_bytes()), k);
  }
  if (s.shared) {
    runtime_.send<void>(encoder, selectors_.shared, static_cast<unsigned long>(whole_words(s.shared)), 0ul);
  }
  runtime_.send<void>(encoder, selectors_.dispatch, Size{static_cast<unsigned long>(s.grid_size), 1, 1},
                      Size{static_cast<unsigned long>(s.block_size), 1, 1});
}

}  // namespace lc::backends::metal

namespace lc {

Compiler metal(MetalOptions options, GpuOptions gpu) {
  return backends::gpu::compiler([options = std::move(options)] { return backends::metal::open_device(options); }, gpu);
}

}  // namespace lc
