// Contractions and convolutions as kernels of an accelerator: which of the texts in products/ run, for which sizes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lightcone/backends/gpu/products/tensor_tiles.h"
#include "lightcone/backends/gpu/text_kernel.h"
#include "lightcone/passes/precision.h"

namespace lc::gpu {

// Operands: A, B, then those of the tail.
class ProductKernel final : public TextKernel {
 public:
  ProductKernel(Product p, Tail tail, const Limits& limits, Precision precision);
  std::vector<Dim> sizes() const override { return sizes_; }
  Dim scratch_bytes(int workers) const override;
  Dim flops() const override { return results_ * product(p_.sum) * 2; }
  std::optional<Dim> bytes_read(std::size_t operand) const override;
  void enqueue(const Launch& l, GpuDevice& device) const override;
  std::string text(std::string_view name) const override;
  std::size_t functions() const override { return functions_.size(); }
  NodeId operand(int k) const { return k == 0 ? p_.a.node : p_.b.node; }

 private:
  // What a product's cost depends on.
  struct Sizes {
    std::int64_t rows, columns, batch, sum;
  };
  struct Way {    // of computing it
    int few = 0;  // rows at most, or 0: tiles
    int side = 0;
    friend bool operator==(const Way&, const Way&) = default;
  };
  struct Function {
    KernelText k;
    std::size_t sizes = 0;  // where its own begin
  };
  struct Choice {
    Way way;
    std::optional<std::size_t> whole, parts;  // functions
  };
  struct Split {
    std::int64_t parts, depth;
  };
  Way choose(const Sizes& s) const;
  std::vector<Way> ways(Sizes small, const Sizes& large) const;
  Split split(const Sizes& s, const KernelText& k) const;
  std::int64_t groups(const Sizes& s, const KernelText& k) const;
  void add_ways();
  std::size_t add(KernelText k);
  void run(const Launch& l, GpuDevice& device, std::size_t function, std::span<const Place> places, std::int64_t groups,
           const Split& s) const;

  Product p_;
  Tail tail_;
  ProductTexts whole_, parts_;  // the sum in one piece, and in parts
  Cores cores_;
  Dim results_;
  std::int64_t few_ = 8;  // rows of a text for more than one of them
  std::vector<Dim> sizes_;
  std::vector<Function> functions_;
  std::vector<Choice> choices_;
  std::optional<std::size_t> add_parts_;
};

}  // namespace lc::gpu
