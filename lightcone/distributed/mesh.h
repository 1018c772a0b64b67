// Mesh: the ranks of a program, arranged along named axes. A rank is one process, or one thread in tests.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lc {

struct MeshAxis {
  std::string name;
  int size = 1;
  friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

// Ranks 0 to size() - 1 in row-major order: the last axis varies fastest (jax.sharding.Mesh, DeviceMesh of PyTorch).
class Mesh {
 public:
  Mesh() = default;  // one rank, no axes
  // Throws Error if a name is empty or used twice, if a size is below 1, and for more than 2^20 ranks.
  explicit Mesh(std::vector<MeshAxis> axes);
  // Reads "data=2,model=4", as str() writes it; spaces after commas are allowed. Throws Error for anything else.
  static Mesh parse(std::string_view text);

  int size() const { return size_; }
  std::span<const MeshAxis> axes() const { return axes_; }
  // Returns the number of an axis. Throws Error if there is none of this name.
  int axis(std::string_view name) const;
  int extent(std::span<const int> axes) const;  // the product of their sizes
  // Returns where `rank` stands along an axis.
  int coordinate(int rank, int axis) const;
  // Returns the place of `rank` among the ranks that differ from it along `axes` alone; the first axis counts most.
  int place(int rank, std::span<const int> axes) const;
  // Returns these ranks, in the order of their places.
  std::vector<int> group(int rank, std::span<const int> axes) const;
  std::string str() const;  // "data=2, model=4"
  friend bool operator==(const Mesh&, const Mesh&) = default;

 private:
  int stride(int axis) const;
  std::vector<MeshAxis> axes_;
  int size_ = 1;
};

}  // namespace lc
