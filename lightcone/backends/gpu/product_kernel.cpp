#include "lightcone/backends/gpu/product_kernel.h"

#include <algorithm>
#include <array>

namespace lc::backends::gpu {

namespace {

constexpr std::int64_t kFewProductRows = 8;     // up to here reading B is the cost, and every block reads a part of it
constexpr std::int64_t kManyGroups = 128;       // keep all multiprocessors of a large device at work
constexpr std::int64_t kShortestPart = 256;     // length of a part of a sum
constexpr std::int64_t kMostParts = 1 << 20;    // numbers that are written as parts
constexpr std::int64_t kManyResults = 1 << 19;  // enough for threads of windows() that make 16 each

std::int64_t least(const Dim& d) { return std::max<std::int64_t>(d.bounds().lo, 1); }
std::int64_t most(const Dim& d) { return std::min<std::int64_t>(d.bounds().hi, std::int64_t{1} << 40); }

// Chooses the type in which tensor cores multiply. Products of 16-bit floats and of bytes are exact in them, and so are
// products of 8-bit floats, which are converted to 16 bits. f32 is rounded if the precision allows it; Medium also
// allows the instructions for 8-bit floats, whose sums are less exact.
Cores choose_cores(const Product& p, const Limits& l, Precision precision) {
  if (capability(l) < 80) return Cores::None;
  if (p.exact) return Cores::I8;
  const auto all = [&](WeightType half) {
    return (p.a.type == half || is_f8(p.a.type)) && (p.b.type == half || is_f8(p.b.type));
  };
  if (is_f8(p.a.type) && is_f8(p.b.type) && precision == Precision::Medium && capability(l) >= 89) return Cores::F8;
  if (all(WeightType::BF16)) return Cores::Bf16;
  if (all(WeightType::F16)) return Cores::F16;
  return precision == Precision::Medium ? Cores::Bf16 : precision == Precision::High ? Cores::Tf32 : Cores::None;
}

// Makes a map from these values of OperandMap::sizes(). An axis of length 0 is never copied from, but a map must have
// an extent of at least 1.
TensorMap tile_map(const OperandMap& m, BufferSlice operand, std::span<const std::int64_t> sizes) {
  TensorMap t;
  t.at = {operand.buffer, operand.offset + static_cast<std::size_t>(sizes[0] * m.bytes)};
  t.bytes = m.bytes, t.axes = m.extents.size();
  for (std::size_t i = 0; i < t.axes; ++i) {
    t.extents[i] = std::max<std::int64_t>(sizes[1 + i], 1);
    t.strides[i] = i == 0 ? m.bytes : std::max<std::int64_t>(sizes[t.axes + i] * m.bytes, 16);
    t.box[i] = m.box[i];
  }
  return t;
}

// Replaces every "@" of a text by the kernel's name.
std::string named(const std::string& text, const std::string& name) {
  std::string s = text;
  for (std::size_t at = 0; (at = s.find('@', at)) != std::string::npos; at += name.size()) s.replace(at, 1, name);
  return s;
}

}  // namespace

ProductKernel::ProductKernel(Product p, Epilogue epilogue, const Limits& limits, Precision precision)
    : p_(std::move(p)),
      epilogue_(std::move(epilogue)),
      whole_{p_, epilogue_, limits.language, limits.warp, false},
      parts_{p_, epilogue_, limits.language, limits.warp, true},
      cores_(choose_cores(p_, limits, precision)),
      warpgroups_(limits.warpgroups && fits_warpgroups(p_, cores_)),
      results_(p_.results()),
      lines_(window_lines(p_)),
      sizes_{product(p_.rows), product(p_.columns), product(p_.batch), product(p_.sum)} {
  if (const auto rows = sizes_[0].constant()) few_ = std::clamp<std::int64_t>(*rows, 1, kFewProductRows);
  add_ways();
}

ProductKernel::Variant ProductKernel::choose(const Sizes& s) const {
  if (lines_) return {0, 0, s.rows * s.columns * s.batch >= kManyResults ? lines_ : 1};
  if (s.rows <= kFewProductRows && skinny_gemm_reads(p_)) return {s.rows <= 1 ? 1 : static_cast<int>(few_), 0};
  const auto many = [&](std::int64_t columns) {
    return ceil_div(s.rows, 128) * ceil_div(s.columns, columns) * s.batch >= kManyGroups;
  };
  if (warpgroups_ && many(kWarpgroupColumns)) return {0, kWarpgroupColumns};
  return {0, many(128) ? 128 : 64};
}

std::int64_t ProductKernel::groups(const Sizes& s, const KernelText& k) const {
  return ceil_div(s.rows, k.rows) * ceil_div(s.columns, k.columns) * s.batch;
}

// Splits a long sum of few results, so that there are thread blocks for all multiprocessors of any device. The split
// depends on the sizes alone.
ProductKernel::Split ProductKernel::split(const Sizes& s, const KernelText& k) const {
  if (lines_) return {1, std::max<std::int64_t>(s.sum, 1)};
  const std::int64_t results = s.rows * s.columns * s.batch, there = groups(s, k);
  std::int64_t parts = 1;
  if (there > 0 && there < kManyGroups)
    parts = std::min(
        {ceil_div(kManyGroups, there), s.sum / kShortestPart, kMostParts / std::max<std::int64_t>(results, 1)});
  const std::int64_t depth =
      std::max<std::int64_t>(ceil_div(ceil_div(s.sum, std::max<std::int64_t>(parts, 1)), k.depth), 1) * k.depth;
  return {std::max<std::int64_t>(ceil_div(s.sum, depth), 1), depth};
}

std::size_t ProductKernel::add(KernelText k) {
  functions_.push_back({std::move(k), sizes_.size()});
  const auto append = [&](const std::vector<Dim>& more) { sizes_.insert(sizes_.end(), more.begin(), more.end()); };
  append(functions_.back().k.sizes);
  for (const OperandMap& m : functions_.back().k.maps) append(m.sizes());
  return functions_.size() - 1;
}

// Returns the variants that some sizes within the bounds select.
std::vector<ProductKernel::Variant> ProductKernel::variants(Sizes small, const Sizes& large) const {
  std::vector<Variant> all{choose(small)};
  const auto add = [&](const Variant& w) {
    if (std::find(all.begin(), all.end(), w) == all.end()) all.push_back(w);
  };
  for (const std::int64_t rows : {std::int64_t{2}, kFewProductRows + 1})
    if (small.rows < rows && rows <= large.rows) small.rows = rows, add(choose(small));
  const Variant most = choose(large);
  const bool from_small = std::any_of(all.begin(), all.end(), [](const Variant& w) { return w.side == 64; });
  if (from_small && most.side == kWarpgroupColumns) add({0, 128});  // sizes in between select it
  add(most);
  return all;
}

// Adds the texts of all variants.
void ProductKernel::add_ways() {
  const Sizes small{least(sizes_[0]), least(sizes_[1]), least(sizes_[2]), most(sizes_[3])},
      large{most(sizes_[0]), most(sizes_[1]), most(sizes_[2]), least(sizes_[3])};
  bool any_parts = false;
  for (const Variant& variant : variants(small, large)) {
    Choice c{variant, {}, {}};
    const auto text = [&](const ProductTexts& t) {
      return variant.lines                        ? t.windows(variant.lines)
             : variant.few                        ? t.skinny_gemm(variant.few)
             : cores_ == Cores::None              ? t.tiles(variant.side)
             : warpgroups_ && variant.side >= 128 ? warpgroup_tiles(t, cores_, variant.side)
                                                  : tensor_tiles(t, cores_, variant.side);
    };
    KernelText whole = text(whole_);
    const bool parts = split(small, whole).parts > 1, wholes = split(large, whole).parts == 1;
    if (wholes) c.whole = add(std::move(whole));
    if (variant.lines) sizes_.push_back(window_threads(p_, variant.lines));
    if (parts) c.parts = add(text(parts_));
    any_parts = any_parts || parts;
    choices_.push_back(c);
  }
  splits_ = any_parts;
  if (splits_) add_parts_ = add(whole_.add_parts());
}

const ProductKernel::Choice& ProductKernel::choice(const Sizes& s) const {
  const Variant variant = choose(s);
  const auto found =
      std::find_if(choices_.begin(), choices_.end(), [&](const Choice& c) { return c.variant == variant; });
  check(found != choices_.end(), "a product whose sizes are outside their bounds");
  return *found;
}

const KernelText& ProductKernel::text_of(const Choice& c) const { return functions_[c.whole ? *c.whole : *c.parts].k; }

// Memory for partial sums: exact if all sizes are known, else an upper bound.
Dim ProductKernel::scratch_bytes(int) const {
  if (by_library()) return sums_bytes() + static_cast<std::int64_t>(library_->product->scratch_bytes());
  if (!splits_) return 0;
  std::array<std::int64_t, 4> n;
  for (std::size_t i = 0; i < n.size(); ++i) {
    const auto known = sizes_[i].constant();
    if (!known) return 4 * std::min(kMostParts, kManyGroups * most(results_));
    n[i] = *known;
  }
  const Sizes s{n[0], n[1], n[2], n[3]};
  const std::int64_t parts = split(s, text_of(choice(s))).parts;
  return parts == 1 ? 0 : 4 * parts * s.rows * s.columns * s.batch;
}

std::optional<Dim> ProductKernel::bytes_read(std::size_t operand) const {  // the elements that its strides reach
  if (operand > 1) return std::nullopt;
  const Operand& s = operand == 0 ? p_.a : p_.b;
  if (!s.bounds.empty()) return std::nullopt;
  Dim n = 1;
  const auto along = [&](const std::vector<Dim>& extents, const std::vector<Dim>& strides) {
    for (std::size_t i = 0; i < extents.size(); ++i)
      if (!(strides[i] == Dim(0))) n = n * extents[i];
  };
  along(p_.batch, s.batch), along(operand == 0 ? p_.rows : p_.columns, s.own), along(p_.sum, s.sum);
  if (const QuantInfo* f = block_format(s.type)) return n / f->elements * f->bytes;
  return n * unit_bytes(s.type);
}

void ProductKernel::run(const Launch& l, GpuDevice& device, std::size_t function, std::span<const BufferSlice> buffers,
                        std::int64_t groups, const Split& s) const {
  const Function& f = functions_[function];
  std::array<std::int64_t, kMaxSizes> sizes{s.parts, s.depth};
  const std::size_t own = f.k.sizes.size();
  check(kGivenSizes + own <= sizes.size(), "a product with too many sizes");
  std::copy_n(l.sizes.begin() + static_cast<std::ptrdiff_t>(f.sizes), own, sizes.begin() + kGivenSizes);
  std::array<TensorMap, 2> maps;
  std::size_t at = f.sizes + own;
  for (std::size_t m = 0; m < f.k.maps.size(); at += f.k.maps[m++].count())
    maps[m] = tile_map(f.k.maps[m], buffers[f.k.maps[m].buffer], l.sizes.subspan(at));
  launch_kernel(device, function, buffers, groups, f.k.threads, {sizes.data(), kGivenSizes + own}, f.k.shared,
                {maps.data(), f.k.maps.size()});
}

void ProductKernel::enqueue(const Launch& l, GpuDevice& device) const {
  if (by_library()) enqueue_library(l, device);
  else enqueue_own(l, device);
}

void ProductKernel::enqueue_own(const Launch& l, GpuDevice& device) const {
  const Sizes s{l.sizes[0], l.sizes[1], l.sizes[2], l.sizes[3]};
  const std::int64_t results = s.rows * s.columns * s.batch;
  if (results == 0) return;
  const Choice& c = choice(s);
  const KernelText& k = text_of(c);
  const Split split = this->split(s, k);
  std::array<BufferSlice, kMaxBuffers> buffers;
  const std::size_t count = l.in.size() + 1;
  check(count <= buffers.size(), "a product with too many operands");
  *std::copy(l.in.begin(), l.in.end(), buffers.begin()) = l.out;
  if (split.parts == 1) {
    const std::size_t threads = functions_[*c.whole].sizes + k.sizes.size();
    const std::int64_t groups = c.variant.lines ? ceil_div(l.sizes[threads], k.threads) : this->groups(s, k);
    return run(l, device, *c.whole, {buffers.data(), count}, groups, split);
  }
  const BufferSlice parts[] = {l.in[0], l.in[1], l.scratch};
  run(l, device, *c.parts, parts, groups(s, k) * split.parts, split);
  buffers[1] = l.scratch;
  run(l, device, *add_parts_, {buffers.data() + 1, count - 1}, ceil_div(results, functions_[*add_parts_].k.columns),
      split);
}

std::string ProductKernel::text(std::string_view name) const {
  std::string all;
  for (std::size_t f = 0; f < functions_.size(); ++f)
    all += named(functions_[f].k.text, std::string(name) + (f ? "_" + std::to_string(f) : ""));
  return all;
}

}  // namespace lc::backends::gpu
