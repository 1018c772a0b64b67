// Builds LLVM IR text one instruction at a time. A Value is the result of an instruction or a constant, a single number
// or a vector of `lanes`. Operators broadcast a number to combine it with a vector, so code written with them
// (llvm/math.cpp) serves both.
#pragma once

#include "lightcone/macros_off.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace lc::codegen::llvm {

enum class Type : std::uint8_t { I1, U8, U16, U32, U64, I8, I16, I32, I64, Half, Float, Double };
inline bool is_real(Type t) { return t >= Type::Half; }
inline bool is_unsigned(Type t) { return t <= Type::U64; }
int width(Type t);  // in bits

class Text;
struct Value {
  Text* text = nullptr;
  std::string name;  // "%12", or a constant
  Type type = Type::I64;
  int lanes = 1;
  bool known() const { return text != nullptr; }
};

// The right-hand side of an operator: a value, or a number of the left-hand side's type.
struct Operand {
  Operand(Value v) : value(std::move(v)) {}
  Operand(double n) : number(n) {}
  Operand(int n) : number(n) {}
  Value of(const Value& left) const;
  Value value;
  double number = 0;
};

// The capabilities of LLVM's library and the processor.
struct Target {
  bool typed_pointers = false;  // the syntax before LLVM 15: float* where later versions write ptr
  bool avx512 = false;          // AVX-512F and DQ may be used with 64-byte vectors
  int vector = 64;              // bytes of the widest vectors to use
};

class Text {
 public:
  explicit Text(const Target& target) : target_(target), typed_(target.typed_pointers) {}
  const Target& target() const { return target_; }

  std::string spell(Type t, int lanes = 1) const;
  std::string pointer(Type t, int lanes = 1) const { return typed_ ? spell(t, lanes) + "*" : "ptr"; }

  Value real(Type t, double v);
  Value integer(Type t, std::int64_t v);
  Value number(Type t, double v) { return is_real(t) ? real(t, v) : integer(t, static_cast<std::int64_t>(v)); }
  Value lane_numbers(int lanes);  // 0, 1, 2, ... as i64
  // Returns the same numbers for building a mask. Below AVX-512 the optimiser cannot see them: LLVM 14 reads whole
  // vectors if a mask combines a condition on the row with known lanes, even if the upper half of the lanes is off.
  Value mask_lane_numbers(int lanes);

  Value emit(Type t, int lanes, const std::string& instruction);
  void line(const std::string& s) { body_ += "  " + s + "\n"; }
  Value spread(const Value& v, int lanes);
  Value binary(const std::string& op, const Value& a, const Value& b);
  Value compare(const std::string& op, const Value& a, const Value& b);
  Value cast(const std::string& op, const Value& v, Type to);
  Value call(const std::string& intrinsic, const std::vector<Value>& v);  // operands and result have one type
  // Emits an AVX-512 instruction on sixteen floats by LLVM's name. Numbers are written as they are.
  Value avx512(const std::string& name, const std::vector<std::string>& types, const std::vector<std::string>& values);
  Value half(const Value& v, bool upper);  // lower or upper half of the lanes

  Value interleaved(const Value& a, const Value& b,
                    bool upper);  // interleaves the lower or upper halves of two vectors

  // Memory operations. `base` is a pointer to elements of type t; an empty mask means all lanes.
  Value address(const std::string& base, Type t, const Value& offset);
  Value load(const std::string& base, Type t, const Value& offset, const Value& valid);  // 0 if not valid
  Value load_lanes(const std::string& base, Type t, const Value& offset, int lanes, const Value& mask);
  Value gather(const std::string& base, Type t, const Value& offsets, const Value& mask);
  void store(const std::string& base, const Value& v, const Value& offset);
  void store_lanes(const std::string& base, const Value& v, const Value& offset, const Value& mask);
  // Stores non-temporally if `past` holds and the address is aligned to the vector or to 64 bytes.
  void store_past(const std::string& base, const Value& v, const Value& offset, const Value& past);
  void stored_past();  // makes non-temporal stores visible before later synchronisation
  void prefetch(const std::string& base, Type t, const Value& offset, int level);  // `level`: cache level
  void scatter(const std::string& base, const Value& v, const Value& offsets, const Value& mask);

  // Allocates a variable and returns its pointer's name. LLVM promotes variables to registers.
  std::string variable(Type t, int lanes);
  Value get(const std::string& variable, Type t, int lanes);
  void set(const std::string& variable, const Value& v);
  std::string array(Type t, std::int64_t elements);

  std::string fresh() { return std::to_string(next_++); }
  const std::string& label() const { return label_; }
  void begin_block(const std::string& label);
  void jump(const std::string& to) { line("br label %" + to); }
  void branch(const Value& c, const std::string& yes, const std::string& no);

  std::string finish(const std::string& head);  // the declarations and the whole function

 private:
  Value constant(Type t, std::string text);
  std::string declare(const std::string& result, const std::string& name, const std::string& arguments);
  std::string of(const Value& v) const { return spell(v.type, v.lanes) + " " + v.name; }
  std::string vector_pointer(const std::string& base, Type t, const Value& offset, int lanes);
  std::string masked(const std::string& what, Type t, int lanes, bool many_pointers);

  Target target_;
  bool typed_;
  int next_ = 0;
  std::string entry_, body_, label_ = "entry";
  std::set<std::string> declarations_;
  std::map<std::string, std::string> repeated_;  // constants broadcast in the entry block
};

Value operator+(const Value& a, const Operand& b);
Value operator-(const Value& a, const Operand& b);
Value operator*(const Value& a, const Operand& b);
Value operator/(const Value& a, const Operand& b);  // floats
Value operator&(const Value& a, const Operand& b);
Value operator|(const Value& a, const Operand& b);
Value operator^(const Value& a, const Operand& b);
Value operator<<(const Value& a, const Operand& b);
Value operator>>(const Value& a, const Operand& b);  // signed
Value shift_right(const Value& a, int n);            // unsigned
// Comparisons of floats are false for NaN (`!=` is true). Comparisons of integers are signed if the type is.
Value operator<(const Value& a, const Operand& b);
Value operator>(const Value& a, const Operand& b);
Value operator<=(const Value& a, const Operand& b);
Value operator>=(const Value& a, const Operand& b);
Value operator==(const Value& a, const Operand& b);
Value operator!=(const Value& a, const Operand& b);
Value select(const Value& c, const Operand& yes, const Value& no);
Value bits(const Value& v, Type to);  // reinterprets the bits as a type of the same size

}  // namespace lc::codegen::llvm
#include "lightcone/macros_on.h"
