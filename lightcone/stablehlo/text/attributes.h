// Parses types and attributes in MLIR's text.
#pragma once

#include <map>
#include <string>

#include "lightcone/stablehlo/text/scanner.h"

namespace lc::stablehlo {

class AttributeParser {
 public:
  explicit AttributeParser(Scanner& s) : s_(s), left_((std::size_t{32} << 20) + 256 * s.size()), text_(s.size()) {}

  Type type();
  std::vector<Type> types();           // a list without brackets
  std::vector<Type> types_in_round();  // (a, b), or ()
  Attribute attribute();
  Attribute number(bool with_type);  // 1 : i64; in pretty form the following type is the operation's
  AttributeList dictionary();        // {a = 1, b}
  AttributeList dictionary_or_nothing() { return s_.peek() == '{' ? dictionary() : AttributeList(); }
  std::vector<std::int64_t> integers();              // [1, 2]
  Attribute convolution_dimensions(bool in_angles);  // [b, f, 0]x[o, i, 0]->[b, f, 0]
  Attribute dense();                                 // after the word `dense`, with its type
  void skip_location();                              // an optional loc(...) after an operation
  void alias();                                      // #name = attribute, !name = type
  // Accounts for memory that a few characters can multiply: aliases, which may nest and grow exponentially, and values
  // that share one type. Throws Error if a text needs more than valid ones do.
  void pay(std::size_t bytes);

 private:
  Type tensor();
  void bounds(Type& t);
  Attribute list();
  Attribute array();
  Attribute dialect();
  Attribute fields(std::string name);

  Scanner& s_;
  std::size_t left_, text_;
  int depth_ = 0;
  std::map<std::string, Attribute> aliases_;
  std::map<std::string, Type> type_aliases_;
};

// Reads the elements of dense<...> for a tensor of type t.
void read_elements(Scanner& s, Attribute& into, const Type& t);

}  // namespace lc::stablehlo
