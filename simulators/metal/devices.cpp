// The objects that a device creates: buffers, programs and queues.
#include <sys/mman.h>

#include <algorithm>

#include "commands.h"

namespace lc::simulators::metal {
namespace {

constexpr unsigned long kPage = 65536;  // a multiple of every system's page size
constexpr char kCanary = 0x5a;
unsigned long used = 0;  // bytes of all buffers

struct Device : Object {
  explicit Device(int k) : Object("MTLDevice"), number(k) {}
  const int number;
};
// Returns device `k`. As in Metal, there is one object per device.
Device* device(int k) {
  static auto& all = *new std::vector<std::unique_ptr<Device>>;  // never destroyed: devices may be used at exit
  while (static_cast<int>(all.size()) <= k) {
    all.push_back(std::make_unique<Device>(static_cast<int>(all.size())));
    --control().objects;  // excluded from the count, because it is never freed
  }
  return all[static_cast<std::size_t>(k)].get();
}

struct Array : Object {
  Array() : Object("NSArray") {}
  void dispose() override { items.clear(); }
  std::vector<Hold<Object>> items;
};
struct Options : Object {
  Options() : Object("MTLCompileOptions") {}
  bool safe = false, precise = false;
};
struct Library : Object {
  explicit Library(std::shared_ptr<const Program> p) : Object("MTLLibrary"), program(std::move(p)) {}
  void dispose() override { program.reset(); }
  std::shared_ptr<const Program> program;
};
struct Architecture : Object {
  Architecture() : Object("MTLArchitecture") {}
};

void set_error(Object** error, const std::string& why) {
  if (error) *error = autorelease(new Error(why));
}
Object* string(const char* text) { return autorelease(new String(text)); }

Object* new_buffer(Device*, unsigned long bytes, unsigned long options) {
  if (bytes == 0) return fault("a buffer of no bytes"), nullptr;
  if (options != 0 && options != 32) return fault("a buffer's options are " + std::to_string(options)), nullptr;
  if (fails() || (control().memory && used + bytes > control().memory)) return nullptr;
  auto* b = new Buffer(bytes, options == 0);
  if (b->data) return b;
  return release(b), nullptr;
}

Object* new_library(Device*, String* source, Options* options, Object** error) {
  if (!source) return fault("a library of nothing"), nullptr;
  if (!options || !options->safe || (!control().old_system && !options->precise))
    fault("a program is compiled with fast maths");
  if (fails()) return set_error(error, "Compilation failed: the test wants it so"), nullptr;
  std::string why;
  auto program = Program::make(source->text, why);
  if (!program) return set_error(error, "Compilation failed:\n" + why), nullptr;
  return new Library(std::move(program));
}

Object* new_function(Library* self, String* name) {
  if (!name || fails()) return nullptr;
  const LcMetalModule& m = self->program->module();
  const auto* found =
      std::find_if(m.kernels, m.kernels + m.count, [&](const LcMetalKernel& k) { return k.kernel.name == name->text; });
  return found == m.kernels + m.count ? nullptr : new Function(self->program, *found);
}

Object* new_pipeline(Device*, Function* f, Object** error) {
  if (!f) return fault("a pipeline of no function"), nullptr;
  if (fails()) return set_error(error, "Compiler encountered an internal error"), nullptr;
  if (f->shared() <= kGroupMemory) return new Pipeline(f);
  set_error(error, "Threadgroup memory size (" + std::to_string(f->shared()) +
                       ") exceeds the maximum threadgroup memory "
                       "allowed (" +
                       std::to_string(kGroupMemory) + ")");
  return nullptr;
}

void install_device() {
  method<[](Device* self) -> Object* { return string(self->number ? "Fake Metal device 2" : "Fake Metal device"); }>(
      "MTLDevice", "name");
  method<[](Device*) -> Size { return {1024, 1024, 1024}; }>("MTLDevice", "maxThreadsPerThreadgroup");
  method<[](Device*) -> unsigned long { return kGroupMemory; }>("MTLDevice", "maxThreadgroupMemoryLength");
  method<[](Device*) -> unsigned long { return control().memory ? control().memory : 8ul << 30; }>(
      "MTLDevice", "recommendedMaxWorkingSetSize");
  method<[](Device*) -> unsigned long { return used; }>("MTLDevice", "currentAllocatedSize");
  method<[](Device*) -> unsigned long { return 4ul << 30; }>("MTLDevice", "maxBufferLength");
  method<[](Device*) -> signed char { return !control().separate_memory; }>("MTLDevice", "hasUnifiedMemory");
  method<[](Device*, long family) -> signed char { return family <= 1008; }>("MTLDevice", "supportsFamily:");
  method<[](Device*) -> Object* { return autorelease(new Architecture); }>("MTLDevice", "architecture");
  method<[](Architecture*) -> Object* { return string("applegpu_fake"); }>("MTLArchitecture", "name");
  method<[](Device*) -> Object* { return fails() ? nullptr : make_queue(); }>("MTLDevice", "newCommandQueue");
  method<&new_buffer>("MTLDevice", "newBufferWithLength:options:");
  method<&new_library>("MTLDevice", "newLibraryWithSource:options:error:");
  method<&new_pipeline>("MTLDevice", "newComputePipelineStateWithFunction:error:");
  method<&new_function>("MTLLibrary", "newFunctionWithName:");
}

}  // namespace

Buffer::Buffer(unsigned long n, bool of_host) : Object("MTLBuffer"), bytes(n), shared(of_host) {
  const unsigned long room = (n + kPage - 1) / kPage * kPage;
  void* p =
      ::mmap(nullptr, room + 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return;
  pages_ = static_cast<char*>(p), mapped_ = room + 2 * kPage;
  ::mprotect(pages_, kPage, PROT_NONE);
  ::mprotect(pages_ + kPage + room, kPage, PROT_NONE);
  data = pages_ + kPage + room - (n + 63) / 64 * 64;
  std::fill(data + n, pages_ + kPage + room, kCanary);
  used += n;
}
bool Buffer::intact() {
  char* const end = pages_ + mapped_ - kPage;
  const bool right = std::all_of(data + bytes, end, [](char c) { return c == kCanary; });
  std::fill(data + bytes, end, kCanary);
  return right;
}
void Buffer::dispose() {
  if (!data) return;
  if (!intact()) fault("somebody wrote behind the end of a buffer of " + std::to_string(bytes) + " bytes");
  ::munmap(pages_, mapped_);
  data = nullptr, used -= bytes;
}

void install_devices() {
  install_device();
  method<[](Object*) -> Object* { return autorelease(new Object("NSProcessInfo")); }>("class NSProcessInfo",
                                                                                      "processInfo");
  method<[](Object*) -> Object* { return string("Version 15.0 (fake)"); }>("NSProcessInfo",
                                                                           "operatingSystemVersionString");
  method<[](Array* self) -> unsigned long { return self->items.size(); }>("NSArray", "count");
  method<[](Array* self, unsigned long k) -> Object* {
    return k < self->items.size() ? self->items[k].get() : (fault("an array has no such item"), nullptr);
  }>("NSArray", "objectAtIndex:");
  method<[](Object*) -> Object* { return fails() ? nullptr : new Options; }>("class MTLCompileOptions", "alloc");
  method<[](Options* self, signed char on) { self->safe = !on; }>("MTLCompileOptions", "setFastMathEnabled:");
  method<[](Options* self, long mode) { self->safe = mode == 0; }>("MTLCompileOptions", "setMathMode:");
  method<[](Options* self, long which) { self->precise = which == 1; }>("MTLCompileOptions",
                                                                        "setMathFloatingPointFunctions:");
  method<[](Function* self) -> Object* { return string(self->kernel->kernel.name); }>("MTLFunction", "name");
  method<[](Pipeline* self) { return self->function->threads(); }>("MTLComputePipelineState",
                                                                   "maxTotalThreadsPerThreadgroup");
  method<[](Pipeline* self) { return self->function->shared(); }>("MTLComputePipelineState",
                                                                  "staticThreadgroupMemoryLength");
  method<[](Pipeline*) { return control().thread_width; }>("MTLComputePipelineState", "threadExecutionWidth");
  method<[](Buffer* self) -> unsigned long { return self->bytes; }>("MTLBuffer", "length");
  method<[](Buffer* self) -> char* {
    if (!self->shared) fault("asks for the contents of a private buffer");
    return self->shared && !fails() ? self->data : nullptr;
  }>("MTLBuffer", "contents");
}

}  // namespace lc::simulators::metal

using namespace lc::simulators::metal;

extern "C" __attribute__((visibility("default"))) Object* MTLCreateSystemDefaultDevice() {
  const std::lock_guard lock(mutex());
  return fails() || control().devices == 0 ? nullptr : retain(device(0));
}
extern "C" __attribute__((visibility("default"))) Object* MTLCopyAllDevices() {
  const std::lock_guard lock(mutex());
  if (fails()) return nullptr;
  auto* all = new Array;  // the preferred device is last
  for (int k = control().devices; k-- > 0;) all->items.emplace_back(device(k));
  return all;
}
