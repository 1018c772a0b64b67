// Runs matrix products: one, or several of the same rows of A, which a prologue may compute.
#include "lightcone/backends/cpu/products/matmul_kernel.h"

#include <algorithm>
#include <cstring>

#include "lightcone/backends/cpu/loops/epilogue.h"
#include "lightcone/backends/cpu/products/packed_weights.h"
#include "lightcone/device/kernel_rule.h"

namespace lc::backends::cpu {

using i64 = std::int64_t;

namespace {

// Byte offset of each part's result, then of the end.
std::vector<i64> part_offsets(const std::vector<MatmulPart>& parts) {
  std::vector<i64> at{0};
  if (parts.size() == 1) return at;
  for (const MatmulPart& p : parts) {
    i64 bytes = 4;
    for (const MatmulPlan::Axis& x : p.c.axes) bytes *= x.extent.bounds().hi;
    at.push_back((at.back() + bytes + 63) / 64 * 64);
  }
  return at;
}

// Computes rows of A with a loop that writes them contiguously.
struct FusedPrologue {
  const LoopKernel* loop;
  const void* const* in;
  const i64* sizes;
  i64 steps, columns;  // iterations and elements per row
  static void run(const void* self, i64 first, i64 count, float* to) {
    const FusedPrologue& r = *static_cast<const FusedPrologue*>(self);
    // The loop indexes from row 0, so it gets the address that row 0 would have.
    const auto whole = reinterpret_cast<std::uintptr_t>(to) - static_cast<std::uintptr_t>(first * r.columns * 4);
    r.loop->range(r.in, reinterpret_cast<void*>(whole), r.sizes, first * r.steps, (first + count) * r.steps);
  }
};

class MatmulKernel final : public HostKernel {
 public:
  MatmulKernel(std::vector<MatmulPart> parts, MatmulRows rows, Isa isa, const Blocking& blocking)
      : parts_(std::move(parts)),
        rows_(std::move(rows)),
        c_(parts_[0].c),
        offsets_(part_offsets(parts_)),
        isa_(isa),
        blocking_(blocking) {
    const auto add = [&](const Dim& d) { sizes_.push_back(d); };
    add(c_.a_offset), add(c_.b_offset);
    add(c_.k.extent), add(c_.k.a), add(c_.k.b);
    for (const MatmulPlan::Axis& x : c_.axes) add(x.extent), add(x.a), add(x.b), add(x.c);
    for (MatmulPart& part : parts_) {
      part.sizes = sizes_.size();
      add(part.c.axes.back().extent);
      if (part.epilogue)
        for (const Dim& d : part.epilogue->sizes()) add(d);
    }
    if (!rows_.loop) return;
    rows_sizes_ = sizes_.size();
    add(rows_.steps);
    for (const Dim& d : rows_.loop->sizes()) add(d);
  }
  std::string name() const override {
    std::string s = "matmul_" + std::string(cpu::name(c_.type)) + (c_.packed ? "_packed" : "") +
                    (c_.unit ? "_" + std::string(c_.unit->name) : "");
    if (parts_.size() > 1) s += "_x" + std::to_string(parts_.size());
    if (rows_.loop) s += "_of_" + rows_.loop->name();
    for (const MatmulPart& p : parts_)
      if (p.epilogue) s += "+" + p.epilogue->loop()->name();
    return s;
  }
  std::string source() const override {
    std::string s = rows_.loop ? rows_.loop->source() : "";
    for (const MatmulPart& p : parts_)
      if (p.epilogue) s += p.epilogue->loop()->source();
    return s;
  }
  std::vector<Dim> sizes() const override { return sizes_; }
  Dim scratch_bytes(int workers) const override;
  Dim flops() const override {
    Dim all = rows_.loop ? rows_.loop->flops() : Dim(0);
    for (const MatmulPart& p : parts_) {
      Dim f = p.c.k.extent * 2;
      for (const MatmulPlan::Axis& x : p.c.axes) f = f * x.extent;
      all = all + f;
    }
    return all;
  }
  std::optional<Dim> bytes_read(std::size_t operand) const override;
  std::optional<Dim> bytes_written() const override {
    Dim all = 0;
    for (const MatmulPart& p : parts_) {
      Dim n = 4;
      for (const MatmulPlan::Axis& x : p.c.axes) n = n * x.extent;
      all = all + n;
    }
    return all;
  }
  void run(const HostLaunch& l) const override;

 private:
  struct Axis {
    i64 extent, a, b, c;
  };
  i64 few_bytes(i64 m, i64 k) const { return rows_.loop ? (m * k * 4 + 63) / 64 * 64 : 0; }

  std::vector<MatmulPart> parts_;
  MatmulRows rows_;
  std::size_t rows_sizes_ = 0;  // index of the prologue's steps; its sizes follow
  const MatmulPlan& c_;         // the first part, which differs from the others only in columns, B and C
  std::vector<i64> offsets_;
  Isa isa_;
  Blocking blocking_;
  std::vector<Dim> sizes_;
};

// run() treats axes along which B does not move as rows. Batch axes, along which B moves, are separate products, run
// one after another or each in a worker's own scratch.
Dim MatmulKernel::scratch_bytes(int workers) const {
  Dim rows = 1;
  for (std::size_t i = 0; i + 1 < c_.axes.size(); ++i)
    if (const Bounds b = c_.axes[i].b.bounds(); b.lo <= 0 && b.hi >= 0) rows = rows * c_.axes[i].extent;
  std::size_t most = 0;
  for (const MatmulPart& p : parts_) {
    const Gemm largest{.m = rows.bounds().hi,
                       .n = p.c.axes.back().extent.bounds().hi,
                       .k = c_.k.extent.bounds().hi,
                       .a_k = c_.k.a == Dim(1) ? 1 : 0,
                       .type = c_.packed ? c_.stored_type() : c_.type,
                       .packed = c_.packed,
                       .unit = c_.unit,
                       .rows = rows_.loop ? FusedPrologue::run : nullptr,
                       .blocking = blocking_};
    most = std::max(most, gemm_scratch_bytes(largest, workers));
  }
  const i64 few = few_bytes(std::min(kFewRows, rows.bounds().hi), c_.k.extent.bounds().hi);
  return few + static_cast<i64>(most);
}

// Counts the elements that the operand's nonzero strides reach.
std::optional<Dim> MatmulKernel::bytes_read(std::size_t operand) const {
  if (rows_.loop && operand < rows_.operands) return rows_.loop->bytes_read(operand);
  operand -= rows_.operands - 1;
  if (operand > parts_.size()) return std::nullopt;
  const MatmulPlan& c = parts_[operand == 0 ? 0 : operand - 1].c;
  const auto strides = [&](const MatmulPlan::Axis& x) { return !((operand == 0 ? x.a : x.b) == Dim(0)); };
  Dim n = strides(c.k) ? c.k.extent : Dim(1);
  for (const MatmulPlan::Axis& x : c.axes)
    if (strides(x)) n = n * x.extent;
  if (c.type == WeightType::I8) return n;
  if (operand == 0 || c.type == WeightType::F32) return n * 4;
  const QuantInfo* format = block_format(c.type);
  return format ? n / format->elements * format->bytes : n * unit_bytes(c.type);
}

constexpr std::size_t kMaxAxes = 16;

// Arguments of an epilogue during a run.
struct EpilogueCallback {
  const Epilogue* epilogue;
  const void* in[Epilogue::kMaxOperands];
  float* out;
  const i64* sizes;
  i64 columns, step;  // columns of C, and distance between rows of C in rows of the result
  static void run(const void* self, float* row, i64 rows, i64 begin, i64 end) {
    const EpilogueCallback& f = *static_cast<const EpilogueCallback*>(self);
    const i64 first = (row - f.out) / f.columns;
    if (f.step == 1) return f.epilogue->run(f.in, f.out, f.sizes, first, rows, begin, end);
    for (i64 i = 0; i < rows; ++i) f.epilogue->run(f.in, f.out, f.sizes, first + i * f.step, 1, begin, end);
  }
};

void MatmulKernel::run(const HostLaunch& l) const {
  const i64* s = l.sizes.data();
  const i64 a_offset = s[0], b_offset = s[1];
  const QuantInfo* format = block_format(c_.type);
  const auto bytes = [&](i64 elements) {  // bytes of elements of B
    return format ? elements / format->elements * format->bytes : elements * unit_bytes(c_.type);
  };
  Gemm g;
  g.blocking = blocking_;
  g.k = s[2], g.a_k = s[3], g.b_k = s[4];
  g.type = c_.packed ? c_.stored_type() : c_.type, g.packed = c_.packed;
  g.unit = c_.unit, g.zero = int8_format(c_.type).zero, g.to_f32 = c_.to_f32;
  // The longest axis along which only A moves becomes the rows (the last axis is the columns); the others are looped
  // over.
  Axis axis[kMaxAxes];
  std::size_t count = 0;
  const std::size_t n = c_.axes.size();
  for (std::size_t i = 0; i < n; ++i) {
    const i64* p = s + 5 + 4 * i;
    const Axis x{p[0], p[1], p[2], p[3]};
    if (x.extent == 0) return;
    if (i + 1 == n) {
      g.n = x.extent;
      g.b_n = x.b;
    } else if (x.extent > 1) {
      if (count > 0 && axis[count - 1].a == x.a * x.extent && axis[count - 1].b == x.b * x.extent &&
          axis[count - 1].c == x.c * x.extent)
        axis[count - 1] = {axis[count - 1].extent * x.extent, x.a, x.b, x.c};
      else axis[count++] = x;
    }
  }
  std::size_t rows = count;
  for (std::size_t i = 0; i < count; ++i)
    if (axis[i].b == 0 && axis[i].a != 0 && (rows == count || axis[i].extent > axis[rows].extent)) rows = i;
  g.m = 1, g.c_m = g.n;
  if (rows < count) {
    g.m = axis[rows].extent, g.a_m = axis[rows].a, g.c_m = axis[rows].c;
    std::copy(axis + rows + 1, axis + count, axis + rows);
    --count;
  }
  if (format) g.b_n = bytes(g.b_n), g.b_k = 1;
  GemmBatch batch;
  if (count > 0 && parts_.size() == 1) {  // the longest remaining axis is the batch; the others are plain loops
    std::size_t longest = 0;
    for (std::size_t i = 1; i < count; ++i)
      if (axis[i].extent > axis[longest].extent) longest = i;
    batch = {axis[longest].extent, axis[longest].a, format ? bytes(axis[longest].b) : axis[longest].b, axis[longest].c};
    std::copy(axis + longest + 1, axis + count, axis + longest);
    --count;
  }
  FusedPrologue maker{};
  std::byte* scratch = l.scratch;
  const float* a_rows = static_cast<const float*>(l.in[0]);
  if (rows_.loop) {
    const i64* own = s + rows_sizes_;
    maker = {rows_.loop.get(), l.in.data(), own + 1, own[0], g.k};
    if (g.m > kFewRows) {
      a_rows = nullptr, g.rows = FusedPrologue::run, g.rows_self = &maker;
    } else {
      float* few = reinterpret_cast<float*>(scratch);
      FusedPrologue::run(&maker, 0, g.m, few);
      a_rows = few, scratch += few_bytes(g.m, g.k);
    }
  }
  Gemm part[kMaxParts];
  EpilogueCallback callback[kMaxParts];
  const auto result = [&](std::size_t p) {
    return reinterpret_cast<float*>(static_cast<std::byte*>(l.out) + offsets_[p]);
  };
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    const i64* own = s + parts_[p].sizes;
    part[p] = g;
    part[p].n = own[0];
    part[p].c_m = g.c_m / g.n * own[0];
    part[p].next_in_group = p + 1 < parts_.size() ? &part[p + 1] : nullptr;
    if (!parts_[p].epilogue) continue;
    EpilogueCallback& f = callback[p];
    f.epilogue = parts_[p].epilogue.get(), f.out = result(p), f.sizes = own + 1, f.columns = own[0];
    f.step = own[0] > 0 ? part[p].c_m / own[0] : 1;
    const auto& from = parts_[p].operands;
    for (std::size_t k = 0; k < from.size(); ++k)
      f.in[k] = from[k] < 0 ? result(static_cast<std::size_t>(~from[k])) : l.in[static_cast<std::size_t>(from[k])];
    part[p].finish = EpilogueCallback::run, part[p].finish_self = &f;
  }
  i64 index[kMaxAxes] = {};
  for (;;) {
    i64 a = a_offset, b = b_offset, c = 0;
    for (std::size_t i = 0; i < count; ++i)
      a += index[i] * axis[i].a, b += index[i] * axis[i].b, c += index[i] * axis[i].c;
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      part[p].a = reinterpret_cast<const float*>(reinterpret_cast<const std::byte*>(a_rows) +
                                                 (c_.type == WeightType::I8 ? a : 4 * a));
      part[p].b = static_cast<const std::byte*>(l.in[rows_.operands + p]) + bytes(b);
      part[p].c = result(p) + c / g.n * part[p].n;
    }
    gemm(part[0], batch, l.parallel, scratch, isa_);
    std::size_t i = count;
    while (i > 0 && ++index[i - 1] == axis[i - 1].extent) index[--i] = 0;
    if (i == 0) return;
  }
}

}  // namespace

namespace {

// Upper bounds of rows of A that meet the same columns of B, of these columns, and of k.
struct Bounds {
  i64 m, n, k;
};
Bounds bounds(const lowering::Contraction& c) {
  constexpr i64 kMost = i64{1} << 30;  // keeps their product in 64 bits
  Bounds b{1, c.axes.back().extent.bounds().hi, c.k.extent.bounds().hi};
  for (std::size_t i = 0; i + 1 < c.axes.size(); ++i)
    if (c.axes[i].b == Dim(0)) b.m = std::min(kMost, b.m * std::min(kMost, c.axes[i].extent.bounds().hi));
  return b;
}

// Splitting pays only for large products, because operands are split in every call. On Sapphire Rapids with two cores,
// three parts took 40.5 ms for 2048 x 2048 x 2048 where f32 took 44.9 ms, and lost in everything smaller (networks of
// 128 to 1,024 rows ran 1.05 to 1.5 times as fast without). Two parts need half the products; their limit is estimated,
// not measured.
bool split_is_faster(const Bounds& b, Precision p) {
  if (p == Precision::High) return b.m >= 256 && b.n >= 256 && b.k >= 64;
  return b.m >= 2048 && b.n >= 2048 && b.k >= 2048;
}

}  // namespace

bool wants_tiles(const lowering::Contraction& c, Precision p, const Target& target) {
  if (target.isa != Isa::Avx512 || !target.amx) return false;
  if (c.type == WeightType::I8) return true;
  const Bounds b = bounds(c);
  return p == Precision::Medium ? b.m > kFewRows : split_is_faster(b, p);
}

const Microkernel* choose_unit(const lowering::Contraction& c, Precision p, const Target& target) {
  Target wanted = target;
  wanted.amx = wants_tiles(c, p, target);
  if (c.type == WeightType::I8) return microkernel(Arithmetic::Int8Exact, wanted);
  if (p != Precision::Medium)
    return wanted.amx ? microkernel(p == Precision::High ? Arithmetic::Split2 : Arithmetic::Split3, wanted) : nullptr;
  if (block_format(c.type)) return microkernel(int8_format(c.type).arithmetic, wanted);
  const bool fast = wanted.amx ? bf16_is_fast(wanted) : bf16_may_be_fast(target);
  return c.type == WeightType::BF16 || fast ? microkernel(Arithmetic::Bf16, wanted) : nullptr;
}

WeightType MatmulPlan::stored_type() const {
  return type == WeightType::F32 && unit && unit->arithmetic == Arithmetic::Bf16 ? WeightType::BF16 : type;
}

bool packable(const Graph& g, const lowering::Contraction& c) {
  const Node& b = g[c.b_node];
  const lowering::Contraction::Axis& columns = c.axes.back();
  if (packed_layout(c.type).block == 0 || b.op != Op::Input || !b.parameter) return false;
  bool whole = c.b_offset == Dim(0) && c.k.extent.is_constant() && columns.extent.is_constant();
  whole = whole && (c.type == WeightType::F32 ? product(b.shape) == columns.extent * c.k.extent
                                              : b.shape.size() == 2 && b.shape[0] == columns.extent);
  for (std::size_t i = 0; i + 1 < c.axes.size(); ++i) whole = whole && c.axes[i].b == Dim(0);
  if (!whole) return false;
  const i64 n = *columns.extent.constant(), largest = 1 << 20;  // bytes up to which a few rows may be padded to 16
  whole = n % PackedLayout::rows == 0 || n >= 64 || packed_bytes(c.type, n, *c.k.extent.constant()) <= largest;
  return whole && ((columns.b == c.k.extent && c.k.b == Dim(1)) || transposed(c));
}
bool transposed(const lowering::Contraction& c) {
  return c.type == WeightType::F32 && c.axes.back().b == Dim(1) && c.k.b == c.axes.back().extent;
}

std::shared_ptr<HostKernel> matmul_kernel(std::vector<MatmulPart> parts, MatmulRows rows, Isa isa,
                                          const Blocking& blocking) {
  return std::make_shared<MatmulKernel>(std::move(parts), std::move(rows), isa, blocking);
}
i64 matmul_bytes(const std::vector<MatmulPart>& parts) { return part_offsets(parts).back(); }
std::shared_ptr<Kernel> part_kernel(const std::vector<MatmulPart>& parts, std::size_t part) {
  Dim bytes = 4;
  for (const MatmulPlan::Axis& x : parts[part].c.axes) bytes = bytes * x.extent;
  return lc::part_kernel(part_offsets(parts)[part], bytes);
}

}  // namespace lc::backends::cpu
