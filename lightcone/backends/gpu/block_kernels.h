// Kernels that convert block formats: to f32, for consumers that do not read blocks, and to the repacked form
// (products/blocks.h), for products.
#pragma once

#include <string>

#include "lightcone/backends/gpu/device/text_kernel.h"
#include "lightcone/formats/block_formats.h"
#include "lightcone/formats/weight_type.h"

namespace lc::backends::gpu {

class DequantizeKernel final : public TextKernel {
 public:
  DequantizeKernel(QuantFormat format, const Dim& elements, const Limits& limits);
  std::vector<Dim> sizes() const override { return {elements_}; }
  void enqueue(const Launch& l, GpuDevice& device) const override;
  std::string text(std::string_view name) const override;

 private:
  WeightType type_;
  Dim elements_;
  codegen::simt::Language language_;
};

// Repacks a parameter's blocks. It runs once, when the parameter is loaded.
class RepackKernel final : public TextKernel {
 public:
  RepackKernel(QuantFormat format, const Dim& blocks, const Limits& limits);
  std::vector<Dim> sizes() const override { return {blocks_}; }
  void enqueue(const Launch& l, GpuDevice& device) const override;
  std::string text(std::string_view name) const override;

 private:
  QuantFormat format_;
  Dim blocks_;
  codegen::simt::Language language_;
};

}  // namespace lc::backends::gpu
