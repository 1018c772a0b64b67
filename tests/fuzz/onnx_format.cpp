// Makes small ONNX models that load, unless one of their numbers, texts or counts lies.
#include "mutator.h"
#include "onnx/write_model.h"

namespace fuzz {
namespace {

using lc::test::Message;

// The fields of onnx.proto, with everything they state passed through a Mutator.
class OnnxMaker {
 public:
  explicit OnnxMaker(Mutator& l) : l_(l) {}
  std::string model();

 private:
  std::int64_t number(std::int64_t v) { return static_cast<std::int64_t>(l_.number(static_cast<std::uint64_t>(v))); }
  Message extents(const std::vector<std::int64_t>& shape) {  // -1: an extent with a name
    Message s;
    const std::size_t count = l_.count(shape.size());
    for (std::size_t k = 0; k < count; ++k) {
      const std::int64_t n = shape.empty() ? 2 : shape[k % shape.size()];
      s.message(1, n < 0 ? Message().text(2, l_.word("n")) : Message().integer(1, number(n)));
    }
    return s;
  }
  Message port(const std::string& name, int type, const std::vector<std::int64_t>& shape) {
    const Message tensor = Message().integer(1, number(type)).message(2, extents(shape));
    return Message().text(1, l_.word(name)).message(2, Message().message(1, tensor));
  }
  Message tensor(const std::string& name, int type, std::size_t size, const std::vector<std::int64_t>& shape,
                 const std::vector<std::int64_t>& values) {
    Message t;
    for (const std::int64_t n : shape) t.integer(1, number(n));
    std::string raw;
    for (const std::int64_t v : values) {
      const std::int64_t w = number(v);
      raw.append(reinterpret_cast<const char*>(&w), size);
    }
    raw.resize(l_.count(raw.size()));
    return t.integer(2, number(type)).text(8, l_.word(name)).text(9, raw);
  }
  Message attribute(const std::string& name, std::int64_t v) {
    return Message().text(1, l_.word(name)).integer(3, number(v)).integer(20, number(2));
  }
  Message attribute(const std::string& name, const std::vector<std::int64_t>& v) {
    Message m;
    m.text(1, l_.word(name));
    const std::size_t count = l_.count(v.size());
    for (std::size_t k = 0; k < count; ++k) m.integer(8, number(v[k % v.size()]));
    return m.integer(20, number(7));
  }
  Message attribute(const std::string& name, const Message& graph) {
    return Message().text(1, l_.word(name)).message(6, graph).integer(20, number(5));
  }
  Message node(const std::string& op, const std::vector<std::string>& in, const std::vector<std::string>& out,
               const std::vector<Message>& attributes = {}) {
    Message n;
    for (const std::string& s : in) n.text(1, l_.word(s));
    for (const std::string& s : out) n.text(2, l_.word(s));
    n.text(4, l_.word(op));
    for (const Message& a : attributes) n.message(5, a);
    return n;
  }
  Message name(const std::string& s) { return Message().text(1, l_.word(s)); }
  Message body();
  Message function();

  Mutator& l_;
};

// A step of a loop: v + 1, and the condition stays.
Message OnnxMaker::body() {
  Message g;
  g.message(11, port("step", 7, {})).message(11, port("goes", 9, {})).message(11, port("v", 1, {-1, 4}));
  g.message(1, node("Add", {"v", "b"}, {"w"})).message(1, node("Identity", {"goes"}, {"on"}));
  return g.message(12, name("on")).message(12, name("w")).message(12, name("w"));
}
Message OnnxMaker::function() {
  Message f;
  f.text(1, l_.word("Twice")).text(10, l_.word("own")).text(4, l_.word("x")).text(5, l_.word("y"));
  f.message(7, node("Add", {"x", "x"}, {"y"})).message(9, Message().text(1, "").integer(2, number(17)));
  return f;
}

std::string OnnxMaker::model() {
  Message g;
  g.message(11, port("x", 1, {-1, 3, 6, 6})).message(11, port("y", 1, {-1, 4}));
  std::vector<std::int64_t> filter(2 * 3 * 3 * 3, 0x3f800000), row(4, 0x40000000);
  g.message(5, tensor("w", 1, 4, {2, 3, 3, 3}, filter)).message(5, tensor("b", 1, 4, {4}, row));
  g.message(5, tensor("to", 7, 8, {2}, {0, -1})).message(5, tensor("steps", 7, 8, {}, {3}));
  g.message(5, tensor("first", 7, 8, {1}, {0}));
  g.message(1, node("Conv", {"x", "w"}, {"c"}, {attribute("pads", {1, 1, 1, 1}), attribute("strides", {2, 2})}));
  g.message(1, node("MaxPool", {"c"}, {"p"}, {attribute("kernel_shape", {2, 2})}));
  g.message(1, node("Reshape", {"p", "to"}, {"flat"}));
  g.message(1, node("Shape", {"flat"}, {"s"}))
      .message(1, node("Gather", {"s", "first"}, {"n"}, {attribute("axis", 0)}));
  g.message(1, node("Loop", {"steps", "", "y"}, {"last", "all"}, {attribute("body", body())}));
  g.message(1, node("Concat", {"flat", "last"}, {"both"}, {attribute("axis", 1)}));
  g.message(1, Message(node("Twice", {"both"}, {"twice"})).text(7, l_.word("own")));
  g.message(1, node("Softmax", {"twice"}, {"out"}, {attribute("axis", -1)}));
  for (const char* s : {"out", "all", "n"}) g.message(12, name(s));
  Message m;
  m.integer(1, number(10)).message(7, g).message(25, function());
  m.message(8, Message().text(1, "").integer(2, number(17))).message(8, Message().text(1, "own").integer(2, 1));
  std::string bytes = m.bytes();
  if (l_.lies()) bytes.resize(l_.draw(bytes.size() + 1));
  if (l_.lies()) bytes[l_.draw(bytes.size())] = static_cast<char>(l_.draw(256));
  return bytes;
}

}  // namespace

Files make_onnx(Mutator& l) { return {{{"model.onnx", OnnxMaker(l).model()}}}; }

}  // namespace fuzz
