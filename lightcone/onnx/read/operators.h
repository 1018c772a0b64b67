// The table of ONNX's operators: one row each, with the rule that writes it as graph code. docs/onnx.md is made of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "lightcone/core/tensor.h"
#include "lightcone/onnx/model/model.h"

namespace lc::onnx {

// What a name of a model stands for.
struct Value {
  // The number of valid elements of an axis whose size depends on data.
  struct Count {
    Tensor number;  // i64 scalar
    int axis = 0;
  };
  Value() = default;
  Value(const Tensor& t) : tensor(t) {}
  Value(const Tensor& t, Count c) : tensor(t), count(c) {}

  Tensor tensor = {};
  std::shared_ptr<const std::vector<Value>> sequence = {};  // the elements of a sequence
  std::optional<Count> count = {};
  const TensorData* strings = nullptr;  // a constant of strings, which only attributes of operators can be
  // The bytes of which `tensor` is (bytes - zero) * scale in f32. The scale and the zero point, which may be undefined,
  // are scalars or have an element for each index of `axis`.
  struct Codes {
    Tensor bytes, scale, zero;
    int axis = 0;
  };
  std::shared_ptr<const Codes> codes = {};
  ElementType packed = ElementType::Undefined;  // the type in the model of integers of 2 and 4 bits
  // A tensor of texts: the number of each among these.
  struct Labels {
    Tensor numbers;  // i64
    std::vector<std::string> texts;
  };
  std::shared_ptr<const Labels> labels = {};
  bool none = false;    // an optional without a value
  bool failed = false;  // the result of a node that could not be read

  bool defined() const { return tensor.defined() || sequence || strings || labels || none || failed; }
};
using Values = std::vector<Value>;
inline Value failed_value() {
  Value v;
  v.failed = true;
  return v;
}

class Call;
using Rule = Values (*)(Call&);

struct Operator {
  std::string_view domain, name;  // "" is ai.onnx
  std::int64_t since;             // the lowest operator set whose meaning is read
  Rule rule;                      // null: refused
  std::string_view how;           // what it becomes, or why it is refused
};
using Operators = std::vector<Operator>;
inline constexpr std::string_view kMl = "ai.onnx.ml", kMicrosoft = "com.microsoft", kPreview = "ai.onnx.preview";
inline constexpr std::int64_t kNewestOpset = 27;  // the newest of ai.onnx

// Each file of rules adds the rows of its operators.
void add_elementwise(Operators& t);
void add_arithmetic(Operators& t);
void add_shapes(Operators& t);
void add_slices(Operators& t);
void add_constants(Operators& t);
void add_reductions(Operators& t);
void add_norms(Operators& t);
void add_products(Operators& t);
void add_indexing(Operators& t);
void add_random(Operators& t);
void add_training(Operators& t);
void add_convolutions(Operators& t);
void add_pooling(Operators& t);
void add_images(Operators& t);
void add_regions(Operators& t);
void add_recurrent(Operators& t);
void add_signal(Operators& t);
void add_attention(Operators& t);
void add_quantization(Operators& t);
void add_microsoft(Operators& t);
void add_machine_learning(Operators& t);
void add_control(Operators& t);
void add_sequences(Operators& t);

// All rows, ordered by domain and name.
const Operators& operators();
// The row of an operator, or null.
const Operator* find_operator(std::string_view domain, std::string_view name);

}  // namespace lc::onnx
