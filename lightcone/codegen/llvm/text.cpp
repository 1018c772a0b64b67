#include "lightcone/codegen/llvm/text.h"

#include <algorithm>
#include <bit>
#include <cstdio>

namespace lc::codegen::llvm {
namespace {

struct Names {
  const char* type;    // name in the IR
  const char* mangle;  // name within names of intrinsics
  int bytes;
};
constexpr Names kNames[] = {{"i1", "i1", 1},   {"i8", "i8", 1},    {"i16", "i16", 2},   {"i32", "i32", 4},
                            {"i64", "i64", 8}, {"i8", "i8", 1},    {"i16", "i16", 2},   {"i32", "i32", 4},
                            {"i64", "i64", 8}, {"half", "f16", 2}, {"float", "f32", 4}, {"double", "f64", 8}};
const Names& names(Type t) { return kNames[static_cast<int>(t)]; }

std::string mangled(Type t, int lanes) { return (lanes > 1 ? "v" + std::to_string(lanes) : "") + names(t).mangle; }
std::string align(Type t) { return std::to_string(names(t).bytes); }

}  // namespace

int width(Type t) { return t == Type::I1 ? 1 : 8 * names(t).bytes; }

std::string Text::spell(Type t, int lanes) const {
  return lanes > 1 ? "<" + std::to_string(lanes) + " x " + names(t).type + ">" : names(t).type;
}

Value Text::constant(Type t, std::string text) { return {this, std::move(text), t, 1}; }

Value Text::real(Type t, double v) {
  if (t == Type::Float) v = static_cast<float>(v);
  char s[24];
  std::snprintf(s, sizeof s, "0x%016llx", static_cast<unsigned long long>(std::bit_cast<std::uint64_t>(v)));
  return constant(t, s);
}

Value Text::integer(Type t, std::int64_t v) {
  if (t == Type::I1) return constant(t, v ? "true" : "false");
  return constant(t, std::to_string(v));
}

Value Text::lane_numbers(int lanes) {
  std::string s;
  for (int l = 0; l < lanes; ++l) s += (l ? ", i64 " : "<i64 ") + std::to_string(l);
  return {this, s + ">", Type::I64, lanes};
}

Value Text::mask_lane_numbers(int lanes) {
  const Value known = lane_numbers(lanes);
  if (target_.avx512) return known;
  std::string& hidden = repeated_["hidden " + of(known)];
  if (hidden.empty()) {
    const std::string to = pointer(Type::I64, lanes) + " " + variable(Type::I64, lanes);
    hidden = "%v" + fresh();
    entry_ += "  store volatile " + of(known) + ", " + to + "\n";
    entry_ += "  " + hidden + " = load volatile " + spell(Type::I64, lanes) + ", " + to + "\n";
  }
  return {this, hidden, Type::I64, lanes};
}

Value Text::emit(Type t, int lanes, const std::string& instruction) {
  Value v{this, "%v" + fresh(), t, lanes};
  line(v.name + " = " + instruction);
  return v;
}

Value Text::spread(const Value& v, int lanes) {
  if (v.lanes == lanes) return v;
  const bool is_constant = v.name[0] != '%';
  const std::string type = spell(v.type, lanes);
  const std::string key = of(v) + " " + type;
  if (is_constant)
    if (const auto it = repeated_.find(key); it != repeated_.end()) return {this, it->second, v.type, lanes};
  std::string& where = is_constant ? entry_ : body_;
  const std::string one = "%v" + fresh(), all = "%v" + fresh();
  where += "  " + one + " = insertelement " + type + " poison, " + of(v) + ", i32 0\n";
  where += "  " + all + " = shufflevector " + type + " " + one + ", " + type + " poison, " + spell(Type::I32, lanes) +
           " zeroinitializer\n";
  if (is_constant) repeated_[key] = all;
  return {this, all, v.type, lanes};
}

Value Text::binary(const std::string& op, const Value& a, const Value& b) {
  const int lanes = std::max(a.lanes, b.lanes);
  const Value x = spread(a, lanes), y = spread(b, lanes);
  return emit(a.type, lanes, op + " " + of(x) + ", " + y.name);
}

Value Text::compare(const std::string& op, const Value& a, const Value& b) {
  Value v = binary(op, a, b);
  v.type = Type::I1;
  return v;
}

Value Text::cast(const std::string& op, const Value& v, Type to) {
  return emit(to, v.lanes, op + " " + of(v) + " to " + spell(to, v.lanes));
}

// Declares a function and returns the callee.
std::string Text::declare(const std::string& result, const std::string& name, const std::string& arguments) {
  declarations_.insert("declare " + result + " @" + name + "(" + arguments + ")");
  return result + " @" + name;
}

Value Text::call(const std::string& intrinsic, const std::vector<Value>& v) {
  int lanes = 1;
  for (const Value& x : v) lanes = std::max(lanes, x.lanes);
  std::string types, values;
  for (const Value& x : v) {
    types += (types.empty() ? "" : ", ") + spell(x.type, lanes);
    values += (values.empty() ? "" : ", ") + of(spread(x, lanes));
  }
  const std::string callee =
      declare(spell(v[0].type, lanes), "llvm." + intrinsic + "." + mangled(v[0].type, lanes), types);
  return emit(v[0].type, lanes, "call " + callee + "(" + values + ")");
}

Value Text::avx512(const std::string& name, const std::vector<std::string>& types,
                   const std::vector<std::string>& values) {
  std::string arguments, given;
  for (std::size_t k = 0; k < types.size(); ++k) {
    arguments += (k ? ", " : "") + types[k];
    given += (k ? ", " : "") + types[k] + " " + values[k];
  }
  const std::string callee = declare(spell(Type::Float, 16), "llvm.x86.avx512.mask." + name + ".ps.512", arguments);
  return emit(Type::Float, 16, "call " + callee + "(" + given + ")");
}

Value Text::half(const Value& v, bool upper) {
  const int lanes = v.lanes / 2, first = upper ? lanes : 0;
  if (lanes == 1) return emit(v.type, 1, "extractelement " + of(v) + ", i32 " + std::to_string(first));
  std::string which;
  for (int l = 0; l < lanes; ++l) which += (l ? ", i32 " : "<i32 ") + std::to_string(first + l);
  return emit(v.type, lanes,
              "shufflevector " + of(v) + ", " + spell(v.type, v.lanes) + " poison, " + spell(Type::I32, lanes) + " " +
                  which + ">");
}

Value Text::interleaved(const Value& a, const Value& b, bool upper) {
  std::string which;
  for (int l = 0; l < a.lanes; ++l)
    which += (l ? ", i32 " : "<i32 ") + std::to_string((upper ? a.lanes / 2 : 0) + l / 2 + (l % 2 ? a.lanes : 0));
  return emit(a.type, a.lanes,
              "shufflevector " + of(a) + ", " + of(b) + ", " + spell(Type::I32, a.lanes) + " " + which + ">");
}

// ---- memory -----------------------------------------------------------------------------------------

Value Text::address(const std::string& base, Type t, const Value& offset) {
  return emit(t, offset.lanes, "getelementptr " + spell(t) + ", " + pointer(t) + " " + base + ", " + of(offset));
}

// Loads without a branch: an invalid element is read from a zero in the function's own memory.
Value Text::load(const std::string& base, Type t, const Value& offset, const Value& valid) {
  std::string from = address(base, t, offset).name;
  if (valid.known()) {
    std::string& zero = repeated_["zero " + spell(t)];
    if (zero.empty()) {
      zero = variable(t, 1);
      entry_ += "  store " + of(number(t, 0)) + ", " + pointer(t) + " " + zero + "\n";
    }
    from = emit(t, 1, "select " + of(valid) + ", " + pointer(t) + " " + from + ", " + pointer(t) + " " + zero).name;
  }
  return emit(t, 1, "load " + spell(t) + ", " + pointer(t) + " " + from + ", align " + align(t));
}

std::string Text::vector_pointer(const std::string& base, Type t, const Value& offset, int lanes) {
  const std::string p = address(base, t, offset).name;
  if (!typed_) return p;
  return emit(t, lanes, "bitcast " + pointer(t) + " " + p + " to " + pointer(t, lanes)).name;
}

// Declares llvm.masked.<what>, whose name contains the pointer type, and returns the callee.
std::string Text::masked(const std::string& what, Type t, int lanes, bool many_pointers) {
  const std::string vector = spell(t, lanes), mask = spell(Type::I1, lanes);
  std::string point = many_pointers ? "v" + std::to_string(lanes) + "p0" : "p0", pointers = pointer(t, lanes);
  if (typed_) point += mangled(t, many_pointers ? 1 : lanes);
  if (many_pointers) pointers = "<" + std::to_string(lanes) + " x " + pointer(t) + ">";
  const std::string name = "llvm.masked." + what + "." + mangled(t, lanes) + "." + point;
  if (what == "store" || what == "scatter") return declare("void", name, vector + ", " + pointers + ", i32, " + mask);
  return declare(vector, name, pointers + ", i32, " + mask + ", " + vector);
}

Value Text::load_lanes(const std::string& base, Type t, const Value& offset, int lanes, const Value& mask) {
  const std::string from = pointer(t, lanes) + " " + vector_pointer(base, t, offset, lanes);
  if (!mask.known()) return emit(t, lanes, "load " + spell(t, lanes) + ", " + from + ", align " + align(t));
  const std::string which = of(spread(mask, lanes));
  return emit(t, lanes,
              "call " + masked("load", t, lanes, false) + "(" + from + ", i32 " + align(t) + ", " + which + ", " +
                  spell(t, lanes) + " zeroinitializer)");
}

Value Text::gather(const std::string& base, Type t, const Value& offsets, const Value& mask) {
  const int lanes = offsets.lanes;
  const std::string which = of(spread(mask.known() ? mask : integer(Type::I1, 1), lanes));
  const std::string from = "<" + std::to_string(lanes) + " x " + pointer(t) + "> " + address(base, t, offsets).name;
  return emit(t, lanes,
              "call " + masked("gather", t, lanes, true) + "(" + from + ", i32 " + align(t) + ", " + which + ", " +
                  spell(t, lanes) + " zeroinitializer)");
}

void Text::store(const std::string& base, const Value& v, const Value& offset) {
  line("store " + of(v) + ", " + pointer(v.type) + " " + address(base, v.type, offset).name + ", align " +
       align(v.type));
}

void Text::store_lanes(const std::string& base, const Value& v, const Value& offset, const Value& mask) {
  const std::string to = pointer(v.type, v.lanes) + " " + vector_pointer(base, v.type, offset, v.lanes);
  if (!mask.known()) return line("store " + of(v) + ", " + to + ", align " + align(v.type));
  line("call " + masked("store", v.type, v.lanes, false) + "(" + of(v) + ", " + to + ", i32 " + align(v.type) + ", " +
       of(spread(mask, v.lanes)) + ")");
}

void Text::store_past(const std::string& base, const Value& v, const Value& offset, const Value& past) {
  const int bytes = std::min(64, v.lanes * std::stoi(align(v.type)));
  const std::string at = vector_pointer(base, v.type, offset, v.lanes), to = pointer(v.type, v.lanes) + " " + at;
  const Value place = emit(Type::I64, 1, "ptrtoint " + to + " to i64");
  const std::string id = fresh(), aligned = "past" + id, other = "near" + id, done = "stored" + id;
  branch(past & ((place & (bytes - 1)) == 0), aligned, other);
  begin_block(aligned);
  line("store " + of(v) + ", " + to + ", align " + std::to_string(bytes) + ", !nontemporal !0");
  declarations_.insert("!0 = !{i32 1}");
  jump(done);
  begin_block(other);
  line("store " + of(v) + ", " + to + ", align " + align(v.type));
  jump(done);
  begin_block(done);
}

void Text::stored_past() { line("fence seq_cst"); }

void Text::prefetch(const std::string& base, Type t, const Value& offset, int level) {
  std::string at = address(base, t, offset).name;
  if (typed_ && t != Type::I8) at = emit(t, 1, "bitcast " + pointer(t) + " " + at + " to i8*").name;
  const std::string callee =
      declare("void", typed_ ? "llvm.prefetch.p0i8" : "llvm.prefetch.p0", pointer(Type::I8) + ", i32, i32, i32");
  line("call " + callee + "(" + pointer(Type::I8) + " " + at + ", i32 0, i32 " + std::to_string(4 - level) +
       ", i32 1)");
}

void Text::scatter(const std::string& base, const Value& v, const Value& offsets, const Value& mask) {
  const std::string which = of(spread(mask.known() ? mask : integer(Type::I1, 1), v.lanes));
  const std::string to =
      "<" + std::to_string(v.lanes) + " x " + pointer(v.type) + "> " + address(base, v.type, offsets).name;
  line("call " + masked("scatter", v.type, v.lanes, true) + "(" + of(v) + ", " + to + ", i32 " + align(v.type) + ", " +
       which + ")");
}

std::string Text::variable(Type t, int lanes) {
  const std::string name = "%v" + fresh();
  entry_ += "  " + name + " = alloca " + spell(t, lanes) + "\n";
  return name;
}
std::string Text::array(Type t, std::int64_t elements) {
  const std::string name = "%v" + fresh();
  entry_ += "  " + name + " = alloca " + spell(t) + ", i64 " + std::to_string(elements) + ", align 64\n";
  return name;
}
Value Text::get(const std::string& variable, Type t, int lanes) {
  return emit(t, lanes, "load " + spell(t, lanes) + ", " + pointer(t, lanes) + " " + variable);
}
void Text::set(const std::string& variable, const Value& v) {
  line("store " + of(v) + ", " + pointer(v.type, v.lanes) + " " + variable);
}

// ---- blocks -----------------------------------------------------------------------------------------

void Text::begin_block(const std::string& label) {
  body_ += label + ":\n";
  label_ = label;
}
void Text::branch(const Value& c, const std::string& yes, const std::string& no) {
  line("br " + of(c) + ", label %" + yes + ", label %" + no);
}

std::string Text::finish(const std::string& head) {
  std::string s;
  for (const std::string& d : declarations_) s += d + "\n";
  // Vectors of sixteen floats are AVX-512's width: a narrower width must be requested.
  const std::string width =
      target_.vector < 64 ? " \"min-legal-vector-width\"=\"" + std::to_string(8 * target_.vector) + "\"" : "";
  return s + head + width + " {\nentry:\n" + entry_ + body_ + "  ret void\n}\n";
}

// ---- operators --------------------------------------------------------------------------------------

Value Operand::of(const Value& left) const { return value.known() ? value : left.text->number(left.type, number); }

namespace {

Value arithmetic(const char* integer, const char* real, const Value& a, const Operand& b) {
  return a.text->binary(is_real(a.type) ? real : integer, a, b.of(a));
}
Value relation(const char* order, const char* real, const Value& a, const Operand& b) {
  if (is_real(a.type)) return a.text->compare(std::string("fcmp ") + real, a, b.of(a));
  const bool equality = order[0] == 'e' || order[0] == 'n';
  const char* sign = equality ? "" : is_unsigned(a.type) ? "u" : "s";
  return a.text->compare(std::string("icmp ") + sign + order, a, b.of(a));
}

}  // namespace

// Within functions of the prelude, a product may be contracted with the sum that uses it. Operations of the graph do
// not use these operators: fuse_products() decides there.
Value operator+(const Value& a, const Operand& b) { return arithmetic("add", "fadd contract", a, b); }
Value operator-(const Value& a, const Operand& b) { return arithmetic("sub", "fsub contract", a, b); }
Value operator*(const Value& a, const Operand& b) { return arithmetic("mul", "fmul contract", a, b); }
Value operator/(const Value& a, const Operand& b) { return a.text->binary("fdiv", a, b.of(a)); }
Value operator&(const Value& a, const Operand& b) { return a.text->binary("and", a, b.of(a)); }
Value operator|(const Value& a, const Operand& b) { return a.text->binary("or", a, b.of(a)); }
Value operator^(const Value& a, const Operand& b) { return a.text->binary("xor", a, b.of(a)); }
Value operator<<(const Value& a, const Operand& b) { return a.text->binary("shl", a, b.of(a)); }
Value operator>>(const Value& a, const Operand& b) { return a.text->binary("ashr", a, b.of(a)); }
Value shift_right(const Value& a, int n) { return a.text->binary("lshr", a, a.text->integer(a.type, n)); }
Value operator<(const Value& a, const Operand& b) { return relation("lt", "olt", a, b); }
Value operator>(const Value& a, const Operand& b) { return relation("gt", "ogt", a, b); }
Value operator<=(const Value& a, const Operand& b) { return relation("le", "ole", a, b); }
Value operator>=(const Value& a, const Operand& b) { return relation("ge", "oge", a, b); }
Value operator==(const Value& a, const Operand& b) { return relation("eq", "oeq", a, b); }
Value operator!=(const Value& a, const Operand& b) { return relation("ne", "une", a, b); }

Value select(const Value& c, const Operand& yes, const Value& no) {
  Text& t = *c.text;
  const Value y = yes.of(no);
  const int lanes = std::max({c.lanes, y.lanes, no.lanes});
  const Value a = t.spread(y, lanes), b = t.spread(no, lanes);
  const std::string type = t.spell(no.type, lanes);
  return t.emit(
      no.type, lanes,
      "select " + t.spell(Type::I1, c.lanes) + " " + c.name + ", " + type + " " + a.name + ", " + type + " " + b.name);
}

Value bits(const Value& v, Type to) { return v.type == to ? v : v.text->cast("bitcast", v, to); }

}  // namespace lc::codegen::llvm
