// Writes named arrays to one .npz file, for checks in Python.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "lightcone/io/checkpoints/save.h"
#include "lightcone/lightcone.h"

namespace lc::test {

class Npz {
 public:
  void add(const std::string& name, const Value& v) {
    bytes_.emplace_back(v.size() * size_of(v.dtype));
    write_value(v, bytes_.back().data());
    names_.push_back(name), types_.push_back({v.dtype, v.shape});
  }
  void save(const std::filesystem::path& to) const {
    std::vector<TensorToSave> all;
    for (std::size_t k = 0; k < names_.size(); ++k)
      all.push_back({names_[k], types_[k].first, types_[k].second, bytes_[k]});
    save_npz(to.string(), all);
  }

 private:
  std::vector<std::string> names_;
  std::vector<std::pair<DType, std::vector<std::int64_t>>> types_;
  std::vector<std::vector<std::byte>> bytes_;
};

inline Value numbers(const std::vector<float>& v) {
  Value r = make_value(DType::F32, {static_cast<std::int64_t>(v.size())});
  r.f.assign(v.begin(), v.end());
  return r;
}

}  // namespace lc::test
