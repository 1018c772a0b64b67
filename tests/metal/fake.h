// The simulated Metal that tests run on (simulators/metal), and the fixture of these tests and its own.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "lightcone/backends/metal/metal.h"
#include "lightcone/base/error.h"
#include "paths.h"
#include "simulators/metal/fake_metal.h"

namespace lc::test {

template <class F>
F fake_function(const char* name) {
  static void* const library = ::dlopen(paths::kFakeMetal, RTLD_NOW | RTLD_LOCAL);
  if (!library) throw Error("test", ::dlerror());
  return reinterpret_cast<F>(::dlsym(library, name));
}
inline FakeMetal& fake() {
  static FakeMetal* const control = fake_function<FakeMetal* (*)()>("fake_metal_control")();
  return *control;
}
inline std::string faults() {
  static const auto function = fake_function<const char* (*)()>("fake_metal_faults");
  return function();
}

// Begins with the simulation's defaults. At the end no objects may be left, and no rule of Metal may have been
// violated.
class MetalTest : public testing::Test {
 protected:
  void SetUp() override {
    reset();
    faults();
    objects_ = fake().objects;
  }
  void TearDown() override {
    reset();
    EXPECT_EQ(faults(), "");
    EXPECT_EQ(fake().objects, objects_) << "objects are left";
  }
  static void reset() {
    FakeMetal& f = fake();
    f.deferred = f.separate_memory = f.old_system = false;
    f.order = 0, f.devices = 1, f.memory = f.fail_at = 0, f.thread_width = 32;
  }
  static std::shared_ptr<backends::gpu::GpuDevice> open(int device = 0) {
    return backends::metal::open_device({.device = device, .library = paths::kFakeMetal});
  }

 private:
  long objects_ = 0;
};

// Returns the message of the Error that f throws.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace lc::test
