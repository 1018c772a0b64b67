// Makes folders with files of torch.save(), in both forms, whose pickles and archives may lie.
#include <initializer_list>

#include "mutator.h"
#include "torch_writer.h"

namespace fuzz {
namespace {

using made::little;

// Braces make their parts from left to right, in the order in which the pickle remembers texts; + need not.
std::string joined(std::initializer_list<std::string> parts) {
  std::string all;
  for (const std::string& part : parts) all += part;
  return all;
}

// Writes the pickle of a state dict as PyTorch does, with other instructions of the same meaning drawn at random.
class TorchMaker {
 public:
  explicit TorchMaker(Mutator& l) : l_(l) {}
  std::string make(const Shapes& tensors);

 private:
  // An instruction, or any other one.
  std::string op(char c) { return std::string(1, l_.lies() ? static_cast<char>(l_.draw(256)) : c); }
  std::string number(std::int64_t truth);
  std::string text(const std::string& truth);
  std::string name(const std::string& module, const std::string& name);
  std::string numbers(const std::vector<std::int64_t>& all);
  std::string storage(const std::string& type, std::int64_t elements);
  std::string tensor(const std::vector<int>& shape);
  std::string state_dict(const Shapes& tensors);
  std::string root(const Shapes& tensors);
  Mutator& l_;
  std::vector<made::TorchStorage> storages_;
  std::vector<std::string> remembered_;  // texts of the memo
};

std::string TorchMaker::number(std::int64_t truth) {
  const auto n = static_cast<std::int64_t>(l_.number(static_cast<std::uint64_t>(truth)));
  const auto bits = static_cast<std::uint64_t>(n);
  if (n >= 0 && n < 256 && l_.draw(2)) return op('K') + little(bits, 1);
  if (n >= 0 && n < 65536 && l_.draw(2)) return op('M') + little(bits, 2);
  if (n >= INT32_MIN && n <= INT32_MAX && l_.draw(4)) return op('J') + little(bits, 4);
  return joined({op('\x8a'), little(l_.number(8), 1), little(bits, 8)});
}

std::string TorchMaker::text(const std::string& truth) {
  for (std::size_t i = 0; i < remembered_.size(); ++i)
    if (remembered_[i] == truth && l_.draw(2)) return joined({op('h'), little(l_.number(i), 1)});
  const std::string s = l_.word(truth), written = joined({op('X'), little(l_.number(s.size()), 4), s});
  if (remembered_.size() >= 200 || l_.draw(2)) return written;
  remembered_.push_back(truth);
  return joined({written, op('q'), little(l_.number(remembered_.size() - 1), 1)});
}

std::string TorchMaker::name(const std::string& module, const std::string& name) {
  static const std::vector<std::pair<std::string, std::string>> kOthers = {{"os", "system"},
                                                                           {"collections", "OrderedDict"},
                                                                           {"torch._utils", "_rebuild_tensor_v3"},
                                                                           {"torch", "Size"},
                                                                           {"torch._utils", "_rebuild_qtensor"},
                                                                           {"numpy.core.multiarray", "_reconstruct"},
                                                                           {"torch", "ShortStorage"},
                                                                           {"torch", "ComplexFloatStorage"},
                                                                           {"copyreg", "_reconstructor"},
                                                                           {"_codecs", "encode"},
                                                                           {"builtins", "set"},
                                                                           {"torch._tensor", "_rebuild_from_type_v2"},
                                                                           {"copyreg", "__newobj__"},
                                                                           {"torch", "UntypedStorage"},
                                                                           {"torch._utils", "_rebuild_parameter"},
                                                                           {"numpy", "dtype"},
                                                                           {"numpy.core.multiarray", "scalar"},
                                                                           {"numpy", "ndarray"}};
  if (l_.lies()) {
    const auto& [m, n] = kOthers[l_.draw(kOthers.size())];
    return op('c') + m + "\n" + n + "\n";
  }
  if (l_.draw(4)) return op('c') + module + "\n" + name + "\n";
  return joined({text(module), text(name), op('\x93')});
}

std::string TorchMaker::numbers(const std::vector<std::int64_t>& all) {
  std::string s = op('(');
  const std::size_t n = l_.count(all.size());
  for (std::size_t i = 0; i < n; ++i) s += number(all.empty() ? 1 : all[i % all.size()]);
  return s + op('t');
}

std::string TorchMaker::storage(const std::string& type, std::int64_t elements) {
  const std::string key = std::to_string(storages_.size());
  return joined(
      {op('('), text("storage"), name("torch", type), text(key), text("cpu"), number(elements), op('t'), op('Q')});
}

std::string TorchMaker::tensor(const std::vector<int>& shape) {
  static const std::pair<const char*, int> kTypes[] = {{"FloatStorage", 4}, {"HalfStorage", 2}, {"BFloat16Storage", 2}};
  const auto& [type, size] = kTypes[l_.draw(std::size(kTypes))];
  const std::vector<std::int64_t> extents(shape.begin(), shape.end());
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t step = 1;
  const bool transposed = l_.draw(4) == 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::size_t axis = transposed ? i : shape.size() - 1 - i;
    strides[axis] = step, step *= extents[axis];
  }
  const auto offset = static_cast<std::int64_t>(l_.draw(3));
  const bool parameter = l_.draw(3) == 0;
  std::string s = parameter ? joined({name("torch._utils", "_rebuild_parameter"), op('(')}) : "";
  s += joined({name("torch._utils", "_rebuild_tensor_v2"), op('('), storage(type, step + offset), number(offset),
               numbers(extents), numbers(strides), op('\x89'), op('}'), op('t'), op('R')});
  if (parameter) s += joined({op('\x88'), op('}'), op('t'), op('R')});
  storages_.push_back({std::to_string(storages_.size()),
                       std::string(static_cast<std::size_t>((step + offset) * size), '\x2a'), step + offset});
  return s;
}

std::string TorchMaker::state_dict(const Shapes& tensors) {
  const bool ordered = l_.draw(2), at_once = l_.draw(2);
  std::string s = ordered ? joined({name("collections", "OrderedDict"), op(')'), op('R')}) : op('}');
  if (at_once) s += op('(');
  const std::size_t n = l_.count(tensors.size());
  for (std::size_t i = 0; i < n; ++i) {
    const auto& [key, shape] = tensors[i % tensors.size()];
    s += joined({text(key), tensor(shape)});
    if (!at_once) s += op('s');
  }
  return at_once ? s + op('u') : s;
}

// The state dict by itself, below a key, or as the attributes of an object.
std::string TorchMaker::root(const Shapes& tensors) {
  const std::uint64_t kind = l_.draw(3);
  if (kind == 0) return state_dict(tensors);
  if (kind == 1) return joined({name("m", "Model"), op(')'), op('\x81'), state_dict(tensors), op('b')});
  return joined({op('}'), op('('), text("epoch"), number(3), text("state_dict"), state_dict(tensors), op('u')});
}

std::string TorchMaker::make(const Shapes& tensors) {
  const std::string pickle = joined({op('\x80'), little(l_.number(2), 1), root(tensors), op('.')});
  if (l_.draw(2)) {
    for (made::TorchStorage& s : storages_)
      s.elements = static_cast<std::int64_t>(l_.number(static_cast<std::uint64_t>(s.elements)));
    std::string file = made::torch_old(pickle, storages_);
    if (l_.lies()) file.resize(l_.draw(2) ? l_.draw(file.size() + 1) : file.size() + 1 + l_.draw(100));
    return file;
  }
  const bool deflate = l_.draw(4) == 0;
  std::vector<made::Member> members{{"x/data.pkl", pickle, deflate}};
  for (const made::TorchStorage& s : storages_) {
    const std::string name = "x/data/" + l_.word(s.key);
    made::Member m(name, l_.lies() ? s.bytes.substr(1) : s.bytes, deflate);
    m.method = l_.number(m.method), m.packed = l_.number(m.packed), m.size = l_.number(m.size);
    members.push_back(m);
    if (l_.lies()) members.push_back(m);
  }
  members.emplace_back("x/byteorder", l_.word("little"), false);
  members.emplace_back("x/version", std::to_string(l_.number(3)), false);
  return made::zip(members);
}

std::string torch_shard(Mutator& l, const Shapes& tensors) { return TorchMaker(l).make(tensors); }

}  // namespace

Files make_torch(Mutator& l) { return make_folder(l, "pytorch_model", ".bin", torch_shard); }

}  // namespace fuzz
