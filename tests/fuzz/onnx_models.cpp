#include "onnx_models.h"

#include <cstring>
#include <iterator>
#include <sstream>

#include "lightcone/onnx/read/operators.h"

namespace fuzz {

using lc::onnx::ElementType;
using lc::test::AttributeSpec;
using lc::test::Message;
using lc::test::ModelWriter;

namespace {

constexpr std::int64_t kOdd[] = {0,
                                 -1,
                                 1,
                                 2,
                                 3,
                                 -2,
                                 7,
                                 64,
                                 255,
                                 4096,
                                 65536,
                                 (std::int64_t{1} << 31) - 1,
                                 std::int64_t{1} << 31,
                                 (std::int64_t{1} << 32) + 3,
                                 -(std::int64_t{1} << 31),
                                 10'000'000,
                                 1'000'000'007,
                                 std::int64_t{1} << 40,
                                 std::int64_t{1} << 48,
                                 std::int64_t{1} << 62,
                                 INT64_MAX,
                                 INT64_MAX - 1,
                                 INT64_MIN,
                                 INT64_MIN + 1};

// The kind of the message that a field of another message holds.
Kind kind_of(Kind holder, std::uint64_t number) {
  switch (holder) {
    case Kind::Model:
      return number == 7    ? Kind::Graph
             : number == 8  ? Kind::Opset
             : number == 14 ? Kind::Entry
             : number == 25 ? Kind::Function
                            : Kind::None;
    case Kind::Graph:
      return number == 1                    ? Kind::Node
             : number == 5                  ? Kind::Tensor
             : number == 11 || number == 12 ? Kind::Value
                                            : Kind::None;
    case Kind::Node: return number == 5 ? Kind::Attribute : Kind::None;
    case Kind::Function:
      return number == 7 ? Kind::Node : number == 9 ? Kind::Opset : number == 11 ? Kind::Attribute : Kind::None;
    case Kind::Attribute:
      return number == 5 || number == 10   ? Kind::Tensor
             : number == 6 || number == 11 ? Kind::Graph
             : number == 14                ? Kind::Type
                                           : Kind::None;
    case Kind::Tensor: return number == 13 ? Kind::Entry : Kind::None;
    case Kind::Value: return number == 2 ? Kind::Type : Kind::None;
    case Kind::Type:
      return number == 1 || number == 8 ? Kind::TensorType : number == 4 || number == 9 ? Kind::Value : Kind::None;
    case Kind::TensorType: return number == 2 ? Kind::Shape : Kind::None;
    case Kind::Shape: return number == 1 ? Kind::Entry : Kind::None;
    default: return Kind::None;
  }
}

std::uint64_t varint(std::string_view s, std::size_t& at) {
  std::uint64_t v = 0;
  for (int shift = 0; at < s.size() && shift < 64; shift += 7) {
    const auto b = static_cast<unsigned char>(s[at++]);
    v |= static_cast<std::uint64_t>(b & 127) << shift;
    if (b < 128) break;
  }
  return v;
}
void put_varint(std::string& to, std::uint64_t v) {
  for (; v > 127; v >>= 7) to += static_cast<char>((v & 127) | 128);
  to += static_cast<char>(v);
}

Fields parsed(std::string_view s, Kind kind) {
  Fields r;
  for (std::size_t at = 0; at < s.size();) {
    const std::uint64_t key = varint(s, at);
    Field f{.number = key >> 3, .wire = static_cast<int>(key & 7), .holder = kind};
    if (f.wire == 0) {
      f.value = varint(s, at);
    } else {
      const std::size_t n = f.wire == 1 ? 8 : f.wire == 5 ? 4 : f.wire == 2 ? varint(s, at) : 0;
      const std::string_view part = s.substr(at, n);
      at += n;
      f.kind = f.wire == 2 ? kind_of(kind, f.number) : Kind::None;
      if (f.kind == Kind::None) f.bytes = part;
      else f.fields = parsed(part, f.kind);
    }
    r.push_back(std::move(f));
  }
  return r;
}

void collect(Fields& all, std::vector<std::pair<Fields*, std::size_t>>& to) {
  for (std::size_t k = 0; k < all.size(); ++k) {
    to.emplace_back(&all, k);
    collect(all[k].fields, to);
  }
}

class Changer {
 public:
  Changer(Fields& model, std::mt19937_64& random) : random_(random) { collect(model, places_); }
  void once() {
    if (places_.empty()) return;
    const auto [holder, at] = places_[draw(places_.size())];
    Field& f = (*holder)[at];
    if (f.kind != Kind::None && draw(2)) {
      whole(*holder, at);
    } else if (f.kind != Kind::None) {
      if (!f.fields.empty()) leaf(f.fields[draw(f.fields.size())]);
    } else {
      leaf(f);
    }
  }

 private:
  std::uint64_t draw(std::uint64_t below) { return random_() % below; }
  // Another field of the same kind.
  const Field& another(const Field& like) {
    for (int tries = 0; tries < 300; ++tries) {
      const auto [holder, at] = places_[draw(places_.size())];
      const Field& f = (*holder)[at];
      if (f.holder == like.holder && f.number == like.number) return f;
    }
    return like;
  }
  void leaf(Field& f) {
    if (f.kind != Kind::None) return;
    if (f.wire == 0) {
      const auto odd = static_cast<std::uint64_t>(kOdd[draw(std::size(kOdd))]);
      const std::uint64_t v[] = {odd, odd, f.value + 1, f.value - 1, f.value * 2, draw(30), another(f).value};
      f.value = v[draw(std::size(v))];
    } else if (f.holder == Kind::Node && f.number == 4 && draw(2)) {
      const auto& all = lc::onnx::operators();
      f.bytes = all[draw(all.size())].name;
    } else if (f.bytes.size() % 8 == 0 && f.bytes.size() <= 512 && !f.bytes.empty() && draw(2)) {
      const std::int64_t odd = kOdd[draw(std::size(kOdd))];
      std::memcpy(f.bytes.data() + 8 * draw(f.bytes.size() / 8), &odd, 8);
    } else if (f.bytes.size() <= 4096 && draw(4)) {
      f.bytes = std::string(another(f).bytes);
    } else if (!f.bytes.empty() && draw(3)) {
      f.bytes[draw(f.bytes.size())] = static_cast<char>(draw(256));
    } else {
      f.bytes.resize(draw(f.bytes.size() + 9));
    }
  }
  void whole(Fields& holder, std::size_t at) {
    Field copy = holder[at];
    const auto place = holder.begin() + static_cast<std::ptrdiff_t>(at);
    switch (draw(4)) {
      case 0: holder.erase(place); break;
      case 1: holder.insert(place, std::move(copy)); break;
      case 2: {
        Field other = another(copy);
        holder[at] = std::move(other);
        break;
      }
      default: std::swap(holder[at], holder[draw(holder.size())]);
    }
    places_.clear();  // they point into what has moved
  }

  std::mt19937_64& random_;
  std::vector<std::pair<Fields*, std::size_t>> places_;
};

}  // namespace

Fields parse_model(std::string_view bytes) { return parsed(bytes, Kind::Model); }
std::string written(const Fields& model) {
  std::string s;
  for (const Field& f : model) {
    put_varint(s, f.number << 3 | static_cast<std::uint64_t>(f.wire));
    if (f.wire == 0) {
      put_varint(s, f.value);
    } else if (f.wire == 2) {
      const std::string inner = f.kind == Kind::None ? f.bytes : written(f.fields);
      put_varint(s, inner.size());
      s += inner;
    } else {
      s += f.bytes;
    }
  }
  return s;
}
void change(Fields& model, std::mt19937_64& random) {
  for (std::uint64_t times = 1 + random() % 4; times > 0; --times) Changer(model, random).once();
}

// ---- models of random operators -------------------------------------------------------------------

const std::vector<ModelMaker::Operator>& ModelMaker::operators() {
  static const auto all = [] {
    std::map<std::string, Operator> known;
    std::istringstream lines(kOperatorLines);
    Operator* now = nullptr;
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      if (!line.empty() && line[0] != ' ') {
        std::string name;
        words >> name;
        now = &known[name];
        words >> now->operands >> now->results;
      }
      for (std::string word; words >> word;) now->attributes.emplace_back(word.substr(0, word.size() - 2), word.back());
    }
    std::vector<Operator> r;
    for (const lc::onnx::Operator& row : lc::onnx::operators()) {
      if (!row.rule) continue;
      const std::string name(row.name);
      Operator o = row.domain == lc::onnx::kMicrosoft || !known.contains(name) ? known["*"] : known[name];
      o.domain = row.domain, o.name = name;
      r.push_back(std::move(o));
    }
    return r;
  }();
  return all;
}

std::int64_t ModelMaker::hostile() { return kOdd[draw(std::size(kOdd))]; }
std::int64_t ModelMaker::integer() { return rarely() ? hostile() : static_cast<std::int64_t>(draw(6)) - 1; }
float ModelMaker::real() {
  static constexpr float kReals[] = {0, 1, -1, 0.5F, 1e30F, -1e30F, 1e-30F, 2.5F, 3e9F};
  if (rarely()) return draw(2) ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
  return kReals[draw(std::size(kReals))];
}
std::string ModelMaker::word() {
  static const char* const kWords[] = {"NOTSET",
                                       "SAME_UPPER",
                                       "SAME_LOWER",
                                       "VALID",
                                       "constant",
                                       "reflect",
                                       "edge",
                                       "wrap",
                                       "nearest",
                                       "linear",
                                       "cubic",
                                       "bilinear",
                                       "half_pixel",
                                       "asymmetric",
                                       "align_corners",
                                       "tf_crop_and_resize",
                                       "pytorch_half_pixel",
                                       "floor",
                                       "ceil",
                                       "round_prefer_floor",
                                       "add",
                                       "mul",
                                       "max",
                                       "min",
                                       "none",
                                       "mean",
                                       "sum",
                                       "DCR",
                                       "CRD",
                                       "LEFT",
                                       "RIGHT",
                                       "tanh",
                                       "forward",
                                       "reverse",
                                       "bidirectional",
                                       "Relu",
                                       "Sigmoid",
                                       "Tanh",
                                       "avg",
                                       "zeros",
                                       "border",
                                       "ij,jk->ik",
                                       "...ij->...ji",
                                       "ii",
                                       "i,i,i,i",
                                       "->",
                                       "linear",
                                       "circular",
                                       "Gelu",
                                       "",
                                       "x"};
  return kWords[draw(std::size(kWords))];
}
std::vector<std::int64_t> ModelMaker::integers() {
  std::vector<std::int64_t> v(rarely() ? draw(40) : draw(6));
  for (std::int64_t& n : v) n = integer();
  return v;
}
std::string ModelMaker::fresh() {
  if (rarely() && !names_.empty()) return any_name();  // a name that exists
  return "v" + std::to_string(made_++);
}
std::string ModelMaker::any_name() {
  if (names_.empty() || draw(100) == 0) return draw(2) ? "" : "v" + std::to_string(draw(300));
  if (!integer_names_.empty() && draw(4) == 0) return integer_names_[draw(integer_names_.size())];
  return names_[draw(2) ? draw(names_.size()) : names_.size() - 1 - draw(std::min<std::size_t>(names_.size(), 4))];
}

Message ModelMaker::tensor() {
  Message t;
  std::size_t n = 1;
  for (std::uint64_t rank = draw(4), k = 0; k < rank; ++k) {
    const std::uint64_t d = draw(4);
    t.integer(1, rarely() ? integer() : static_cast<std::int64_t>(d));
    n *= d;
  }
  static constexpr std::pair<int, std::size_t> kTypes[] = {{1, 4},  {7, 8},  {6, 4},  {9, 1}, {2, 1},  {3, 1},
                                                           {10, 2}, {11, 8}, {16, 2}, {5, 2}, {22, 1}, {8, 0}};
  const auto [type, size] = kTypes[draw(std::size(kTypes))];
  t.integer(2, rarely() ? integer() : type);
  std::string raw(rarely() ? draw(40) : n * size, '\0');
  for (std::size_t k = 0; k + 8 <= raw.size(); k += 8) {
    const std::int64_t v = integer();
    std::memcpy(raw.data() + k, &v, 8);
  }
  if (rarely()) t.integer(7, integer());
  else t.text(9, raw);
  return t;
}

std::vector<AttributeSpec> ModelMaker::attributes_of(const Operator& o) {
  std::vector<AttributeSpec> r;
  for (const auto& [name, type] : o.attributes) {
    if (type != 'g' && type != 't' && draw(3) != 0) continue;
    const char what = draw(40) == 0 ? "ifsIFtg"[draw(7)] : type;
    switch (what) {
      case 'i': r.emplace_back(name, std::vector<std::int64_t>()), r.back().value = integer(); break;
      case 'f': r.emplace_back(name, static_cast<double>(real())); break;
      case 's': r.emplace_back(name, word().c_str()); break;
      case 'I': r.emplace_back(name, integers()); break;
      case 'F': {
        std::vector<float> v(draw(5));
        for (float& f : v) f = real();
        r.emplace_back(name, v);
        break;
      }
      case 'g':
        if (depth_ < 4) r.emplace_back(name, graph());
        break;
      case 't': r.emplace_back(name, 0), r.back().value = lc::test::TensorMessage{tensor()}; break;
      default: break;
    }
  }
  return r;
}

Message ModelMaker::graph() {
  ++depth_;
  const auto outside = names_;
  ModelWriter w;
  for (std::uint64_t k = draw(4); k > 0; --k) {
    const std::string name = fresh();
    w.input(name, ElementType::Float, {});
    names_.push_back(name);
  }
  for (std::uint64_t k = draw(5); k > 0; --k) node(w);
  for (std::uint64_t k = draw(4); k > 0; --k) w.output(any_name());
  names_ = outside;
  --depth_;
  return w.graph();
}

void ModelMaker::node(ModelWriter& w) {
  const auto& all = operators();
  const char* const kControl[] = {
      "If",   "Loop",   "Scan",   "SequenceMap", "Shape", "Reshape", "Range",  "ConstantOfShape",
      "Tile", "Expand", "Concat", "Slice",       "Mul",   "Add",     "Gather", "Pad"};
  const Operator* o = &all[draw(all.size())];
  if (draw(4) == 0)
    for (const std::string name = kControl[draw(std::size(kControl))]; const Operator& each : all)
      if (each.name == name && each.domain.empty()) o = &each;
  std::vector<std::string> in, out;
  const std::size_t operands = o->operands > 1 && draw(3) == 0 ? 1 + draw(o->operands) : o->operands;
  for (std::size_t k = 0; k < operands; ++k)
    in.push_back(k > 0 && draw(3) == 0 && !integer_names_.empty() ? integer_names_[draw(integer_names_.size())]
                                                                  : any_name());
  const std::size_t results = o->results > 1 ? 1 + draw(o->results) : 1;
  for (std::size_t k = 0; k < results; ++k) out.push_back(fresh());
  w.node(o->name, in, out, attributes_of(*o), o->domain);
  names_.insert(names_.end(), out.begin(), out.end());
}

void ModelMaker::inputs(ModelWriter& w) {
  static constexpr ElementType kTypes[] = {ElementType::Float,   ElementType::Float, ElementType::Float,
                                           ElementType::Int64,   ElementType::Bool,  ElementType::Uint8,
                                           ElementType::Float16, ElementType::Int32, ElementType::Double};
  static const char* const kSymbols[] = {"n", "m", "batch", "n + 1", "2*n", "n*m*n", "past", "i0", "n // 2", ""};
  for (std::uint64_t k = 1 + draw(4); k > 0; --k) {
    std::vector<ModelWriter::ExtentSpec> shape;
    for (std::uint64_t rank = draw(5); rank > 0; --rank) {
      if (draw(3) == 0) shape.emplace_back(kSymbols[draw(std::size(kSymbols))]);
      else if (draw(30) == 0) shape.emplace_back(0), shape.back().extent = hostile();
      else shape.emplace_back(static_cast<int>(draw(5)));
    }
    const std::string name = fresh();
    w.input(name, kTypes[draw(std::size(kTypes))], shape);
    names_.push_back(name);
  }
}
void ModelMaker::constants(ModelWriter& w) {
  for (std::uint64_t k = 1 + draw(6); k > 0; --k) {
    const std::string name = fresh();
    const std::vector<std::int64_t> v = integers();
    const auto n = static_cast<std::int64_t>(v.size());
    if (n == 1 && draw(2)) w.constant(name, v, {});
    else w.constant(name, v, {n});
    names_.push_back(name), integer_names_.push_back(name);
  }
  for (std::uint64_t k = draw(3); k > 0; --k) {
    const std::string name = fresh();
    const std::int64_t a = static_cast<std::int64_t>(draw(4)), b = static_cast<std::int64_t>(draw(4));
    std::vector<float> v(static_cast<std::size_t>(a * b));
    for (float& f : v) f = real();
    w.constant(name, v, {a, b});
    names_.push_back(name);
  }
}

std::string ModelMaker::model() {
  ModelWriter w;
  w.opset(rarely() ? static_cast<std::int64_t>(1 + draw(27)) : static_cast<std::int64_t>(17 + draw(8)));
  for (const auto domain : {lc::onnx::kMicrosoft, lc::onnx::kMl, lc::onnx::kPreview}) w.opset(1, std::string(domain));
  inputs(w);
  constants(w);
  for (std::uint64_t k = 1 + draw(draw(2) ? 2 : 12); k > 0; --k) node(w);
  for (std::uint64_t k = 1 + draw(3); k > 0; --k) w.output(any_name());
  return w.bytes();
}

}  // namespace fuzz
