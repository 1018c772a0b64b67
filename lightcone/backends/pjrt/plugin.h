// A PJRT plugin: a shared library that compiles and runs StableHLO (XLA's for GPUs and TPUs, Lightcone's own), loaded
// on request, and the calls of its functions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lightcone/backends/pjrt/api.h"

namespace lc::backends::pjrt {

// Options of a plugin, and attributes that it reports.
using Attribute = std::variant<std::string, std::int64_t, std::vector<std::int64_t>, float, bool>;
using Attributes = std::map<std::string, Attribute>;
// Converts a plugin's list of named values.
Attributes read_attributes(const api::NamedValue* values, std::size_t count);

// A plugin in this process. It may be used from several threads.
class Plugin {
 public:
  // Loads a plugin by its path, or by a name that $PJRT_NAMES_AND_LIBRARY_PATHS maps to a path:
  // "name:path,name2:path2". It stays in the process until that ends. Throws Error if there is none, if the library is
  // no plugin, or if its version is not supported.
  static std::shared_ptr<const Plugin> load(const std::string& path_or_name);
  // Takes a plugin that is in the process already; `table` is the result of its GetPjrtApi().
  static std::shared_ptr<const Plugin> of(const api::Api* table, std::string name);

  const std::string& name() const { return name_; }
  int minor_version() const { return table_->version.minor; }  // the interface's minor version; the major one is 0
  // Returns true if the plugin's table has the function.
  bool has(api::Function f) const;
  Attributes attributes() const;  // "stablehlo_current_version", "xla_version", ...; may be empty

  // Calls the function that belongs to these arguments, after filling in their head. Throws Error if the plugin reports
  // a failure; `doing` names the call in the message: "compile".
  template <class Args>
  void call(Args& args, std::string_view doing) const {
    args.head = {sizeof(Args), nullptr};
    using F = api::Error* (*)(Args*);
    take(reinterpret_cast<F>(function(Args::function, doing))(&args), doing);
  }
  // For destructors: ignores failures.
  template <class Args>
  void call_quietly(Args& args) const noexcept {
    try {
      call(args, "free");
    } catch (...) {
    }
  }

 private:
  Plugin(const api::Api* table, std::string name);
  api::AnyFunction function(api::Function f, std::string_view doing) const;
  void take(api::Error* e, std::string_view doing) const;
  void initialise();

  const api::Api* table_;
  std::string name_;
};

}  // namespace lc::backends::pjrt
