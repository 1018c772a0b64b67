// Element types of the dialect quant: https://mlir.llvm.org/docs/Dialects/QuantDialect/.
#include <algorithm>

#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"
#include "lightcone/stablehlo/text/scanner.h"

namespace lc::stablehlo {
namespace {

constexpr std::size_t kMostScales = 1 << 20;

// Parses i8, u4 and so on, with the range of the numbers. Fewer than 8 bits are stored in a byte.
void storage(Scanner& s, Quantization& q) {
  const std::string word(s.word());
  const bool has_sign = !word.starts_with("u");
  int bits = 0;
  for (const int n : {2, 4, 8, 16, 32})
    if (word.ends_with("i" + std::to_string(n)) || word == "u" + std::to_string(n)) bits = n;
  if (!bits) throw Error("", str_cat("numbers that are stored as ", word, " are not supported"));
  q.storage = str_cat(has_sign ? "i" : "ui", std::max(bits, 8));
  q.least = has_sign ? -(std::int64_t{1} << (bits - 1)) : 0;
  q.most = (std::int64_t{1} << (has_sign ? bits - 1 : bits)) - 1;
  if (!s.eat("<")) return;
  q.least = s.integer();
  s.expect(":");
  q.most = s.integer();
  s.expect(">");
}

void scale(Scanner& s, Quantization& q) {
  if (q.scales.size() >= kMostScales) throw Error("", "it has too many scales");
  const double v = real_of<double>(s.number()).value_or(0);
  if (!(v > 0)) throw Error("", str_cat("a scale is a positive number, not ", v));
  q.scales.push_back(v);
  q.zero_points.push_back(s.eat(":") ? s.integer() : 0);
}

}  // namespace

std::optional<Quantization> quantization_of(std::string_view element) {
  if (!element.starts_with("!quant.uniform<")) return std::nullopt;
  Quantization q;
  Scanner s(element);
  s.expect("!quant.uniform<");
  storage(s, q);
  s.expect(":");
  q.expressed = s.word();
  if (const auto type = dtype_of(q.expressed); !type || !is_float(*type))
    throw Error("", str_cat("quantised numbers that stand for ", q.expressed, " are not supported"));
  if (s.eat(":")) {
    if (s.peek() == '{') throw Error("", "scales of blocks are not supported");
    q.axis = static_cast<int>(s.integer());
  }
  s.expect(",");
  if (s.eat("{")) {
    if (s.peek() == '{' || q.axis < 0) throw Error("", "scales of blocks are not supported");
    do scale(s, q);
    while (s.eat(","));
    s.expect("}");
  } else {
    scale(s, q);
  }
  s.expect(">");
  return q;
}

}  // namespace lc::stablehlo
