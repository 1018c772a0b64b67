// Philox in plain integer operations, so that every device draws the same words (random/random_bits.h).
#include <array>

#include "lightcone/random/random_bits.h"
#include "lightcone/stablehlo/write/writer.h"

namespace lc::stablehlo {
namespace {

ValueId exclusive_or(Builder& b, ValueId x, ValueId y) { return b.binary("stablehlo.xor", x, y); }

// Returns the high and the low 32 bits of a 64-bit number.
std::array<ValueId, 2> words_of(Builder& b, ValueId x) {
  const ValueId high = b.binary("stablehlo.shift_right_logical", x, b.like_whole(x, 32));
  return {b.convert(high, "ui32"), b.convert(x, "ui32")};
}

std::array<ValueId, 2> product(Builder& b, ValueId word, std::uint32_t by) {
  const ValueId wide = b.convert(word, "ui64");
  return words_of(b, b.multiply(wide, b.like_whole(wide, by)));
}

}  // namespace

ValueId write_random_bits(Builder& b, const Node& n, ValueId step) {
  const Sizes shape = b.sizes(n.shape);
  const Dim all_words = lc::product(n.shape), all_blocks = (all_words + 3) / 4;
  const std::int64_t count = b.sizes().of(all_words), blocks = b.sizes().of(all_blocks);
  if (count == 0) return b.splat("i32", shape, 0);
  const auto everywhere = [&](ValueId scalar) { return b.broadcast(scalar, {blocks}, {}); };
  const auto block = words_of(b, b.iota("ui64", {blocks}, 0)), at = words_of(b, b.bitcast(step, "ui64"));
  std::array<ValueId, 4> c{block[1], block[0], everywhere(at[1]), everywhere(at[0])};
  Philox::Key key = Philox::key(n.attributes.integer("seed"), n.attributes.integer("stream"));
  for (int round = 0; round < Philox::kRounds; ++round) {
    const auto p = product(b, c[0], Philox::kMultiplier[0]), q = product(b, c[2], Philox::kMultiplier[1]);
    const auto mixed = [&](ValueId high, ValueId word, std::uint32_t k) {
      return exclusive_or(b, exclusive_or(b, high, word), b.like_whole(word, k));
    };
    c = {mixed(q[0], c[1], key[0]), q[1], mixed(p[0], c[3], key[1]), p[1]};
    key = {key[0] + Philox::kWeyl[0], key[1] + Philox::kWeyl[1]};
  }
  std::vector<ValueId> columns;
  for (const ValueId word : c) columns.push_back(b.reshape(word, {blocks, 1}));
  const ValueId all = b.reshape(b.concatenate(columns, 1), {b.sizes().of(all_blocks * 4)});
  return b.bitcast(b.reshape(b.slice(all, {0}, {count}, {1}), shape), "i32");
}

}  // namespace lc::stablehlo
