#include "lightcone/distributed/specs.h"

#include <algorithm>
#include <cstring>

#include "lightcone/base/error.h"

namespace lc::distributed {
namespace {

// * stands for any text.
bool matches(std::string_view pattern, std::string_view text) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (std::size_t k = star; k <= text.size(); ++k)
    if (matches(rest, text.substr(k))) return true;
  return false;
}

Axes axes_of(const Mesh& mesh, std::string_view text) {
  Axes axes;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('+'), text.size());
    axes.push_back(mesh.axis(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return axes;
}

Sharding strictly(const Mesh& mesh, const ShardSpec& spec, std::string_view name, const Shape& shape) {
  const auto wrong = [&](const std::string& what) {
    throw Error("shard",
                str_cat("'", name, "' of shape ", str(shape), ", to which the spec '", spec.name, "' fits, ", what));
  };
  Sharding s(shape.size());
  if (spec.axes.size() > shape.size()) wrong(str_cat("has fewer axes than the spec, ", spec.axes.size()));
  for (std::size_t i = 0; i < spec.axes.size(); ++i) {
    for (const int a : axes_of(mesh, spec.axes[i])) {
      const std::string& mesh_axis = mesh.axes()[static_cast<std::size_t>(a)].name;
      if (s.uses(a)) wrong(str_cat("is divided twice along '", mesh_axis, "'"));
      s.axes[i].push_back(a);
    }
    if (const int ranks = mesh.extent(s.axes[i]); !divides(ranks, shape[i]))
      wrong(str_cat("cannot be divided along axis ", i, ": ", shape[i], " is no multiple of ", ranks, " ranks (",
                    spec.axes[i], ")"));
  }
  return s;
}

}  // namespace

bool fits(const ShardSpec& spec, std::string_view name) { return matches(spec.name, name); }

int spec_of(const ShardSpecs& specs, std::string_view name) {
  for (std::size_t k = 0; k < specs.size(); ++k)
    if (fits(specs[k], name)) return static_cast<int>(k);
  return -1;
}

Sharding sharding_of(const Mesh& mesh, const ShardSpecs& specs, std::string_view name, const Shape& shape) {
  if (const int found = spec_of(specs, name); found >= 0)
    return strictly(mesh, specs[static_cast<std::size_t>(found)], name, shape);
  const std::size_t dot = name.rfind('.');
  const int found = dot == std::string_view::npos ? -1 : spec_of(specs, name.substr(0, dot));
  if (found < 0) return Sharding(shape.size());
  try {
    return strictly(mesh, specs[static_cast<std::size_t>(found)], name, shape);
  } catch (const Error&) {
    return Sharding(shape.size());  // a count of steps, say
  }
}

}  // namespace lc::distributed

namespace lc {

ShardSpecs without_serial(ShardSpecs specs, const std::vector<MeshAxis>& serial) {
  for (ShardSpec& s : specs)
    for (std::string& axes : s.axes) {
      std::string kept;
      for (std::string_view left = axes; !left.empty();) {
        const std::string_view name = left.substr(0, left.find('+'));
        left.remove_prefix(std::min(name.size() + 1, left.size()));
        if (std::ranges::none_of(serial, [&](const MeshAxis& a) { return a.name == name; }))
          kept += (kept.empty() ? "" : "+") + std::string(name);
      }
      axes = std::move(kept);
    }
  return specs;
}

ArrayPart part_of(const Mesh& mesh, int rank, const ShardSpecs& specs, std::string_view name, const ArrayView& whole) {
  ArrayPart part{whole.dtype, {whole.shape.begin(), whole.shape.end()}, {}};
  std::vector<std::int64_t> first(part.shape.size(), 0);
  const auto s = distributed::sharding_of(mesh, specs, name, Shape(part.shape.begin(), part.shape.end()));
  for (std::size_t i = 0; i < first.size(); ++i) {
    part.shape[i] /= mesh.extent(s.axes[i]);
    first[i] = part.shape[i] * mesh.place(rank, s.axes[i]);
  }
  // Rows along the innermost axis are copied one by one.
  const std::size_t element = size_of(whole.dtype);
  std::int64_t elements = 1, rows = 1;
  for (std::size_t i = 0; i < part.shape.size(); ++i) {
    elements *= part.shape[i];
    if (i + 1 < part.shape.size()) rows *= part.shape[i];
  }
  part.bytes.resize(static_cast<std::size_t>(elements) * element);
  const std::size_t row = rows && elements ? part.bytes.size() / static_cast<std::size_t>(rows) : 0;
  for (std::int64_t r = 0; r < rows && row; ++r) {
    std::int64_t left = r, at = 0, stride = part.shape.empty() ? 1 : whole.shape.back();
    for (std::size_t i = part.shape.size() - (part.shape.empty() ? 0 : 1); i-- > 0;) {
      at += (first[i] + left % part.shape[i]) * stride;
      left /= part.shape[i];
      stride *= whole.shape[i];
    }
    if (!first.empty()) at += first.back();
    std::memcpy(part.bytes.data() + static_cast<std::size_t>(r) * row,
                whole.bytes.data() + static_cast<std::size_t>(at) * element, row);
  }
  return part;
}

}  // namespace lc
