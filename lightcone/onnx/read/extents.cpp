#include "lightcone/onnx/read/extents.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "lightcone/io/printable.h"
#include "lightcone/ops/ops.h"

namespace lc::onnx {
namespace {

// A recursive descent parser of sums, products and atoms.
class ExtentParser {
 public:
  ExtentParser(std::string_view text, const std::function<std::optional<Dim>(std::string_view)>& known)
      : text_(text), known_(known) {}
  std::optional<Dim> parse() {
    const auto d = sum();
    skip();
    return at_ == text_.size() ? d : std::nullopt;
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool eat(std::string_view token) {
    skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  std::optional<Dim> sum() {
    auto a = term();
    while (a) {
      const bool plus = eat("+");
      if (!plus && !eat("-")) break;
      const auto b = term();
      if (!b) return std::nullopt;
      a = plus ? *a + *b : *a - *b;
    }
    return a;
  }
  std::optional<Dim> term() {
    auto a = atom();
    while (a) {
      const bool times = eat("*");
      if (!times && !eat("//") && !eat("/")) break;
      const auto b = atom();
      if (!b || (!times && b->bounds().lo <= 0)) return std::nullopt;
      a = times ? *a * *b : *a / *b;
    }
    return a;
  }
  std::optional<Dim> atom() {
    skip();
    if (++depth_ > 50) return std::nullopt;
    if (eat("(")) {
      const auto d = sum();
      return d && eat(")") ? d : std::nullopt;
    }
    std::size_t end = at_;
    const auto in_word = [](char c) {
      return c == '_' || c == '.' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
    };
    while (end < text_.size() && in_word(text_[end])) ++end;
    const std::string_view word = text_.substr(at_, end - at_);
    at_ = end;
    std::int64_t n = 0;
    if (const auto [rest, failed] = std::from_chars(word.data(), word.data() + word.size(), n);
        failed == std::errc() && rest == word.data() + word.size())
      return n < (std::int64_t{1} << 31) ? std::optional<Dim>(n) : std::nullopt;
    return word.empty() ? std::nullopt : known_(word);
  }

  std::string_view text_;
  const std::function<std::optional<Dim>(std::string_view)>& known_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::string symbol_name(std::string_view parameter) {
  std::string s = printable(parameter, 200);
  if (s.size() > 1 && s[0] == 'i' && s.find_first_not_of("0123456789", 1) == s.npos) s = "extent_" + s;
  return s;
}

std::optional<Dim> parse_extent(std::string_view text,
                                const std::function<std::optional<Dim>(std::string_view)>& known) {
  if (const auto whole = known(text); whole && text.find_first_of("+-*/() ") == text.npos) return whole;
  if (text.find_first_of("+*/-") == text.npos || text.size() > 1000) return std::nullopt;
  return ExtentParser(text, known).parse();
}

Tensor value_tensor(Graph& g, const std::vector<Dim>& elements, const Shape& shape, DType dtype) {
  if (elements.empty()) return full(g, shape, 0, dtype);
  std::vector<Tensor> each;
  for (const Dim& d : elements) {
    if (const auto c = d.constant()) each.push_back(g.constant(*c, dtype).reshape({1}));
    else each.push_back(prim::cast(g.index({}, d, DType::I64), dtype).reshape({1}));
  }
  return (each.size() == 1 ? each[0] : concat(each, 0)).reshape(shape);
}

Tensor regular_tensor(Graph& g, const ArrayView& a) {
  const Shape shape(a.shape.begin(), a.shape.end());
  const std::size_t size = size_of(a.dtype), n = a.bytes.size() / size;
  if (n == 0) return full(g, shape, 0, a.dtype);
  const auto& b = a.bytes;
  if (std::memcmp(b.data(), b.data() + size, b.size() - size) == 0) {  // every element equals the next
    if (is_float(a.dtype)) return full(g, shape, load_f64(b.data(), a.dtype, 0), a.dtype);
    return full(g, shape, load_i64(b.data(), a.dtype, 0), a.dtype);
  }
  if (is_float(a.dtype) || a.dtype == DType::Bool) return {};
  constexpr std::int64_t kSmall = std::int64_t{1} << 40;
  const std::int64_t first = load_i64(b.data(), a.dtype, 0), second = load_i64(b.data(), a.dtype, 1);
  const auto small = [](std::int64_t v) { return v >= -kSmall && v <= kSmall; };
  if (!small(first) || !small(second)) return {};
  for (std::size_t k = 2; k < n; ++k) {
    const std::int64_t v = load_i64(b.data(), a.dtype, k);
    if (!small(v) || v != first + static_cast<std::int64_t>(k) * (second - first)) return {};
  }
  const Dim flat = Dim(static_cast<std::int64_t>(n));
  return g.index({flat}, Dim(first) + Dim::index(0, flat) * Dim(second - first), a.dtype).reshape(shape);
}

}  // namespace lc::onnx
