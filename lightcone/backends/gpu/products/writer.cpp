#include "lightcone/backends/gpu/products/writer.h"

namespace lc::backends::gpu {

std::vector<std::string> Writer::indices(const std::vector<Dim>& extents, const std::string& flat,
                                         const std::string& prefix) {
  std::vector<std::string> names(extents.size());
  const std::string u = index_ == "long" ? "(u64)" : "(u32)";
  std::string rest = flat;
  for (std::size_t i = extents.size(); i-- > 0;) {
    names[i] = prefix + std::to_string(i);
    if (i == 0) {
      let(names[i], rest);
      break;
    }
    const std::string n = number(extents[i]), next = prefix + "r" + std::to_string(i);
    let(names[i], "(" + index_ + ")(" + u + "(" + rest + ") % " + u + n + ")");
    let(next, "(" + index_ + ")(" + u + "(" + rest + ") / " + u + n + ")");
    rest = next;
  }
  return names;
}

std::string Writer::offset(const std::string& base, const std::vector<std::string>& at,
                           const std::vector<Dim>& strides) {
  std::string s = base;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const std::string part = times(at[i], strides[i]);
    if (part != "0") s += (s.empty() ? "" : " + ") + part;
  }
  return s.empty() ? "0" : s;
}

}  // namespace lc::backends::gpu
