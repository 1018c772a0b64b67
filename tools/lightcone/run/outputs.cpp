#include "outputs.h"

#include <algorithm>
#include <cmath>

#include "../command.h"
#include "../train/table.h"
#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"
#include "lightcone/io/checkpoints/save.h"
#include "lightcone/io/data/readers.h"
#include "lightcone/io/printable.h"

namespace lc::tool {
namespace {

struct Summary {
  double least = kInf, most = -kInf, sum = 0;
  std::size_t count = 0, not_finite = 0;
};
Summary summary(const ArrayView& a) {
  Summary s;
  s.count = count_of(a);
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

bool compare(const ArrayView& got, const ArrayView& wanted, const std::string& name, double tolerance) {
  if (got.shape != wanted.shape) {
    write_stdout(str_cat(printable(name), ": its shape is not the expected ",
                         str(Shape(wanted.shape.begin(), wanted.shape.end())), "\n"));
    return false;
  }
  double worst = 0, scale = 0;
  for (std::size_t k = 0; k < count_of(got); ++k) {
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

// The first `n` indices of an axis.
NamedOutput cut(const std::string& name, const ArrayView& a, int axis, std::int64_t n) {
  std::size_t outer = 1, inner = size_of(a.dtype);
  for (int k = 0; k < axis; ++k) outer *= static_cast<std::size_t>(a.shape[static_cast<std::size_t>(k)]);
  for (std::size_t k = static_cast<std::size_t>(axis) + 1; k < a.shape.size(); ++k)
    inner *= static_cast<std::size_t>(a.shape[k]);
  NamedOutput r{name, a, {}};
  const std::size_t row = inner * static_cast<std::size_t>(a.shape[static_cast<std::size_t>(axis)]);
  const std::size_t part = inner * static_cast<std::size_t>(n);
  r.kept.reserve(outer * part);
  for (std::size_t k = 0; k < outer; ++k)
    r.kept.insert(r.kept.end(), a.bytes.begin() + static_cast<std::ptrdiff_t>(k * row),
                  a.bytes.begin() + static_cast<std::ptrdiff_t>(k * row + part));
  r.view.shape[static_cast<std::size_t>(axis)] = n;
  r.view.bytes = r.kept;
  return r;
}

}  // namespace

double number_at(const ArrayView& a, std::size_t k) {
  return is_float(a.dtype) ? load_f64(a.bytes.data(), a.dtype, k)
                           : to_f64(load_i64(a.bytes.data(), a.dtype, k), a.dtype);
}
std::string shape_text(const ArrayView& a) {
  return str_cat(name(a.dtype), " ", str(Shape(a.shape.begin(), a.shape.end())));
}

std::vector<NamedOutput> outputs_of(const ModelFile& m, const Context& c) {
  std::vector<NamedOutput> all;
  for (const auto& port : m.outputs()) {
    const ArrayView whole{port.dtype, c.shape(port.name), c.bytes(port.name)};
    if (port.count.empty()) all.push_back({port.name, whole, {}});
    else all.push_back(cut(port.name, whole, port.count_axis, c.get_i64(port.count).at(0)));
    all.back().labels = port.labels;
  }
  return all;
}

// The texts of which an output has the numbers.
std::string texts_of(const NamedOutput& o) {
  constexpr std::size_t kMost = 8;
  if (o.labels.empty()) return {};
  std::string line = ", numbers of";
  for (std::size_t k = 0; k < std::min(kMost, o.labels.size()); ++k)
    line += str_cat(k ? ", " : " ", printable(in_quotes(o.labels[k]), 100));
  if (o.labels.size() > kMost) line += str_cat(" and ", o.labels.size() - kMost, " more");
  return line;
}

void print_outputs(const std::vector<NamedOutput>& outputs) {
  for (const NamedOutput& o : outputs) {
    const Summary s = summary(o.view);
    std::string line = str_cat(printable(o.name), ": ", shape_text(o.view));
    if (s.count > s.not_finite)
      line += str_cat(", from ", formatted("%.5g", s.least), " to ", formatted("%.5g", s.most), ", mean ",
                      formatted("%.5g", s.sum / static_cast<double>(s.count - s.not_finite)));
    if (s.not_finite) line += str_cat(", ", s.not_finite, " not finite");
    write_stdout(line + texts_of(o) + "\n");
  }
}

void write_outputs(const std::vector<NamedOutput>& outputs, const std::string& path) {
  std::vector<TensorToSave> all;
  for (const NamedOutput& o : outputs) all.push_back({o.name, o.view.dtype, o.view.shape, o.view.bytes});
  save_npz(path, all);
}

bool compare_outputs(const std::vector<NamedOutput>& outputs, const std::string& path, double tolerance) {
  const Arrays wanted = read_npz(path, kOwnFiles);
  bool good = true, any = false;
  for (const NamedOutput& o : outputs)
    if (const auto w = wanted.find(o.name); w != wanted.end())
      any = true, good = compare(o.view, w->second, o.name, tolerance) && good;
  if (!any) throw file_error("run", path, "has none of the model's outputs");
  return good;
}

}  // namespace lc::tool
