#include <algorithm>
#include <array>

#include "lightcone/backends/gpu/attention/gradients_text.h"
#include "lightcone/backends/gpu/attention_kernel.h"
#include "lightcone/composites/composites.h"
#include "lightcone/core/composite.h"

namespace lc::backends::gpu {
namespace {

using i64 = std::int64_t;

class AttentionGradientsKernel final : public TextKernel {
 public:
  AttentionGradientsKernel(AttentionGradients of, const GradientsTile& tile, const Node& n,
                           codegen::simt::Language language)
      : of_(std::move(of)), tile_(tile), language_(language), offsets_(result_offsets(n.results)) {}
  // The text's symbolic sizes, followed by the numbers of heads, key heads, queries and keys.
  std::vector<Dim> sizes() const override {
    std::vector<Dim> all = of_.symbolic();
    all.insert(all.end(), {of_.heads, of_.key_heads, of_.queries, of_.keys});
    return all;
  }
  Dim scratch_bytes(int) const override { return gradients_scratch(of_, tile_); }
  Dim flops() const override {
    return of_.rows() * of_.keys * Dim(6 * of_.depth + 4 * of_.width) / Dim(of_.causal ? 2 : 1);
  }
  std::size_t functions() const override { return of_.causal ? 3 : 2; }
  std::string text(std::string_view name) const override {
    std::string text = queries_text(of_, tile_, language_, name);
    text += keys_text(of_, tile_, language_, str_cat(name, "_1"));
    if (of_.causal) text += finite_text(of_, tile_, language_, str_cat(name, "_2"));
    return text;
  }
  void enqueue(const Launch& l, GpuDevice& device) const override;

 private:
  AttentionGradients of_;
  GradientsTile tile_;
  codegen::simt::Language language_;
  std::vector<i64> offsets_;
};

void AttentionGradientsKernel::enqueue(const Launch& l, GpuDevice& device) const {
  const std::span<const i64> n = l.sizes.last(4), arguments = l.sizes.first(l.sizes.size() - 4);
  const i64 heads = n[0], key_heads = n[1], queries = n[2], keys = n[3];
  const BufferSlice dq = l.out.offset_by(offsets_[0]), dk = l.out.offset_by(offsets_[1]),
                    dv = l.out.offset_by(offsets_[2]);
  const auto run = [&](std::size_t function, std::span<const BufferSlice> buffers, i64 groups) {
    launch_kernel(device, function, buffers, groups, tile_.threads(), arguments);
  };
  if (of_.causal) {
    const BufferSlice finite[] = {l.in[1], l.in[2], l.scratch};
    run(2, finite, key_heads * ceil_div(keys, tile_.others));
  }
  const std::size_t operands = l.in.size();
  std::array<BufferSlice, 8> buffers;
  std::copy(l.in.begin(), l.in.end(), buffers.begin());
  buffers[operands] = dq, buffers[operands + 1] = l.scratch;
  run(0, std::span(buffers).first(operands + 2), heads * ceil_div(queries, tile_.rows));
  buffers[operands] = l.scratch, buffers[operands + 1] = dk, buffers[operands + 2] = dv;
  run(1, std::span(buffers).first(operands + 3), key_heads * ceil_div(keys, tile_.rows));
}

// Returns the mask's strides along the axes of [..., h, s, t], to which it is broadcast.
std::vector<AttentionGradients::MaskAxis> mask_axes(const Shape& mask, Shape scores) {
  std::vector<AttentionGradients::MaskAxis> axes;
  for (const Dim& d : scores) axes.push_back({d, 0});
  Dim stride = 1;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    const Dim& extent = mask[mask.size() - 1 - i];
    if (!(extent == Dim(1))) axes[axes.size() - 1 - i].stride = stride;
    stride = stride * extent;
  }
  return axes;
}

}  // namespace

std::shared_ptr<TextKernel> attention_gradients_kernel(const Graph& g, const Node& n, const Limits& limits,
                                                       Precision precision) {
  for (std::size_t k = 0; k < 4; ++k)
    if (g[n.in[k].node].dtype != DType::F32) return nullptr;
  const auto shape = [&](std::size_t k) -> const Shape& { return n.in[k].view.shape(); };
  const Shape &q = shape(0), &k = shape(1);
  const std::size_t rank = q.size();
  if (!is_head(q.back()) || !is_head(shape(2).back()) || n.in.size() + 3 > limits.max_buffers) return nullptr;
  const auto all_heads = [&](const Shape& s) { return product(Shape(s.begin(), s.end() - 2)); };
  const auto group = rank < 3 || q[rank - 3] == k[rank - 3] ? 1 : (q[rank - 3] / k[rank - 3]).constant().value_or(0);
  if (group < 1) return nullptr;
  AttentionGradients of{.heads = all_heads(q),
                        .key_heads = all_heads(k),
                        .queries = q[rank - 2],
                        .keys = k[rank - 2],
                        .group = group,
                        .depth = static_cast<int>(*q.back().constant()),
                        .width = static_cast<int>(*shape(2).back().constant()),
                        .scale = static_cast<float>(n.attributes.real("scale")),
                        .causal = n.attributes.integer("causal") != 0,
                        .mask = {}};
  if (n.in.size() > 4) {
    Shape scores = q;
    scores.back() = of.keys;
    of.mask = mask_axes(shape(4), std::move(scores));
  }
  if (of.symbolic().size() > kMaxSizes) return nullptr;
  // On PoCL 3.1 the kernels for sizes bound at run time gave wrong numbers, or none within minutes, for a reason that
  // was not found: OpenCL computes the definition for such sizes.
  if (limits.language == codegen::simt::Language::OpenCl && !of.symbolic().empty()) return nullptr;
  const AttentionTarget target{limits.language, limits.max_block_size, limits.warp, static_cast<i64>(limits.shared),
                               precision == Precision::Medium && capability(limits) >= 80};
  const auto tile = gradients_tile(of, target);
  if (!tile) return nullptr;
  std::string kind = str_cat("attention_gradients ", str(q), " over ", of.keys);
  auto kernel = std::make_shared<AttentionGradientsKernel>(std::move(of), *tile, n, limits.language);
  kernel->origin.kind = std::move(kind);
  return kernel;
}

}  // namespace lc::backends::gpu
