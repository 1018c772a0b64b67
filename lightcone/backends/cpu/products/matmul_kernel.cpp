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
std::vector<Dim> part_offsets(const std::vector<MatmulPart>& parts) {
  std::vector<Dim> at{0};
  if (parts.size() == 1) return at;
  for (const MatmulPart& p : parts) {
    Dim bytes = 4;
    for (const MatmulPlan::Axis& x : p.c.axes) bytes = bytes * x.extent;
    at.push_back(at.back() + (bytes + 63) / 64 * 64);
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

constexpr std::size_t kMaxAxes = 64;

// The kernel's sizes: of T = Dim when it is made, of T = i64 in a run. each() visits all of them in one order. Behind
// them lie blocks of sizes that others read: those of each epilogue, then those of the prologue.
template <class T>
struct MatmulSizes {
  struct Axis {
    T extent, a, b, c;  // strides in elements
  };
  T a_offset, b_offset, k, a_k, b_k;
  T steps;  // if there is a prologue: iterations of its outermost loop per row
  Axis axes[kMaxAxes];
  T columns[kMaxParts];
  std::size_t axis_count = 0, part_count = 0;
  bool prologue = false;
  template <class F>
  void each(const F& f) {
    for (T* t : {&a_offset, &b_offset, &k, &a_k, &b_k}) f(*t);
    if (prologue) f(steps);
    for (std::size_t i = 0; i < axis_count; ++i)
      for (T* t : {&axes[i].extent, &axes[i].a, &axes[i].b, &axes[i].c}) f(*t);
    for (std::size_t p = 0; p < part_count; ++p) f(columns[p]);
  }
};

MatmulSizes<Dim> matmul_sizes(const std::vector<MatmulPart>& parts, const MatmulRows& rows) {
  const MatmulPlan& c = parts[0].c;
  if (c.axes.size() > kMaxAxes)
    throw Error("matmul", str_cat("a result of ", c.axes.size(), " axes; at most ", kMaxAxes, " are possible"));
  MatmulSizes<Dim> s;
  s.a_offset = c.a_offset, s.b_offset = c.b_offset;
  s.k = c.k.extent, s.a_k = c.k.a, s.b_k = c.k.b;
  s.steps = rows.steps, s.prologue = rows.loop != nullptr;
  for (const MatmulPlan::Axis& x : c.axes) s.axes[s.axis_count++] = {x.extent, x.a, x.b, x.c};
  for (const MatmulPart& p : parts) s.columns[s.part_count++] = p.c.axes.back().extent;
  return s;
}

// The axes of a product that are left to loops around it. They begin as all of them but the columns.
struct OuterAxes {
  using Axis = MatmulSizes<i64>::Axis;
  Axis axis[kMaxAxes];
  std::size_t count = 0;

  // Merges axes that are contiguous in all operands, and drops those of one index.
  void add(const Axis& x) {
    if (x.extent <= 1) return;
    if (count > 0) {
      Axis& last = axis[count - 1];
      if (last.a == x.a * x.extent && last.b == x.b * x.extent && last.c == x.c * x.extent) {
        last = {last.extent * x.extent, x.a, x.b, x.c};
        return;
      }
    }
    axis[count++] = x;
  }
  Axis take(std::size_t i) {
    const Axis taken = axis[i];
    std::copy(axis + i + 1, axis + count, axis + i);
    --count;
    return taken;
  }
  // The longest axis along which only A moves: the rows. Its index, or `count`.
  std::size_t rows() const {
    std::size_t found = count;
    for (std::size_t i = 0; i < count; ++i)
      if (axis[i].b == 0 && axis[i].a != 0 && (found == count || axis[i].extent > axis[found].extent)) found = i;
    return found;
  }
  std::size_t longest() const {
    std::size_t found = 0;
    for (std::size_t i = 1; i < count; ++i)
      if (axis[i].extent > axis[found].extent) found = i;
    return found;
  }
};

class MatmulKernel final : public HostKernel {
 public:
  MatmulKernel(std::vector<MatmulPart> parts, MatmulRows rows, Isa isa, const Blocking& blocking)
      : parts_(std::move(parts)), rows_(std::move(rows)), c_(parts_[0].c), isa_(isa), blocking_(blocking) {
    matmul_sizes(parts_, rows_).each([&](const Dim& d) { sizes_.push_back(d); });
    const auto add_block = [&](const std::vector<Dim>& block) {
      const std::size_t begin = sizes_.size();
      sizes_.insert(sizes_.end(), block.begin(), block.end());
      return begin;
    };
    for (MatmulPart& part : parts_)
      if (part.epilogue) part.epilogue_sizes = add_block(part.epilogue->sizes());
    if (rows_.loop) rows_sizes_ = add_block(rows_.loop->sizes());
    offsets_ = add_block(part_offsets(parts_));
  }
  std::string name() const override {
    std::string s = "matmul_" + std::string(lc::name(c_.type)) + (c_.packed ? "_packed" : "") +
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
      Dim n = static_cast<i64>(p.epilogue ? size_of(p.epilogue->result()) : 4);
      for (const MatmulPlan::Axis& x : p.c.axes) n = n * x.extent;
      all = all + n;
    }
    return all;
  }
  void run(const HostLaunch& l) const override;

 private:
  // Bytes of `elements` elements of B.
  i64 b_bytes(i64 elements) const {
    const QuantInfo* format = block_format(c_.type);
    return format ? elements / format->elements * format->bytes : elements * unit_bytes(c_.type);
  }
  // Bytes of an element of A.
  i64 a_bytes() const { return c_.type == WeightType::I8 ? 1 : c_.bf16_a ? 2 : 4; }
  Gemm product(const MatmulSizes<i64>& s) const;
  GemmBatch take_batch(OuterAxes& outer) const;
  float* result(const HostLaunch& l, std::size_t part) const {
    return reinterpret_cast<float*>(static_cast<std::byte*>(l.out) + l.sizes[offsets_ + part]);
  }
  i64 few_bytes(i64 m, i64 k) const { return rows_.loop ? (m * k * 4 + 63) / 64 * 64 : 0; }

  std::vector<MatmulPart> parts_;
  MatmulRows rows_;
  std::size_t rows_sizes_ = 0;  // index of the prologue's sizes
  const MatmulPlan& c_;         // the first part, which differs from the others only in columns, B and C
  std::size_t offsets_ = 0;     // index of the offsets of the parts among the sizes
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
                       .for_unit = c_.for_unit,
                       .unit = c_.unit,
                       .rows = rows_.loop ? FusedPrologue::run : nullptr,
                       .caches = blocking_.caches()};
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
  if (operand == 0 && c.bf16_a) return n * 2;
  if (operand == 0 || c.type == WeightType::F32) return n * 4;
  const QuantInfo* format = block_format(c.type);
  return format ? n / format->elements * format->bytes : n * unit_bytes(c.type);
}

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
  static void run_apart(const void* self, const float* row, i64 rows, i64 begin, i64 end, const float* sums,
                        i64 distance) {
    const EpilogueCallback& f = *static_cast<const EpilogueCallback*>(self);
    const i64 first = (row - f.out) / f.columns;
    f.epilogue->run_apart(f.in, sums, distance, f.out, f.sizes, first, rows, begin, end);
  }
};

// What all parts have in common, with one row.
Gemm MatmulKernel::product(const MatmulSizes<i64>& s) const {
  const MatmulSizes<i64>::Axis& columns = s.axes[s.axis_count - 1];
  Gemm g;
  g.caches = blocking_.caches();
  g.m = 1, g.n = g.c_m = columns.extent;
  g.a_bf16 = c_.bf16_a;
  g.k = s.k, g.a_k = s.a_k, g.b_k = s.b_k, g.b_n = columns.b;
  g.type = c_.packed ? c_.stored_type() : c_.type, g.packed = c_.packed, g.for_unit = c_.for_unit;
  g.unit = c_.unit, g.few = c_.few, g.zero = int8_format(c_.type).zero, g.to_f32 = c_.to_f32;
  if (block_format(c_.type)) g.b_n = b_bytes(g.b_n), g.b_k = 1;
  return g;
}

// The longest axis is the batch; the others are plain loops.
GemmBatch MatmulKernel::take_batch(OuterAxes& outer) const {
  if (outer.count == 0 || parts_.size() > 1) return {};
  const OuterAxes::Axis x = outer.take(outer.longest());
  return {x.extent, x.a, block_format(c_.type) ? b_bytes(x.b) : x.b, x.c};
}

void MatmulKernel::run(const HostLaunch& l) const {
  MatmulSizes<i64> s;
  s.axis_count = c_.axes.size(), s.part_count = parts_.size(), s.prologue = rows_.loop != nullptr;
  const i64* numbers = l.sizes.data();
  s.each([&](i64& v) { v = *numbers++; });
  OuterAxes outer;
  for (std::size_t i = 0; i < s.axis_count; ++i) {
    if (s.axes[i].extent == 0) return;
    if (i + 1 < s.axis_count) outer.add(s.axes[i]);
  }
  Gemm g = product(s);
  if (const std::size_t rows = outer.rows(); rows < outer.count) {
    const OuterAxes::Axis x = outer.take(rows);
    g.m = x.extent, g.a_m = x.a, g.c_m = x.c;
  }
  const GemmBatch batch = take_batch(outer);
  FusedPrologue maker{};
  std::byte* scratch = l.scratch;
  const float* a_rows = static_cast<const float*>(l.in[0]);
  if (rows_.loop) {
    maker = {rows_.loop.get(), l.in.data(), l.sizes.data() + rows_sizes_, s.steps, g.k};
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
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    const i64 columns = s.columns[p];
    part[p] = g;
    part[p].n = columns;
    part[p].c_m = g.c_m / g.n * columns;
    part[p].next_in_group = p + 1 < parts_.size() ? &part[p + 1] : nullptr;
    if (!parts_[p].epilogue) continue;
    EpilogueCallback& f = callback[p];
    f.epilogue = parts_[p].epilogue.get(), f.out = result(l, p), f.columns = columns;
    f.sizes = l.sizes.data() + parts_[p].epilogue_sizes;
    f.step = columns > 0 ? part[p].c_m / columns : 1;
    const auto& from = parts_[p].operands;
    for (std::size_t k = 0; k < from.size(); ++k)
      f.in[k] = from[k] < 0 ? result(l, static_cast<std::size_t>(~from[k])) : l.in[from[k]];
    part[p].finish_self = &f;
    if (f.epilogue->apart()) part[p].finish_apart = EpilogueCallback::run_apart;
    else part[p].finish = EpilogueCallback::run;
  }
  i64 index[kMaxAxes] = {};
  for (;;) {
    i64 a = s.a_offset, b = s.b_offset, c = 0;
    for (std::size_t i = 0; i < outer.count; ++i)
      a += index[i] * outer.axis[i].a, b += index[i] * outer.axis[i].b, c += index[i] * outer.axis[i].c;
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      part[p].a = reinterpret_cast<const float*>(reinterpret_cast<const std::byte*>(a_rows) + a_bytes() * a);
      part[p].b = static_cast<const std::byte*>(l.in[rows_.operands + p]) + b_bytes(b);
      part[p].c = result(l, p) + c / g.n * part[p].n;
    }
    gemm(part[0], batch, l.parallel, scratch, isa_);
    std::size_t i = outer.count;
    while (i > 0 && ++index[i - 1] == outer.axis[i - 1].extent) index[--i] = 0;
    if (i == 0) return;
  }
}

}  // namespace

namespace {

// Upper bounds of rows of A that meet the same columns of B, of these columns, and of k; the fewest of these rows.
struct Bounds {
  i64 m, n, k, fewest;
};
Bounds bounds(const lowering::Contraction& c) {
  constexpr i64 kMost = i64{1} << 30;  // keeps their product in 64 bits
  Bounds b{1, c.axes.back().extent.bounds().hi, c.k.extent.bounds().hi, 1};
  for (std::size_t i = 0; i + 1 < c.axes.size(); ++i) {
    if (!(c.axes[i].b == Dim(0))) continue;
    const auto extent = c.axes[i].extent.bounds();
    b.m = std::min(kMost, b.m * std::min(kMost, extent.hi));
    b.fewest = std::min(kMost, b.fewest * std::clamp<i64>(extent.lo, 0, kMost));
  }
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
  if (!may_have_tiles(target)) return false;
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
  if (has_codec(c.type)) return microkernel(int8_format(c.type).arithmetic, wanted, int8_format(c.type).bits);
  if (is_decoded(c.type)) return nullptr;
  const bool fast = wanted.amx ? bf16_is_fast(wanted) : bf16_may_be_fast(target);
  return c.type == WeightType::BF16 || fast ? microkernel(Arithmetic::Bf16, wanted) : nullptr;
}

// A step of int8 products has a scale of its own, so that tiles spend most of their time scaling: on Sapphire Rapids
// with two cores a prompt was multiplied at 430 tokens a second, and in bf16 at 601 to 645. Blocks become bf16 numbers
// in registers, once for all rows of a task.
const Microkernel* choose_prompt_unit(const lowering::Contraction& c, Precision p, const Target& target) {
  constexpr i64 kRows = 32;  // from which on unpacking is estimated to cost less than scaling
  if (p != Precision::Medium || !has_codec(c.type) || !wants_tiles(c, p, target) || bounds(c).m < kRows) return nullptr;
  const Microkernel* u = microkernel(Arithmetic::Bf16, target);
  return on_tiles(*u) ? u : nullptr;
}

// On a Xeon with AMX and two cores, three parts with weights split at load took these shares of the time of AVX-512
// (rows, columns, k): 0.67 at 512^3, 0.69 at 1024^3, 0.66 at 2048^3, 0.63 at 784 x 2048 x 512, 0.93 at 3136 x 256 x
// 1024, and 0.98 at 128 x 768 x 768, but 1.06 at 12544 x 512 x 128, 1.13 at 128 x 2048 x 2048, 1.18 at 12544 x 256 x
// 512, 1.34 at 12544 x 128 x 512 and 1.5 at 64 x 2048 x 2048: rows are split in every call, and weights are half as
// large again. Two parts were measured with a prototype alone.
const Microkernel* choose_split_weights(const lowering::Contraction& c, Precision p, const Target& target) {
  constexpr i64 kLeastK = 64, kLeastWork = i64{1} << 21, kLeastWeights = i64{1} << 18;
  if (p == Precision::Medium || !may_have_tiles(target)) return nullptr;
  const Bounds b = bounds(c);
  const bool two = p == Precision::High;
  if (b.fewest < (two ? 32 : 256) || (!two && b.n * b.k < kLeastWeights) || b.n < PackedLayout::rows || b.k < kLeastK)
    return nullptr;
  if (static_cast<double>(b.fewest) * static_cast<double>(b.n) * static_cast<double>(b.k) < kLeastWork) return nullptr;
  return microkernel(two ? Arithmetic::Split2 : Arithmetic::Split3, target);
}

namespace {

// Returns whether the product always has many rows, in one block, on tile registers.
bool many_rows_on_tiles(const MatmulPlan& c) {
  if (!c.unit || c.unit->together == 0 || c.few || bounds(c).fewest <= kFewRows) return false;
  return lowering::rows_follow(c) && c.k.extent.bounds().lo > 0 && c.axes.back().extent.bounds().lo > 0;
}
bool in_bf16(const MatmulPlan& c) { return c.unit && c.unit->pack_bf16 && !c.for_unit; }

}  // namespace

bool reads_bf16(const MatmulPlan& c) { return in_bf16(c) && many_rows_on_tiles(c) && c.k.a == Dim(1); }
bool writes_bf16(const MatmulPlan& c) { return in_bf16(c) && sums_apart(c); }
bool sums_apart(const MatmulPlan& c) {
  const auto one_matrix = [](const lowering::Contraction::Axis& x) { return x.b == Dim(0); };
  return many_rows_on_tiles(c) && !c.unit->exact() && std::all_of(c.axes.begin(), c.axes.end() - 1, one_matrix);
}

i64 MatmulPlan::packed_bytes() const {
  const i64 n = *axes.back().extent.constant(), depth = *k.extent.constant();
  if (!for_unit) return cpu::packed_bytes(stored_type(), n, depth);
  return (n + PackedLayout::rows - 1) / PackedLayout::rows * unit->b_bytes(depth);
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

namespace {

// Returns whether a value depends on parameters alone, by a few operations.
bool of_parameters(const Graph& g, NodeId id, int most = 8) {
  const Node& n = g[id];
  if (n.op == Op::Input) return n.parameter;
  return most > 0 &&
         std::all_of(n.in.begin(), n.in.end(), [&](const Edge& e) { return of_parameters(g, e.node, most - 1); });
}

}  // namespace

bool packable_bytes(const Graph& g, const lowering::Contraction& c) {
  const lowering::Contraction::Axis& columns = c.axes.back();
  if (c.type != WeightType::I8 || !c.k.extent.is_constant() || !columns.extent.is_constant()) return false;
  const i64 n = *columns.extent.constant();
  if (n < 1 || !(c.b_offset == Dim(0)) || !(product(g[c.b_node].shape) == columns.extent * c.k.extent)) return false;
  for (std::size_t i = 0; i + 1 < c.axes.size(); ++i)
    if (!(c.axes[i].b == Dim(0))) return false;
  const bool rows = columns.b == c.k.extent && c.k.b == Dim(1);
  return (rows || transposed(c)) && of_parameters(g, c.b_node);
}
bool transposed(const lowering::Contraction& c) {
  return (c.type == WeightType::F32 || c.type == WeightType::I8) && c.axes.back().b == Dim(1) &&
         c.k.b == c.axes.back().extent;
}

std::shared_ptr<HostKernel> matmul_kernel(std::vector<MatmulPart> parts, MatmulRows rows, Isa isa,
                                          const Blocking& blocking) {
  return std::make_shared<MatmulKernel>(std::move(parts), std::move(rows), isa, blocking);
}
Dim matmul_bytes(const std::vector<MatmulPart>& parts) { return part_offsets(parts).back(); }
std::shared_ptr<Kernel> part_kernel(const std::vector<MatmulPart>& parts, std::size_t part) {
  Dim bytes = 4;
  for (const MatmulPlan::Axis& x : parts[part].c.axes) bytes = bytes * x.extent;
  return lc::part_kernel(part_offsets(parts)[part], bytes);
}

}  // namespace lc::backends::cpu
