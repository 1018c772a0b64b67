// Index expressions are computed from iotas. Comparisons have the value 1 or 0; masks are made of them as bool.
#include "lightcone/stablehlo/write/index.h"

#include <algorithm>
#include <map>
#include <optional>

#include "lightcone/base/error.h"

namespace lc::stablehlo {
namespace {

class IndexWriter {
 public:
  // `axes`: the index symbols of the axes of the shape. Other symbols are sizes.
  IndexWriter(Builder& b, Sizes shape, std::vector<std::string> axes, std::string_view element)
      : b_(b), shape_(std::move(shape)), axes_(std::move(axes)), element_(element) {}

  ValueId number(const Dim& d) {
    ValueId sum = -1;
    const auto add = [&](ValueId v) { sum = sum < 0 ? v : b_.add(sum, v); };
    for (const Dim::Term& t : d.terms()) {
      ValueId v = -1;
      for (const Dim::Atom* f : t.factors) v = v < 0 ? atom(*f) : b_.multiply(v, atom(*f));
      add(t.coefficient == 1 ? v : b_.multiply(v, number_of(t.coefficient)));
    }
    if (d.offset() != 0 || sum < 0) add(number_of(d.offset()));
    return sum;
  }

  // Returns a product of comparisons as a mask, or nullopt for another expression.
  std::optional<ValueId> mask(const Dim& d) {
    if (d.offset() != 0 || d.terms().size() != 1 || d.terms()[0].coefficient != 1) return std::nullopt;
    const auto is_less = [](const Dim::Atom* f) { return f->kind == Dim::Kind::Less; };
    if (!std::ranges::all_of(d.terms()[0].factors, is_less)) return std::nullopt;
    ValueId all = -1;
    for (const Dim::Atom* f : d.terms()[0].factors) {
      const ValueId v = less(*f);
      all = all < 0 ? v : b_.both(all, v);
    }
    return all;
  }

 private:
  ValueId number_of(std::int64_t v) { return b_.splat_whole(element_, shape_, v); }

  // Writes a < b with the constants on one side: i - 3 < 0 becomes i < 3.
  ValueId less(const Dim::Atom& a) {
    const Dim d = a.a - a.b;
    return b_.compare(number(d - d.offset()), number_of(-d.offset()), "LT");
  }

  ValueId atom(const Dim::Atom& a) {
    if (const auto at = known_.find(&a); at != known_.end()) return at->second;
    return known_[&a] = written(a);
  }
  ValueId written(const Dim::Atom& a) {
    switch (a.kind) {
      case Dim::Kind::Symbol: {
        const auto at = std::ranges::find(axes_, a.name);
        if (at == axes_.end()) return size(a.name);
        return b_.iota(element_, shape_, static_cast<std::size_t>(at - axes_.begin()));
      }
      case Dim::Kind::Min: return b_.binary("stablehlo.minimum", number(a.a), number(a.b));
      case Dim::Kind::Less: return b_.convert(less(a), element_);
      case Dim::Kind::Div:
      case Dim::Kind::Mod: return quotient(a);
    }
    return -1;
  }
  ValueId size(const std::string& symbol) {
    const auto at = b_.told().find(symbol);
    check(at != b_.told().end(), "an expression names a size that nobody tells");
    return b_.broadcast(b_.convert(at->second, element_), shape_, {});
  }
  // Rounds down, whereas StableHLO rounds towards zero.
  ValueId quotient(const Dim::Atom& a) {
    const bool divides = a.kind == Dim::Kind::Div;
    const ValueId x = number(a.a), y = number(a.b);
    const ValueId q = b_.binary(divides ? "stablehlo.divide" : "stablehlo.remainder", x, y);
    if (a.a.bounds().lo >= 0 && a.b.bounds().lo > 0) return q;
    const ValueId zero = number_of(0), rest = divides ? b_.binary("stablehlo.remainder", x, y) : q;
    const ValueId signs = b_.binary("stablehlo.xor", b_.compare(rest, zero, "LT"), b_.compare(y, zero, "LT"));
    const ValueId down = b_.both(b_.compare(rest, zero, "NE"), signs);
    return b_.select(down, b_.add(q, divides ? number_of(-1) : y), q);
  }

  Builder& b_;
  Sizes shape_;
  std::vector<std::string> axes_;
  std::string_view element_;
  std::map<const Dim::Atom*, ValueId> known_;
};

// Returns true if every intermediate number fits in 32 bits.
bool is_small(const Dim& d) {
  constexpr std::int64_t kMost = INT32_MAX / 2;
  if (d.bounds().lo < -kMost || d.bounds().hi > kMost || std::abs(d.offset()) > kMost) return false;
  for (const Dim::Term& t : d.terms()) {
    double most = std::abs(static_cast<double>(t.coefficient));
    for (const Dim::Atom* f : t.factors) {
      most *= std::max(std::abs(static_cast<double>(f->bounds.lo)), std::abs(static_cast<double>(f->bounds.hi)));
      if (f->kind != Dim::Kind::Symbol && (!is_small(f->a) || !is_small(f->b))) return false;
    }
    if (most > static_cast<double>(kMost) / 16) return false;
  }
  return true;
}

}  // namespace

ValueId write_size(Builder& b, const Dim& d) { return IndexWriter(b, {}, {}, "i64").number(d); }

// Computes only the axes that the expression depends on and broadcasts along the others.
ValueId write_index(Builder& b, const Dim& d, const Sizes& shape, DType type) {
  const std::string_view to = element_of(type);
  if (const auto v = d.constant()) {
    if (is_float(type)) return b.splat(to, shape, static_cast<double>(*v));
    return b.splat_whole(to, shape, *v);
  }
  const auto symbols = d.symbols();
  Sizes some;
  std::vector<std::string> names;
  std::vector<std::size_t> axes;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (const std::string name = Dim::index_name(static_cast<int>(i)); symbols.contains(name))
      some.push_back(shape[i]), names.push_back(name), axes.push_back(i);
  const bool narrow = type != DType::I64 && is_small(d);
  IndexWriter w(b, some, names, narrow ? "i32" : "i64");
  const auto mask = w.mask(d);
  return b.broadcast(b.convert(mask ? *mask : w.number(d), to), shape, axes);
}

}  // namespace lc::stablehlo
