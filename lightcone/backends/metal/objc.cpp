#include "lightcone/backends/metal/objc.h"

#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "lightcone/base/error.h"
#include "lightcone/cache/environment.h"

namespace lc::backends::metal {
namespace {

constexpr const char* kVariable = "LIGHTCONE_METAL";
constexpr const char* kObjc = "/usr/lib/libobjc.A.dylib";
constexpr const char* kMetal = "/System/Library/Frameworks/Metal.framework/Metal";
// A process that draws nothing has a default device only if this is loaded, too.
constexpr const char* kGraphics = "/System/Library/Frameworks/CoreGraphics.framework/CoreGraphics";
constexpr unsigned long kUtf8 = 4;  // NSUTF8StringEncoding

void* open_library(const std::string& path, bool named) {
  if (void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  const char* why = ::dlerror();
  const std::string said = why ? why : "the system does not say why";
  if (named)
    throw Error("metal", str_cat("the library '", path, "' cannot be loaded: ", said, "; MetalOptions::library or ",
                                 kVariable, " names it"));
  throw Error("metal", str_cat("Metal is a framework of macOS, and this system has none (", said,
                               "): compile for another device, cpu() for instance, which is everywhere"));
}

template <class F>
void find(void* library, const std::string& path, const char* name, F& function) {
  function = reinterpret_cast<F>(::dlsym(library, name));
  if (!function)
    throw Error("metal",
                str_cat("'", path, "' has no function ", name,
                        ", so it is not Metal with its Objective-C run time: leave the name of the library empty ",
                        "to use those of macOS 10.14 or newer"));
}

std::string first_lines(const std::string& text) {
  constexpr std::size_t kLines = 12, kBytes = 2000;
  std::size_t end = 0;
  for (std::size_t k = 0; k < kLines && end < text.size(); ++k)
    end = std::min(text.find('\n', end), text.size() - 1) + 1;
  std::string first = text.substr(0, std::min(end, kBytes));
  while (!first.empty() && (first.back() == '\n' || first.back() == ' ')) first.pop_back();
  return first;
}

}  // namespace

const Runtime& Runtime::load(const std::string& path) {
  const std::string library = path.empty() ? env(kVariable) : path;
  // Both live as long as the process: a static object of the program may be a device and is destroyed after these would
  // be.
  static std::mutex& mutex = *new std::mutex;
  static auto& loaded = *new std::map<std::string, std::unique_ptr<const Runtime>>;
  const std::lock_guard lock(mutex);
  if (const auto it = loaded.find(library); it != loaded.end()) return *it->second;
  const bool named = !library.empty();
  const std::string objc_path = named ? library : kObjc, metal_path = named ? library : kMetal;
  void* const objc = open_library(objc_path, named);
  void* const metal = open_library(metal_path, named);
  if (!named) ::dlopen(kGraphics, RTLD_NOW | RTLD_LOCAL);
  std::unique_ptr<Runtime> r(new Runtime);
  find(objc, objc_path, "objc_msgSend", r->send_);
  if (returns_in_memory<Size>()) find(objc, objc_path, "objc_msgSend_stret", r->send_structure_);
  find(objc, objc_path, "sel_registerName", r->register_selector_);
  find(objc, objc_path, "objc_getClass", r->get_class_);
  find(objc, objc_path, "objc_retain", r->retain_);
  find(objc, objc_path, "objc_release", r->release_);
  find(objc, objc_path, "objc_autoreleasePoolPush", r->push_pool_);
  find(objc, objc_path, "objc_autoreleasePoolPop", r->pop_pool_);
  find(metal, metal_path, "MTLCreateSystemDefaultDevice", r->default_device_);
  find(metal, metal_path, "MTLCopyAllDevices", r->all_devices_);
  return *loaded.emplace(library, std::move(r)).first->second;
}

Ref make_string(const Runtime& runtime, std::string_view text) {
  const Id empty = runtime.send(runtime.find_class("NSString"), "alloc");
  const Id string = runtime.send(empty, "initWithBytes:length:encoding:", static_cast<const void*>(text.data()),
                                 static_cast<unsigned long>(text.size()), kUtf8);
  if (!string) throw Error("metal", "Metal makes no string of a text: is it UTF-8?");
  return Ref::owned(runtime, string);
}

std::string text_of(const Runtime& runtime, Id string) {
  const char* text = runtime.send<const char*>(string, "UTF8String");
  return text ? text : "";
}

std::string what(const Runtime& runtime, Id error) {
  const std::string said = first_lines(text_of(runtime, runtime.send(error, "localizedDescription")));
  return said.empty() ? "it does not say why" : said;
}

}  // namespace lc::backends::metal
