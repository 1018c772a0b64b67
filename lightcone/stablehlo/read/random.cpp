// Random bits by Threefry 2x32 with 20 rounds, the same words as XLA's.
//
// J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#include <algorithm>
#include <array>

#include "lightcone/ops/special/special.h"
#include "lightcone/stablehlo/read/reader.h"

namespace lc::stablehlo {
namespace {

struct Words {
  Tensor low, high;  // u32
};

Tensor plus(const Tensor& a, std::int64_t n) { return prim::add(a, full_like(a, n)); }
Tensor rotated(const Tensor& x, int by) {
  return bitwise_or(bitwise_left_shift(x, full_like(x, by)), bitwise_right_shift(x, full_like(x, 32 - by)));
}

Words threefry(Words x, const Words& key) {
  constexpr std::array<std::array<int, 4>, 2> kRotations = {{{13, 15, 26, 6}, {17, 29, 16, 24}}};
  constexpr std::int64_t kParity = 0x1BD11BDA;
  const Tensor third = bitwise_xor(bitwise_xor(key.low, key.high), full_like(key.low, kParity));
  const std::array<Tensor, 3> keys = {key.low, key.high, third};
  x.low = prim::add(x.low, keys[0]), x.high = prim::add(x.high, keys[1]);
  for (std::size_t group = 0; group < 5; ++group) {
    for (const int by : kRotations[group % 2]) {
      x.low = prim::add(x.low, x.high);
      x.high = bitwise_xor(x.low, rotated(x.high, by));
    }
    x.low = prim::add(x.low, keys[(group + 1) % 3]);
    x.high = plus(prim::add(x.high, keys[(group + 2) % 3]), static_cast<std::int64_t>(group + 1));
  }
  return x;
}

Words halves(const Tensor& u64) {
  return {prim::cast(u64, DType::U32), prim::cast(bitwise_right_shift(u64, full_like(u64, 32)), DType::U32)};
}

// Returns the encrypted state + 0, 1, 2, ... in row-major order.
Words blocks(const Call& c, const Shape& shape, const Tensor& key, const Tensor& counter) {
  Dim e = 0;
  for (std::size_t a = 0; a < shape.size(); ++a) e = e * shape[a] + Dim::index(static_cast<int>(a), shape[a]);
  const Tensor at = prim::add(c.graph().index(shape, e, DType::U64), to_shape(counter, shape));
  const Words k = halves(key);
  return threefry(halves(at), {to_shape(k.low, shape), to_shape(k.high, shape)});
}

// Returns words of 32 bits, two per block: the first words fill one half of an axis, the second ones the other half.
// The axis is the first one of even extent or, if there is none, the longest.
Tensor words_of_32(const Call& c, Shape shape, const Tensor& key, const Tensor& counter, std::int64_t& used) {
  const bool scalar = shape.empty();
  if (scalar) shape = {1};
  std::size_t axis = shape.size();
  for (std::size_t a = 0; a < shape.size() && axis == shape.size(); ++a)
    if (*shape[a].constant() % 2 == 0) axis = a;
  if (axis == shape.size())
    axis = static_cast<std::size_t>(std::ranges::max_element(shape, {}, [](const Dim& d) { return *d.constant(); }) -
                                    shape.begin());
  Shape half = shape;
  half[axis] = (*shape[axis].constant() + 1) / 2;
  used = *product(half).constant();
  const Words w = blocks(c, half, key, counter);
  const Tensor all = cat({w.low, w.high}, static_cast<int>(axis)).slice(static_cast<int>(axis), 0, shape[axis]);
  return scalar ? all.reshape({}) : all;
}

std::vector<Tensor> rng_bit_generator(const Call& c) {
  const std::string algorithm = c.word("rng_algorithm", "DEFAULT");
  if (algorithm != "THREE_FRY") c.refuse(str_cat("by ", algorithm, " is not supported: THREE_FRY is"));
  if (c.in.size() != 1 || c.x().dtype() != DType::U64 || !(c.x().shape() == Shape{2}))
    c.refuse("takes a state of tensor<2xui64>");
  const Tensor key = c.x().select(0, 0), counter = c.x().select(0, 1);
  const DType to = c.dtype(1);
  const Shape shape = shape_of(static_shape(c, 1));
  std::int64_t used = *product(shape).constant();
  Tensor bits;
  if (used == 0) {
    bits = full(c.graph(), shape, 0, to);
  } else if (size_of(to) == 4 && to != DType::F32) {
    bits = bitcast(words_of_32(c, shape, key, counter, used), to);
  } else if (to == DType::U64 || to == DType::I64) {
    const Words w = blocks(c, shape, key, counter);
    const Tensor high = prim::cast(w.high, DType::U64);
    bits = bitcast(bitwise_or(prim::cast(w.low, DType::U64), bitwise_left_shift(high, full_like(high, 32))), to);
  } else {
    c.refuse(str_cat("gives ", name(to), ", which is not supported: integers of 32 and 64 bits are"));
  }
  const Tensor next = cat({key.reshape({1}), plus(counter, used).reshape({1})}, 0);
  return {next, bits};
}

}  // namespace

void add_random(Rules& r) { r["stablehlo.rng_bit_generator"] = rng_bit_generator; }

}  // namespace lc::stablehlo
