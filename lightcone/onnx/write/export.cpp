#include "lightcone/onnx/export.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "lightcone/base/error.h"
#include "lightcone/io/atomic_file.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/onnx/write/decoded.h"
#include "lightcone/onnx/write/file.h"
#include "lightcone/onnx/write/named.h"
#include "lightcone/onnx/write/translate.h"
#include "lightcone/stablehlo/write/writer.h"

namespace lc {
namespace {

using onnx::OutGraph;
using onnx::OutTensor;
using Argument = StableHloExport::Argument;

constexpr int kFirstOpset = 17, kLastOpset = 26;
constexpr std::uint64_t kMuch = std::uint64_t{1} << 30;  // weights of more lie beside the file

std::vector<std::int64_t> numbers(const Shape& s) {
  std::vector<std::int64_t> all;
  for (const Dim& d : s) {
    if (!d.constant()) throw Error("export_onnx", str_cat("a parameter has the open shape ", str(s)));
    all.push_back(*d.constant());
  }
  return all;
}

std::vector<std::byte> converted(const ArrayView& from, DType to) {
  const std::size_t n = from.bytes.size() / size_of(from.dtype);
  std::vector<std::byte> all(n * size_of(to));
  for (std::size_t k = 0; k < n; ++k) store_f64(all.data(), to, k, load_f64(from.bytes.data(), from.dtype, k));
  return all;
}

class Exporter {
 public:
  Exporter(const Graph& g, const OnnxValues& values, const OnnxExportOptions& o) : values_(values), o_(o) {
    if (o.opset < kFirstOpset || o.opset > kLastOpset)
      throw Error("export_onnx", str_cat("opset ", o.opset, " is not written: 17 to 26 are"));
    module_ = as_module(g);
    write();
  }
  const OutGraph& graph() const { return out_; }

 private:
  StableHloExport as_module(const Graph& g) {
    const stablehlo::WriteOptions options{o_.sizes, Precision::Highest, UnboundSizes::Open,
                                          [this](const Node& n) { return onnx::has_operator(n, o_.opset); }};
    try {
      stablehlo::check_names(g, o_.sizes);
      return stablehlo::write_module(onnx::with_decoded_parameters(g, decoded_), options);
    } catch (const Error& e) {
      std::string problem = e.problem();
      for (std::size_t at; (at = problem.find("StableHLO")) != std::string::npos;) problem.replace(at, 9, "ONNX");
      throw Error(e.op() == "export_stablehlo" ? "export_onnx" : e.op(), problem, e.where());
    }
  }

  std::string name_in_file(const std::string& name) {
    const auto it = o_.names.find(name);
    return it == o_.names.end() ? name : it->second;
  }
  // Notes a name of the file, which must be the only one.
  std::string taken(onnx::Emitter& e, const std::string& name) {
    if (!ports_.insert(name).second)
      throw Error("export_onnx", str_cat("two inputs, outputs or parameters of the file would be named '", name,
                                         "': OnnxExportOptions::names can give another name"));
    e.reserve(name);
    return name;
  }

  // Outputs keep their names, also if they have those of parameters.
  std::string name_of_parameter(const std::string& name) const {
    const auto is_it = [&](const StableHloExport::Result& r) { return !r.state && r.name == name; };
    return std::ranges::any_of(module_.results, is_it) ? name + ".parameter" : name;
  }

  OutTensor weight(const Argument& a, const std::string& name) {
    OutTensor t{name, a.type.dtype, numbers(a.type.shape)};
    const auto decoded = decoded_.find(a.name);
    const auto value = values_.find(decoded == decoded_.end() ? a.name : decoded->second.from);
    if (value == values_.end()) {
      missing_ += str_cat(missing_.empty() ? "" : ", ", "'", decoded == decoded_.end() ? a.name : decoded->second.from,
                          "' ", lc::name(a.type.dtype), str(a.type.shape));
      return t;
    }
    const ArrayView& v = value->second;
    if (decoded != decoded_.end()) {
      const QuantInfo& q = info(decoded->second.format);
      if (v.bytes.size() / static_cast<std::size_t>(q.bytes) * static_cast<std::size_t>(q.elements) * 4 != t.size())
        throw Error("export_onnx", str_cat("the value of '", value->first, "' has another size than the parameter"));
      t.make = [bytes = v.bytes, format = decoded->second.format] { return onnx::decode(format, bytes); };
      return t;
    }
    if (v.shape != t.shape)
      throw Error("export_onnx", str_cat("the value of '", a.name, "' is ", str(Shape(v.shape.begin(), v.shape.end())),
                                         ", and the parameter ", str(a.type.shape)));
    if (v.bytes.size() * size_of(t.dtype) != t.size() * size_of(v.dtype))
      throw Error("export_onnx", str_cat("the value of '", a.name, "' has ", v.bytes.size(), " bytes, not those of ",
                                         lc::name(v.dtype), str(a.type.shape)));
    if (v.dtype == t.dtype) {
      t.view = v.bytes;
    } else if (is_float(v.dtype) && is_float(t.dtype)) {
      t.make = [v, to = t.dtype] { return converted(v, to); };
    } else {
      throw Error("export_onnx", str_cat("the value of '", a.name, "' is ", lc::name(v.dtype), ", and the parameter ",
                                         lc::name(t.dtype)));
    }
    return t;
  }

  void write() {
    onnx::Emitter e(out_, o_.opset);
    onnx::Translator t(e, module_.module);
    const stablehlo::Function& main = module_.module.functions.at(0);
    for (std::size_t k = 0; k < module_.arguments.size(); ++k) {
      const Argument& a = module_.arguments[k];
      const bool is_parameter =
          a.kind == Argument::Kind::Parameter || (a.kind == Argument::Kind::Input && values_.contains(a.name));
      const std::string name = taken(e, is_parameter ? name_of_parameter(a.name) : name_in_file(a.name));
      if (is_parameter) out_.initializers.push_back(weight(a, name));
      else out_.inputs.push_back({name, a.type.dtype, a.type.shape});
      t.give(main.body.arguments[k], e.value(name, t.type(main.body.arguments[k])));
    }
    if (!missing_.empty())
      throw Error("export_onnx", str_cat("parameters have no value: ", missing_,
                                         ". Give the values of Session::parameters(), OnnxProgram::values() or "
                                         "onnx_values(checkpoint)"));
    for (const auto& r : module_.results) {
      const bool is_input = std::ranges::any_of(module_.arguments, [&](const Argument& a) {
        return a.name == r.name && a.kind != Argument::Kind::Parameter;
      });
      const std::string name = name_in_file(r.state ? r.name + ".next" : is_input ? r.name + ".out" : r.name);
      out_.outputs.push_back({taken(e, name), r.type.dtype, r.type.shape});
    }
    const std::vector<onnx::Ref> results = t.block(main.body);
    t.require_all_said();
    std::vector<std::string> names;
    for (const onnx::Ref r : results) names.push_back(e.name(r));
    onnx::name_outputs(out_, names);
    onnx::remove_unread(out_);
  }

  const OnnxValues& values_;
  const OnnxExportOptions& o_;
  std::map<std::string, onnx::Decoded> decoded_;
  StableHloExport module_;
  OutGraph out_;
  std::set<std::string> ports_;
  std::string missing_;
};

}  // namespace

OnnxValues onnx_values(const Weights& file) {
  OnnxValues all;
  for (const auto& [name, t] : file.tensors())
    if (t.dtype || t.quant) all.emplace(name, ArrayView(t));
  return all;
}

void export_onnx(const Graph& g, const OnnxValues& values, const std::string& path, const OnnxExportOptions& o) {
  const Exporter e(g, values, o);
  using In = OnnxExportOptions::WeightsIn;
  const bool apart =
      o.weights == In::FileBeside || (o.weights == In::Automatic && onnx::bytes_of_weights(e.graph()) > kMuch);
  const std::string beside = apart ? std::filesystem::path(path).filename().string() + ".data" : std::string();
  io::AtomicFile file("export_onnx", path);
  onnx::write_model(e.graph(), o, beside, [&](std::span<const std::byte> bytes) { file.write(bytes); });
  if (apart) {
    io::AtomicFile data("export_onnx", path + ".data");
    onnx::write_weights_beside(e.graph(), [&](std::span<const std::byte> bytes) { data.write(bytes); });
    data.commit();
  }
  file.commit();
}

std::vector<std::byte> export_onnx(const Graph& g, const OnnxValues& values, const OnnxExportOptions& o) {
  if (o.weights == OnnxExportOptions::WeightsIn::FileBeside)
    throw Error("export_onnx", "weights beside a model need a path");
  const Exporter e(g, values, o);
  std::vector<std::byte> all;
  onnx::write_model(e.graph(), o, {},
                    [&](std::span<const std::byte> bytes) { all.insert(all.end(), bytes.begin(), bytes.end()); });
  return all;
}

}  // namespace lc
