// Objective-C from plain C++: a message is a call of libobjc's objc_msgSend, cast to the type of the method. The
// library is looked up at run time, so this compiles everywhere and runs where the library exists.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace lc::backends::metal {

struct Object;
struct SelectorRecord;
using Id = Object*;  // an object, or nil: a message to nil does nothing and gives zero
using Selector = SelectorRecord*;
using Bool = signed char;  // BOOL, which is a bool on some processors: compare it with 0

// Structures of Metal that are passed by value.
struct Size {
  unsigned long width = 1, height = 1, depth = 1;
};
struct Range {
  unsigned long location = 0, length = 0;
};

// The Objective-C run time and Metal.
class Runtime {
 public:
  // Loads one library that has both; empty: $LIGHTCONE_METAL, else those of macOS. It is loaded once a process and
  // stays. Throws Error if there is none.
  static const Runtime& load(const std::string& path);

  Selector selector(const char* name) const { return register_selector_(name); }
  Id find_class(const char* name) const { return get_class_(name); }

  template <class R = Id, class... A>
  R send(Id object, Selector s, A... arguments) const {
    return reinterpret_cast<R (*)(Id, Selector, A...)>(returns_in_memory<R>() ? send_structure_ : send_)(object, s,
                                                                                                         arguments...);
  }
  template <class R = Id, class... A>
  R send(Id object, const char* s, A... arguments) const {
    return send<R>(object, selector(s), arguments...);
  }
  bool responds(Id object, const char* s) const { return send<Bool>(object, "respondsToSelector:", selector(s)) != 0; }

  void retain(Id object) const { retain_(object); }
  void release(Id object) const { release_(object); }
  void* push_pool() const { return push_pool_(); }
  void pop_pool(void* pool) const { pop_pool_(pool); }

  Id default_device() const { return default_device_(); }  // the caller must release it, and all_devices(), an NSArray
  Id all_devices() const { return all_devices_(); }

 private:
  Runtime() = default;
  using Any = void (*)();
  // Returns true if a structure is returned in memory, which has an entry point of its own that takes its address.
  template <class R>
  static constexpr bool returns_in_memory() {
#if defined(__x86_64__)
    if constexpr (std::is_class_v<R>) return sizeof(R) > 16;
#endif
    return false;
  }
  Any send_ = nullptr, send_structure_ = nullptr;
  Selector (*register_selector_)(const char*) = nullptr;
  Id (*get_class_)(const char*) = nullptr;
  Id (*retain_)(Id) = nullptr;
  void (*release_)(Id) = nullptr;
  void* (*push_pool_)() = nullptr;
  void (*pop_pool_)(void*) = nullptr;
  Id (*default_device_)() = nullptr;
  Id (*all_devices_)() = nullptr;
};

// A counted reference to an object.
class Ref {
 public:
  Ref() = default;
  // Takes the result of a method named new..., init... or copy..., which the caller owns already.
  static Ref owned(const Runtime& runtime, Id object) { return Ref(runtime, object); }
  // Takes the result of any other method, which would be released when the pool ends.
  static Ref retained(const Runtime& runtime, Id object) {
    if (object) runtime.retain(object);
    return Ref(runtime, object);
  }
  Ref(Ref&& other) noexcept : runtime_(other.runtime_), object_(std::exchange(other.object_, nullptr)) {}
  Ref(const Ref& other) : runtime_(other.runtime_), object_(other.object_) {
    if (object_) runtime_->retain(object_);
  }
  Ref& operator=(Ref other) noexcept {
    std::swap(runtime_, other.runtime_), std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_) runtime_->release(object_);
  }
  void reset() { *this = Ref(); }
  Id get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  Ref(const Runtime& runtime, Id object) : runtime_(&runtime), object_(object) {}
  const Runtime* runtime_ = nullptr;
  Id object_ = nullptr;
};

// An autorelease pool: objects without an owner live until the innermost pool of the thread ends.
class Pool {
 public:
  explicit Pool(const Runtime& runtime) : runtime_(runtime), pool_(runtime.push_pool()) {}
  Pool(const Pool&) = delete;
  ~Pool() { runtime_.pop_pool(pool_); }

 private:
  const Runtime& runtime_;
  void* pool_;
};

Ref make_string(const Runtime& runtime, std::string_view text);  // an NSString
std::string text_of(const Runtime& runtime, Id string);          // "" of nil
std::string what(const Runtime& runtime, Id error);              // an NSError's description, its first lines

}  // namespace lc::backends::metal
