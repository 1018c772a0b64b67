#include "lightcone/backends/cpu/composite_kernel.h"

#include <utility>
#include <vector>

namespace lc {

class CpuCompositeKernel final : public HostKernel {
 public:
  CpuCompositeKernel(const Node& n, std::span<const TensorType> operands, std::function<void(const CpuCall&)> run)
      : name_(n.composite->name), attributes_(n.attributes), run_(std::move(run)), operands_(operands.size()) {
    std::vector<TensorType> all(operands.begin(), operands.end());
    offsets_ = result_offsets(n.results);
    if (n.results.empty()) all.push_back({n.dtype, n.shape});
    all.insert(all.end(), n.results.begin(), n.results.end());
    for (const TensorType& t : all) {
      ranks_.push_back(t.shape.size());
      sizes_.insert(sizes_.end(), t.shape.begin(), t.shape.end());
    }
    for (const Dim& d : extents(attributes_)) sizes_.push_back(d);
  }
  std::string name() const override { return name_; }
  std::vector<Dim> sizes() const override { return sizes_; }
  void run(const HostLaunch& l) const override { run_(CpuCall(l, offsets_, ranks_, operands_, attributes_)); }

 private:
  std::string name_;
  Attributes attributes_;
  std::function<void(const CpuCall&)> run_;
  std::vector<std::int64_t> offsets_;
  std::vector<std::size_t> ranks_;
  std::size_t operands_;
  std::vector<Dim> sizes_;
};

std::span<const std::int64_t> CpuCall::shape(std::size_t k) const {
  std::size_t at = 0;
  for (std::size_t i = 0; i < k; ++i) at += ranks_[i];
  return launch_.sizes.subspan(at, ranks_[k]);
}

std::int64_t CpuCall::extent(std::string_view name) const {
  std::size_t at = 0;  // the extents follow the shapes
  for (const std::size_t rank : ranks_) at += rank;
  for (const Attributes::Entry& e : attributes_.entries()) {
    if (!std::holds_alternative<Dim>(e.value)) continue;
    if (e.name == name) return launch_.sizes[at];
    ++at;
  }
  throw Error("composite", str_cat("it has no attribute '", name, "' that is an extent"));
}

std::shared_ptr<const KernelRule> cpu_kernel(
    std::function<void(const CpuCall&)> run,
    std::function<bool(const Attributes&, std::span<const TensorType> operands)> takes) {
  return std::make_shared<const KernelRule>(
      KernelRule{"cpu",
                 [run = std::move(run), takes = std::move(takes)](
                     const Node& n, std::span<const TensorType> operands) -> std::shared_ptr<Kernel> {
                   if (takes && !takes(n.attributes, operands)) return nullptr;
                   return std::make_shared<CpuCompositeKernel>(n, operands, run);
                 }});
}

}  // namespace lc
