#include "lightcone/distributed/sharding/specs.h"

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

SpecIndex::SpecIndex(const ShardSpecs& specs) : specs_(specs) {
  for (std::size_t k = 0; k < specs.size(); ++k)
    if (specs[k].name.find('*') != std::string::npos) patterns_.push_back(static_cast<int>(k));
    else exact_.try_emplace(specs[k].name, static_cast<int>(k));
}

int SpecIndex::of(std::string_view name) const {
  const auto exact = exact_.find(name);
  for (const int k : patterns_) {
    if (exact != exact_.end() && exact->second < k) break;
    if (fits(specs_[static_cast<std::size_t>(k)], name)) return k;
  }
  return exact == exact_.end() ? -1 : exact->second;
}

Sharding sharding_of(const Mesh& mesh, const ShardSpecs& specs, const SpecIndex& index, std::string_view name,
                     const Shape& shape) {
  if (const int found = index.of(name); found >= 0)
    return strictly(mesh, specs[static_cast<std::size_t>(found)], name, shape);
  const std::size_t dot = name.rfind('.');
  const int found = dot == std::string_view::npos ? -1 : index.of(name.substr(0, dot));
  if (found < 0) return Sharding(shape.size());
  try {
    return strictly(mesh, specs[static_cast<std::size_t>(found)], name, shape);
  } catch (const Error&) {
    return Sharding(shape.size());  // a count of steps, say
  }
}

}  // namespace lc::distributed

namespace lc {
namespace {

// Where a rank's part lies in a whole array.
struct Place {
  std::vector<std::int64_t> shape, first;  // the part's shape, and the place of its first element
};
Place place_of(const Mesh& mesh, int rank, const distributed::Sharding& s, const std::vector<std::int64_t>& whole) {
  Place p{whole, std::vector<std::int64_t>(whole.size(), 0)};
  for (std::size_t i = 0; i < whole.size(); ++i) {
    p.shape[i] /= mesh.extent(s.axes[i]);
    p.first[i] = p.shape[i] * mesh.place(rank, s.axes[i]);
  }
  return p;
}

std::int64_t elements_of(const std::vector<std::int64_t>& shape) {
  std::int64_t n = 1;
  for (const std::int64_t extent : shape) n *= extent;
  return n;
}

// Calls f(offset in the part, offset in the whole, elements) for each row of the part along the innermost axis.
template <class F>
void for_rows(const Place& p, const std::vector<std::int64_t>& whole, const F& f) {
  if (elements_of(p.shape) == 0) return;
  const std::int64_t row = p.shape.empty() ? 1 : p.shape.back(), rows = elements_of(p.shape) / row;
  for (std::int64_t r = 0; r < rows; ++r) {
    std::int64_t left = r, at = p.first.empty() ? 0 : p.first.back(), stride = whole.empty() ? 1 : whole.back();
    for (std::size_t i = p.shape.size() - (p.shape.empty() ? 0 : 1); i-- > 0;) {
      at += (p.first[i] + left % p.shape[i]) * stride;
      left /= p.shape[i];
      stride *= whole[i];
    }
    f(static_cast<std::size_t>(r * row), static_cast<std::size_t>(at), static_cast<std::size_t>(row));
  }
}

distributed::Sharding sharding_of(const Mesh& mesh, const ShardSpecs& specs, std::string_view name,
                                  const std::vector<std::int64_t>& shape) {
  return distributed::sharding_of(mesh, specs, distributed::SpecIndex(specs), name, Shape(shape.begin(), shape.end()));
}

}  // namespace

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
  const Place p = place_of(mesh, rank, sharding_of(mesh, specs, name, whole.shape), whole.shape);
  const std::size_t element = size_of(whole.dtype);
  ArrayPart part{whole.dtype, p.shape, {}};
  part.bytes.resize(static_cast<std::size_t>(elements_of(p.shape)) * element);
  for_rows(p, whole.shape, [&](std::size_t to, std::size_t from, std::size_t n) {
    std::memcpy(part.bytes.data() + to * element, whole.bytes.data() + from * element, n * element);
  });
  return part;
}

ArrayPart whole_of(const Collectives& ranks, const ShardSpecs& specs, std::string_view name, const ArrayView& part,
                   const std::vector<std::int64_t>& shape) {
  const Mesh& mesh = ranks.mesh();
  const distributed::Sharding s = sharding_of(mesh, specs, name, shape);
  ArrayPart whole{part.dtype, shape, {}};
  if (s.is_whole()) {
    whole.bytes.assign(part.bytes.begin(), part.bytes.end());
    return whole;
  }
  distributed::Axes axes;
  std::vector<std::string> names;
  for (const distributed::Axes& a : s.axes)
    for (const int axis : a) {
      axes.push_back(axis);
      names.push_back(mesh.axes()[static_cast<std::size_t>(axis)].name);
    }
  const std::vector<int> group = mesh.group(ranks.rank(), axes);
  std::vector<std::byte> parts(part.bytes.size() * group.size());
  ranks.run(Collective::Operation::AllGather, names, DType::U8, part.bytes.size(), part.bytes.data(), parts.data());
  const std::size_t element = size_of(part.dtype);
  whole.bytes.resize(static_cast<std::size_t>(elements_of(shape)) * element);
  for (std::size_t k = 0; k < group.size(); ++k)
    for_rows(place_of(mesh, group[k], s, shape), shape, [&](std::size_t from, std::size_t to, std::size_t n) {
      std::memcpy(whole.bytes.data() + to * element, parts.data() + k * part.bytes.size() + from * element,
                  n * element);
    });
  return whole;
}

}  // namespace lc
