// Builds operations of a block of a module, with the result types of StableHLO's type rules.
//
// Operations without effect (a transpose that keeps the order, a reshape to the same shape) are not written, and unread
// operations are removed. For open extents, the variants of operations that take shapes as operands are used.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "lightcone/stablehlo/module.h"
#include "lightcone/stablehlo/write/sizes.h"

namespace lc::stablehlo {

Attribute flag(bool v);
Attribute whole(std::int64_t v, std::string element = "i64");
Attribute integers(Sizes v);
Attribute bools(const std::vector<bool>& v);
Attribute dense_pairs(const Sizes& v);  // [n, 2] of i64: padding
Attribute enumerated(std::string_view name, std::string_view text);

bool is_float_element(std::string_view element);
bool is_unsigned_element(std::string_view element);  // also true for i1

class Builder {
 public:
  explicit Builder(Module& m) : module_(m) {}

  SizeTable& sizes() { return sizes_; }
  Sizes sizes(const Shape& s) { return sizes_.of(s); }
  // Defines a symbol in this block as a scalar of i64.
  void tell(const std::string& symbol, ValueId v) { scope_.symbols[symbol] = v; }
  const std::map<std::string, ValueId>& told() const { return scope_.symbols; }
  // Returns an extent as a scalar of i64.
  ValueId scalar(std::int64_t size);
  // Returns extents as a list.
  ValueId list(const Sizes& s);

  // Returns a copy, because creating a value moves all others; so do shape() and element().
  Type type(ValueId v) const { return module_.values[static_cast<std::size_t>(v)].type; }
  Sizes shape(ValueId v) const { return type(v).shape; }
  std::string element(ValueId v) const { return type(v).element; }

  // Returns a new block with arguments of these types; `write` adds its operations.
  Block block(const std::vector<Type>& arguments,
              const std::function<std::vector<ValueId>(const std::vector<ValueId>&)>& write,
              std::string_view terminator = "stablehlo.return");
  // Returns a block whose arguments exist already: the body of a function.
  Block block_of(std::vector<ValueId> arguments, const std::function<std::vector<ValueId>()>& write,
                 std::string_view terminator);

  std::vector<ValueId> operation(std::string_view name, std::vector<ValueId> operands, std::vector<Type> results,
                                 AttributeList attributes = {}, std::vector<Block> regions = {});
  ValueId one(std::string_view name, std::vector<ValueId> operands, Type result, AttributeList attributes = {},
              std::vector<Block> regions = {});

  // Returns a constant with the same number everywhere.
  ValueId splat(std::string_view element, const Sizes& shape, double v);
  // Returns such a constant of an integer type, with all 64 bits.
  ValueId splat_whole(std::string_view element, const Sizes& shape, std::int64_t v);
  ValueId like(ValueId x, double v) { return splat(element(x), shape(x), v); }
  ValueId like_whole(ValueId x, std::int64_t v) { return splat_whole(element(x), shape(x), v); }
  ValueId like_size(ValueId x, std::int64_t size);  // x has an integer type
  ValueId iota(std::string_view element, const Sizes& shape, std::size_t axis);

  ValueId unary(std::string_view name, ValueId x) { return one(name, {x}, type(x)); }
  ValueId binary(std::string_view name, ValueId a, ValueId b) { return one(name, {a, b}, type(a)); }
  ValueId add(ValueId a, ValueId b) { return binary("stablehlo.add", a, b); }
  ValueId multiply(ValueId a, ValueId b) { return binary("stablehlo.multiply", a, b); }
  ValueId both(ValueId a, ValueId b) { return binary("stablehlo.and", a, b); }
  ValueId compare(ValueId a, ValueId b, std::string_view direction);  // `direction`: "LT"
  ValueId select(ValueId condition, ValueId a, ValueId b) {
    return one("stablehlo.select", {condition, a, b}, type(a));
  }
  ValueId convert(ValueId x, std::string_view to);  // to i1: x != 0
  ValueId bitcast(ValueId x, std::string_view to);

  ValueId reshape(ValueId x, const Sizes& to);
  ValueId transpose(ValueId x, const std::vector<std::size_t>& permutation);  // axis i is axis permutation[i] of x
  ValueId broadcast(ValueId x, const Sizes& to, const std::vector<std::size_t>& axes);  // `axes`: where those of x go
  ValueId slice(ValueId x, const Sizes& begin, const Sizes& end, const Sizes& step);
  ValueId pad(ValueId x, ValueId value, const Sizes& low, const Sizes& high);
  ValueId reverse(ValueId x, const std::vector<std::size_t>& axes);
  ValueId concatenate(const std::vector<ValueId>& parts, std::size_t axis);
  // `sizes`: the slices' sizes. `to`: the shape of the result.
  ValueId gather(ValueId x, ValueId index, Attribute dimension_numbers, const Sizes& sizes, const Sizes& to);
  ValueId reduce(ValueId x, ValueId initial, const std::vector<std::size_t>& axes, std::string_view combine);

  // Returns the body of a reduction or a scatter: `combine` applied to two scalars.
  Block combining(std::string_view element, std::string_view combine);

 private:
  ValueId constant(std::string_view element, const Sizes& shape, std::vector<std::byte> data);

  // The values available in the block being written.
  struct Scope {
    std::vector<Operation> operations;
    std::map<std::tuple<std::string, Sizes, std::vector<std::byte>>, ValueId> constants;
    std::map<ValueId, ValueId> reshaped;  // the operand of a reshape
    std::map<std::string, ValueId> symbols;
    std::map<std::int64_t, ValueId> scalars;  // scalars of tickets
    std::map<Sizes, ValueId> lists;
  };
  Module& module_;
  SizeTable sizes_;
  Scope scope_;
};

}  // namespace lc::stablehlo
