// lightcone run: a model of a file on arrays and pictures.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>

#include "command.h"
#include "commands.h"
#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"
#include "lightcone/io/checkpoints/save.h"
#include "lightcone/io/data/readers.h"
#include "lightcone/io/images/images.h"
#include "lightcone/io/printable.h"
#include "lightcone/onnx/onnx.h"
#include "lightcone/passes/passes.h"
#include "onnx_options.h"
#include "train/table.h"

namespace lc::tool {
namespace {

namespace fs = std::filesystem;

std::string ending(const std::string& path) {
  std::string end = fs::path(path).extension().string();
  std::ranges::transform(end, end.begin(), [](unsigned char c) { return std::tolower(c); });
  return end;
}

// Splits "NAME=FILE"; NAME is "" if there is none.
std::pair<std::string, std::string> name_and_file(const std::string& word) {
  const std::size_t at = word.rfind('=');
  if (at == std::string::npos || fs::exists(word)) return {"", word};
  return {word.substr(0, at), word.substr(at + 1)};
}

// The arrays of --input, by the inputs' names. A file without a name is for the first input that has none yet; the
// members of an .npz have names of their own.
std::map<std::string, Array> read_inputs(const std::vector<std::string>& given, const OnnxDescription& model) {
  std::map<std::string, Array> r;
  for (const std::string& word : given) {
    auto [name, file] = name_and_file(word);
    const std::string kind = ending(file);
    if (kind == ".npz") {
      for (auto& [member, array] : read_npz(file, kOwnFiles)) r[member] = std::move(array);
      continue;
    }
    if (name.empty()) {
      const auto open = std::ranges::find_if(model.inputs, [&](const auto& port) { return !r.contains(port.name); });
      if (open == model.inputs.end()) throw file_error("run", file, "the model has no further input for it");
      name = open->name;
    }
    if (kind == ".npy") r[name] = read_npy(file, kOwnFiles);
    else if (kind == ".jpg" || kind == ".jpeg" || kind == ".png") r[name] = read_image(file, kOwnFiles);
    else throw file_error("run", file, "is no .npy, .npz, .jpg or .png");
  }
  return r;
}

// Gives an array the type of the model's input: numbers of another type are converted if none changes, and a picture
// becomes a batch of one, with numbers from 0 to 1 where the model takes floats.
Array fitted(Array a, const OnnxDescription::Port& port) {
  const bool picture = a.dtype == DType::U8 && a.shape.size() == 3 && port.rank == 4;
  if (picture) a.shape.insert(a.shape.begin(), 1);
  if (a.dtype == port.dtype) return a;
  Array r = Array::zeros(port.dtype, a.shape);
  const auto n = static_cast<std::size_t>(a.elements());
  for (std::size_t k = 0; k < n; ++k) {
    if (is_float(port.dtype)) {
      const double v = is_float(a.dtype) ? load_f64(a.bytes.data(), a.dtype, k)
                                         : to_f64(load_i64(a.bytes.data(), a.dtype, k), a.dtype);
      store_f64(r.bytes.data(), r.dtype, k, picture ? v / 255 : v);
    } else if (!is_float(a.dtype)) {
      const std::int64_t v = load_i64(a.bytes.data(), a.dtype, k);
      store_i64(r.bytes.data(), r.dtype, k, v);
      if (load_i64(r.bytes.data(), r.dtype, k) != v)
        throw Error("run",
                    str_cat("input ", in_quotes(port.name), " is ", name(port.dtype), ", which cannot hold ", v));
    } else {
      throw Error("run", str_cat("input ", in_quotes(port.name), " is ", name(port.dtype), ", and the array given is ",
                                 name(a.dtype)));
    }
  }
  return r;
}

struct Summary {
  double least = kInf, most = -kInf, sum = 0;
  std::size_t count = 0, not_finite = 0;
};
double number_at(const ArrayView& a, std::size_t k) {
  return is_float(a.dtype) ? load_f64(a.bytes.data(), a.dtype, k)
                           : to_f64(load_i64(a.bytes.data(), a.dtype, k), a.dtype);
}
Summary summary(const ArrayView& a) {
  Summary s;
  s.count = a.bytes.size() / size_of(a.dtype);
  for (std::size_t k = 0; k < s.count; ++k) {
    const double v = number_at(a, k);
    if (!std::isfinite(v)) {
      ++s.not_finite;
      continue;
    }
    s.least = std::min(s.least, v), s.most = std::max(s.most, v), s.sum += v;
  }
  return s;
}

// Prints how far an output is from the array of this name, and returns whether it is within the tolerance.
bool compare(const ArrayView& got, const ArrayView& wanted, const std::string& name, double tolerance) {
  if (got.shape != wanted.shape) {
    write_stdout(str_cat(printable(name), ": its shape is not the expected ",
                         str(Shape(wanted.shape.begin(), wanted.shape.end())), "\n"));
    return false;
  }
  double worst = 0, scale = 0;
  for (std::size_t k = 0; k < got.bytes.size() / size_of(got.dtype); ++k) {
    const double a = number_at(got, k), b = number_at(wanted, k);
    scale = std::max(scale, std::fabs(b));
    if (!(a == b || (std::isnan(a) && std::isnan(b))))
      worst = std::max(worst, std::isnan(a - b) ? kInf : std::fabs(a - b));
  }
  const bool good = worst <= tolerance * std::max(scale, 1.0);
  write_stdout(str_cat(printable(name), ": the largest difference is ", formatted("%.3g", worst), ", of values up to ",
                       formatted("%.4g", scale), good ? "\n" : ": more than --tolerance allows\n"));
  return good;
}

void print_outputs(const OnnxProgram& m, const Context& c) {
  for (const auto& port : m.outputs) {
    const ArrayView a{port.dtype, c.shape(port.name), c.bytes(port.name)};
    const Summary s = summary(a);
    std::string line =
        str_cat(printable(port.name), ": ", name(a.dtype), " ", str(Shape(a.shape.begin(), a.shape.end())));
    if (!port.count.empty())
      line += str_cat(", of which ", c.get_i64(port.count).at(0), " along axis ", port.count_axis);
    if (s.count > s.not_finite)
      line += str_cat(", from ", formatted("%.5g", s.least), " to ", formatted("%.5g", s.most), ", mean ",
                      formatted("%.5g", s.sum / static_cast<double>(s.count - s.not_finite)));
    if (s.not_finite) line += str_cat(", ", s.not_finite, " not finite");
    write_stdout(line + "\n");
  }
}

void write_outputs(const OnnxProgram& m, const Context& c, const std::string& path) {
  std::vector<TensorToSave> all;
  for (const auto& port : m.outputs) all.push_back({port.name, port.dtype, c.shape(port.name), c.bytes(port.name)});
  save_npz(path, all);
}

// Reads the model. If its graph needs extents that are known, they are those of the arrays.
OnnxProgram read_model(const RunOptions& o, const std::map<std::string, Array>& arrays) {
  OnnxOptions options = onnx_options(o.sizes);
  try {
    return read_onnx(o.model, options);
  } catch (const Error& first) {
    for (const auto& [name, array] : arrays) options.shapes[name] = array.shape;
    try {
      return read_onnx(o.model, options);
    } catch (const Error&) {
    }
    for (const auto& [name, array] : arrays)
      if (!is_float(array.dtype) && array.elements() <= 64) options.values[name] = array;
    try {
      return read_onnx(o.model, options);
    } catch (const Error&) {
      throw first;
    }
  }
}

}  // namespace

OnnxOptions onnx_options(const std::vector<std::string>& sizes) {
  OnnxOptions options;
  for (const std::string& word : sizes) {
    const std::size_t at = std::min(word.find('='), word.size());
    const char *begin = word.data() + std::min(at + 1, word.size()), *end = word.data() + word.size();
    std::int64_t n = 0;
    const auto [last, error] = std::from_chars(begin, end, n);
    if (error != std::errc() || last != end)
      throw Error("size", str_cat("--size is NAME=NUMBER, not ", in_quotes(word)));
    options.extents[word.substr(0, at)] = n;
  }
  return options;
}
bool is_onnx(const std::string& path) { return ending(path) == ".onnx"; }

int run_model(const RunOptions& o) {
  const OnnxDescription described = describe_onnx(o.model);
  std::map<std::string, Array> arrays = read_inputs(o.inputs, described);
  for (const auto& port : described.inputs)
    if (const auto a = arrays.find(port.name); a != arrays.end()) a->second = fitted(std::move(a->second), port);
  const double begin = now();
  const OnnxProgram m = read_model(o, arrays);
  const double read = now();
  const auto device = open_device(o.device);
  Program p = compile(m.graph, compiler_for(device, {.threads = o.threads, .precision = o.precision}));
  m.load_weights(p);
  const double compiled = now();
  Context c(p);
  for (const auto& port : m.inputs) {
    const auto a = arrays.find(port.name);
    if (a == arrays.end())
      throw Error("run", str_cat("input ", in_quotes(port.name), ", ", name(port.dtype), " ", str(port.shape),
                                 ", is missing: --input ", port.name, "=FILE"));
    c.set(port.name, a->second);
  }
  c.run();
  const double first = now();
  print_outputs(m, c);
  std::vector<double> times;
  for (int k = 0; k < o.repeat; ++k) {
    const double at = now();
    c.run();
    times.push_back(now() - at);
  }
  if (!o.quiet) {
    std::string line = str_cat("read in ", formatted("%.0f", (read - begin) * 1e3), " ms, compiled in ",
                               formatted("%.0f", (compiled - read) * 1e3), " ms, first run ",
                               formatted("%.1f", (first - compiled) * 1e3), " ms");
    if (!times.empty()) {
      std::ranges::sort(times);
      line += str_cat(", then ", formatted("%.2f", times[times.size() / 2] * 1e3), " ms (median of ", o.repeat, ")");
    }
    std::fprintf(stderr, "%s; %s in use\n", line.c_str(), human_bytes(peak_rss_bytes()).c_str());
    print_notes(p);
  }
  if (!o.output.empty()) write_outputs(m, c, o.output);
  bool good = true;
  if (!o.compare.empty()) {
    const Arrays wanted = read_npz(o.compare, kOwnFiles);
    for (const auto& port : m.outputs)
      if (const auto w = wanted.find(port.name); w != wanted.end())
        good = compare({port.dtype, c.shape(port.name), c.bytes(port.name)}, w->second, port.name, o.tolerance) && good;
  }
  return good ? 0 : 1;
}

}  // namespace lc::tool
