// Attributes and types of a file, in the encodings of VHLO (StableHLO's versioned form) and of MLIR's builtin dialect.
#pragma once

#include <memory>
#include <vector>

#include "lightcone/stablehlo/bytecode/file.h"
#include "lightcone/stablehlo/module.h"

namespace lc::stablehlo {

// The memory that reading a file may take. A few bytes of a file can refer to the same large attribute many times, and
// nested attributes can grow exponentially; valid files stay far below the limit.
class Allowance {
 public:
  explicit Allowance(std::size_t file) : left_((std::size_t{32} << 20) + 256 * file), file_(file) {}
  void pay(std::size_t bytes, std::size_t at);

 private:
  std::size_t left_, file_;
};

// A name, and the index of an attribute.
struct NumberedAttribute {
  std::string_view name;
  std::size_t index;
};

class Values {
 public:
  Values(const File& f, Allowance& a)
      : file_(f), allowance_(a), attributes_(f.attributes.size()), types_(f.types.size()) {}

  // Returns a copy of an attribute, which counts against the allowance. `asked_at` is the position for error messages.
  Attribute attribute(std::size_t index, std::size_t asked_at);
  // Returns a copy of a type in the same way.
  Type type(std::size_t index, std::size_t asked_at);
  // Returns the fields of a dictionary.
  std::vector<NumberedAttribute> fields_of(std::size_t attribute, std::size_t asked_at);
  // Returns the result types of the function type that an attribute holds.
  std::vector<Type> results_of(std::size_t attribute, std::size_t asked_at);

 private:
  template <class T>
  struct Known {
    T value;
    std::size_t weight = 0;
  };
  class Deeper;

  Attribute read_attribute(const File::Entry& e);
  Attribute vhlo_attribute(Cursor& c);
  Attribute builtin_attribute(Cursor& c);
  Attribute child(Cursor& c);
  Type child_type(Cursor& c);
  Attribute list(Cursor& c);
  Attribute dictionary(Cursor& c);
  Attribute integer(Cursor& c);
  Attribute real(Cursor& c);
  Attribute tensor(Cursor& c);
  Attribute accuracy(Cursor& c);
  Attribute enumeration(Cursor& c, std::uint64_t code);
  Type read_type(const File::Entry& e);
  Type complex_type(Cursor& c);
  Type vhlo_type(Cursor& c);
  Type builtin_type(Cursor& c);
  std::vector<std::int64_t> bounds(const File::Entry& encoding);
  Type ranked(Cursor& c, bool encoded);
  std::string types_in_round(Cursor& c);
  std::string_view string(Cursor& c);

  const File& file_;
  Allowance& allowance_;
  std::vector<std::unique_ptr<Known<Attribute>>> attributes_;
  std::vector<std::unique_ptr<Known<Type>>> types_;
  int depth_ = 0;
};

// Sets elements from the file's form: row-major order, a single one if all are equal, and one bit per truth value.
void set_elements(Attribute& dense, std::span<const std::byte> raw, const Cursor& c, Allowance& allowance);
// Returns the bytes of an element of that name, or 0 if it is not supported.
std::size_t element_bytes(std::string_view element);

}  // namespace lc::stablehlo
