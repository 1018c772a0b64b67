#include "lightcone/backends/gpu/products/blocks.h"

#include "lightcone/backends/gpu/products/operand.h"

namespace lc::backends::gpu {

using std::to_string;

namespace {

const QuantInfo& format_of(const Operand& s) { return *lowering::block_format(s.type); }

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
std::string place_of(const BitPacking& w) {
  return "k / " + to_string(w.values_per_step) + " % " + to_string(w.byte_period) + " + k / " +
         to_string(w.block_values) + " * " + to_string(w.block_stride);
}
std::string bits(const Operand& s, const QuantField& f) {
  return "(((int)" + byte_at(s, f.at, place_of(f.packing)) + " >> " + shift_of(f.packing) + " & " +
         to_string((1 << f.packing.bits) - 1) + ") << " + to_string(f.place) + ")";
}
std::string code(const Operand& s, const QuantSum<QuantField>& c) {
  std::string t;
  if (c.low.packing.bits) t = bits(s, c.low);
  if (c.high.packing.bits) t += " + " + bits(s, c.high);
  if (t.empty()) return "(float)" + to_string(c.bias);
  if (c.is_signed) t = "(int)(signed char)(" + t + ")";
  return "(float)(" + t + " + " + to_string(c.bias) + ")";
}

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
  w.line("{ LC_LOADV(u32, 4, v_, (const LC_GLOBAL u32*)&" + byte_at(s, f.at, place_of(f.packing)) + ");");
  for (int t = 0; t < 4; ++t)
    w.line("  " + name + "[" + to_string(t) + "]" + put + "(LC_AT(v_, " + to_string(t) + ") >> " + shift_of(f.packing) +
           " & " + mask + ") << " + to_string(f.place) + ";");
  w.line("}");
}

std::string value_function(QuantFormat format, bool repacked) {
  const QuantInfo& f = info(format);
  const BlockRest rest = repacked ? block_rest(format) : BlockRest{0, 0};
  Operand s;
  s.type = lowering::weight_type(format), s.repacked = repacked;
  std::string v = half_at(s, f.d) + " * " + code(s, f.scale) + " * " + code(s, f.q);
  if (f.d_min >= 0) v += " - " + half_at(s, f.d_min) + " * " + code(s, f.min);
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
  return "#ifndef " + name + "\n#define " + name + "\n" + value_function(f, false) + value_function(f, true) +
         "#endif\n";
}

BlockRest block_rest(QuantFormat f) {
  switch (f) {
    case QuantFormat::Q4_0:
    case QuantFormat::Q8_0: return {0, 2};
    case QuantFormat::Q4_1: return {0, 4};
    case QuantFormat::Q5_0: return {0, 6};
    case QuantFormat::Q5_1: return {0, 8};
    case QuantFormat::Q2_K: return {80, 4};
    case QuantFormat::Q3_K: return {96, 14};
    case QuantFormat::Q6_K: return {208, 2};
    default: return {0, 0};
  }
}

bool reads_sixteen(const Operand& s) { return s.repacked || block_rest(format_of(s).format).bytes == 0; }

void read_sixteen(Writer& w, const Operand& s, const std::string& place, const std::string& name) {
  const QuantInfo& f = format_of(s);
  const BlockRest rest = s.repacked ? block_rest(f.format) : BlockRest{0, 0};
  w.line("float " + name + "[16];");
  w.open("{");
  w.let("block", "(" + place + ") / " + to_string(f.elements));
  w.line("const int k = (int)((" + place + ") % " + to_string(f.elements) + ");");
  w.line("const LC_GLOBAL u8* main = in_b + (long)block * " + to_string(f.bytes - rest.bytes) + ";");
  if (rest.bytes)
    w.line("const LC_GLOBAL u8* rest = in_b + " + to_string(f.bytes - rest.bytes) + " * (long)" + w.number(s.blocks) +
           " + (long)block * " + to_string(rest.bytes) + ";");
  w.line("const float scale = " + half_at(s, f.d) + " * " + code(s, f.scale) + ";");
  w.line("const float least = " + (f.d_min >= 0 ? "-" + half_at(s, f.d_min) + " * " + code(s, f.min) : "0.0f") + ";");
  w.line("u32 codes[4];");
  words(w, s, f.q.low, "codes", true);
  if (f.q.high.packing.bits) words(w, s, f.q.high, "codes", false);
  // a byte in the low bits of the float 2^23 is the number 2^23 + byte
  const int bias = f.q.bias - (f.q.is_signed ? 128 : 0);
  const std::string sign = f.q.is_signed ? " ^ 2155905152u" : "";
  for (int e = 0; e < 16; ++e) {
    const std::string word = "(codes[" + to_string(e / 4) + "]" + sign + ")";
    w.line(name + "[" + to_string(e) + "] = lc_mul_add_f(scale, lc_float(1258291200u | (" + word + " >> " +
           to_string(e % 4 * 8) + " & 255u)) - " + to_string(8388608 - bias) + ".0f, least);");
  }
  w.close();
}

std::string repack_text(QuantFormat format, std::string_view name, int threads, codegen::simt::Language language) {
  const QuantInfo& f = info(format);
  const BlockRest rest = block_rest(format);
  const int main = f.bytes - rest.bytes;
  const codegen::simt::Parameter places[] = {{"u8", "blocks"}, {"u8", "planes", true}};
  const auto copy = [](const std::string& to, const std::string& from, int bytes) {
    return bytes ? "  for (int i = 0; i < " + to_string(bytes) + "; ++i) " + to + " = " + from + ";\n" : std::string();
  };
  return codegen::simt::begin_kernel(language, name, threads, places, 1, "long") +
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
