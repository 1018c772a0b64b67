// Composites as kernels over whole, contiguous operands: operations that no loop of the kernel IR expresses.
#include <algorithm>
#include <functional>

#include "lightcone/backends/gpu/attention_kernel.h"
#include "lightcone/backends/gpu/block_kernels.h"
#include "lightcone/backends/gpu/lower.h"
#include "lightcone/backends/gpu/sort_kernel.h"
#include "lightcone/base/error.h"
#include "lightcone/codegen/c/text.h"
#include "lightcone/composites/composites.h"
#include "lightcone/device/kernel_rule.h"
#include "lightcone/passes/barrier.h"
#include "lightcone/random/random_bits.h"

namespace lc::backends::gpu {
namespace {

constexpr int kElementThreads = 256;

// A kernel of independent threads. Its text computes what thread number `t` contributes: an element, a column or a
// block of words.
class ElementKernel : public TextKernel {
 public:
  struct Spec {
    std::vector<codegen::simt::Parameter> parameters;  // buffers; the last one is the result
    std::vector<Dim> sizes;
    Dim threads;
    std::string body;
    bool updates = false;  // operand 0 is the base, which is copied first unless the result overwrites it
  };
  ElementKernel(Language language, Spec spec, Dim bytes)
      : language_(language), spec_(std::move(spec)), all_(spec_.sizes) {
    all_.push_back((spec_.threads + Dim(kElementThreads - 1)) / Dim(kElementThreads));
    all_.push_back(std::move(bytes));
  }
  std::vector<Dim> sizes() const override { return all_; }
  bool in_place(std::size_t k) const override { return spec_.updates && k == 0; }
  Dim flops() const override { return spec_.threads; }
  void enqueue(const Launch& l, GpuDevice& device) const override {
    const std::size_t n = spec_.sizes.size();
    if (spec_.updates && !(l.in[0] == l.out)) device.copy(l.out, l.in[0], static_cast<std::size_t>(l.sizes[n + 1]));
    launch_kernel(device, LaunchBuffers(l, spec_.updates ? 1 : 0), l.sizes[n], kElementThreads, l.sizes.first(n));
  }
  std::string text(std::string_view name) const override {
    return codegen::simt::begin_kernel(language_, name, kElementThreads, spec_.parameters, spec_.sizes.size(), "long") +
           "  const long t = (long)LC_GROUP * " + std::to_string(kElementThreads) + " + LC_THREAD;\n" + spec_.body +
           "}\n";
  }

 private:
  Language language_;
  Spec spec_;
  std::vector<Dim> all_;
};

// Copies the value of an input, for a barrier() of it.
class CopyKernel final : public GpuKernel {
 public:
  explicit CopyKernel(Dim bytes) : bytes_(std::move(bytes)) {}
  std::string name() const override { return "copy"; }
  std::vector<Dim> sizes() const override { return {bytes_}; }
  void enqueue(const Launch& l, GpuDevice& device) const override {
    device.copy(l.out, l.in[0], static_cast<std::size_t>(l.sizes[0]));
  }

 private:
  Dim bytes_;
};

std::string type_of(DType t) { return std::string(info(t).c); }

// Up to this many indices, a thread owns a column of the result and applies them in order; more are sorted
// (sort_kernel.h). The sums are the same in either case, because they are in the order of the source.
constexpr std::int64_t kFewIndices = 32;

ElementKernel::Spec scatter_few(const Graph& g, const Node& n) {
  const DType index = g[n.in[1].node].dtype;
  const auto axis = static_cast<int>(n.attributes.integer("axis"));
  const AxisView base(n.in[0].view.shape(), axis);
  const Dim count = n.in[1].view.shape()[axis];
  const std::string to = "out[(o * n1 + j) * n3 + i]", from = "from[(o * n2 + k) * n3 + i]";
  const auto read = [&](const std::string& v) { return codegen::loaded_as(n.dtype, v); };
  std::string put = to + " = " + from;
  if (!is(n, builtin::scatter()))
    put =
        to + " = (" + type_of(n.dtype) + ")" +
        codegen::stored(codegen::rounded(codegen::spell(Op::Add, n.dtype, read(to), read(from), ""), n.dtype), n.dtype);
  return {{{type_of(index), "index"}, {type_of(n.dtype), "from"}, {type_of(n.dtype), "out", true}},
          {base.outer, base.length, count, base.inner},
          base.outer * base.inner,
          "  if (t >= n0 * n3) return;\n  const long o = t / n3, i = t % n3;\n"
          "  for (long k = 0; k < n2; ++k) {\n    const long j = (long)index[(o * n2 + k) * n3 + i];\n"
          "    if (j >= 0 && j < n1) " +
              put + ";\n  }\n",
          true};
}

// Returns true if a row's indices are one number for all columns after the axis, as in an embedding's gradient.
bool same_in_all_columns(const Graph& g, const Node& n, int axis) {
  const Node& index = g[n.in[1].node];
  if (index.op != Op::Contiguous) return false;
  const auto strided = index.in[0].view.strided();
  if (!strided) return false;
  const auto begin = strided->strides.begin() + axis + 1;
  return std::all_of(begin, strided->strides.end(), [](const Dim& stride) { return stride == Dim(0); });
}

std::shared_ptr<Kernel> scatter_many(const Graph& g, const Node& n, codegen::simt::Language language) {
  const auto axis = static_cast<int>(n.attributes.integer("axis"));
  const Scatter s{.index = g[n.in[1].node].dtype,
                  .type = n.dtype,
                  .adds = !is(n, builtin::scatter()),
                  .same_columns = same_in_all_columns(g, n, axis)};
  const Dim& count = n.in[1].view.shape()[axis];
  return std::make_shared<SortedScatterKernel>(s, AxisView(n.in[0].view.shape(), axis), count, language);
}

// Philox 4x32-10 (random/random_bits.h). Each thread computes a block of four words.
ElementKernel::Spec random_bits(const Node& n) {
  const Philox::Key key = Philox::key(n.attributes.integer("seed"), n.attributes.integer("stream"));
  const auto word = [](std::uint32_t w) { return std::to_string(w) + "u"; };
  const Dim words = product(n.shape);
  return {{{"long", "step"}, {"int", "out", true}},
          {words},
          (words + Dim(3)) / Dim(4),
          "  if (t * 4 >= n0) return;\n  const u64 s = (u64)step[0];\n"
          "  u32 a = (u32)t, b = (u32)((u64)t >> 32), c = (u32)s, d = (u32)(s >> 32), k = " +
              word(key[0]) + ", m = " + word(key[1]) + ";\n  for (int round = 0; round < " +
              std::to_string(Philox::kRounds) + "; ++round) {\n" + "    const u64 p = (u64)" +
              word(Philox::kMultiplier[0]) + " * a, q = (u64)" + word(Philox::kMultiplier[1]) +
              " * c;\n    a = (u32)(q >> 32) ^ b ^ k, b = (u32)q, c = (u32)(p >> 32) ^ d ^ m, d = (u32)p;\n    k += " +
              word(Philox::kWeyl[0]) + ", m += " + word(Philox::kWeyl[1]) + ";\n  }\n" +
              "  out[t * 4] = (int)a;\n  if (t * 4 + 1 < n0) out[t * 4 + 1] = (int)b;\n"
              "  if (t * 4 + 2 < n0) out[t * 4 + 2] = (int)c;\n  if (t * 4 + 3 < n0) out[t * 4 + 3] = (int)d;\n"};
}

// Returns a user's kernel for this node, or null.
std::shared_ptr<Kernel> kernel_of(const Graph& g, const Node& n, const GpuDevice& device) {
  const KernelRule* rule = kernel_rule(*n.composite, rule_name(device));
  if (!rule) return nullptr;
  std::vector<TensorType> operands;
  for (const Edge& e : n.in) operands.push_back({g[e.node].dtype, e.view.shape()});
  return rule->make(n, operands);
}

// ---- the table ------------------------------------------------------------------------------------

struct Call {
  const Graph& g;
  const Node& n;
  const Limits& limits;
  Precision precision;
  Dim bytes() const { return product(n.shape) * Dim(static_cast<std::int64_t>(size_of(n.dtype))); }
  int axis() const { return static_cast<int>(n.attributes.integer("axis")); }
};

std::shared_ptr<Kernel> element_kernel(const Call& c, ElementKernel::Spec spec) {
  return std::make_shared<ElementKernel>(c.limits.language, std::move(spec), c.bytes());
}
std::shared_ptr<Kernel> make_scatter(const Call& c) {
  const Dim count = c.n.in[1].view.shape()[c.axis()];
  if (count.bounds().hi <= kFewIndices) return element_kernel(c, scatter_few(c.g, c.n));
  return scatter_many(c.g, c.n, c.limits.language);
}
std::shared_ptr<Kernel> make_argsort(const Call& c) {
  return std::make_shared<ArgSortKernel>(c.g[c.n.in[0].node].dtype, AxisView(c.n.in[0].view.shape(), c.axis()),
                                         c.n.attributes.integer("descending") != 0, c.limits.language);
}
std::shared_ptr<Kernel> make_dequantize(const Call& c) {
  return std::make_shared<DequantizeKernel>(static_cast<QuantFormat>(c.n.attributes.integer("format")),
                                            product(c.n.shape), c.limits);
}
std::shared_ptr<Kernel> make_barrier(const Call& c) {
  if (c.g[c.n.in[0].node].op != Op::Input) return part_kernel(0, c.bytes());  // shares its operand's memory
  return std::make_shared<CopyKernel>(c.bytes());
}
std::shared_ptr<Kernel> make_attention_gradients(const Call& c) {
  return attention_gradients_kernel(c.g, c.n, c.limits, c.precision);
}

struct Entry {
  const CompositeRef& composite;
  std::shared_ptr<Kernel> (*make)(const Call& c);  // null: a generated loop computes the composite
  bool always = true;                              // false: make() returns null for unsupported nodes
};
// Returns the entry of a built-in composite that GPUs compute, or null. Users' composites have KernelRules instead.
const Entry* entry_of(const Node& n) {
  static const Entry entries[] = {
      {builtin::gather(), nullptr},
      {builtin::slice_scatter(), nullptr},
      {builtin::scatter(), make_scatter},
      {builtin::scatter_add(), make_scatter},
      {builtin::argsort(), make_argsort},
      {builtin::dequantize(), make_dequantize},
      {builtin::random_bits(), [](const Call& c) { return element_kernel(c, random_bits(c.n)); }},
      {barrier(), make_barrier},
      {builtin::attention_gradients(), make_attention_gradients, false},
  };
  for (const Entry& e : entries)
    if (is(n, e.composite)) return &e;
  return nullptr;
}

}  // namespace

std::string rule_name(const GpuDevice& device) {
  static constexpr const char* names[] = {"cuda", "opencl", "metal"};
  return names[static_cast<int>(device.limits().language)];
}

bool has_kernel(const Graph& g, const Node& n, const GpuDevice& device) {
  if (n.op != Op::Composite) return true;
  if (const Entry* e = entry_of(n)) return e->always || e->make({g, n, device.limits(), Precision::Highest}) != nullptr;
  return kernel_of(g, n, device) != nullptr;
}

std::shared_ptr<Kernel> library_kernel(const Graph& g, const Node& n, const GpuDevice& device, Precision precision) {
  const Call call{g, n, device.limits(), precision};
  if (n.op == Op::Result) return part_kernel(result_offsets(g[n.in[0].node].results)[n.axis], call.bytes());
  const Entry* e = entry_of(n);
  auto kernel = e && e->make ? e->make(call) : kernel_of(g, n, device);
  check(kernel != nullptr, "a composite that this device has no kernel for");
  return kernel;
}

}  // namespace lc::backends::gpu
