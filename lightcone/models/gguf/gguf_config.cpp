#include "lightcone/models/gguf/gguf_config.h"

#include <algorithm>

#include "lightcone/io/printable.h"
#include "lightcone/runtime/names.h"

namespace lc {
namespace {

const std::vector<gguf::Translation>& translations() {
  static const std::vector<gguf::Translation> all = [] {
    std::vector<gguf::Translation> joined = gguf::kLanguages;
    joined.insert(joined.end(), gguf::kRouted.begin(), gguf::kRouted.end());
    joined.insert(joined.end(), gguf::kEncoders.begin(), gguf::kEncoders.end());
    return joined;
  }();
  return all;
}

}  // namespace

const std::vector<std::string_view>& gguf_architectures() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const gguf::Translation& t : translations()) all.push_back(t.architecture);
    return all;
  }();
  return names;
}

ConfigFile config_of(const Weights& w, const std::vector<std::string>& ignore) {
  if (!w.gguf()) return ConfigFile(w, ignore);
  const GgufMetadata m(w, ignore);
  for (const gguf::Translation& t : translations()) {
    if (t.architecture != m.architecture()) continue;
    ConfigText c;
    t.write(m, c);
    m.require_all_known();
    return ConfigFile::from_text(w.path() + ": what its metadata mean", c.str(), w.options(), ignore);
  }
  m.fail("general.architecture ", in_quotes(m.architecture()), " is not known; the nearest is ",
         nearest_name(m.architecture(), gguf_architectures()), ", and known are ",
         listed({gguf_architectures().begin(), gguf_architectures().end()}));
}

}  // namespace lc
