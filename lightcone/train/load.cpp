#include "lightcone/train/load.h"

#include <memory>
#include <span>
#include <vector>

#include "lightcone/io/checkpoints/save.h"
#include "lightcone/io/printable.h"
#include "lightcone/nn/session.h"
#include "lightcone/runtime/names.h"

namespace lc {
namespace {

// The tensor of a file for an input of type `dtype`: the stored bytes, or converted values in memory owned by `kept`.
ArrayView fitted(const StoredTensor& t, DType dtype, std::shared_ptr<const void>& kept) {
  if ((t.dtype == dtype || (t.quant && dtype == DType::U8)) &&
      reinterpret_cast<std::uintptr_t>(t.bytes.data()) % size_of(dtype) == 0)
    return t;
  if (dtype != DType::F32 || (t.dtype && !is_float(*t.dtype))) return t;  // the Error names the stored type
  const auto values = std::make_shared<const std::vector<float>>(Weights::read(t));
  kept = values;
  return {DType::F32, t.shape, std::as_bytes(std::span(*values))};
}

using Tensors = std::map<std::string, StoredTensor, std::less<>>;

// `owner` keeps the bytes alive. `source` names the tensors in an Error. With `partly`, parameters without a tensor
// stay as they are. The pages of a `file` whose weights are packed, converted or copied are given back at once.
void load(Program& program, const Tensors& tensors, const std::shared_ptr<const void>& owner, const std::string& source,
          bool strict, bool partly = false, const Weights* file = nullptr, const PartOf& part = {}) {
  std::vector<std::string> missing, unknown;
  std::map<std::string, DType, std::less<>> parameters;
  const Graph& g = program.graph();
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].op == Op::Input && g[id].parameter) parameters.emplace(g[id].name, g[id].dtype);
  if (partly) std::erase_if(parameters, [&](const auto& p) { return !tensors.contains(p.first); });
  for (const auto& [name, dtype] : parameters)
    if (!tensors.contains(name)) missing.push_back(name);
  // A parameter that no result needs is not in the compiled graph, but load() accepts its name.
  const auto known = [&](const std::string& name) {
    try {
      program.load(name, nullptr, 0);
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  for (const auto& [name, tensor] : tensors)
    if (!parameters.contains(name) && !known(name)) unknown.push_back(name);
  if (!missing.empty()) {
    std::vector<std::string> given;
    for (const auto& [name, tensor] : tensors) given.push_back(name);
    throw file_error("load", source, missing_among(missing, given));
  }
  if (strict && !unknown.empty())
    throw file_error("load", source, "no parameter is called ", listed(unknown), "; strict = false ignores them");
  std::vector<std::span<const std::byte>> read;
  for (const auto& [name, dtype] : parameters) try {
      const StoredTensor& whole = tensors.at(name);
      const StoredPart mine = part ? part(name, whole) : StoredPart{whole};
      const StoredTensor& t = mine.tensor;
      std::shared_ptr<const void> kept = mine.copy ? mine.copy : owner;
      const ArrayView array = fitted(t, dtype, kept);
      program.load(name, array, std::move(kept));
      if (!file || (!mine.copy && array.bytes.data() == t.bytes.data() && program.resident(name))) continue;
      file->release(read.emplace_back(mine.copy ? whole.bytes : t.bytes));
    } catch (const Error& e) {
      throw file_error("load", source, e.problem());
    }
  for (const auto& bytes : read) file->release(bytes);  // pages that were read along with their neighbours
}

}  // namespace

void load(Program& program, const Weights& file, bool strict) {
  load(program, file.tensors(), std::make_shared<const Weights>(file), file.path(), strict, false, &file);
}

void load(Program& program, const Weights& file, const std::map<std::string, StoredTensor, std::less<>>& tensors,
          const PartOf& part) {
  load(program, tensors, std::make_shared<const Weights>(file), file.path(), true, true, &file, part);
}

nn::StorageOf stored_as(const Weights& file) {
  return [file](std::string_view path, const Shape&) -> nn::Storage {
    const auto it = file.tensors().find(path);
    if (it == file.tensors().end()) return {};
    const StoredTensor& t = it->second;
    if (t.quant) return {DType::U8, t.quant};
    return {t.dtype && is_float(*t.dtype) ? *t.dtype : DType::F32, {}};
  };
}

void load(Program& program, Arrays arrays, bool strict) {
  const auto kept = std::make_shared<const Arrays>(std::move(arrays));
  Tensors tensors;
  for (const auto& [name, a] : *kept)
    tensors.emplace(name, StoredTensor{a.shape, std::string(lc::name(a.dtype)), a.bytes, a.dtype});
  load(program, tensors, kept, "arrays", strict);
}

Session& Session::load(const std::string& path, bool strict) {
  const Weights file = Weights::open(path);
  std::map<std::string, DType, std::less<>> types;
  const Graph& g = graph();
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].op == Op::Input && g[id].parameter) types.emplace(g[id].name, g[id].dtype);
  std::map<std::string, ArrayView, std::less<>> tensors;
  std::vector<std::shared_ptr<const void>> kept;
  for (const auto& [name, t] : file.tensors()) {
    const auto it = types.find(name);
    if (it != types.end()) tensors.emplace(name, fitted(t, it->second, kept.emplace_back()));
    else if (strict) tensors.emplace(name, ArrayView{DType::U8, t.shape, t.bytes});  // the Error will name it
  }
  try {
    return load(tensors, strict);
  } catch (const Error& e) {
    throw file_error("load", path, e.problem());
  }
}

void Session::save(const std::string& path) const {
  std::vector<TensorToSave> all;
  for (const auto& [name, array] : parameters()) all.push_back({name, array.dtype, array.shape, array.bytes});
  save_safetensors(path, all);
}

}  // namespace lc
