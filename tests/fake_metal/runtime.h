// Objective-C's run time, as much of it as a C++ program sees: classes with methods by their selectors, objects that
// are counted, pools, and an objc_msgSend that finds a method and jumps to it.
//
// A mistake is a line in fake_metal_faults(), and the program goes on: a message that nobody understands gives nil, and
// so does one to an object that was freed. Its head stays, so that it is still known.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

#include "fake_metal.h"

namespace fake {

using Selector = const std::string*;

struct Object;
struct Class {
  std::string name;
  const Class* base = nullptr;
  std::map<std::string, void*, std::less<>> methods;
};
Class& find_class(
    const std::string& name);  // made at the first call; "class NSString" has the methods of NSString itself

struct Object {
  explicit Object(const char* of);
  virtual ~Object() = default;
  virtual void dispose() {}  // gives back what it holds
  const Class* isa;          // which stays
  int count = 1;
  bool freed = false;
};

FakeMetal& control();
std::recursive_mutex& mutex();  // held by every method
void fault(const std::string& what);
bool fails();  // is this the call that shall fail?

Object* retain(Object* o);
void release(Object* o);
void put_into_pool(Object* o);
template <class T>
T* autorelease(T* o) {
  put_into_pool(o);
  return o;
}

// A reference that counts.
template <class T>
class Hold {
 public:
  Hold() = default;
  Hold(T* o) : o_(o) { retain(o_); }
  Hold(const Hold& other) : Hold(other.o_) {}
  Hold(Hold&& other) noexcept : o_(std::exchange(other.o_, nullptr)) {}
  Hold& operator=(Hold other) noexcept { return std::swap(o_, other.o_), *this; }
  ~Hold() { release(o_); }
  T* operator->() const { return o_; }
  T* get() const { return o_; }
  explicit operator bool() const { return o_; }

 private:
  T* o_ = nullptr;
};

// method<f>("MTLDevice", "name"): f's first parameter is the object, as what it is; the others are the message's.
template <auto F, class Self, class R, class... A>
R call_locked(Object* self, Selector, A... arguments) {
  const std::lock_guard lock(mutex());
  return F(static_cast<Self*>(self), arguments...);
}
template <auto F, class R, class C, class Self, class... A>
void* entry(R (C::*)(Self*, A...) const) {
  return reinterpret_cast<void*>(&call_locked<F, Self, R, A...>);
}
template <auto F, class R, class Self, class... A>
void* entry(R (*)(Self*, A...)) {
  return reinterpret_cast<void*>(&call_locked<F, Self, R, A...>);
}
template <auto F>
void method(const char* of, const char* selector) {
  if constexpr (std::is_class_v<decltype(F)>) find_class(of).methods[selector] = entry<F>(&decltype(F)::operator());
  else find_class(of).methods[selector] = entry<F>(F);
}

struct String : Object {
  explicit String(std::string s) : Object("NSString"), text(std::move(s)) {}
  std::string text;
};
struct Error : Object {
  explicit Error(std::string s) : Object("NSError"), text(std::move(s)) {}
  std::string text;
};

}  // namespace fake
