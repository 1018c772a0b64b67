// Matrix products with something before or behind them, and with weights in blocks of few bits.
#include "lightcone/composites/composites.h"
#include "lightcone/onnx/microsoft/microsoft.h"

namespace lc::onnx {
namespace {

// Moves axis 0 before the last one, and swaps the last two, as the attributes say.
Tensor transposed(const Tensor& t, bool batch, bool swapped) {
  if (t.rank() < 2) return t;
  Tensor r = t;
  if (batch) r = movedim(r, {0}, {r.rank() - 2});
  return swapped ? r.transpose(-1, -2) : r;
}
Tensor fused_product(Call& c) {
  const double alpha = c.number("alpha", 1);
  const Tensor a = transposed(c.x(0), c.flag("transBatchA"), c.flag("transA")),
               b = transposed(c.x(1), c.flag("transBatchB"), c.flag("transB"));
  const Tensor y = matmul(a, b);
  return alpha == 1 ? y : y * alpha;
}
Values fused_matmul(Call& c) { return {fused_product(c)}; }
Values fused_matmul_activation(Call& c) {
  const std::string_view name = c.text("activation");
  const double alpha = c.number("activation_alpha", 0.01), beta = c.number("activation_beta", 0);
  c.ignore("activation_gamma");
  const Tensor y = fused_product(c);
  if (name == "Softmax") return {softmax(y, c.axis("activation_axis", -1, y.rank()))};
  c.ignore("activation_axis");
  return {activated(c, y, name, alpha, beta)};
}
Values fused_gemm(Call& c) {
  const std::string_view name = c.text("activation");
  const double more = c.number("activation_alpha", 0.01), again = c.number("activation_beta", 0),
               beta = c.number("beta", 1);
  c.ignore("activation_gamma");
  Tensor y = fused_product(c);
  if (c.has(2)) {
    const Tensor bias = expand_to(c, c.x(2), y.shape());
    y = y + (beta == 1 ? bias : bias * beta);
  }
  return {activated(c, y, name, more, again)};
}
Values gemm_fast_gelu(Call& c) {
  const Tensor y = matmul(c.x(0), c.x(1));
  return {gelu(c.has(2) ? y + c.x(2) : y, "tanh")};
}

// ---- weights in blocks --------------------------------------------------------------------------------

// u8 [.., n] with 8 / bits codes in a byte, lowest bits first: [.., n * 8 / bits].
Tensor codes_of(const Tensor& bytes, std::int64_t bits) {
  if (bits == 8) return bytes;
  const std::int64_t each = 8 / bits;
  std::vector<Tensor> parts;
  for (std::int64_t k = 0; k < each; ++k) {
    const Tensor down = k ? prim::div(bytes, full_like(bytes, std::int64_t{1} << (bits * k))) : bytes;
    parts.push_back(prim::bitwise_and(down, full_like(down, (1 << bits) - 1)));
  }
  Shape s = bytes.shape();
  s.back() = s.back() * Dim(each);
  return stack(parts, -1).reshape(s);
}
// A number for each block of `size` neighbours along `axis`, repeated and cut to n.
Tensor for_each_of_block(const Tensor& t, int axis, std::int64_t size, const Dim& n) {
  Shape s = t.shape(), repeated = s;
  repeated.insert(repeated.begin() + axis + 1, size);
  auto& whole = s[static_cast<std::size_t>(axis)];
  whole = whole * Dim(size);
  return narrow(t.unsqueeze(axis + 1).expand(repeated).reshape(s), axis, 0, n);
}

struct Blocks {
  Tensor codes = {};             // u8 [n, k] that is read in blocks
  Tensor scale = {}, zero = {};  // [n, blocks]; zero in f32, undefined for the middle of the range
  std::int64_t n = 0, k = 0, size = 0, bits = 0;
  double middle() const { return static_cast<double>(std::int64_t{1} << (bits - 1)); }
};

// Bytes of a block format, [n, k / 32 * bytes of a block]: ggml's scale as f16 [n, k / 32], perhaps a minimum of the
// same kind, then codes.
Tensor in_blocks_of(const Blocks& w, QuantFormat format) {
  const QuantInfo& q = info(format);
  const Shape blocks{w.n, w.k / q.elements, q.elements};
  const auto halves = [&](const Tensor& t) {  // two bytes of each block's number
    const Tensor one = for_each_of_block(prim::cast(t, DType::F16), 1, w.size / q.elements, w.k / q.elements);
    const Tensor bits = prim::bitcast(prim::contiguous(one), DType::U16).unsqueeze(2);
    const Tensor low = prim::cast(prim::bitwise_and(bits, full_like(bits, 255)), DType::U8),
                 high = prim::cast(prim::div(bits, full_like(bits, 256)), DType::U8);
    return concat({low, high}, 2);
  };
  Tensor codes = w.codes.reshape(blocks);
  if (q.q.low.packing.bits == 4) {  // 16 low nibbles, then 16 high ones
    const Tensor low = narrow(codes, 2, 0, 16), high = narrow(codes, 2, 16, 16);
    codes = prim::add(low, prim::mul(high, full_like(high, 16)));
  } else {  // signed bytes
    codes = prim::bitwise_xor(codes, full_like(codes, 128));
  }
  std::vector<Tensor> parts{halves(w.scale)};
  if (q.d_min >= 0) parts.push_back(halves(neg(prim::cast(w.scale, DType::F32) * w.zero)));
  parts.push_back(codes);
  return prim::contiguous(concat(parts, 2).reshape({w.n, w.k / q.elements * q.bytes}));
}

// The weight as numbers [n, k]. ggml's formats keep a scale as f16, so a scale in f32 would lose bits: it may where the
// model allows activations of 8 bits.
Tensor numbers_of(const Blocks& w, bool may_round) {
  const bool fits = w.size % 32 == 0 && w.k % w.size == 0, exact = w.scale.dtype() == DType::F16;
  if (fits && !w.zero.defined() && (exact || may_round) && (w.bits == 4 || w.bits == 8)) {
    const QuantFormat f = w.bits == 4 ? QuantFormat::Q4_0 : QuantFormat::Q8_0;
    return prim::dequantize(in_blocks_of(w, f), f);
  }
  if (fits && w.zero.defined() && may_round && w.bits == 4)
    return prim::dequantize(in_blocks_of(w, QuantFormat::Q4_1), QuantFormat::Q4_1);
  const Tensor q = prim::cast(narrow(w.codes, 1, 0, w.k), DType::F32);
  const Tensor scale = for_each_of_block(prim::cast(w.scale, DType::F32), 1, w.size, w.k);
  const Tensor centred = w.zero.defined() ? q - for_each_of_block(w.zero, 1, w.size, w.k) : q - w.middle();
  return centred * scale;
}

Values matmul_n_bits(Call& c) {
  const Tensor a = c.x(0), b = c.x(1);
  Blocks w{.n = c.integer("N"), .k = c.integer("K"), .size = c.integer("block_size"), .bits = c.integer("bits", 4)};
  if (w.bits != 2 && w.bits != 4 && w.bits != 8) c.refuse(str_cat("has weights of ", w.bits, " bits"));
  if (w.size < 16 || w.n < 1 || w.k < 1 || w.size > (1 << 20) || w.n > INT32_MAX || w.k > INT32_MAX)
    c.refuse("has sizes that cannot be");
  if (c.flag("weight_prepacked")) c.refuse("has weights in the layout of one device");
  if (c.has(4)) c.refuse("has groups in an order of their own (g_idx)");
  const std::int64_t level = c.integer("accuracy_level", 0), blocks = (w.k + w.size - 1) / w.size;
  if (b.dtype() != DType::U8 || product(b.shape()) != Dim(w.n) * Dim(blocks * w.size * w.bits / 8))
    c.refuse(str_cat("has weights ", str(b.shape()), " of ", name(b.dtype()), ", which its sizes do not fit"));
  w.codes = codes_of(b.reshape({w.n, blocks * w.size * w.bits / 8}), w.bits);
  w.scale = c.x(2).reshape({w.n, blocks});
  if (Tensor zero = c.optional(3); zero.defined()) {
    if (zero.dtype() == DType::U8) zero = narrow(codes_of(zero.reshape({w.n, -1}), w.bits), 1, 0, blocks);
    w.zero = prim::cast(zero.reshape({w.n, blocks}), DType::F32);
  }
  Tensor y = linear(prim::cast(a, DType::F32), numbers_of(w, level == 4));
  if (const Tensor bias = c.optional(5); bias.defined()) y = y + prim::cast(bias, DType::F32);
  return {prim::cast(y, a.dtype())};
}

// Rows of a table in blocks: codes, scales and zero points are gathered, then become numbers.
Values gather_block_quantized(Call& c) {
  Tensor data = c.x(0), scale = c.x(2), zero = c.optional(3);
  const std::int64_t bits = c.integer("bits", 4), size = c.integer("block_size", 128);
  if (is_float(data.dtype())) c.refuse("has a table of 8-bit floats");
  if (bits != 2 && bits != 4 && bits != 8) c.refuse(str_cat("has codes of ", bits, " bits"));
  if (size < 16 || size > (1 << 20)) c.refuse("has blocks of an impossible size");
  const bool packed = is_packed(c.value(0).packed);  // the file has 4 bits; here they are bytes
  const int gathered = c.axis("gather_axis", 0, data.rank()), blocked = c.axis("quantize_axis", 1, data.rank());
  if (scale.rank() != data.rank() || (zero.defined() && zero.rank() != data.rank()))
    c.refuse(str_cat("has scales ", str(scale.shape()), " for a table ", str(data.shape())));
  if (gathered == blocked) c.refuse("gathers along the axis of its blocks");
  const Tensor index = c.x(1).to(DType::I64);
  const Tensor at = where(index < 0, index + c.graph().index({}, data.extent(gathered)), index);
  const auto rows = [&](const Tensor& t) { return index_select(t, gathered, at.reshape({product(at.shape())})); };
  data = rows(data), scale = rows(scale);
  if (zero.defined()) zero = rows(zero);
  double middle = 0;
  if (!packed && data.dtype() == DType::U8) {
    if (gathered != 0) c.refuse("gathers packed codes along an axis that is not the first");
    data = codes_of(data, bits);
    if (zero.defined()) zero = narrow(codes_of(zero, bits), blocked, 0, scale.extent(blocked));
    middle = static_cast<double>(std::int64_t{1} << (bits - 1));
  }
  const Dim n = data.extent(blocked);
  Tensor q = prim::cast(data, DType::F32);
  if (zero.defined()) q = q - for_each_of_block(prim::cast(zero, DType::F32), blocked, size, n);
  else if (middle != 0) q = q - middle;
  Shape to = q.shape();
  const Shape s = at.shape();
  to.erase(to.begin() + gathered);
  to.insert(to.begin() + gathered, s.begin(), s.end());
  const Tensor y = q * for_each_of_block(prim::cast(scale, DType::F32), blocked, size, n);
  return {prim::cast(y, scale.dtype()).reshape(to)};
}

}  // namespace

void add_microsoft_products(Operators& t) {
  const Operator rows[] = {
      {kMicrosoft, "FusedGemm", 1, fused_gemm, "matmul, a bias and an activation"},
      {kMicrosoft, "FusedMatMul", 1, fused_matmul, "matmul of views"},
      {kMicrosoft, "FusedMatMulActivation", 1, fused_matmul_activation, "matmul and an activation"},
      {kMicrosoft, "GatherBlockQuantized", 1, gather_block_quantized, "rows of codes and scales, then their numbers"},
      {kMicrosoft, "GemmFastGelu", 1, gemm_fast_gelu, "matmul, gelu by tanh"},
      {kMicrosoft, "MatMulNBits", 1, matmul_n_bits, "linear with a weight in Q4_0, Q4_1 or Q8_0, or in f32"},
      {kMicrosoft, "TransposeMatMul", 1, fused_matmul, "matmul of views"},
  };
  t.insert(t.end(), std::begin(rows), std::end(rows));
}

}  // namespace lc::onnx
