// Prints a module: operations in MLIR's generic form, functions in their usual form.
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <set>

#include "lightcone/base/error.h"
#include "lightcone/stablehlo/module.h"

namespace lc::stablehlo {
namespace {

// ---- numbers ---------------------------------------------------------------------------------------------------

constexpr std::int64_t kSpelled = 64;  // constants with more elements are written as bytes, in hexadecimal

template <class T>
std::string shortest(T v) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, v).ptr};
}

// Returns a number with a decimal point, also before an exponent, as MLIR requires.
template <class T>
std::string decimal(T v) {
  std::string s = shortest(v);
  const std::size_t e = s.find('e');
  if (s.find('.') == std::string::npos) s.insert(e == std::string::npos ? s.size() : e, ".0");
  return s;
}

std::string hex(std::uint64_t bits, int digits) {
  std::string s = "0x";
  for (int k = digits; k-- > 0;) s += "0123456789ABCDEF"[bits >> (4 * k) & 15];
  return s;
}

std::uint64_t bits_of(const std::byte* at, std::size_t size) {
  std::uint64_t bits = 0;
  for (std::size_t k = size; k-- > 0;) bits = bits << 8 | std::to_integer<std::uint64_t>(at[k]);
  return bits;
}

// Returns true for "i32", "ui8" and similar; no other names begin like this.
bool is_integer(std::string_view element) {
  const std::size_t digits = element.starts_with("ui") ? 2 : element.starts_with("i") ? 1 : 0;
  return digits > 0 && element.size() > digits && element[digits] >= '0' && element[digits] <= '9';
}

std::string element_text(const std::byte* at, std::size_t size, std::string_view element) {
  const std::uint64_t bits = bits_of(at, size);
  if (element == "i1") return bits ? "true" : "false";
  if (element.starts_with("ui")) return shortest(bits);
  if (is_integer(element)) {
    const int unused = static_cast<int>(64 - 8 * size);
    return shortest(static_cast<std::int64_t>(bits << unused) >> unused);
  }
  if (element == "f64") {
    const auto v = std::bit_cast<double>(bits);
    return std::isfinite(v) ? decimal(v) : hex(bits, 16);
  }
  const auto v = static_cast<float>(load_f64(&bits, *dtype_of(element), 0));
  return std::isfinite(v) ? decimal(v) : hex(bits, static_cast<int>(2 * size));
}

std::string bytes_text(const std::vector<std::byte>& data) {
  std::string s = "\"0x";
  s.reserve(2 * data.size() + 4);
  for (const std::byte b : data)
    for (const int shift : {4, 0}) s += "0123456789ABCDEF"[std::to_integer<int>(b) >> shift & 15];
  return s + '"';
}

bool is_spelled(std::string_view element) { return is_integer(element) || dtype_of(element); }

// Writes rows in brackets, one pair for each axis.
void nested(const Attribute& a, std::size_t size, std::size_t axis, const std::byte*& at, std::string& to) {
  if (axis == a.type.shape.size()) {
    to += element_text(at, size, a.type.element);
    at += size;
    return;
  }
  to += '[';
  for (std::int64_t k = 0; k < a.type.shape[axis]; ++k) {
    if (k > 0) to += ", ";
    nested(a, size, axis + 1, at, to);
  }
  to += ']';
}

std::string dense(const Attribute& a) {
  std::int64_t count = 1;
  for (const std::int64_t d : a.type.shape) count *= d;
  if (count == 0 || a.data.empty()) return "dense<> : " + str(a.type);
  const std::size_t size = a.data.size() / static_cast<std::size_t>(a.splat ? 1 : count);
  std::string text;
  if (!is_spelled(a.type.element)) {
    text = bytes_text(a.data);
  } else if (a.splat) {
    text = element_text(a.data.data(), size, a.type.element);
  } else if (count <= kSpelled || a.type.element == "i1") {  // whether bytes of i1 are packed depends on the version
    const std::byte* at = a.data.data();
    nested(a, size, 0, at, text);
  } else {
    text = bytes_text(a.data);
  }
  return "dense<" + text + "> : " + str(a.type);
}

// ---- attributes ------------------------------------------------------------------------------------------------

std::string quoted(std::string_view text) {
  std::string s = "\"";
  for (const char c : text) {
    if (const auto byte = static_cast<unsigned char>(c); c == '"' || c == '\\' || byte < 32 || byte > 126)
      s += '\\' + hex(byte, 2).substr(2);
    else s += c;
  }
  return s + '"';
}

bool is_word(std::string_view s) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto more = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '$'; };
  if (s.empty() || !letter(s[0])) return false;
  for (const char c : s)
    if (!more(c)) return false;
  return true;
}
std::string key(std::string_view s) { return is_word(s) ? std::string(s) : quoted(s); }

template <class Range, class F>
std::string joined(const Range& all, const F& text) {
  std::string s;
  for (const auto& x : all) {
    if (!s.empty()) s += ", ";
    s += text(x);
  }
  return s;
}

std::string list_of(const std::vector<std::int64_t>& v) {
  return '[' + joined(v, [](std::int64_t k) { return std::to_string(k); }) + ']';
}

// Returns [b, f, 0, 1]: the role of each axis of a convolution's operand.
std::string axes_of(const Attribute& a, const std::string& operand, const std::string& first, char first_letter,
                    const std::string& second, char second_letter) {
  std::vector<std::string> axes;
  const auto set = [&](std::int64_t at, std::string word) {
    if (at < 0 || at > 64) throw Error("print", str_cat("axis ", at, " of a convolution"));
    if (axes.size() <= static_cast<std::size_t>(at)) axes.resize(static_cast<std::size_t>(at) + 1);
    axes[at] = std::move(word);
  };
  for (const auto& [name, value] : a.fields) {
    if (name == operand + "_" + first + "_dimension") set(value.integer, std::string(1, first_letter));
    if (name == operand + "_" + second + "_dimension") set(value.integer, std::string(1, second_letter));
    if (name == operand + "_spatial_dimensions")
      for (std::size_t k = 0; k < value.integers.size(); ++k) set(value.integers[k], std::to_string(k));
  }
  return '[' + joined(axes, [](const std::string& s) { return s; }) + ']';
}

std::string convolution_axes(const Attribute& a) {
  return axes_of(a, "input", "batch", 'b', "feature", 'f') + 'x' +
         axes_of(a, "kernel", "output_feature", 'o', "input_feature", 'i') + "->" +
         axes_of(a, "output", "batch", 'b', "feature", 'f');
}

std::string attribute_list(const AttributeList& all);

// `bare`: inside of #stablehlo.gather<...>, where numbers have no types.
std::string text_of(const Attribute& a, bool bare = false) {
  switch (a.kind) {
    case Attribute::Kind::Unit: return "unit";
    case Attribute::Kind::Bool: return a.integer ? "true" : "false";
    case Attribute::Kind::Integer: {
      const bool typed = is_integer(a.type.element) || a.type.element == "index";
      return std::to_string(a.integer) + (bare ? "" : " : " + (typed ? a.type.element : std::string("i64")));
    }
    case Attribute::Kind::Real:
      if (!std::isfinite(a.real)) {
        if (a.type.element == "f32") return hex(std::bit_cast<std::uint32_t>(static_cast<float>(a.real)), 8) + " : f32";
        return hex(std::bit_cast<std::uint64_t>(a.real), 16) + " : f64";
      }
      return decimal(a.real) + " : " + a.type.element;
    case Attribute::Kind::String: return quoted(a.text);
    case Attribute::Kind::Symbol: return '@' + key(a.text);
    case Attribute::Kind::Type: return str(a.type);
    case Attribute::Kind::List: return '[' + joined(a.list, [&](const Attribute& x) { return text_of(x, bare); }) + ']';
    case Attribute::Kind::Integers: {
      if (bare) return list_of(a.integers);
      const bool bools = a.type.element == "i1";
      const std::string element = is_integer(a.type.element) ? a.type.element : "i64";
      const std::string values = joined(
          a.integers, [&](std::int64_t k) { return bools ? std::string(k ? "true" : "false") : std::to_string(k); });
      return "array<" + element + (values.empty() ? "" : ": " + values) + '>';
    }
    case Attribute::Kind::Dense: return dense(a);
    case Attribute::Kind::Enum: return "#stablehlo<" + a.name + ' ' + a.text + '>';
    case Attribute::Kind::Struct:
      if (a.name.empty()) return '{' + attribute_list(a.fields) + '}';
      if (a.name == "conv") return "#stablehlo.conv<" + convolution_axes(a) + '>';
      return "#stablehlo." + a.name + '<' +
             joined(a.fields, [](const NamedAttribute& f) { return f.first + " = " + text_of(f.second, true); }) + '>';
  }
  return {};
}

std::string attribute_list(const AttributeList& all) {
  return joined(all, [](const NamedAttribute& a) {
    return key(a.first) + (a.second.kind == Attribute::Kind::Unit ? "" : " = " + text_of(a.second));
  });
}

// ---- operations ------------------------------------------------------------------------------------------------

class Printer {
 public:
  explicit Printer(const Module& m) : m_(m), names_(m.values.size()) {}
  std::string run() {
    out_ = "module" + (m_.name.empty() ? std::string() : " @" + key(m_.name));
    if (!m_.attributes.empty()) out_ += " attributes {" + attribute_list(m_.attributes) + '}';
    out_ += " {\n";
    for (const Function& f : m_.functions) function(f);
    return std::move(out_) + "}\n";
  }

 private:
  const Type& type(ValueId v) const { return m_.values.at(static_cast<std::size_t>(v)).type; }
  const std::string& name(ValueId v) const { return names_.at(static_cast<std::size_t>(v)); }
  // Names a value by its own name if no other value of the function has it, otherwise by a number.
  void define(ValueId v) {
    const std::string& wanted = m_.values.at(static_cast<std::size_t>(v)).name;
    const bool kept = is_word(wanted) && taken_.insert(wanted).second;
    names_[v] = '%' + (kept ? wanted : std::to_string(next_++));
  }
  void define(const std::vector<ValueId>& results) {
    if (results.size() == 1) return define(results[0]);
    const std::string all = '%' + std::to_string(next_++);
    for (std::size_t k = 0; k < results.size(); ++k) names_[results[k]] = str_cat(all, '#', k);
  }
  std::string arguments(const std::vector<ValueId>& all, const std::vector<AttributeList>& attributes) {
    std::size_t k = 0;
    return joined(all, [&](ValueId v) {
      define(v);
      std::string s = name(v) + ": " + str(type(v));
      if (k < attributes.size() && !attributes[k].empty()) s += " {" + attribute_list(attributes[k]) + '}';
      return ++k, s;
    });
  }
  std::string types(const std::vector<ValueId>& all) const {
    return '(' + joined(all, [&](ValueId v) { return str(type(v)); }) + ')';
  }

  void function(const Function& f) {
    taken_.clear();
    next_ = 0;
    out_ += "  func.func " + std::string(f.is_public ? "public" : "private") + " @" + key(f.name) + '(' +
            arguments(f.body.arguments, f.argument_attributes) + ") -> (";
    std::size_t k = 0;
    out_ += joined(f.results, [&](const Type& t) {
      const bool more = k < f.result_attributes.size() && !f.result_attributes[k].empty();
      const std::string s = str(t) + (more ? " {" + attribute_list(f.result_attributes[k]) + '}' : "");
      return ++k, s;
    });
    out_ += ") {\n";
    for (const Operation& o : f.body.operations) operation(o, 2);
    out_ += "  }\n";
  }

  void operation(const Operation& o, int depth) {
    const std::string indent(static_cast<std::size_t>(2 * depth), ' ');
    out_ += indent;
    if (!o.results.empty()) {
      define(o.results);
      const std::string& first = name(o.results[0]);
      out_ += o.results.size() == 1 ? first : str_cat(first.substr(0, first.find('#')), ':', o.results.size());
      out_ += " = ";
    }
    out_ += quoted(o.name) + '(' + joined(o.operands, [&](ValueId v) { return name(v); }) + ')';
    if (!o.attributes.empty()) out_ += " <{" + attribute_list(o.attributes) + "}>";
    if (!o.regions.empty()) {
      out_ += " (";
      for (std::size_t k = 0; k < o.regions.size(); ++k) {
        out_ += k == 0 ? "{\n" : ", {\n";
        const Block& b = o.regions[k];
        if (!b.arguments.empty()) out_ += indent + "^bb0(" + arguments(b.arguments, {}) + "):\n";
        for (const Operation& inner : b.operations) operation(inner, depth + 1);
        out_ += indent + '}';
      }
      out_ += ')';
    }
    out_ += " : " + types(o.operands) + " -> ";
    out_ += (o.results.size() == 1 ? str(type(o.results[0])) : types(o.results)) + '\n';
  }

  const Module& m_;
  std::vector<std::string> names_;  // names of values, with %
  std::set<std::string> taken_;
  int next_ = 0;
  std::string out_;
};

}  // namespace

std::string print(const Module& m) { return Printer(m).run(); }

}  // namespace lc::stablehlo
