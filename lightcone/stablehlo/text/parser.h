// Parses operations, regions and functions in MLIR's text: generic form (parse.cpp) and StableHLO's pretty form
// (pretty.cpp).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/stablehlo/text/attributes.h"

namespace lc::stablehlo {

class Parser {
 public:
  explicit Parser(std::string_view text) : s_(text), attributes_(s_) {}
  Module run();

 private:
  // The values of a name: %0:2 stands for two.
  struct Names {
    std::vector<ValueId> values;
  };
  struct Result {
    std::string name;
    std::int64_t count = 1;
  };

  void top_level();
  void module_body(bool in_braces);
  Function function();
  Function function_of(const Operation& generic);
  void function_arguments(Function& f);
  void function_results(Function& f);

  Block body();                    // { ... }, with arguments parsed already
  Block region();                  // ({ ^bb0(%a: ...): ... })
  void block_arguments(Block& b);  // (%a: T, %b: T)
  void operations(Block& b);       // up to '}'
  Operation operation();
  std::vector<Result> results();
  void generic(Operation& op, const std::vector<Result>& results);
  void generic_attributes(Operation& op);
  void define(Operation& op, const std::vector<Result>& results, const std::vector<Type>& types, Place at);
  void define(const std::string& name, std::vector<ValueId> values, Place at);
  ValueId operand();
  void operands_in_round(Operation& op);
  void check_types(const Operation& op, const std::vector<Type>& types, Place at) const;
  void check_type(ValueId operand, const Type& t, Place at) const;

  // ---- pretty form
  void pretty(Operation& op, const std::vector<Result>& results);
  void signature(Operation& op, const std::vector<Result>& results);  // ": types", in any of its forms
  void items(Operation& op);                                          // %a, %b, key = value, WORD
  bool item(Operation& op);
  void constant(Operation& op, const std::vector<Result>& results);
  void reduce(Operation& op, const std::vector<Result>& results);
  void reduce_body(Operation& op, std::string_view applied, const std::vector<Type>& types);
  void while_loop(Operation& op, const std::vector<Result>& results);
  void scan(Operation& op, const std::vector<Result>& results);
  void symbol_call(Operation& op, const std::vector<Result>& results);
  void convolution(Operation& op, const std::vector<Result>& results);
  void window(Operation& op);
  void slice_ranges(Operation& op);
  void dot_dimensions(Operation& op, const std::string& key);
  void precision(Operation& op);

  Scanner s_;
  AttributeParser attributes_;
  Module m_;
  std::vector<std::map<std::string, Names>> scopes_;
  int depth_ = 0;
};

// Renames attributes of the pretty form to those of the generic one.
void rename_pretty_attributes(Operation& op);

}  // namespace lc::stablehlo
