// A PJRT plugin: a shared library that compiles and runs StableHLO (XLA's for GPUs and TPUs, Lightcone's own), loaded
// when it is named, and the calls of its functions.
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

// What plugins are told, and say of themselves.
using Attribute = std::variant<std::string, std::int64_t, std::vector<std::int64_t>, float, bool>;
using Attributes = std::map<std::string, Attribute>;
Attributes read_attributes(const api::NamedValue* values, std::size_t count);

class Plugin {
 public:
  // By its path, or by a name that the environment variable PJRT_NAMES_AND_LIBRARY_PATHS gives one:
  // "name:path,name2:path2". A plugin stays in the process until that ends. An Error when there is none, when it is not
  // one, or one of a version that is not understood.
  static std::shared_ptr<const Plugin> load(const std::string& path_or_name);
  // One that is in the process already; `table` is what its GetPjrtApi() gave.
  static std::shared_ptr<const Plugin> of(const api::Api* table, std::string name);

  const std::string& name() const { return name_; }
  int minor_version() const { return table_->version.minor; }  // the interface's; the major one is 0
  bool has(api::Function f) const;
  Attributes attributes() const;  // "stablehlo_current_version", "xla_version", ...; none where it says nothing

  // Calls the function that belongs to these arguments, whose head it fills in. What the plugin finds wrong is an Error
  // that says it, behind `doing`: "compile".
  template <class Args>
  void call(Args& args, std::string_view doing) const {
    args.head = {sizeof(Args), nullptr};
    using F = api::Error* (*)(Args*);
    take(reinterpret_cast<F>(function(Args::function, doing))(&args), doing);
  }
  // For destructors: what goes wrong then stays unsaid.
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
