// A loop nest of the kernel IR as a host kernel.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lightcone/backends/cpu/jit/jit.h"
#include "lightcone/codegen/c/render.h"
#include "lightcone/codegen/llvm/render.h"
#include "lightcone/device/host_kernel.h"

namespace lc::backends::cpu {

// Runs generated code, or interprets the IR until code is installed.
class LoopKernel final : public HostKernel {
 public:
  // `same_index`: per operand, whether it is read at the index that is written. `update_bytes`: if not 0, operand 0 is
  // a base of that many bytes of which the loop overwrites a part.
  LoopKernel(codegen::Kernel ir, std::vector<bool> same_index, Dim update_bytes = 0);
  std::string name() const override { return ir_.name; }
  std::vector<Dim> sizes() const override { return sizes_; }
  bool in_place(std::size_t k) const override;
  void run(const HostLaunch& l) const override;
  bool divisible() const override { return !update_; }
  Iterations iterations(std::span<const std::int64_t> sizes, int workers) const override;
  void run_iterations(const HostLaunch& l, std::int64_t begin, std::int64_t end) const override {
    range(l.in.data() + (update_ ? 1 : 0), l.out, l.sizes.data(), begin, end);
  }
  // Runs iterations [begin, end) of the outermost loop.
  void range(const void* const* in, void* out, const std::int64_t* sizes, std::int64_t begin, std::int64_t end) const;
  std::string source() const override { return codegen::render(ir_, ir_.name); }
  Dim flops() const override;
  std::optional<Dim> bytes_read(std::size_t k) const override;
  std::optional<Dim> bytes_written() const override;
  // Sets the compiled function. `code` keeps it loaded.
  void install(KernelFunction f, std::shared_ptr<const void> code) { function_ = f, code_ = std::move(code); }
  std::string text(std::string_view name) const { return codegen::render(ir_, name); }
  std::string llvm_text(const codegen::llvm::Target& target = {}) const {
    return codegen::render_llvm(ir_, ir_.name, target);
  }
  const codegen::Kernel& ir() const { return ir_; }
  void rename(std::string name) { ir_.name = std::move(name); }

 private:
  codegen::Kernel ir_;
  // Sizes of the IR, then: 1 for non-temporal stores, the extent of the outermost loop, the number of stored elements,
  // and the bytes of the base of an update.
  std::vector<Dim> sizes_;
  std::vector<bool> same_index_;
  bool update_;  // operand 0 is the base, of which a part is overwritten
  double work_;  // estimated operations per element
  KernelFunction function_ = nullptr;
  std::shared_ptr<const void> code_;
};

}  // namespace lc::backends::cpu
