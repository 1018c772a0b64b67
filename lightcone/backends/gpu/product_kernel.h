// Contractions and convolutions as kernels of an accelerator: which of the texts in products/ run, for which sizes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lightcone/backends/gpu/device/text_kernel.h"
#include "lightcone/backends/gpu/matrices.h"
#include "lightcone/backends/gpu/products/warpgroup_tiles.h"
#include "lightcone/passes/precision.h"

namespace lc::backends::gpu {

// Operands: A, B, then those of the tail.
class ProductKernel final : public TextKernel {
 public:
  ProductKernel(Product p, Epilogue epilogue, const Limits& limits, Precision precision);
  std::string name() const override { return by_library() ? library_->product->library() : TextKernel::name(); }
  std::vector<Dim> sizes() const override { return sizes_; }
  Dim scratch_bytes(int workers) const override;
  Dim flops() const override { return results_ * product(p_.sum) * 2; }
  std::optional<Dim> bytes_read(std::size_t operand) const override;
  void enqueue(const Launch& l, GpuDevice& device) const override;
  std::string text(std::string_view name) const override;
  std::size_t functions() const override { return functions_.size(); }
  NodeId operand(int k) const { return k == 0 ? p_.a.node : p_.b.node; }

  // Before the text is asked for: may the device's library compute this? `operand_bytes`, of all operands, are for
  // measuring it.
  void offer(GpuDevice& device, Precision precision, std::vector<Dim> operand_bytes);
  // Once the text is compiled: whether it does, in words for a log, "" where it was not offered; and how much of our
  // kernel's time it takes, where that was measured now.
  struct LibraryChoice {
    std::string words;
    std::optional<double> part;
  };
  LibraryChoice choose_library(GpuDevice& device);
  bool by_library() const { return library_ && library_->taken; }

 private:
  // What a product's cost depends on.
  struct Sizes {
    std::int64_t rows, columns, batch, sum;
  };
  struct Variant {  // of computing it
    int few = 0;    // rows at most, or 0: tiles or windows
    int side = 0;
    int lines = 0;  // of windows, a thread's
    friend bool operator==(const Variant&, const Variant&) = default;
  };
  struct Function {
    KernelText k;
    std::size_t sizes = 0;  // where its own begin; behind them those of maps, or how many threads windows take
  };
  struct Choice {
    Variant variant;
    std::optional<std::size_t> whole, parts;  // functions
  };
  struct Split {
    std::int64_t parts, depth;
  };
  Variant choose(const Sizes& s) const;
  const Choice& choice(const Sizes& s) const;
  const KernelText& text_of(const Choice& c) const;
  std::vector<Variant> variants(Sizes small, const Sizes& large) const;
  Split split(const Sizes& s, const KernelText& k) const;
  std::int64_t groups(const Sizes& s, const KernelText& k) const;
  void add_ways();
  std::size_t add(KernelText k);
  void run(const Launch& l, GpuDevice& device, std::size_t function, std::span<const BufferSlice> places,
           std::int64_t groups, const Split& s) const;

  // The product of a library, which writes the result itself, or sums in f32 that our kernel finishes.
  struct Library {
    std::shared_ptr<const LibraryProduct> product;
    Matrices matrices;
    std::vector<Dim> operand_bytes;
    bool direct = true, taken = false;
  };
  std::int64_t sums_bytes() const;
  void enqueue_own(const Launch& l, GpuDevice& device) const;
  void enqueue_library(const Launch& l, GpuDevice& device) const;
  std::optional<double> measure(GpuDevice& device) const;

  Product p_;
  Epilogue epilogue_;
  ProductTexts whole_, parts_;  // the sum in one piece, and in parts
  Cores cores_;
  bool warpgroups_;  // large tiles are theirs
  Dim results_;
  int lines_ = 0;         // of windows, at most; 0: it is no convolution with a filter for each channel
  std::int64_t few_ = 8;  // rows of a text for more than one of them
  std::vector<Dim> sizes_;
  std::vector<Function> functions_;
  std::vector<Choice> choices_;
  bool splits_ = false;  // for some sizes
  std::optional<std::size_t> add_parts_;
  std::optional<Library> library_;
};

// For kernels that were compiled: decides for each product that was offered to the device's library, and notes what was
// decided.
void choose_libraries(std::span<const std::shared_ptr<TextKernel>> kernels, GpuDevice& device, PassLog& log);

}  // namespace lc::backends::gpu
