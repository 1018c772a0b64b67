// The parser of a model file: one function a message of onnx.proto.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lightcone/io/protobuf.h"
#include "lightcone/onnx/model/model.h"

namespace lc::onnx {

class Parser {
 public:
  Parser(std::shared_ptr<const MappedFile> file, const ReadOptions& o);
  Model model();
  TensorData tensor(std::span<const std::byte> message);  // tensor.cpp

 private:
  ProtobufFields fields(std::span<const std::byte> message) const;
  void deeper();
  // Appends numbers of a field, and takes their memory.
  template <class T>
  void append(const ProtobufFields& f, std::vector<T>& to) {
    const std::size_t before = to.size();
    f.append(to);
    budget_.take(to.size() - before, sizeof(T));
  }
  std::pair<std::string_view, std::string_view> entry(std::span<const std::byte> message) const;
  void opset(std::span<const std::byte> message, std::map<std::string_view, std::int64_t>& to) const;
  std::vector<TypeInfo::Extent> shape(std::span<const std::byte> message);
  TypeInfo type(std::span<const std::byte> message);
  ValueInfo value_info(std::span<const std::byte> message);
  Attribute attribute(std::span<const std::byte> message);
  NodeData node(std::span<const std::byte> message);
  GraphData graph(std::span<const std::byte> message);
  Function function(std::span<const std::byte> message);
  void external(TensorData& t, const std::map<std::string_view, std::string_view>& where, std::size_t bytes);

  std::shared_ptr<const MappedFile> file_;
  Budget budget_;
  ReadOptions options_;
  int depth_ = 0;
  std::map<std::string, std::shared_ptr<const MappedFile>> externals_;
};

// Puts nodes behind those that make their operands, and otherwise keeps their order. Nodes in a circle stay where they
// are.
void sort_nodes(std::vector<NodeData>& nodes);

inline std::string_view bytes_as_text(std::span<const std::byte> b) {
  return {reinterpret_cast<const char*>(b.data()), b.size()};
}

}  // namespace lc::onnx
