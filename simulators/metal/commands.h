// Metal's buffers, programs and commands, as shared by the files that implement them.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "program.h"
#include "runtime.h"
#include "translate.h"

namespace lc::simulators::metal {

struct Size {
  unsigned long width, height, depth;
};
struct Range {
  unsigned long location, length;
};

// A buffer between inaccessible pages.
struct Buffer : Object {
  Buffer(unsigned long bytes, bool shared);
  void dispose() override;
  // Returns false if a kernel wrote between the buffer's end and the page after it. Restores these bytes.
  bool intact();
  char* data = nullptr;
  const unsigned long bytes;
  const bool shared;

 private:
  char* pages_ = nullptr;
  unsigned long mapped_ = 0;
};

struct Function : Object {
  Function(std::shared_ptr<const Program> p, const LcMetalKernel& k)
      : Object("MTLFunction"), program(std::move(p)), kernel(&k) {}
  void dispose() override { program.reset(); }
  std::shared_ptr<const Program> program;
  const LcMetalKernel* kernel;
  unsigned long shared() const { return static_cast<unsigned long>(kernel->shared_end - kernel->shared_begin); }
  unsigned long threads() const { return kernel->kernel.max_threads ? kernel->kernel.max_threads : 1024; }
};
struct Pipeline : Object {
  explicit Pipeline(Function* f) : Object("MTLComputePipelineState"), function(f) {}
  void dispose() override { function = {}; }
  Hold<Function> function;
};

constexpr unsigned long kGroupMemory = 32768;

Object* make_queue();
void install_devices();
void install_commands();

}  // namespace lc::simulators::metal
