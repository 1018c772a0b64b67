#include "lightcone/backends/gpu/products/blocks.h"

#include "lightcone/backends/gpu/products/operand.h"

namespace lc::backends::gpu {

using std::to_string;

namespace {

const QuantInfo& format_of(const Operand& s) { return *block_format(s.type); }

// Returns the expression of byte `at` of a block.
std::string byte_at(const Operand& s, int at, const std::string& more = "") {
  const BlockRest rest = s.repacked ? block_rest(format_of(s).format) : BlockRest{0, 0};
  const bool in_rest = at >= rest.first && at < rest.first + rest.bytes;
  const int offset = in_rest ? at - rest.first : at >= rest.first + rest.bytes ? at - rest.bytes : at;
  return std::string(in_rest ? "rest" : "main") + "[" + (more.empty() ? "" : more + " + ") + to_string(offset) + "]";
}
std::string half_at(const Operand& s, int at) {
  return "lc_f16_to_f32((u16)(" + byte_at(s, at) + " | " + byte_at(s, at + 1) + " << 8))";
}
std::string shift_of(const BitPacking& w) {
  return "(k / " + to_string(w.values_per_shift) + " % " + to_string(w.shifts) + " * " + to_string(w.shift_step) +
         " + " + to_string(w.first_shift) + ")";
}
std::string first_byte_of(const BitPacking& w) {
  return "k / " + to_string(w.values_per_step) + " % " + to_string(w.byte_period) + " + k / " +
         to_string(w.block_values) + " * " + to_string(w.block_stride);
}
std::string bits(const Operand& s, const QuantField& f) {
  const BitPacking& w = f.packing;
  if (w.trits)  // 160 values in 32 bytes, 80 in 16, 16 in 4
    return "lc_trit(" + byte_at(s, f.at, "(k < 160 ? k % 32 : k < 240 ? k % 16 + 32 : k % 4 + 48)") +
           ", k < 160 ? k / 32 : k < 240 ? k / 16 - 10 : k / 4 - 60)";
  const std::string mask = to_string((1 << w.bits) - 1), low_bit = to_string(f.place);
  if (w.one_byte())
    return "(((int)" + byte_at(s, f.at, first_byte_of(w)) + " >> " + shift_of(w) + " & " + mask + ") << " + low_bit +
           ")";
  const auto byte = [&](const std::string& shift) {
    return byte_at(s, f.at, first_byte_of(w) + " + " + shift + " / 8");
  };
  return "(((int)(" + byte(shift_of(w)) + " | " + byte("(" + shift_of(w) + " + " + to_string(w.bits - 1) + ")") +
         " << 8) >> " + shift_of(w) + " % 8 & " + mask + ") << " + low_bit + ")";
}
std::string code(const Operand& s, const QuantSum<QuantField>& c) {
  std::string t;
  if (c.low.packing.bits) t = bits(s, c.low);
  if (c.high.packing.bits) t += " + " + bits(s, c.high);
  if (t.empty()) return to_string(c.bias);
  if (c.is_signed) t = "(int)(signed char)(" + t + ")";
  return "(" + t + " + " + to_string(c.bias) + ")";
}
std::string book_of(const QuantBook& b) { return "lc_book_" + std::string(b.name); }
std::string d_text(const Operand& s, int at) {
  const auto byte = [&](int i) { return "(u32)" + byte_at(s, at + i); };
  switch (format_of(s).more.d) {
    case QuantScale::None: return "1.0f";
    case QuantScale::E8M0: return "lc_e8m0_half(" + byte(0) + ")";
    case QuantScale::F32:
      return "lc_float(" + byte(0) + " | " + byte(1) + " << 8 | " + byte(2) + " << 16 | " + byte(3) + " << 24)";
    case QuantScale::Nibbles:
      return "lc_f16_to_f32((u16)(" + byte(1) + " >> 4 | " + byte(3) + " >> 4 << 4 | " + byte(5) + " >> 4 << 8 | " +
             byte(7) + " >> 4 << 12))";
    case QuantScale::F16: break;
  }
  return half_at(s, at);
}
// The factor of the numbers of sixteen values.
std::string scale_text(const Operand& s) {
  const QuantInfo& f = format_of(s);
  const std::string c = code(s, f.scale);
  return d_text(s, f.d) + " * " + (f.more.float_scale ? "lc_e4m3_half(" + c + ")" : "(float)" + c) +
         (f.more.shift ? " * " + str_cat(1.0 / (1 << f.more.shift)) + "f" : "");
}
std::string number_text(const Operand& s) {
  const QuantInfo& f = format_of(s);
  const std::string c = code(s, f.q);
  if (f.more.book.width == 0) return c;
  const std::string v = book_of(f.more.book) + "(" + c + (f.more.book.entries ? ", k)" : ")");
  switch (f.more.signs.packing.bits) {
    case 0: return v;
    case 1: return "(" + v + " + 1 - 2 * " + bits(s, f.more.signs) + ")";
    case 7: return "lc_signed(" + v + ", lc_even(" + bits(s, f.more.signs) + ") >> k % 8 & 1)";
    default: return "lc_signed(" + v + ", " + bits(s, f.more.signs) + " >> k % 8 & 1)";
  }
}

// Functions that the texts above call.
constexpr const char* kHelpers = R"(#ifndef LC_BLOCK_HELPERS
#define LC_BLOCK_HELPERS
LC int lc_trit(int x, int n) { for (int i = 0; i < n; ++i) x *= 3; return (x & 255) * 3 >> 8; }
LC int lc_even(int s) { const int x = s ^ s >> 4; return s | (27030 >> (x & 15) & 1) << 7; }
LC int lc_signed(int v, int negative) { return negative ? -v : v; }
LC float lc_e8m0_half(u32 e) { return lc_float(e < 2u ? 2097152u << e : (e - 1u) << 23); }
LC float lc_e4m3_half(int c) {
  const int e = c >> 3 & 15, m = c & 7;
  if (c == 127) return 0.0f;
  return e ? lc_float((u32)(e + 119) << 23 | (u32)m << 20) : (float)m * 0.0009765625f;
}
#endif
)";
std::string book_functions(const QuantBook& b) {
  if (b.width == 0) return "";
  std::string words[4],
      t = "#ifndef LC_BOOK_" + std::string(b.name) + "\n#define LC_BOOK_" + std::string(b.name) + "\n";
  for (int w = 0; w < 4; ++w) {
    std::uint32_t v = 0;
    for (int i = 0; i < 4; ++i) v |= static_cast<std::uint32_t>(b.levels[4 * w + i] & 255) << (8 * i);
    words[w] = to_string(v) + "u";
  }
  std::string argument = "int c";
  if (b.entries) {
    const std::string grid = "lc_grid_" + std::string(b.name);
    t += "LC_TABLE u16 " + grid + "[" + to_string(b.entries) + "] = {";
    for (int e = 0; e < b.entries; ++e) t += (e ? "," : "") + to_string(b.grid[e]);
    t += "};\n";
    argument = "int entry, int k";
    words[2] = grid + "[entry] >> k % " + to_string(b.width) + " * " + to_string(b.bits) + " & " +
               to_string((1 << b.bits) - 1);
    return t + "LC int " + book_of(b) + "(" + argument + ") {\n  const int c = " + words[2] +
           ";\n  return (int)(signed char)((c < 4 ? " + words[0] + " : " + words[1] + ") >> c % 4 * 8);\n}\n#endif\n";
  }
  return t + "LC int " + book_of(b) + "(" + argument + ") {\n  return (int)(signed char)((c < 8 ? (c < 4 ? " +
         words[0] + " : " + words[1] + ") : (c < 12 ? " + words[2] + " : " + words[3] +
         ")) >> c % 4 * 8);\n}\n#endif\n";
}

// True if words() can read the codes of sixteen values: they have one shift and adjacent bytes, or a bit each.
bool in_vectors(const QuantField& f) {
  const BitPacking& w = f.packing;
  if (w.bits == 0) return true;
  return !w.trits && (w.values_per_step == 8 ? w.bits == 1 : w.values_per_step == 1 && w.values_per_shift % 16 == 0);
}
bool in_vectors(const QuantInfo& f) { return f.more.book.entries == 0 && in_vectors(f.q.low) && in_vectors(f.q.high); }

// Fills four words NAME[4] whose bytes are this field's bits of the sixteen codes.
void words(Writer& w, const Operand& s, const QuantField& f, const std::string& name, bool first) {
  const std::string mask = to_string(((1u << f.packing.bits) - 1) * 0x01010101u) + "u", put = first ? " = " : " |= ";
  if (f.packing.values_per_step == 8) {  // a bit per code
    w.line("const u32 bits_ = (u32)" + byte_at(s, f.at, "k / 8") + " | (u32)" + byte_at(s, f.at + 1, "k / 8") +
           " << 8;");
    for (int t = 0; t < 4; ++t)
      w.line("{ const u32 x = bits_ >> " + to_string(4 * t) + " & 15u; " + name + "[" + to_string(t) + "]" + put +
             "((x | x << 7 | x << 14 | x << 21) & 16843009u) << " + to_string(f.place) + "; }");
    return;
  }
  w.line("{ LC_LOADV(u32, 4, v_, (const LC_GLOBAL u32*)&" + byte_at(s, f.at, first_byte_of(f.packing)) + ");");
  for (int t = 0; t < 4; ++t)
    w.line("  " + name + "[" + to_string(t) + "]" + put + "(LC_AT(v_, " + to_string(t) + ") >> " + shift_of(f.packing) +
           " & " + mask + ") << " + to_string(f.place) + ";");
  w.line("}");
}

std::string value_function(QuantFormat format, bool repacked) {
  const QuantInfo& f = info(format);
  const BlockRest rest = repacked ? block_rest(format) : BlockRest{0, 0};
  Operand s;
  s.type = weight_type(format), s.repacked = repacked;
  std::string v = scale_text(s) + " * (float)" + number_text(s);
  if (f.d_min >= 0) v += " - " + half_at(s, f.d_min) + " * (float)" + code(s, f.min);
  const std::string main = to_string(f.bytes - rest.bytes), last = rest.bytes ? "p + " + main + " * blocks + i / " +
                                                                                    to_string(f.elements) + " * " +
                                                                                    to_string(rest.bytes)
                                                                              : "p";
  return "LC float lc_value_" + std::string(f.name) + (repacked ? "_planes" : "") + "(const LC_GLOBAL u8* p, long i" +
         (repacked ? ", long blocks" : "") + ") {\n  const int k = (int)(i % " + to_string(f.elements) +
         ");\n  const LC_GLOBAL u8* const main = p + i / " + to_string(f.elements) + " * " + main + ";\n" +
         (rest.bytes ? "  const LC_GLOBAL u8* const rest = " + last + ";\n" : "") + "  return " + v + ";\n}\n";
}

}  // namespace

std::string block_functions(QuantFormat f) {
  const std::string name = "LC_VALUE_" + std::string(info(f).name);
  return kHelpers + book_functions(info(f).more.book) + "#ifndef " + name + "\n#define " + name + "\n" +
         value_function(f, false) + value_function(f, true) + "#endif\n";
}

// What is over in a block of whole vectors: scales before or behind the codes.
BlockRest block_rest(QuantFormat format) {
  const QuantInfo& f = info(format);
  const int over = in_vectors(f) ? f.bytes % 16 : 0;
  return {f.d == 0 || over == 0 ? 0 : f.bytes - over, over};
}

bool reads_sixteen(const Operand& s) { return s.repacked || block_rest(format_of(s).format).bytes == 0; }

void read_sixteen(Writer& w, const Operand& s, const std::string& index, const std::string& name) {
  const QuantInfo& f = format_of(s);
  const BlockRest rest = s.repacked ? block_rest(f.format) : BlockRest{0, 0};
  w.line("float " + name + "[16];");
  if (!in_vectors(f)) {
    w.line("LC_UNROLL");
    w.line("for (int e_ = 0; e_ < 16; ++e_) " + name + "[e_] = " + value(w, s, "in_b", "(" + index + ") + e_") + ";");
    return;
  }
  w.open("{");
  w.let("block", "(" + index + ") / " + to_string(f.elements));
  w.line("const int k = (int)((" + index + ") % " + to_string(f.elements) + ");");
  w.line("const LC_GLOBAL u8* main = in_b + (long)block * " + to_string(f.bytes - rest.bytes) + ";");
  if (rest.bytes)
    w.line("const LC_GLOBAL u8* rest = in_b + " + to_string(f.bytes - rest.bytes) + " * (long)" + w.number(s.blocks) +
           " + (long)block * " + to_string(rest.bytes) + ";");
  w.line("const float scale = " + scale_text(s) + ";");
  w.line("const float least = " + (f.d_min >= 0 ? "-" + half_at(s, f.d_min) + " * (float)" + code(s, f.min) : "0.0f") +
         ";");
  w.line("u32 codes[4];");
  words(w, s, f.q.low, "codes", true);
  if (f.q.high.packing.bits) words(w, s, f.q.high, "codes", false);
  // a byte in the low bits of the float 2^23 is the number 2^23 + byte
  const int bias = f.q.bias - (f.q.is_signed ? 128 : 0);
  const std::string sign = f.q.is_signed ? " ^ 2155905152u" : "";
  for (int e = 0; e < 16; ++e) {
    const std::string byte = "((codes[" + to_string(e / 4) + "]" + sign + ") >> " + to_string(e % 4 * 8) + " & 255u)";
    const std::string number = f.more.book.width
                                   ? "(float)" + book_of(f.more.book) + "((int)" + byte + ")"
                                   : "lc_float(1258291200u | " + byte + ") - " + to_string(8388608 - bias) + ".0f";
    w.line(name + "[" + to_string(e) + "] = lc_mul_add_f(scale, " + number + ", least);");
  }
  w.close();
}

std::string repack_text(QuantFormat format, std::string_view name, int threads, codegen::simt::Language language) {
  const QuantInfo& f = info(format);
  const BlockRest rest = block_rest(format);
  const int main = f.bytes - rest.bytes;
  const codegen::simt::Parameter parameters[] = {{"u8", "blocks"}, {"u8", "planes", true}};
  const auto copy = [](const std::string& to, const std::string& from, int bytes) {
    return bytes ? "  for (int i = 0; i < " + to_string(bytes) + "; ++i) " + to + " = " + from + ";\n" : std::string();
  };
  return codegen::simt::begin_kernel(language, name, threads, parameters, 1, "long") +
         "  const long b = (long)LC_GROUP * " + to_string(threads) + " + LC_THREAD;\n  if (b >= n0) return;\n" +
         copy("planes[b * " + to_string(main) + " + i]", "blocks[b * " + to_string(f.bytes) + " + i]", rest.first) +
         copy("planes[b * " + to_string(main) + " + " + to_string(rest.first) + " + i]",
              "blocks[b * " + to_string(f.bytes) + " + " + to_string(rest.first + rest.bytes) + " + i]",
              main - rest.first) +
         copy("planes[n0 * " + to_string(main) + " + b * " + to_string(rest.bytes) + " + i]",
              "blocks[b * " + to_string(f.bytes) + " + " + to_string(rest.first) + " + i]", rest.bytes) +
         "}\n";
}

}  // namespace lc::backends::gpu
