// Contractions and convolutions as kernels of an accelerator: which of the texts in products/ run for which sizes.
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

// A product with its epilogue. Operands: A, B, and then those of the epilogue.
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

  // Asks the device's library for this product; must be called before text(). `operand_bytes`, of all operands, are for
  // measuring the library.
  void offer(GpuDevice& device, Precision precision, std::vector<Dim> operand_bytes);
  // The outcome of choose_library(): words for a log, "" if the product was not offered, and the fraction of our
  // kernel's time that the library takes, if that was measured now.
  struct LibraryChoice {
    std::string words;
    std::optional<double> part;
  };
  // Decides whether the library computes the product; must be called after the text is compiled.
  LibraryChoice choose_library(GpuDevice& device);
  bool by_library() const { return library_ && library_->taken; }

 private:
  // The sizes on which a product's cost depends.
  struct Sizes {
    std::int64_t rows, columns, batch, sum;
  };
  struct Variant {  // a kernel and its parameters
    int few = 0;    // rows of skinny_gemm(), at most; 0: tiles or windows
    int side = 0;
    int lines = 0;  // lines of results of a thread of windows()
    friend bool operator==(const Variant&, const Variant&) = default;
  };
  struct Function {
    KernelText k;
    std::size_t sizes = 0;  // index of its own; then those of its maps, or the threads of windows()
  };
  struct Choice {
    Variant variant;
    std::optional<std::size_t> whole, parts;  // indices in functions_
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
  void run(const Launch& l, GpuDevice& device, std::size_t function, std::span<const BufferSlice> buffers,
           std::int64_t groups, const Split& s) const;

  // The product by a library, which writes the result itself or writes f32 sums that our kernel finishes.
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
  bool warpgroups_;  // large tiles use warpgroup instructions
  Dim results_;
  int lines_ = 0;         // lines of windows(), at most; 0: the product is no depthwise convolution
  std::int64_t few_ = 8;  // rows of the skinny_gemm() that takes more than one
  std::vector<Dim> sizes_;
  std::vector<Function> functions_;
  std::vector<Choice> choices_;
  bool splits_ = false;  // for some sizes the sum is split
  std::optional<std::size_t> add_parts_;
  std::optional<Library> library_;
};

// Decides for each compiled product that was offered to the device's library whether the library computes it, and logs
// the decisions.
void choose_libraries(std::span<const std::shared_ptr<TextKernel>> kernels, GpuDevice& device, PassLog& log);

}  // namespace lc::backends::gpu
