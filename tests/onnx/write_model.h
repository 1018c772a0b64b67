// Writes small ONNX models for tests, as the bytes of their files.
//
//   const std::string m = ModelWriter().opset(13).input("x", ElementType::Float, {"n", 3})
//                             .node("Softmax", {"x"}, {"y"}, {{"axis", 1}}).output("y").bytes();
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lightcone/onnx/model/model.h"

namespace lc::test {

// A message of protocol buffers: fields with a number, each a variable-length integer, 4 bytes, or a length and bytes.
class Message {
 public:
  Message& integer(int field, std::int64_t v) {
    varint(static_cast<std::uint64_t>(field) << 3);
    varint(static_cast<std::uint64_t>(v));
    return *this;
  }
  Message& number(int field, float v) {
    varint(static_cast<std::uint64_t>(field) << 3 | 5);
    const auto bits = std::bit_cast<std::uint32_t>(v);
    for (int k = 0; k < 4; ++k) bytes_ += static_cast<char>(bits >> (8 * k));
    return *this;
  }
  Message& text(int field, const std::string& v) {
    varint(static_cast<std::uint64_t>(field) << 3 | 2);
    varint(v.size());
    bytes_ += v;
    return *this;
  }
  Message& message(int field, const Message& v) { return text(field, v.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t v) {
    for (; v > 127; v >>= 7) bytes_ += static_cast<char>((v & 127) | 128);
    bytes_ += static_cast<char>(v);
  }
  std::string bytes_;
};

struct TensorMessage {
  Message tensor;
};
struct AttributeSpec {
  std::string name;
  std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>, std::vector<float>, Message,
               std::vector<std::string>, TensorMessage>
      value;
  AttributeSpec(std::string n, int v) : name(std::move(n)), value(std::int64_t{v}) {}
  AttributeSpec(std::string n, double v) : name(std::move(n)), value(static_cast<float>(v)) {}
  AttributeSpec(std::string n, const char* v) : name(std::move(n)), value(std::string(v)) {}
  AttributeSpec(std::string n, std::vector<std::int64_t> v) : name(std::move(n)), value(std::move(v)) {}
  AttributeSpec(std::string n, std::vector<float> v) : name(std::move(n)), value(std::move(v)) {}
  AttributeSpec(std::string n, std::vector<std::string> v) : name(std::move(n)), value(std::move(v)) {}
  AttributeSpec(std::string n, Message graph) : name(std::move(n)), value(std::move(graph)) {}
};

class ModelWriter {
 public:
  using Extent = std::variant<std::int64_t, std::string>;  // a number or a name
  struct ExtentSpec {
    Extent extent;
    ExtentSpec(int n) : extent(std::int64_t{n}) {}
    ExtentSpec(const char* name) : extent(std::string(name)) {}
  };

  ModelWriter& opset(std::int64_t version, const std::string& domain = "") {
    opsets_.emplace_back(domain, version);
    return *this;
  }
  ModelWriter& input(const std::string& name, onnx::ElementType type, const std::vector<ExtentSpec>& shape) {
    Message extents;
    for (const ExtentSpec& e : shape) {
      Message one;
      if (const auto* n = std::get_if<std::int64_t>(&e.extent)) one.integer(1, *n);
      else one.text(2, std::get<std::string>(e.extent));
      extents.message(1, one);
    }
    Message tensor;
    tensor.integer(1, static_cast<int>(type)).message(2, extents);
    graph_.message(11, Message().text(1, name).message(2, Message().message(1, tensor)));
    return *this;
  }
  ModelWriter& output(const std::string& name) {
    graph_.message(12, Message().text(1, name));
    return *this;
  }
  // A constant with these numbers in this type.
  ModelWriter& constant(const std::string& name, DType type, const std::vector<double>& v,
                        const std::vector<std::int64_t>& shape) {
    Message t;
    for (const std::int64_t n : shape) t.integer(1, n);
    t.integer(2, static_cast<int>(onnx::element_type_of(type))).text(8, name);
    std::string raw(v.size() * size_of(type), '\0');
    for (std::size_t k = 0; k < v.size(); ++k) {
      if (is_float(type)) store_f64(raw.data(), type, k, v[k]);
      else store_i64(raw.data(), type, k, static_cast<std::int64_t>(v[k]));
    }
    graph_.message(5, t.text(9, raw));
    return *this;
  }
  // A constant whose elements have the type T.
  template <class T>
  ModelWriter& constant(const std::string& name, const std::vector<T>& v, const std::vector<std::int64_t>& shape) {
    Message t;
    for (const std::int64_t n : shape) t.integer(1, n);
    t.integer(2, static_cast<int>(onnx::element_type_of(dtype_of<T>::value))).text(8, name);
    std::string raw(v.size() * sizeof(T), '\0');
    if (!v.empty()) std::memcpy(raw.data(), v.data(), raw.size());
    graph_.message(5, t.text(9, raw));
    return *this;
  }
  ModelWriter& node(const std::string& op, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs, const std::vector<AttributeSpec>& attributes = {},
                    const std::string& domain = "") {
    Message n;
    for (const std::string& s : inputs) n.text(1, s);
    for (const std::string& s : outputs) n.text(2, s);
    n.text(4, op).text(7, domain);
    for (const AttributeSpec& a : attributes) n.message(5, attribute(a));
    graph_.message(1, n);
    return *this;
  }
  // A node that is a message already, for attributes that AttributeSpec has not.
  ModelWriter& add(const Message& node) {
    graph_.message(1, node);
    return *this;
  }
  // The graph alone, as attributes of If, Loop and Scan have it.
  const Message& graph() const { return graph_; }
  std::string bytes() const {
    Message m;
    m.integer(1, 10).message(7, Message(graph_).text(2, "test"));
    for (const auto& [domain, version] : opsets_) m.message(8, Message().text(1, domain).integer(2, version));
    return m.bytes();
  }

 private:
  static Message attribute(const AttributeSpec& a) {
    Message m;
    m.text(1, a.name);
    switch (a.value.index()) {
      case 0: return m.integer(3, std::get<0>(a.value)).integer(20, 2);
      case 1: return m.number(2, std::get<1>(a.value)).integer(20, 1);
      case 2: return m.text(4, std::get<2>(a.value)).integer(20, 3);
      case 3:
        for (const std::int64_t v : std::get<3>(a.value)) m.integer(8, v);
        return m.integer(20, 7);
      case 4:
        for (const float v : std::get<4>(a.value)) m.number(7, v);
        return m.integer(20, 6);
      case 5: return m.message(6, std::get<5>(a.value)).integer(20, 5);
      case 6:
        for (const std::string& v : std::get<6>(a.value)) m.text(9, v);
        return m.integer(20, 8);
      default: return m.message(5, std::get<7>(a.value).tensor).integer(20, 4);
    }
  }

  Message graph_;
  std::vector<std::pair<std::string, std::int64_t>> opsets_;
};

}  // namespace lc::test
