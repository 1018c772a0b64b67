// LLVM IR as text, one instruction at a time. A Value is what an instruction gave or a constant; it
// is one number or a vector of `lanes` of them, and operators join a number with a vector by
// repeating it. So what is written with it (llvm_math.cpp) serves both.
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

// The right side of an operator: a value, or a number of the left side's type.
struct Operand {
  Operand(Value v) : value(std::move(v)) {}
  Operand(double n) : number(n) {}
  Operand(int n) : number(n) {}
  Value of(const Value& left) const;
  Value value;
  double number = 0;
};

// What LLVM's library and the processor make of the text.
struct Target {
  bool typed_pointers = false;  // the language of LLVM before 15, which writes float* where later ones write ptr
  bool avx512 = false;          // AVX-512F and DQ may be used, 64 bytes wide
  int vector = 64;              // bytes of the widest vectors that are wanted
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
  // The same numbers for what becomes a mask. Below AVX-512 the optimiser cannot see them: LLVM 14 reads whole
  // vectors where a mask is a condition of the row joined with lanes that it knows, the upper half of them absent.
  Value mask_lane_numbers(int lanes);

  Value emit(Type t, int lanes, const std::string& instruction);
  void line(const std::string& s) { body_ += "  " + s + "\n"; }
  Value spread(const Value& v, int lanes);
  Value binary(const std::string& op, const Value& a, const Value& b);
  Value compare(const std::string& op, const Value& a, const Value& b);
  Value cast(const std::string& op, const Value& v, Type to);
  Value call(const std::string& intrinsic, const std::vector<Value>& v);  // all of one type, as is the result
  // An instruction of AVX-512 on sixteen floats, by LLVM's name for it; a number is written as it is.
  Value avx512(const std::string& name, const std::vector<std::string>& types, const std::vector<std::string>& values);
  Value half(const Value& v, bool upper);  // of the lanes

  Value interleaved(const Value& a, const Value& b,
                    bool upper);  // the lower halves' lanes by turns, or the upper ones'

  // Memory. `base` is a pointer to elements of type t; a mask of no value means all lanes.
  Value address(const std::string& base, Type t, const Value& offset);
  Value load(const std::string& base, Type t, const Value& offset, const Value& valid);  // 0 where not valid
  Value load_lanes(const std::string& base, Type t, const Value& offset, int lanes, const Value& mask);
  Value gather(const std::string& base, Type t, const Value& offsets, const Value& mask);
  void store(const std::string& base, const Value& v, const Value& offset);
  void store_lanes(const std::string& base, const Value& v, const Value& offset, const Value& mask);
  // Past the caches where `past` holds and the address is a multiple of the vector's size or 64 bytes.
  void store_past(const std::string& base, const Value& v, const Value& offset, const Value& past);
  void stored_past();  // what was stored so is seen by whoever is told next
  void prefetch(const std::string& base, Type t, const Value& offset, int level);  // of the caches
  void scatter(const std::string& base, const Value& v, const Value& offsets, const Value& mask);

  // A variable, by its pointer's name. LLVM turns variables into registers.
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
  std::map<std::string, std::string> repeated_;  // constants already spread in the entry block
};

Value operator+(const Value& a, const Operand& b);
Value operator-(const Value& a, const Operand& b);
Value operator*(const Value& a, const Operand& b);
Value operator/(const Value& a, const Operand& b);  // of floats
Value operator&(const Value& a, const Operand& b);
Value operator|(const Value& a, const Operand& b);
Value operator^(const Value& a, const Operand& b);
Value operator<<(const Value& a, const Operand& b);
Value operator>>(const Value& a, const Operand& b);  // signed
Value shift_right(const Value& a, int n);            // unsigned
// Comparisons of floats are false for a NaN (`!=` true), those of integers are signed as the type is.
Value operator<(const Value& a, const Operand& b);
Value operator>(const Value& a, const Operand& b);
Value operator<=(const Value& a, const Operand& b);
Value operator>=(const Value& a, const Operand& b);
Value operator==(const Value& a, const Operand& b);
Value operator!=(const Value& a, const Operand& b);
Value select(const Value& c, const Operand& yes, const Value& no);
Value bits(const Value& v, Type to);  // the same bits as another type of that size

}  // namespace lc::codegen::llvm
#include "lightcone/macros_on.h"
