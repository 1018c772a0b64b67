// The elements of dense<...>: nested lists, one element for all, or a string of bytes in hexadecimal.
#include <bit>
#include <cstring>

#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"
#include "lightcone/stablehlo/text/attributes.h"

namespace lc::stablehlo {
namespace {

// The layout of an element in memory: complex numbers have two parts.
struct Element {
  std::string_view part;
  std::size_t bytes = 0;  // bytes of a part; 0: not supported
  int parts = 1;
  bool is_real = false, is_bool = false;
};

std::size_t bytes_of(std::string_view e) {
  if (e == "f8E4M3FN" || e == "f8E5M2") return 1;
  if (e == "i1" || e == "i8" || e == "ui8" || e == "i4" || e == "ui4" || e == "i2" || e == "ui2") return 1;
  if (e == "i16" || e == "ui16" || e == "f16" || e == "bf16") return 2;
  if (e == "i32" || e == "ui32" || e == "f32") return 4;
  if (e == "i64" || e == "ui64" || e == "f64" || e == "index") return 8;
  return 0;
}

Element element(std::string_view e) {
  Element r;
  r.part = e;
  if (e.starts_with("complex<") && e.ends_with(">")) r.part = e.substr(8, e.size() - 9), r.parts = 2;
  r.bytes = bytes_of(r.part);
  r.is_bool = r.part == "i1";
  r.is_real = r.part.starts_with("f") || r.part.starts_with("bf");
  return r;
}

class Reader {
 public:
  Reader(Scanner& s, Attribute& into, const Type& t) : s_(s), data_(into.data), e_(element(t.element)), t_(t) {}

  void read(Attribute& into) {
    if (!e_.bytes) s_.fail(str_cat("elements of type ", t_.element, " are not read"));
    wanted_ = 1;
    for (const std::int64_t n : t_.shape) {
      if (n == kDynamic) s_.fail("a constant needs a shape of numbers");
      if (n > 0 && wanted_ > (std::int64_t{1} << 48) / n) s_.fail("a constant of more than 2^48 elements");
      wanted_ *= n;
    }
    if (s_.peek() == '"') return string(into);
    if (s_.peek() == '>') return empty();
    if (s_.peek() == '[') {
      list(0);
      check_count(static_cast<std::int64_t>(data_.size() / size()));
      return;
    }
    one();
    into.splat = true;
  }

 private:
  std::size_t size() const { return e_.bytes * static_cast<std::size_t>(e_.parts); }
  void check_count(std::int64_t n) const {
    if (n != wanted_) s_.fail(str_cat(n, " elements were written for ", str(t_), ", which has ", wanted_));
  }
  void empty() const {
    if (wanted_ != 0) s_.fail(str_cat("no elements were written for ", str(t_)));
  }

  void list(std::size_t axis) {
    if (axis >= t_.shape.size()) s_.fail(str_cat("the elements are nested deeper than ", str(t_), " has axes"));
    s_.expect("[");
    std::int64_t n = 0;
    for (; !s_.eat("]"); ++n) {
      if (s_.peek() == '[') list(axis + 1);
      else if (axis + 1 < t_.shape.size() && t_.shape[axis + 1] != 0) s_.expected("'['");
      else one();
      if (!s_.eat(",") && s_.peek() != ']') s_.expected("',' or ']'");
    }
    if (n != t_.shape[axis])
      s_.fail(str_cat(n, " elements were written where axis ", axis, " of ", str(t_), " has ", t_.shape[axis]));
  }

  void put(const void* from) {
    const auto* b = static_cast<const std::byte*>(from);
    data_.insert(data_.end(), b, b + e_.bytes);
  }
  void one() {
    if (e_.parts == 1) return part();
    s_.expect("(");
    part();
    s_.expect(",");
    part();
    s_.expect(")");
  }
  void part() {
    if (s_.sees_word("true") || s_.sees_word("false")) {
      const std::uint8_t v = s_.eat_word("true") ? 1 : (s_.eat_word("false"), 0);
      if (e_.bytes != 1) s_.fail(str_cat("a truth value among elements of type ", t_.element));
      return put(&v);
    }
    const std::string n(s_.number());
    if (!e_.is_real) {
      Scanner digits(n);
      std::int64_t v = digits.integer();
      if (e_.is_bool) v = v != 0;
      return put(&v);  // little-endian: the lower bytes
    }
    if (n.find('x') != std::string::npos) {  // bits of a float
      Scanner digits(n);
      const std::int64_t v = digits.integer();
      return put(&v);
    }
    real(n);
  }
  // Rounds once, from the text to the type.
  void real(const std::string& n) {
    if (e_.part == "f32") {
      const float v = *real_of<float>(n);
      return put(&v);
    }
    const double v = *real_of<double>(n);
    if (e_.part == "f64") return put(&v);
    std::uint16_t narrow = 0;
    store_f64(&narrow, *dtype_of(e_.part), 0, v);
    put(&narrow);
  }

  // Reads "0x0000803F...": bytes in order; for i1 one bit per element, from the lowest on. One element's bytes stand
  // for all.
  void string(Attribute& into) {
    const std::string text = s_.string();
    if (!text.starts_with("0x") || text.size() % 2) s_.fail("a string of elements is 0x and two digits a byte");
    std::vector<std::byte> raw;
    raw.reserve(text.size() / 2);
    for (std::size_t k = 2; k < text.size(); k += 2) {
      const auto digit = [&](char c) -> int {
        if (c >= '0' && c <= '9') return c - '0';
        const char lower = static_cast<char>(c | 0x20);
        if (lower < 'a' || lower > 'f') s_.fail("a string of elements has a character that is no hexadecimal digit");
        return lower - 'a' + 10;
      };
      raw.push_back(static_cast<std::byte>(digit(text[k]) * 16 + digit(text[k + 1])));
    }
    if (e_.is_bool) return bits(raw, into);
    if (raw.size() == size() && wanted_ != 1) into.splat = true;
    else if (raw.size() % size()) s_.fail(str_cat(raw.size(), " bytes are not whole elements of ", str(t_)));
    else check_count(static_cast<std::int64_t>(raw.size() / size()));
    data_ = std::move(raw);
  }
  void bits(const std::vector<std::byte>& raw, Attribute& into) {
    const bool all = raw.size() == 1 && (raw[0] == std::byte{0} || raw[0] == std::byte{0xff}) && wanted_ != 8;
    if (all) {
      into.splat = true;
      return data_.assign(1, raw[0] == std::byte{0} ? std::byte{0} : std::byte{1});
    }
    if (static_cast<std::int64_t>(raw.size()) != (wanted_ + 7) / 8)
      s_.fail(str_cat(raw.size(), " bytes are not the bits of ", str(t_)));
    for (std::int64_t k = 0; k < wanted_; ++k) data_.push_back(raw[k / 8] >> (k % 8) & std::byte{1});
  }

  Scanner& s_;
  std::vector<std::byte>& data_;
  Element e_;
  const Type& t_;
  std::int64_t wanted_ = 0;
};

}  // namespace

void read_elements(Scanner& s, Attribute& into, const Type& t) { Reader(s, into, t).read(into); }

}  // namespace lc::stablehlo
