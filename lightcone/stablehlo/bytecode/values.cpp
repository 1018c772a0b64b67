#include "lightcone/stablehlo/bytecode/values.h"

#include <algorithm>
#include <array>
#include <bit>

#include "lightcone/base/error.h"

namespace lc::stablehlo {
namespace {

using Kind = Attribute::Kind;

constexpr int kDeepest = 100;

// Codes of VHLO's attributes; those of enumerations are in kEnumerations.
constexpr std::uint64_t kArray = 1, kBoolean = 2, kApiVersion = 5, kDictionary = 6, kFloat = 8, kInteger = 9,
                        kAlias = 10, kString = 14, kTensor = 15, kType = 17, kBounds = 18, kResultAccuracy = 20;
// Codes of the builtin dialect's attributes.
constexpr std::uint64_t kOwnArray = 0, kOwnDictionary = 1, kOwnString = 2, kOwnTypedString = 3, kOwnSymbol = 4,
                        kOwnType = 6, kOwnUnit = 7, kOwnInteger = 8, kOwnFloat = 9, kOwnTensor = 18;

struct Enumeration {
  std::uint64_t code;
  std::string_view name;
  std::array<std::string_view, 6> words;
};
constexpr Enumeration kEnumerations[] = {
    {3, "comparison_direction", {"EQ", "NE", "GE", "GT", "LE", "LT"}},
    {4, "comparison_type", {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"}},
    {7, "fft_type", {"FFT", "IFFT", "RFFT", "IRFFT"}},
    {11, "precision", {"DEFAULT", "HIGH", "HIGHEST"}},
    {12, "rng_algorithm", {"DEFAULT", "THREE_FRY", "PHILOX"}},
    {13, "rng_distribution", {"", "UNIFORM", "NORMAL"}},
    {16, "transpose", {"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}},
    {19, "result_accuracy_mode", {"DEFAULT", "HIGHEST", "TOLERANCE"}},
};

Attribute of_kind(Kind k) {
  Attribute a;
  a.kind = k;
  return a;
}
Attribute truth(bool v) {
  Attribute a = of_kind(Kind::Bool);
  a.integer = v;
  return a;
}
Attribute text(Kind k, std::string_view s) {
  Attribute a = of_kind(k);
  a.text = s;
  return a;
}
Attribute whole(std::int64_t v, std::string_view element = "i64") {
  Attribute a = of_kind(Kind::Integer);
  a.integer = v, a.type.element = element;
  return a;
}

// Stands for an attribute that no VHLO operation needs, such as a sharding. Only its dialect is kept.
Attribute unread(std::string_view dialect) {
  Attribute a = of_kind(Kind::String);
  a.name = dialect;
  return a;
}

}  // namespace

void Allowance::pay(std::size_t bytes, std::size_t at) {
  if (bytes > left_)
    Cursor::fail_at(
        at, str_cat("the module takes more than 256 times the memory of its file, which has ", file_, " bytes"));
  left_ -= bytes;
}

class Values::Deeper {
 public:
  Deeper(int& depth, std::size_t at) : depth_(depth) {
    if (++depth_ > kDeepest) {
      --depth_;
      Cursor::fail_at(at, str_cat("attributes or types are nested more than ", kDeepest, " deep"));
    }
  }
  ~Deeper() { --depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  int& depth_;
};

// ---- attributes -----------------------------------------------------------------------------------

Attribute Values::attribute(std::size_t index, std::size_t asked_at) {
  auto& known = attributes_[index];
  if (!known) {
    const Deeper deeper(depth_, asked_at);
    Attribute a = read_attribute(file_.attributes[index]);
    const std::size_t weight = memory_of(a);
    known = std::make_unique<Known<Attribute>>(Known<Attribute>{std::move(a), weight});
  }
  allowance_.pay(known->weight, asked_at);
  return known->value;
}

Attribute Values::read_attribute(const File::Entry& e) {
  Cursor c = file_.cursor(e.at);
  if (e.is_text) return text(Kind::String, c.zero_terminated());
  const std::string_view dialect = file_.dialects[e.dialect];
  if (dialect == "vhlo") return vhlo_attribute(c);
  if (dialect == "builtin") return builtin_attribute(c);
  return unread(dialect);
}

Attribute Values::vhlo_attribute(Cursor& c) {
  const std::uint64_t code = c.varint();
  switch (code) {
    case kArray: return list(c);
    case kBoolean: return truth(c.varint() != 0);
    case kApiVersion: return whole(static_cast<std::int64_t>(c.index(5, "version of custom calls")), "i32");
    case kDictionary: return dictionary(c);
    case kFloat: return real(c);
    case kInteger: return integer(c);
    case kAlias:
    case kBounds: return of_kind(Kind::Unit);  // no needed information
    case kString: return text(Kind::String, string(c));
    case kTensor: return tensor(c);
    case kType: {
      Attribute a = of_kind(Kind::Type);
      a.type = child_type(c);
      return a;
    }
    case kResultAccuracy: return accuracy(c);
    default: return enumeration(c, code);
  }
}

Attribute Values::builtin_attribute(Cursor& c) {
  const std::uint64_t code = c.varint();
  switch (code) {
    case kOwnArray: return list(c);
    case kOwnDictionary: return dictionary(c);
    case kOwnString:
    case kOwnTypedString: return text(Kind::String, string(c));
    case kOwnSymbol: return text(Kind::Symbol, child(c).text);
    case kOwnType: {
      Attribute a = of_kind(Kind::Type);
      a.type = child_type(c);
      return a;
    }
    case kOwnUnit: return of_kind(Kind::Unit);
    case kOwnInteger: return integer(c);
    case kOwnFloat: return real(c);
    case kOwnTensor: return tensor(c);
    default: return unread("builtin");
  }
}

std::string_view Values::string(Cursor& c) { return file_.strings[c.index(file_.strings.size(), "string")]; }
Attribute Values::child(Cursor& c) {
  const std::size_t at = c.at();
  return attribute(c.index(file_.attributes.size(), "attribute"), at);
}
Type Values::child_type(Cursor& c) {
  const std::size_t at = c.at();
  return type(c.index(file_.types.size(), "type"), at);
}

Attribute Values::list(Cursor& c) {
  Attribute a = of_kind(Kind::List);
  for (std::size_t left = c.count("attributes"); left > 0; --left) a.list.push_back(child(c));
  return a;
}

Attribute Values::dictionary(Cursor& c) {
  Attribute a = of_kind(Kind::Struct);
  for (std::size_t left = c.count("attributes"); left > 0; --left) {
    Attribute name = child(c);
    a.fields.emplace_back(std::move(name.text), child(c));
  }
  return a;
}

std::vector<NumberedAttribute> Values::fields_of(std::size_t attribute, std::size_t asked_at) {
  const File::Entry& e = file_.attributes[attribute];
  Cursor c = file_.cursor(e.at);
  if (e.is_text || file_.dialects[e.dialect] != "builtin" || c.varint() != kOwnDictionary)
    Cursor::fail_at(asked_at, "the attributes of an operation are no dictionary");
  std::vector<NumberedAttribute> all;
  for (std::size_t left = c.count("attributes"); left > 0; --left) {
    const File::Entry& name = file_.attributes[c.index(file_.attributes.size(), "attribute")];
    Cursor n = file_.cursor(name.at);
    if (name.is_text || n.varint() != kOwnString) c.fail("a name is no string");
    allowance_.pay(sizeof(NumberedAttribute), asked_at);
    all.push_back({string(n), c.index(file_.attributes.size(), "attribute")});
  }
  return all;
}

// Reads an integer: numbers of up to 8 bits are a byte, others of up to 64 bits are signed numbers whose upper bits are
// ignored.
Attribute Values::integer(Cursor& c) {
  const std::size_t from = c.at();
  const Type t = child_type(c);
  const bool is_unsigned = t.element.starts_with("ui");
  const std::size_t bytes = element_bytes(t.element);
  if (t.is_tensor || bytes == 0 || t.element.find('f') != std::string::npos)
    Cursor::fail_at(from, str_cat("a whole number is of type ", str(t)));
  Attribute a = whole(bytes == 1 ? c.byte() : c.signed_varint(), t.element);
  const int unused = static_cast<int>(64 - 8 * bytes);
  const auto bits = static_cast<std::uint64_t>(a.integer) << unused;
  a.integer = is_unsigned || t.element == "i1" ? static_cast<std::int64_t>(bits >> unused)
                                               : static_cast<std::int64_t>(bits) >> unused;
  return t.element == "i1" ? truth(a.integer & 1) : a;
}

Attribute Values::real(Cursor& c) {
  const std::size_t from = c.at();
  const Type t = child_type(c);
  const auto dtype = dtype_of(t.element);
  if (t.is_tensor || !dtype || !is_float(*dtype)) Cursor::fail_at(from, str_cat("a real number is of type ", str(t)));
  const std::int64_t bits = c.signed_varint();
  Attribute a = of_kind(Kind::Real);
  a.real = load_f64(&bits, *dtype, 0);
  a.type.element = t.element;
  return a;
}

Attribute Values::tensor(Cursor& c) {
  Attribute a = of_kind(Kind::Dense);
  a.type = child_type(c);
  const Stretch raw = c.take(c.varint());
  set_elements(a, c.bytes(raw), c, allowance_);
  return a;
}

Attribute Values::accuracy(Cursor& c) {
  Attribute a = of_kind(Kind::Struct);
  a.name = "result_accuracy";
  for (const char* name : {"atol", "rtol"}) {
    Attribute v = of_kind(Kind::Real);
    v.real = std::bit_cast<double>(c.signed_varint());
    v.type.element = "f64";
    a.fields.emplace_back(name, std::move(v));
  }
  a.fields.emplace_back("ulps", whole(c.signed_varint()));
  a.fields.emplace_back("mode", child(c));
  return a;
}

Attribute Values::enumeration(Cursor& c, std::uint64_t code) {
  const auto* e = std::ranges::find(kEnumerations, code, &Enumeration::code);
  if (e == std::end(kEnumerations)) c.fail(str_cat("attribute ", code, " of VHLO is not read"));
  const std::uint64_t k = c.varint();
  if (k >= e->words.size() || e->words[k].empty()) c.fail(str_cat("there is no ", e->name, " ", k));
  Attribute a = text(Kind::Enum, e->words[k]);
  a.name = e->name;
  return a;
}

// ---- types ----------------------------------------------------------------------------------------

namespace {

Type named(std::string name) {
  Type t;
  t.is_tensor = false, t.element = std::move(name);
  return t;
}

// Types that consist of a name only, by code.
constexpr std::string_view kTypes[] = {"i1",
                                       "",
                                       "bf16",
                                       "f16",
                                       "f32",
                                       "f64",
                                       "f8E4M3FN",
                                       "f8E5M2",
                                       "",
                                       "index",
                                       "i4",
                                       "i8",
                                       "i16",
                                       "i32",
                                       "i64",
                                       "ui4",
                                       "ui8",
                                       "ui16",
                                       "ui32",
                                       "ui64",
                                       "",
                                       "",
                                       "!stablehlo.token",
                                       "",
                                       "!quant.uniform",
                                       "",
                                       "!shape.witness",
                                       "f8E4M3FNUZ",
                                       "f8E5M2FNUZ",
                                       "f8E4M3B11FNUZ",
                                       "!quant.uniform",
                                       "i2",
                                       "ui2",
                                       "none",
                                       "tf32",
                                       "f8E4M3",
                                       "f8E3M4",
                                       "f4E2M1FN",
                                       "f6E2M3FN",
                                       "f6E3M2FN",
                                       "f8E8M0FNU"};
constexpr std::uint64_t kComplexType = 1, kFunctionType = 8, kRankedType = 20, kEncodedType = 21, kTupleType = 23,
                        kUnrankedType = 25;
constexpr std::uint64_t kOwnIntegerType = 0, kOwnIndexType = 1, kOwnFunctionType = 2, kOwnComplexType = 9,
                        kOwnNoneType = 12, kOwnRankedType = 13, kOwnEncodedType = 14, kOwnTupleType = 15;
constexpr std::string_view kOwnFloatTypes[] = {"bf16", "f16", "f32", "f64"};  // codes from 3 on

}  // namespace

Type Values::type(std::size_t index, std::size_t asked_at) {
  auto& known = types_[index];
  if (!known) {
    const Deeper deeper(depth_, asked_at);
    Type t = read_type(file_.types[index]);
    const std::size_t weight = memory_of(t);
    known = std::make_unique<Known<Type>>(Known<Type>{std::move(t), weight});
  }
  allowance_.pay(known->weight, asked_at);
  return known->value;
}

Type Values::read_type(const File::Entry& e) {
  Cursor c = file_.cursor(e.at);
  if (e.is_text) return named(std::string(c.zero_terminated()));
  const std::string_view dialect = file_.dialects[e.dialect];
  if (dialect == "vhlo") return vhlo_type(c);
  if (dialect == "builtin") return builtin_type(c);
  c.fail(str_cat("types of the dialect '", dialect, "' are not read: write the module as a portable artifact"));
}

// Reads a complex type of two floats.
Type Values::complex_type(Cursor& c) {
  const std::size_t from = c.at();
  const Type part = child_type(c);
  Type t = named("complex<" + part.element + ">");
  if (part.is_tensor || element_bytes(t.element) == 0)
    Cursor::fail_at(from, str_cat("complex numbers of two ", str(part), " are not read"));
  return t;
}

Type Values::vhlo_type(Cursor& c) {
  const std::uint64_t code = c.varint();
  switch (code) {
    case kComplexType: return complex_type(c);
    case kFunctionType: {
      std::string in = types_in_round(c);
      return named(std::move(in) + " -> " + types_in_round(c));
    }
    case kRankedType:
    case kEncodedType: return ranked(c, code == kEncodedType);
    case kTupleType: return named("tuple<" + types_in_round(c) + ">");
    case kUnrankedType: return named("tensor<*x" + child_type(c).element + ">");
    default:
      if (code >= std::size(kTypes) || kTypes[code].empty()) c.fail(str_cat("type ", code, " of VHLO is not read"));
      return named(std::string(kTypes[code]));
  }
}

Type Values::builtin_type(Cursor& c) {
  const std::uint64_t code = c.varint();
  switch (code) {
    case kOwnIntegerType: {
      const std::uint64_t v = c.varint(), width = v >> 2, sign = v & 3;  // signless, signed, unsigned
      if (width == 0 || width > 64 || sign > 2) c.fail(str_cat("an integer of ", width, " bits is not read"));
      return named(str_cat(sign == 0 ? "i" : sign == 1 ? "si" : "ui", width));
    }
    case kOwnIndexType: return named("index");
    case kOwnFunctionType: {
      std::string in = types_in_round(c);
      return named(std::move(in) + " -> " + types_in_round(c));
    }
    case kOwnComplexType: return complex_type(c);
    case kOwnNoneType: return named("none");
    case kOwnRankedType:
    case kOwnEncodedType: return ranked(c, code == kOwnEncodedType);
    case kOwnTupleType: return named("tuple<" + types_in_round(c) + ">");
    default:
      if (code < 3 || code >= 3 + std::size(kOwnFloatTypes))
        c.fail(str_cat("type ", code, " of MLIR's own dialect is not read"));
      return named(std::string(kOwnFloatTypes[code - 3]));
  }
}

// Returns VHLO's bounds of extents, or none for another encoding, such as a layout.
std::vector<std::int64_t> Values::bounds(const File::Entry& encoding) {
  Cursor c = file_.cursor(encoding.at);
  std::vector<std::int64_t> all;
  if (encoding.is_text || file_.dialects[encoding.dialect] != "vhlo" || c.varint() != kBounds) return all;
  std::size_t left = c.count("bounds");
  if (left > 64) c.fail("bounds of more than 64 axes");
  for (; left > 0; --left) {
    const std::int64_t n = c.signed_varint();
    all.push_back(n < 0 ? kDynamic : n);
  }
  return all;
}

Type Values::ranked(Cursor& c, bool encoded) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 48;
  Type t;
  if (encoded) t.bounds = bounds(file_.attributes[c.index(file_.attributes.size(), "attribute")]);
  const std::size_t rank = c.count("extents");
  if (rank > 64) c.fail("a tensor of more than 64 axes");
  for (std::size_t k = 0; k < rank; ++k) {
    const std::int64_t n = c.signed_varint();
    if (n >= kLargest) c.fail("an extent above 2^48");
    t.shape.push_back(n < 0 ? kDynamic : n);  // a large negative number stands for an unknown extent
  }
  if (!t.bounds.empty() && t.bounds.size() != rank) c.fail("bounds are not one for each axis");
  const Type element = child_type(c);
  if (element.is_tensor) c.fail("a tensor of tensors");
  t.element = element.element;
  return t;
}

std::string Values::types_in_round(Cursor& c) {
  std::string s = "(";
  for (std::size_t left = c.count("types"); left > 0; --left) s += str(child_type(c)) + (left > 1 ? ", " : "");
  return s + ")";
}

std::vector<Type> Values::results_of(std::size_t attribute, std::size_t asked_at) {
  const File::Entry& holder = file_.attributes[attribute];
  Cursor c = file_.cursor(holder.at);
  if (holder.is_text || c.varint() != (file_.dialects[holder.dialect] == "vhlo" ? kType : kOwnType))
    Cursor::fail_at(asked_at, "a function has no type");
  const File::Entry& function = file_.types[c.index(file_.types.size(), "type")];
  c = file_.cursor(function.at);
  if (function.is_text || c.varint() != (file_.dialects[function.dialect] == "vhlo" ? kFunctionType : kOwnFunctionType))
    Cursor::fail_at(asked_at, "a function has a type that is not a function's");
  for (std::size_t left = c.count("types"); left > 0; --left) c.varint();
  std::vector<Type> results;
  for (std::size_t left = c.count("types"); left > 0; --left) results.push_back(child_type(c));
  return results;
}

// ---- elements -------------------------------------------------------------------------------------

std::size_t element_bytes(std::string_view e) {
  if (e == "complex<f32>") return 8;
  if (e == "complex<f64>") return 16;
  if (e == "index") return 8;
  for (const std::string_view small : {"i2", "i4", "ui2", "ui4"})
    if (e == small) return 1;
  const auto dtype = dtype_of(e);
  return dtype ? size_of(*dtype) : e.starts_with("f8") ? 1 : 0;
}

namespace {

// Sets elements of i1: eight per byte, from the lowest bit on; one byte with equal bits stands for all.
void set_bits(Attribute& dense, std::span<const std::byte> raw, std::uint64_t n, const Cursor& c,
              Allowance& allowance) {
  if (n > 1 && raw.size() == 1 && (raw[0] == std::byte{0} || raw[0] == std::byte{0xff})) {
    dense.data.assign(1, raw[0] & std::byte{1});
    dense.splat = true;
    return;
  }
  if (raw.size() != n / 8 + (n % 8 != 0)) c.fail(str_cat(raw.size(), " bytes are not the bits of ", str(dense.type)));
  allowance.pay(n, c.at());
  for (std::uint64_t k = 0; k < n; ++k) dense.data.push_back(raw[k / 8] >> (k % 8) & std::byte{1});
}

}  // namespace

void set_elements(Attribute& dense, std::span<const std::byte> raw, const Cursor& c, Allowance& allowance) {
  const Type& t = dense.type;
  const std::size_t size = element_bytes(t.element);
  if (!t.is_tensor || size == 0) c.fail(str_cat("elements of type ", str(t), " are not read"));
  std::uint64_t n = 1;
  for (const std::int64_t d : t.shape) {
    if (d == kDynamic) c.fail("a constant needs a shape of numbers");
    if (d > 0 && n > (std::uint64_t{1} << 48) / static_cast<std::uint64_t>(d))
      c.fail("a constant of more than 2^48 elements");
    n *= static_cast<std::uint64_t>(d);
  }
  if (n == 0) return;
  if (t.element == "i1") return set_bits(dense, raw, n, c, allowance);
  if (raw.size() != size && raw.size() / size != n)
    c.fail(str_cat(raw.size(), " bytes are not the elements of ", str(t)));
  if (raw.size() % size) c.fail(str_cat(raw.size(), " bytes are not whole elements of ", str(t)));
  dense.data.assign(raw.begin(), raw.end());
  dense.splat = n != 1 && raw.size() == size;
}

}  // namespace lc::stablehlo
