// YoloSource: what a file of a YOLO says of its network: shapes of weights and, where the modules were pickled whole,
// their classes and attributes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/io/checkpoints/weights.h"

namespace lc {

// One module or weight of the file is asked for by its path. Functions throw Error for a weight that is missing or of
// another rank, and for an attribute of another kind.
class YoloSource {
 public:
  // `root` is the path of the list of layers: "model" or "ema.model".
  YoloSource(const Weights& w, std::string root) : w_(&w), root_(std::move(root)) {}
  bool zero_pools = false;  // pools see zeros around a picture, as those of the library neural-api; else nothing

  bool has(const std::string& weight) const { return w_->find(full(weight)) != nullptr; }
  // The shape of a weight, without extents below 1.
  const std::vector<std::int64_t>& shape(const std::string& weight, std::size_t rank) const;
  // How many consecutive parts path.0, path.1, ... have weights.
  std::int64_t parts(const std::string& path) const;

  // The class of a module without its package; "" for a file without modules.
  std::string type(const std::string& path) const;
  // An attribute of a module, or `otherwise` if the file has none.
  bool flag(const std::string& path, std::string_view key, bool otherwise) const;
  double number(const std::string& path, std::string_view key, double otherwise) const;
  std::string text(const std::string& path, std::string_view key, std::string_view otherwise) const;
  // A whole number, or a list of them, from -2^31 to 2^31.
  std::vector<int> wholes(const std::string& path, std::string_view key, std::vector<int> otherwise) const;

  // Throws Error about this file.
  [[noreturn]] void refuse(const std::string& what) const;
  const Weights& weights() const { return *w_; }

 private:
  std::string full(const std::string& path) const { return root_ + "." + path; }
  std::optional<std::string> attribute(const std::string& path, std::string_view key) const;
  const Weights* w_;
  std::string root_;
};

}  // namespace lc
