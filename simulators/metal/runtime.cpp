#include "commands.h"

#include <memory>
#include <set>
#include <vector>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace lc::simulators::metal {
namespace {

struct Faults {
  std::mutex mutex;
  std::string now, shown;
};
Faults& faults() {
  static auto& f = *new Faults;  // never destroyed: devices may be used at exit
  return f;
}

// All objects. Their headers stay allocated until the library is unloaded.
std::vector<std::unique_ptr<Object>>& graveyard() {
  static auto& all = *new std::vector<std::unique_ptr<Object>>;  // never destroyed: devices may be used at exit
  return all;
}

struct Pools {
  std::vector<std::vector<Object*>> open;
};
// Devices that are destroyed after their thread's objects still need the thread's pools, so pools are never freed. The
// list keeps leak checkers from reporting them.
Pools& pools() {
  static auto& mutex = *new std::mutex;
  static auto& all = *new std::vector<std::unique_ptr<Pools>>;
  static thread_local Pools& p = [&]() -> Pools& {
    const std::lock_guard lock(mutex);
    return *all.emplace_back(std::make_unique<Pools>());
  }();
  return p;
}

struct Selectors {
  std::mutex mutex;
  std::set<std::string> names;
};
Selectors& selectors() {
  static auto& s = *new Selectors;  // never destroyed: devices may be used at exit
  return s;
}

Object* nothing(Object*, Selector) { return nullptr; }

}  // namespace

FakeMetal& control() {
  static FakeMetal c = [] {
    FakeMetal fresh{};
    fresh.devices = 1, fresh.thread_width = 32;
    return fresh;
  }();
  return c;
}

std::recursive_mutex& mutex() {
  static auto& m = *new std::recursive_mutex;  // never destroyed: devices may be used at exit
  return m;
}

void fault(const std::string& what) {
  const std::lock_guard lock(faults().mutex);
  faults().now += what + "\n";
}

bool fails() { return ++control().calls == control().fail_at; }

Class& find_class(const std::string& name) {
  static auto& all = *new std::map<std::string, Class>;  // never destroyed: devices may be used at exit
  Class& c = all[name];
  if (c.name.empty()) {
    c.name = name;
    if (name != "NSObject") c.base = &find_class("NSObject");
  }
  return c;
}

Object::Object(const char* of) : isa(&find_class(of)) { ++control().objects; }

Object* retain(Object* o) {
  const std::lock_guard lock(mutex());
  if (o && o->freed) fault("retains a freed " + o->isa->name);
  if (o) ++o->count;
  return o;
}

void release(Object* o) {
  const std::lock_guard lock(mutex());
  if (!o) return;
  if (o->freed) return fault("releases a freed " + o->isa->name);
  if (--o->count) return;
  o->freed = true;
  o->dispose();
  --control().objects;
  graveyard().emplace_back(o);
}

void put_into_pool(Object* o) {
  if (!o) return;
  if (!pools().open.empty()) return pools().open.back().push_back(o);
  fault("a " + o->isa->name + " is autoreleased without a pool");
  static auto& never_freed = *new std::vector<Object*>;  // never destroyed: devices may be used at exit
  never_freed.push_back(o);
}

// A class as an object. It is never freed.
struct ClassObject : Object {
  explicit ClassObject(const std::string& of) : Object(("class " + of).c_str()) { --control().objects; }
};

// Selectors added in macOS 10.15, 14 and 15.
static const std::set<std::string> kNewSelectors{"hasUnifiedMemory", "supportsFamily:", "architecture",
                                                 "setMathMode:", "setMathFloatingPointFunctions:"};

static const void* find_method(const Object* o, Selector s) {
  if (control().old_system && kNewSelectors.contains(*s)) return nullptr;
  for (const Class* c = o->isa; c; c = c->base)
    if (const auto it = c->methods.find(*s); it != c->methods.end()) return it->second;
  return nullptr;
}

static void install_root() {
  method<[](Object* self, Selector s) -> signed char { return find_method(self, s) != nullptr; }>(
      "NSObject", "respondsToSelector:");
  method<[](Object* self) -> Object* { return self; }>("NSObject", "init");
  method<[](Object*) -> Object* { return fails() ? nullptr : new String({}); }>("class NSString", "alloc");
  method<[](String* self, const char* bytes, unsigned long n, unsigned long encoding) -> Object* {
    if (encoding != 4) fault("a string's encoding is not UTF-8");
    if (fails()) return release(self), nullptr;
    self->text.assign(bytes, n);
    return self;
  }>("NSString", "initWithBytes:length:encoding:");
  method<[](String* self) -> const char* { return self->text.c_str(); }>("NSString", "UTF8String");
  method<[](Error* self) -> Object* { return autorelease(new String(self->text)); }>("NSError", "localizedDescription");
}

}  // namespace lc::simulators::metal

using namespace lc::simulators::metal;

// Returns the method to which objc_msgSend jumps.
extern "C" __attribute__((used, visibility("hidden"))) const void* fake_metal_find(const Object* o, Selector s) {
  const std::lock_guard lock(mutex());
  if (!o) return reinterpret_cast<const void*>(&nothing);
  if (o->freed) fault("sends " + *s + " to a freed " + o->isa->name);
  else if (const void* found = find_method(o, s)) return found;
  else fault("a " + o->isa->name + " does not understand " + *s);
  return reinterpret_cast<const void*>(&nothing);
}

// Arguments are left in place: on the stack, and in registers, which are saved and restored.
#if defined(__x86_64__)
__asm__(R"(
.text
.globl objc_msgSend
.type objc_msgSend,@function
objc_msgSend:
  pushq %rbp
  movq %rsp, %rbp
  pushq %rdi; pushq %rsi; pushq %rdx; pushq %rcx; pushq %r8; pushq %r9
  call fake_metal_find
  popq %r9; popq %r8; popq %rcx; popq %rdx; popq %rsi; popq %rdi
  popq %rbp
  jmp *%rax
.size objc_msgSend, .-objc_msgSend
.globl objc_msgSend_stret
.type objc_msgSend_stret,@function
objc_msgSend_stret:
  pushq %rbp
  movq %rsp, %rbp
  pushq %rdi; pushq %rsi; pushq %rdx; pushq %rcx; pushq %r8; pushq %r9
  movq %rsi, %rdi
  movq %rdx, %rsi
  call fake_metal_find
  popq %r9; popq %r8; popq %rcx; popq %rdx; popq %rsi; popq %rdi
  popq %rbp
  jmp *%rax
.size objc_msgSend_stret, .-objc_msgSend_stret
)");
#elif defined(__aarch64__)
__asm__(R"(
.text
.globl objc_msgSend
.type objc_msgSend,%function
objc_msgSend:
  stp x29, x30, [sp, #-96]!
  mov x29, sp
  stp x0, x1, [sp, #16]
  stp x2, x3, [sp, #32]
  stp x4, x5, [sp, #48]
  stp x6, x7, [sp, #64]
  str x8, [sp, #80]
  bl fake_metal_find
  mov x16, x0
  ldp x0, x1, [sp, #16]
  ldp x2, x3, [sp, #32]
  ldp x4, x5, [sp, #48]
  ldp x6, x7, [sp, #64]
  ldr x8, [sp, #80]
  ldp x29, x30, [sp], #96
  br x16
.size objc_msgSend, .-objc_msgSend
)");
#endif

EXPORTED Selector sel_registerName(const char* name) {
  const std::lock_guard lock(selectors().mutex);
  return &*selectors().names.insert(name).first;
}
EXPORTED Object* objc_getClass(const char* name) {
  const std::lock_guard lock(mutex());
  // never destroyed: devices may be used at exit
  static auto& classes = *new std::map<std::string, std::unique_ptr<Object>>;
  if (find_class(std::string("class ") + name).methods.empty()) return nullptr;
  auto& object = classes[name];
  if (!object) object = std::make_unique<ClassObject>(name);
  return object.get();
}
EXPORTED Object* objc_retain(Object* o) { return retain(o); }
EXPORTED void objc_release(Object* o) { release(o); }
EXPORTED void* objc_autoreleasePoolPush() {
  auto& open = pools().open;
  open.emplace_back();
  return reinterpret_cast<void*>(open.size());
}
EXPORTED void objc_autoreleasePoolPop(void* pool) {
  auto& open = pools().open;
  if (reinterpret_cast<void*>(open.size()) != pool) return fault("a pool ends that is not the innermost one");
  const std::vector<Object*> objects = std::move(open.back());
  open.pop_back();
  for (Object* o : objects) release(o);
}

EXPORTED FakeMetal* fake_metal_control() { return &control(); }
EXPORTED const char* fake_metal_faults() {
  Faults& f = faults();
  const std::lock_guard lock(f.mutex);
  f.shown.clear();
  f.shown.swap(f.now);
  return f.shown.c_str();
}

namespace lc::simulators::metal {
__attribute__((constructor)) static void install() { install_root(), install_devices(), install_commands(); }
}  // namespace lc::simulators::metal
