// Writes operations into a block of a module, with the types that StableHLO gives their results.
//
// What would do nothing (a transposition that keeps the order, a reshape to the same shape) is not written, and what
// nothing reads is taken away again. Where an extent is open, the operation is the one that takes shapes as operands.
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
bool is_unsigned_element(std::string_view element);  // and i1

class Builder {
 public:
  explicit Builder(Module& m) : module_(m) {}

  SizeTable& sizes() { return sizes_; }
  Sizes sizes(const Shape& s) { return sizes_.of(s); }
  // In this block the symbol is this number, a scalar of i64.
  void tell(const std::string& symbol, ValueId v) { scope_.symbols[symbol] = v; }
  const std::map<std::string, ValueId>& told() const { return scope_.symbols; }
  // An extent as a scalar of i64, and several as a list.
  ValueId scalar(std::int64_t size);
  ValueId list(const Sizes& s);

  // Copies: a value that is made moves all others.
  Type type(ValueId v) const { return module_.values[static_cast<std::size_t>(v)].type; }
  Sizes shape(ValueId v) const { return type(v).shape; }
  std::string element(ValueId v) const { return type(v).element; }

  // What `write` makes stands in a block of its own, with arguments of these types.
  Block block(const std::vector<Type>& arguments,
              const std::function<std::vector<ValueId>(const std::vector<ValueId>&)>& write,
              std::string_view terminator = "stablehlo.return");
  // The same for arguments that exist already: the body of a function.
  Block block_of(std::vector<ValueId> arguments, const std::function<std::vector<ValueId>()>& write,
                 std::string_view terminator);

  std::vector<ValueId> operation(std::string_view name, std::vector<ValueId> operands, std::vector<Type> results,
                                 AttributeList attributes = {}, std::vector<Block> regions = {});
  ValueId one(std::string_view name, std::vector<ValueId> operands, Type result, AttributeList attributes = {},
              std::vector<Block> regions = {});

  // The same number everywhere. Of a whole type the second one keeps all 64 bits.
  ValueId splat(std::string_view element, const Sizes& shape, double v);
  ValueId splat_whole(std::string_view element, const Sizes& shape, std::int64_t v);
  ValueId like(ValueId x, double v) { return splat(element(x), shape(x), v); }
  ValueId like_whole(ValueId x, std::int64_t v) { return splat_whole(element(x), shape(x), v); }
  ValueId like_size(ValueId x, std::int64_t size);  // of a whole type
  ValueId iota(std::string_view element, const Sizes& shape, std::size_t axis);

  ValueId unary(std::string_view name, ValueId x) { return one(name, {x}, type(x)); }
  ValueId binary(std::string_view name, ValueId a, ValueId b) { return one(name, {a, b}, type(a)); }
  ValueId add(ValueId a, ValueId b) { return binary("stablehlo.add", a, b); }
  ValueId multiply(ValueId a, ValueId b) { return binary("stablehlo.multiply", a, b); }
  ValueId both(ValueId a, ValueId b) { return binary("stablehlo.and", a, b); }
  ValueId compare(ValueId a, ValueId b, std::string_view direction);  // "LT"
  ValueId select(ValueId condition, ValueId a, ValueId b) {
    return one("stablehlo.select", {condition, a, b}, type(a));
  }
  ValueId convert(ValueId x, std::string_view to);  // to i1: is it not 0?
  ValueId bitcast(ValueId x, std::string_view to);

  ValueId reshape(ValueId x, const Sizes& to);
  ValueId transpose(ValueId x, const std::vector<std::size_t>& permutation);  // axis i is axis permutation[i] of x
  ValueId broadcast(ValueId x, const Sizes& to, const std::vector<std::size_t>& axes);  // where those of x go
  ValueId slice(ValueId x, const Sizes& begin, const Sizes& end, const Sizes& step);
  ValueId pad(ValueId x, ValueId value, const Sizes& low, const Sizes& high);
  ValueId reverse(ValueId x, const std::vector<std::size_t>& axes);
  ValueId concatenate(const std::vector<ValueId>& parts, std::size_t axis);
  // `sizes`: of the slices. `to`: the shape of the result.
  ValueId gather(ValueId x, ValueId index, Attribute dimension_numbers, const Sizes& sizes, const Sizes& to);
  ValueId reduce(ValueId x, ValueId initial, const std::vector<std::size_t>& axes, std::string_view combine);

  // Of two scalars: what a reduction or a scatter applies.
  Block combining(std::string_view element, std::string_view combine);

 private:
  ValueId constant(std::string_view element, const Sizes& shape, std::vector<std::byte> data);

  // What is known of the block that is written.
  struct Scope {
    std::vector<Operation> operations;
    std::map<std::tuple<std::string, Sizes, std::vector<std::byte>>, ValueId> constants;
    std::map<ValueId, ValueId> reshaped;  // from what
    std::map<std::string, ValueId> symbols;
    std::map<std::int64_t, ValueId> scalars;  // of tickets
    std::map<Sizes, ValueId> lists;
  };
  Module& module_;
  SizeTable sizes_;
  Scope scope_;
};

}  // namespace lc::stablehlo
