#include "lightcone/backends/pjrt/plugin.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "lightcone/base/error.h"

namespace lc::backends::pjrt {
namespace {

constexpr int kOldestMinor = 58;  // it moved functions within the table, and no version since has
constexpr const char* kNames = "PJRT_NAMES_AND_LIBRARY_PATHS";

std::string_view code_name(api::ErrorCode code) {
  static constexpr std::string_view kCodes[] = {
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  const auto k = static_cast<std::size_t>(code);
  return k < std::size(kCodes) ? kCodes[k] : "UNKNOWN";
}

bool is_path(std::string_view s) { return s.find('/') != s.npos || s.find(".so") != s.npos; }

// Returns the path that the environment gives a name.
std::string path_of(const std::string& name) {
  const char* listed = std::getenv(kNames);
  std::string_view rest = listed ? listed : "";
  std::string known;
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(entry.size() + 1, rest.size()));
    const std::size_t colon = entry.find(':');
    if (colon == entry.npos) continue;
    if (entry.substr(0, colon) == name) return std::string(entry.substr(colon + 1));
    known += str_cat(known.empty() ? "" : ", ", entry.substr(0, colon));
  }
  throw Error("pjrt",
              str_cat("no plugin is named '", name, "'; ", kNames, " ", known.empty() ? "names none" : "names " + known,
                      ": give the path of the plugin's library, or set it to 'name:path'"));
}

// Plugins by their tables. Each is initialised once a process, and its library stays.
struct Loaded {
  std::mutex mutex;
  std::map<const api::Api*, std::shared_ptr<const Plugin>> plugins;
};
Loaded& loaded() {
  static Loaded all;
  return all;
}

}  // namespace

Attributes read_attributes(const api::NamedValue* values, std::size_t count) {
  Attributes all;
  for (std::size_t k = 0; k < count; ++k) {
    const api::NamedValue& v = values[k];
    std::string name(v.name, v.name_size);
    switch (v.kind) {
      case api::ValueKind::String: all.emplace(std::move(name), std::string(v.string, v.size)); break;
      case api::ValueKind::Int64: all.emplace(std::move(name), v.int64); break;
      case api::ValueKind::Int64List:
        all.emplace(std::move(name), std::vector<std::int64_t>(v.int64_list, v.int64_list + v.size));
        break;
      case api::ValueKind::Float: all.emplace(std::move(name), v.real); break;
      case api::ValueKind::Bool: all.emplace(std::move(name), v.boolean); break;
    }
  }
  return all;
}

Plugin::Plugin(const api::Api* table, std::string name) : table_(table), name_(std::move(name)) {
  if (!table) throw Error("pjrt", str_cat("'", name_, "' is no plugin that works: its GetPjrtApi() gives nothing"));
  if (table->head.size < offsetof(api::Api, functions))
    throw Error("pjrt", str_cat("the table of functions of '", name_, "' has ", table->head.size,
                                " bytes, which is not even room for its version: take another build of the plugin"));
  const auto& [head, major, minor] = table->version;
  if (major != 0 || minor < kOldestMinor)
    throw Error("pjrt", str_cat("'", name_, "' speaks version ", major, ".", minor, " of PJRT; from 0.", kOldestMinor,
                                " on and below 1.0 it is understood: take another version of the plugin"));
  using api::Function;
  for (const Function f : {Function::ErrorDestroy, Function::EventDestroy, Function::ClientDestroy,
                           Function::ExecutableDestroy, Function::LoadedExecutableDestroy, Function::BufferDestroy})
    function(f, "give back what it makes");
}

std::shared_ptr<const Plugin> Plugin::of(const api::Api* table, std::string name) {
  Loaded& all = loaded();
  const std::lock_guard lock(all.mutex);
  if (const auto it = all.plugins.find(table); it != all.plugins.end()) return it->second;
  std::shared_ptr<Plugin> p(new Plugin(table, std::move(name)));
  p->initialise();
  all.plugins.emplace(table, p);
  return p;
}

std::shared_ptr<const Plugin> Plugin::load(const std::string& path_or_name) {
  if (path_or_name.empty())
    throw Error("pjrt", str_cat("no plugin is named: give the path of its library, or a name that ", kNames, " knows"));
  const std::string path = is_path(path_or_name) ? path_or_name : path_of(path_or_name);
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* why = ::dlerror();
    throw Error("pjrt", str_cat("the plugin '", path, "' cannot be loaded: ", why ? why : "the system does not say why",
                                "; libraries that it needs are looked for in LD_LIBRARY_PATH"));
  }
  const auto get = reinterpret_cast<const api::Api* (*)()>(::dlsym(library, "GetPjrtApi"));
  if (!get) {
    ::dlclose(library);
    throw Error("pjrt",
                str_cat("'", path, "' is a library without a function GetPjrtApi, which is no PJRT plugin: the ",
                        "library of one is named like xla_cuda_plugin.so or lightcone_pjrt.so"));
  }
  return of(get(), path.substr(path.rfind('/') + 1));
}

bool Plugin::has(api::Function f) const {
  const auto k = static_cast<std::size_t>(f);
  return table_->head.size >= offsetof(api::Api, functions) + (k + 1) * sizeof(api::AnyFunction) &&
         table_->functions[k];
}

api::AnyFunction Plugin::function(api::Function f, std::string_view doing) const {
  if (!has(f))
    throw Error("pjrt", str_cat("'", name_, "' cannot ", doing, ": its version of PJRT, 0.", minor_version(),
                                ", has no function ", static_cast<int>(f), "; take a newer version of the plugin"));
  return table_->functions[static_cast<int>(f)];
}

void Plugin::take(api::Error* e, std::string_view doing) const {
  if (!e) return;
  using F = void (*)(void*);
  std::string said;
  if (has(api::Function::ErrorMessage)) {
    api::ErrorMessage message{{sizeof message, nullptr}, e, nullptr, 0, {}};
    reinterpret_cast<F>(table_->functions[static_cast<int>(api::ErrorMessage::function)])(&message);
    if (message.list) said.assign(message.list, message.count);
    while (!said.empty() && (said.back() == '\n' || said.back() == ' ')) said.pop_back();
  }
  api::ErrorGetCode code{{sizeof code, nullptr}, e, api::ErrorCode::Unknown, {}};
  if (has(api::Function::ErrorGetCode)) {
    using G = api::Error* (*)(void*);
    reinterpret_cast<G>(table_->functions[static_cast<int>(api::ErrorGetCode::function)])(&code);
  }
  if (has(api::Function::ErrorDestroy)) {
    api::ErrorDestroy destroy{{sizeof destroy, nullptr}, e, {}};
    reinterpret_cast<F>(table_->functions[static_cast<int>(api::ErrorDestroy::function)])(&destroy);
  }
  throw Error("pjrt", str_cat("'", name_, "' cannot ", doing, ": ", said.empty() ? "it does not say why" : said, " (",
                              code_name(code.value), ")"));
}

void Plugin::initialise() {
  if (!has(api::Function::PluginInitialize)) return;
  api::PluginInitialize args{};
  call(args, "start");
}

Attributes Plugin::attributes() const {
  if (!has(api::Function::PluginAttributes)) return {};
  api::PluginAttributes args{};
  call(args, "name its attributes");
  return read_attributes(args.list, args.count);
}

}  // namespace lc::backends::pjrt
