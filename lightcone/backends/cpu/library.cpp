// Kernels of built-in composites: functions over whole, contiguous operands.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "lightcone/backends/cpu/attention/gradients.h"
#include "lightcone/backends/cpu/composite_kernel.h"
#include "lightcone/backends/cpu/lower.h"
#include "lightcone/backends/cpu/products/gather_mm.h"
#include "lightcone/backends/cpu/random/random_bits.h"
#include "lightcone/composites/composites.h"
#include "lightcone/core/op_eval.h"
#include "lightcone/device/kernel_rule.h"
#include "lightcone/formats/block_formats.h"
#include "lightcone/ops/special/special.h"
#include "lightcone/passes/barrier.h"

namespace lc::backends::cpu {
namespace {

using i64 = std::int64_t;

class LibraryKernel : public HostKernel {
 public:
  LibraryKernel(const Node& n, std::vector<DType> types, std::vector<Dim> sizes)
      : node_(n), dtype_(n.dtype), types_(std::move(types)), sizes_(std::move(sizes)) {}
  std::string name() const override { return node_.composite->name; }
  std::vector<Dim> sizes() const override { return sizes_; }

 protected:
  std::int64_t attribute(const char* name) const { return node_.attributes.integer(name); }

  Node node_;
  DType dtype_;
  std::vector<DType> types_;
  std::vector<Dim> sizes_;
};

struct AxisView {  // an axis as outer x length x inner
  Dim outer = 1, length, inner = 1;
  AxisView(const Shape& s, int axis) : length(s[axis]) {
    for (int i = 0; i < axis; ++i) outer = outer * s[i];
    for (std::size_t i = static_cast<std::size_t>(axis) + 1; i < s.size(); ++i) inner = inner * s[i];
  }
};

// scatter and scatter_add. Sizes: outer, base length, index length, inner. Each task owns a block of columns of the
// result and processes the index in order, so sums are added in the same order for any number of threads.
class ScatterKernel final : public LibraryKernel {
 public:
  using LibraryKernel::LibraryKernel;
  bool in_place(std::size_t k) const override { return k == 0; }
  void run(const HostLaunch& l) const override {
    const Sizes s = sizes_of(l);
    const i64 outer = s.outer, length = s.length, inner = s.inner;
    if (l.out != l.in[0])
      std::memcpy(l.out, l.in[0], static_cast<std::size_t>(outer * length * inner) * size_of(dtype_));
    struct Job {
      const ScatterKernel& kernel;
      const HostLaunch& launch;
      i64 blocks;  // blocks of kColumns columns
    } job{*this, l, (inner + kColumns - 1) / kColumns};
    l.parallel.run(
        static_cast<int>(outer * job.blocks),
        [](void* arg, int task, int) {
          const Job& j = *static_cast<Job*>(arg);
          j.kernel.columns(j.launch, task / j.blocks, task % j.blocks * kColumns);
        },
        &job);
  }

 private:
  static constexpr i64 kColumns = 64;
  struct Sizes {
    i64 outer, length, count, inner;
  };
  static Sizes sizes_of(const HostLaunch& l) { return {l.sizes[0], l.sizes[1], l.sizes[2], l.sizes[3]}; }

  void columns(const HostLaunch& l, i64 o, i64 begin) const {
    const Sizes s = sizes_of(l);
    const i64 length = s.length, count = s.count, inner = s.inner, end = std::min(inner, begin + kColumns);
    for (i64 k = 0; k < count; ++k) {
      const i64 row = (o * count + k) * inner;
      const i64 first = load_i64(l.in[1], types_[1], static_cast<std::size_t>(row + begin));
      if (dtype_ == DType::F32 && one_place(l, row, begin, end, first)) {
        if (first >= 0 && first < length)
          write_row(static_cast<float*>(l.out) + (o * length + first) * inner, static_cast<const float*>(l.in[2]) + row,
                    begin, end);
        continue;
      }
      for (i64 i = begin; i < end; ++i) {
        const i64 j = load_i64(l.in[1], types_[1], static_cast<std::size_t>(row + i));
        if (j >= 0 && j < length)
          write(l, static_cast<std::size_t>((o * length + j) * inner + i), static_cast<std::size_t>(row + i));
      }
    }
  }
  // Returns whether all columns of a row have the same index. The gradient of an embedding has this form.
  bool one_place(const HostLaunch& l, i64 row, i64 begin, i64 end, i64 first) const {
    if (types_[1] != DType::I64) return false;
    const i64* index = static_cast<const i64*>(l.in[1]) + row;
    i64 differ = 0;
    for (i64 i = begin; i < end; ++i) differ |= index[i] ^ first;
    return differ == 0;
  }
  void write_row(float* to, const float* from, i64 begin, i64 end) const {
    if (is(node_, builtin::scatter())) std::copy(from + begin, from + end, to + begin);
    else
      for (i64 i = begin; i < end; ++i) to[i] += from[i];
  }
  void write(const HostLaunch& l, std::size_t to, std::size_t from) const {
    const std::size_t size = size_of(dtype_);
    if (is(node_, builtin::scatter()))
      std::memcpy(static_cast<std::byte*>(l.out) + to * size, static_cast<const std::byte*>(l.in[2]) + from * size,
                  size);
    else if (is_float(dtype_))
      store_f64(l.out, dtype_, to, load_f64(l.out, dtype_, to) + load_f64(l.in[2], dtype_, from));
    else store_i64(l.out, dtype_, to, eval::add(load_i64(l.out, dtype_, to), load_i64(l.in[2], dtype_, from)));
  }
};

// argsort. Sizes: outer, length, inner.
class ArgSortKernel final : public LibraryKernel {
 public:
  using LibraryKernel::LibraryKernel;
  Dim scratch_bytes(int) const override { return sizes_[1] * 16; }
  void run(const HostLaunch& l) const override {
    const i64 outer = l.sizes[0], length = l.sizes[1], inner = l.sizes[2];
    auto* order = reinterpret_cast<i64*>(l.scratch);
    const bool descending = attribute("descending") != 0;
    const DType t = types_[0];
    const auto integers_less = on_integers(Op::LessThan, t);
    for (i64 o = 0; o < outer; ++o)
      for (i64 i = 0; i < inner; ++i) {
        const auto at = [&](i64 k) { return static_cast<std::size_t>((o * length + k) * inner + i); };
        std::iota(order, order + length, 0);
        const auto below = [&](i64 a, i64 b) {
          if (!is_float(t)) return integers_less(load_i64(l.in[0], t, at(a)), load_i64(l.in[0], t, at(b)), 0) != 0;
          const double x = load_f64(l.in[0], t, at(a)), y = load_f64(l.in[0], t, at(b));
          return x < y || (y != y && x == x);
        };
        // Ties are broken by position, which makes std::sort stable; std::stable_sort would allocate.
        std::sort(order, order + length, [&](i64 a, i64 b) {
          const bool ab = descending ? below(b, a) : below(a, b), ba = descending ? below(a, b) : below(b, a);
          return ab || (!ba && a < b);
        });
        for (i64 k = 0; k < length; ++k) store_i64(l.out, DType::I64, at(k), order[k]);
      }
  }
};

// dequantize. Sizes: number of blocks.
class DequantizeKernel final : public LibraryKernel {
 public:
  DequantizeKernel(const Node& n, std::vector<DType> types, std::vector<Dim> sizes, Isa isa)
      : LibraryKernel(n, std::move(types), std::move(sizes)), isa_(isa) {}
  void run(const HostLaunch& l) const override {
    struct Job {
      const unsigned char* in;
      float* out;
      i64 blocks;
      const QuantInfo& q;
      const GemmTable& table;
    } j{static_cast<const unsigned char*>(l.in[0]), static_cast<float*>(l.out), l.sizes[0],
        info(static_cast<QuantFormat>(attribute("format"))), *kernel_tables(isa_).gemm};
    constexpr i64 kTask = 64;
    l.parallel.run(
        static_cast<int>((j.blocks + kTask - 1) / kTask),
        [](void* arg, int task, int) {
          const Job& j = *static_cast<Job*>(arg);
          for (i64 b = task * kTask; b < std::min<i64>(j.blocks, (task + 1) * kTask); ++b) {
            const unsigned char* p = j.in + b * j.q.bytes;
            if (j.table.dequantize(weight_type(j.q.format), p, j.out + b * j.q.elements)) continue;
            for (int k = 0; k < j.q.elements; ++k)
              j.out[b * j.q.elements + k] = quant_value(j.q.format, k, [p](i64 at) { return int{p[at]}; });
          }
        },
        &j);
  }

 private:
  Isa isa_;
};

// Copies a graph input, for a barrier() of it. Sizes: bytes.
class CopyKernel final : public LibraryKernel {
 public:
  using LibraryKernel::LibraryKernel;
  void run(const HostLaunch& l) const override { std::memcpy(l.out, l.in[0], static_cast<std::size_t>(l.sizes[0])); }
};

// Returns a user's kernel for this node, or null.
std::shared_ptr<Kernel> kernel_of(const Graph& g, const Node& n) {
  const KernelRule* rule = kernel_rule(*n.composite, "cpu");
  if (!rule) return nullptr;
  std::vector<TensorType> operands;
  for (const Edge& e : n.in) operands.push_back({g[e.node].dtype, e.view.shape()});
  return rule->make(n, operands);
}

// ---- the table ------------------------------------------------------------------------------------

struct Call {
  const Graph& g;
  const Node& n;
  const Target& target;
  Precision precision;
  const Shape& first() const { return n.in[0].view.shape(); }
  int axis() const { return static_cast<int>(n.attributes.integer("axis")); }
  std::vector<DType> types() const {
    std::vector<DType> all;
    for (const Edge& e : n.in) all.push_back(g[e.node].dtype);
    return all;
  }
};

std::shared_ptr<Kernel> make_scatter(const Call& c) {
  const AxisView base(c.first(), c.axis());
  const Dim count = c.n.in[1].view.shape()[c.axis()];
  return std::make_shared<ScatterKernel>(c.n, c.types(), std::vector<Dim>{base.outer, base.length, count, base.inner});
}
std::shared_ptr<Kernel> make_argsort(const Call& c) {
  const AxisView r(c.first(), c.axis());
  return std::make_shared<ArgSortKernel>(c.n, c.types(), std::vector<Dim>{r.outer, r.length, r.inner});
}
std::shared_ptr<Kernel> make_dequantize(const Call& c) {
  const QuantInfo& q = info(static_cast<QuantFormat>(c.n.attributes.integer("format")));
  return std::make_shared<DequantizeKernel>(c.n, c.types(), std::vector<Dim>{product(c.first()) / Dim(q.bytes)},
                                            c.target.isa);
}
std::shared_ptr<Kernel> make_barrier(const Call& c) {
  const Dim bytes = product(c.n.shape) * static_cast<std::int64_t>(size_of(c.n.dtype));
  if (c.g[c.n.in[0].node].op != Op::Input) return part_kernel(0, bytes);  // shares its operand's memory
  return std::make_shared<CopyKernel>(c.n, c.types(), std::vector<Dim>{bytes});
}
// The emitter makes this kernel with the device's precision and packed matrices; here it is only asked whether there is
// one.
std::shared_ptr<Kernel> make_gather_mm(const Call& c) {
  const auto plan = plan_gather_mm(c.g, c.n, Precision::Highest, Target());
  return plan ? gather_mm_kernel(*plan, c.target.isa, Blocking()) : nullptr;
}
std::shared_ptr<Kernel> make_attention_gradients(const Call& c) {
  return attention_gradients_kernel(c.g, c.n, c.target, c.precision);
}

struct Entry {
  const CompositeRef& composite;
  std::shared_ptr<Kernel> (*make)(const Call& c);  // null: a generated loop computes the composite
  bool always = true;                              // false: make() returns null for unsupported nodes
};
// Returns the entry of a built-in composite that the CPU computes, or null. Users' composites have KernelRules instead.
const Entry* entry_of(const Node& n) {
  static const Entry entries[] = {
      {builtin::gather(), nullptr},
      {builtin::slice_scatter(), nullptr},
      {builtin::scatter(), make_scatter},
      {builtin::scatter_add(), make_scatter},
      {builtin::argsort(), make_argsort},
      {builtin::dequantize(), make_dequantize},
      {builtin::random_bits(),
       [](const Call& c) -> std::shared_ptr<Kernel> { return random_bits_kernel(c.n, c.target.isa); }},
      {builtin::gather_mm(), make_gather_mm, false},
      {barrier(), make_barrier},
      {builtin::attention_gradients(), make_attention_gradients, false},
  };
  for (const Entry& e : entries)
    if (is(n, e.composite)) return &e;
  return nullptr;
}

}  // namespace

bool has_kernel(const Graph& g, const Node& n) {
  if (n.op != Op::Composite) return true;
  if (const Entry* e = entry_of(n)) return e->always || e->make({g, n, Target(), Precision::Highest}) != nullptr;
  return kernel_of(g, n) != nullptr;
}

std::shared_ptr<Kernel> library_kernel(const Graph& g, const Node& n, const Target& target, Precision precision) {
  if (n.op == Op::Result) {
    const auto k = static_cast<std::size_t>(n.axis);
    const Dim size = static_cast<std::int64_t>(size_of(n.dtype));
    return part_kernel(result_offsets(g[n.in[0].node].results)[k], product(n.shape) * size);
  }
  const Entry* e = entry_of(n);
  auto kernel = e && e->make ? e->make({g, n, target, precision}) : kernel_of(g, n);
  check(kernel != nullptr, "a composite that this device has no kernel for");
  return kernel;
}

}  // namespace lc::backends::cpu
