// Makes ONNX models: of operators drawn at random with operands, attributes and constants that fit or do not, and of
// other models, some of whose fields are changed.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onnx/write_model.h"

namespace fuzz {

extern const char* const kOperatorLines;  // onnx_operators.cpp

// ---- models whose fields are changed --------------------------------------------------------------

// A field of a message of protocol buffers. `kind` is that of the message in it, or None.
enum class Kind { None, Model, Opset, Entry, Function, Graph, Node, Tensor, Value, Attribute, Type, TensorType, Shape };
struct Field {
  std::uint64_t number = 0;
  int wire = 0;
  std::uint64_t value = 0;  // an integer
  std::string bytes = {};   // another field that is no message
  Kind kind = Kind::None, holder = Kind::None;
  std::vector<Field> fields = {};
};
using Fields = std::vector<Field>;
Fields parse_model(std::string_view bytes);
std::string written(const Fields& model);

// Changes 1 to 4 fields of a model: numbers, texts, elements of constants, and whole nodes, tensors and graphs.
void change(Fields& model, std::mt19937_64& random);

// ---- models of random operators -------------------------------------------------------------------

class ModelMaker {
 public:
  explicit ModelMaker(std::uint64_t seed) : random_(seed) {}
  std::string model();

 private:
  struct Operator {
    std::string domain, name;
    std::size_t operands = 1, results = 1;
    std::vector<std::pair<std::string, char>> attributes = {};
  };
  static const std::vector<Operator>& operators();

  std::uint64_t draw(std::uint64_t below) { return random_() % below; }
  bool rarely() { return draw(8) == 0; }
  std::int64_t integer();
  std::int64_t hostile();
  float real();
  std::string word();
  std::string any_name();
  std::string fresh();
  std::vector<std::int64_t> integers();
  void constants(lc::test::ModelWriter& w);
  void inputs(lc::test::ModelWriter& w);
  void node(lc::test::ModelWriter& w);
  lc::test::Message tensor();
  lc::test::Message graph();
  std::vector<lc::test::AttributeSpec> attributes_of(const Operator& o);

  std::mt19937_64 random_;
  std::vector<std::string> names_, integer_names_;
  int made_ = 0, depth_ = 0;
};

}  // namespace fuzz
