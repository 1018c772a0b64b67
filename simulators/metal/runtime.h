// The part of Objective-C's run time that a C++ program uses: classes with methods by selector, reference-counted
// objects, autorelease pools, and an objc_msgSend that finds a method and jumps to it.
//
// A mistake adds a line to fake_metal_faults(), and the program continues: an unknown message returns nil, and so does
// a message to a freed object, whose header stays allocated for this check.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

#include "fake_metal.h"

namespace lc::simulators::metal {

using Selector = const std::string*;

struct Object;
struct Class {
  std::string name;
  const Class* base = nullptr;
  std::map<std::string, void*, std::less<>> methods;
};
Class& find_class(
    const std::string& name);  // creates it at the first call; "class NSString" has the methods of NSString itself

struct Object {
  explicit Object(const char* of);
  virtual ~Object() = default;
  virtual void dispose() {}  // releases the resources it holds
  const Class* isa;          // stays valid after the object is freed
  int count = 1;
  bool freed = false;
};

FakeMetal& control();
std::recursive_mutex& mutex();  // every method locks it
void fault(const std::string& what);
bool fails();  // counts a fallible call; returns true if this one must fail

Object* retain(Object* o);
void release(Object* o);
void put_into_pool(Object* o);
template <class T>
T* autorelease(T* o) {
  put_into_pool(o);
  return o;
}

// An owning reference.
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

// method<f>("MTLDevice", "name"): the first parameter of f is the object with its type; the others are the message's
// arguments.
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

}  // namespace lc::simulators::metal
