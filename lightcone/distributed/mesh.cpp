#include "lightcone/distributed/mesh.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "lightcone/base/error.h"

namespace lc {

Mesh::Mesh(std::vector<MeshAxis> axes) : axes_(std::move(axes)) {
  std::int64_t ranks = 1;
  for (std::size_t k = 0; k < axes_.size(); ++k) {
    const MeshAxis& a = axes_[k];
    if (a.name.empty()) throw Error("mesh", str_cat("axis ", k, " has no name"));
    if (a.size < 1) throw Error("mesh", str_cat("axis '", a.name, "' has ", a.size, " ranks: at least 1 is needed"));
    for (std::size_t i = 0; i < k; ++i)
      if (axes_[i].name == a.name) throw Error("mesh", str_cat("two axes have the name '", a.name, "'"));
    ranks *= a.size;
    if (ranks > 1 << 20) throw Error("mesh", "there are more than 2^20 ranks");
  }
  size_ = static_cast<int>(ranks);
}

Mesh Mesh::parse(std::string_view text) {
  const auto wrong = [&] {
    return Error("mesh", str_cat("'", text,
                                 "' is no mesh: a name and a number of ranks for each axis are needed, as in "
                                 "data=2,model=4"));
  };
  std::vector<MeshAxis> axes;
  for (std::string_view rest = text; !rest.empty() || axes.empty();) {
    const std::size_t end = std::min(rest.find(','), rest.size()), equal = rest.substr(0, end).find('=');
    if (equal == std::string_view::npos) throw wrong();
    const std::string_view digits = rest.substr(equal + 1, end - equal - 1);
    MeshAxis a{std::string(rest.substr(0, equal))};
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), a.size);
    if (error != std::errc() || stop != digits.data() + digits.size()) throw wrong();
    axes.push_back(std::move(a));
    if (end + 1 == rest.size()) throw wrong();
    rest.remove_prefix(std::min(end + 1, rest.size()));
    while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  }
  return Mesh(std::move(axes));
}

int Mesh::axis(std::string_view name) const {
  for (std::size_t k = 0; k < axes_.size(); ++k)
    if (axes_[k].name == name) return static_cast<int>(k);
  throw Error("mesh", str_cat("there is no axis '", name, "'; the mesh is ", str()));
}

int Mesh::extent(std::span<const int> axes) const {
  int n = 1;
  for (const int a : axes) n *= axes_[static_cast<std::size_t>(a)].size;
  return n;
}

int Mesh::stride(int axis) const {
  int n = 1;
  for (std::size_t k = static_cast<std::size_t>(axis) + 1; k < axes_.size(); ++k) n *= axes_[k].size;
  return n;
}

int Mesh::coordinate(int rank, int axis) const {
  return rank / stride(axis) % axes_[static_cast<std::size_t>(axis)].size;
}

int Mesh::place(int rank, std::span<const int> axes) const {
  int at = 0;
  for (const int a : axes) at = at * axes_[static_cast<std::size_t>(a)].size + coordinate(rank, a);
  return at;
}

std::vector<int> Mesh::group(int rank, std::span<const int> axes) const {
  const int n = extent(axes);
  int first = rank;
  for (const int a : axes) first -= coordinate(rank, a) * stride(a);
  std::vector<int> all;
  for (int place = 0; place < n; ++place) {
    int left = place, r = first;
    for (std::size_t k = axes.size(); k-- > 0;) {
      const int size = axes_[static_cast<std::size_t>(axes[k])].size;
      r += left % size * stride(axes[k]);
      left /= size;
    }
    all.push_back(r);
  }
  return all;
}

std::string Mesh::str() const {
  if (axes_.empty()) return "one rank";
  std::string s;
  for (const MeshAxis& a : axes_) s += str_cat(s.empty() ? "" : ", ", a.name, "=", a.size);
  return s;
}

}  // namespace lc
