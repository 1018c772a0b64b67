// Names of kernels: equal texts share a name, different texts never do.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "lightcone/codegen/kernel_ir.h"

namespace lc::codegen {

class KernelNames {
 public:
  using Hash = std::function<std::size_t(const std::string&)>;
  explicit KernelNames(Hash hash = std::hash<std::string>{}) : hash_(std::move(hash)) {}
  // Returns "k_" and the hash of the text, with a number after it if another text has that name already.
  const std::string& of(const std::string& text);
  // Returns the name of a kernel. `text` is called only if no kernel with the same code has a name yet, because the
  // layers of a model have equal kernels.
  const std::string& of(const Kernel& k, const std::function<std::string()>& text);

 private:
  Hash hash_;
  std::map<std::string, std::string> names_;  // keyed by text
  std::set<std::string> taken_;
  std::unordered_multimap<std::size_t, std::pair<Kernel, std::string>> known_;
};

}  // namespace lc::codegen
